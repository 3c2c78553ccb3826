"""A quota or a webhook refuses every new NodeClaim of commands: what failed is not repeated as if it had not."""

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests.virtual.worlds import HOUR, checked_cluster

from karpool.controller.observer import DecisionObserver
from karpool.disruption.brakes.failures import FailureCause
from karpool.disruption.decide import Decision
from karpool.execution import actions as a
from karpool.execution.state import RolledBack
from karpool.execution.tickets import COMMAND, REPLACES

QUOTA = "exceeded quota: claims, requested: count/nodeclaims=1, used: 4, limited: 4"
# What is left when the large pod has gone would fit on a smaller node, and on no other.
STORY = (
    "workloads: [{name: web, cpu: 1200m, memory: 1Gi}, {name: big, cpu: 4, memory: 1Gi,"
    " replicas: {steps: [{after: 0s, value: 1}, {after: 20m, value: 0}]}}]"
)


class Heard(DecisionObserver):
    """What an observer hears of commands and brakes."""

    def __init__(self) -> None:
        self.failed: list[RolledBack] = []
        self.stops: Counter[tuple[str, str | None]] = Counter()

    def command_failed(self, command: RolledBack) -> None:
        self.failed.append(command)

    def pass_finished(self, decision: Decision) -> None:
        self.stops.update({(stop.code, stop.pool) for stop in decision.stops})


def _replacement(action: a.Action) -> str | None:
    return QUOTA if isinstance(action, a.CreateClaim) and REPLACES in action.claim.metadata.annotations else None


def _ticket(action: a.Action) -> str | None:
    """A webhook that refuses every change of NodeClaims by commands."""
    written = isinstance(action, a.Annotate) and action.key == COMMAND and action.value is not None
    return "admission webhook denied the request" if written else _replacement(action)


def _ledger(action: a.Action) -> str | None:
    """A role that does not let NodePools be written."""
    return "nodepools is forbidden" if isinstance(action, a.NoteDisruption) else None


@pytest.mark.parametrize(
    ("admission", "cause"),
    [
        (_replacement, FailureCause.REPLACEMENT_REFUSED),
        (_ticket, FailureCause.NOT_MARKED),
        (_ledger, FailureCause.NOT_MARKED),
    ],
    ids=["quota for NodeClaims", "webhook against tickets", "role without NodePools"],
)
def test_a_refused_command_is_told_each_time_and_tried_less_and_less_often(admission: object, cause: str) -> None:
    cluster, invariants = checked_cluster(STORY)
    heard, tainted = Heard(), list[tuple[str, datetime]]()
    cluster.controller.observers.append(heard)
    cluster.actuator.observers.append(
        lambda action: tainted.append((action.node, cluster.now)) if isinstance(action, a.AddTaint) else None
    )
    cluster.run(1000)
    assert heard.failed == []
    cluster.actuator.admission = admission  # type: ignore[assignment]
    tainted.clear()
    cluster.run(2.5 * HOUR)
    assert {entry.failure.cause for entry in heard.failed} == {cause}
    # After 3, 6, 12 minutes and so on, up to an hour: a handful in two hours, not one every 26 seconds.
    assert 3 <= len(heard.failed) <= 14
    assert len({entry.ticket.id for entry in heard.failed}) == len(heard.failed)
    times = Counter(name for name, _ in tainted)
    assert all(count <= 6 for count in times.values()), times
    invariants.expect_nothing_left_over()
    if cause == FailureCause.REPLACEMENT_REFUSED:
        assert heard.failed[0].failure.message.endswith(QUOTA)
        assert ("CoolingDown", "general") in heard.stops
    cluster.actuator.admission = lambda _: None
    price = cluster.recorder.samples[-1].price_per_hour
    cluster.run(4.5 * HOUR)
    assert cluster.recorder.samples[-1].price_per_hour < price


def test_a_new_controller_goes_on_counting() -> None:
    cluster, _ = checked_cluster(STORY)
    heard = Heard()
    cluster.controller.observers.append(heard)
    cluster.run(1000)
    cluster.actuator.admission = _replacement
    while not heard.failed:
        cluster.run(cluster.queue.time + 10)
    cluster.controller.stop()
    cluster.controller.start()
    failed = cluster.now
    while len(heard.failed) < 2:
        cluster.run(cluster.queue.time + 10)
    assert heard.failed[1].failure.pool_tries == 2
    assert cluster.now - failed >= timedelta(minutes=2, seconds=30)


def test_a_back_off_of_hours_goes_on_counting() -> None:
    cluster, _ = checked_cluster(STORY)
    settings, hours = cluster.controller.settings, timedelta(hours=3)
    brakes = replace(settings.brakes, after_failure=hours, longest_after_failure=2 * hours)
    cluster.controller.settings = replace(settings, brakes=brakes)
    heard = Heard()
    cluster.controller.observers.append(heard)
    cluster.run(1000)
    cluster.actuator.admission = _replacement
    cluster.run(4 * HOUR)
    assert [entry.failure.pool_tries for entry in heard.failed] == [1, 2]
