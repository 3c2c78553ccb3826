"""A pool is left alone for a while after it grew or a launch of it failed, and a node after a command launched it."""

import dataclasses
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.disruption.scenarios import NOW, Scenario, ago, node, pool_of
from tests.factories import node_claim

from karpool.disruption.brakes.launch_failures import (
    FailedLaunch,
    LaunchTimes,
    claims_to_tell,
    launch_failure,
    remembered_launch,
)
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stop import Stops
from karpool.disruption.brakes.stops_of import stops_of
from karpool.model.labels import FAILED_LAUNCH, LAUNCHED_FOR
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.wire.objects import Condition

BESIDE = BrakeSettings(launched_by_others=True)
GROWTH = BrakeSettings(after_scale_up=timedelta(minutes=1))
OFF = BrakeSettings(after_scale_up=timedelta(0), after_replacement=timedelta(0), after_failed_launch=timedelta(0))


def stops(*claims: NodeClaim, now: datetime = NOW, settings: BrakeSettings | None = None) -> Stops:
    return stops_of(Objects(node_claims=claims), settings or BrakeSettings(), now)


def test_a_pool_that_grew_waits_and_says_for_which_node() -> None:
    claims = (node_claim("old"), node_claim("new", created=ago(seconds=20)), node_claim("b", pool="other"))
    stop = stops(*claims, settings=GROWTH).of("default")
    assert stop is not None
    assert (stop.code, stop.message) == ("CoolingDown", "cools down until 12:00:40 UTC: it grew by NodeClaim new")
    assert stop.until == NOW + timedelta(seconds=40)
    assert not stop.halts
    assert stops(*claims, settings=GROWTH).of("other") is None
    assert not stops(*claims, now=NOW + timedelta(seconds=40), settings=GROWTH)
    assert not stops(*claims, settings=OFF)


def test_a_replacement_of_a_command_is_no_growth() -> None:
    assert not stops(node_claim("new", created=NOW, annotations={LAUNCHED_FOR: "c1"}), settings=GROWTH)


def test_beside_another_controller_a_node_that_a_command_launched_is_kept_for_ten_minutes_unless_it_is_empty() -> None:
    claim = node_claim("new", created=ago(minutes=4), annotations={LAUNCHED_FOR: "c1"})
    launched = replace(claim, status=replace(claim.status, node_name="node-1"))
    stop = stops(launched, settings=BESIDE).of("default", "node-1")
    assert stop is not None
    said = "is kept until 12:06 UTC: a command launched it at 11:56 UTC"
    assert (stop.code, stop.message, stop.object) == ("CoolingDown", said, "Node node-1")
    assert stops(launched, settings=BESIDE).of("default", "node-1", empty=True) is None
    assert stops(launched, settings=BESIDE).of("default", "another") is None
    assert stops(launched, settings=BESIDE).next_release(NOW) == NOW + timedelta(minutes=6)
    assert not stops(launched, now=NOW + timedelta(minutes=6), settings=BESIDE)
    assert not stops(launched, settings=dataclasses.replace(BESIDE, after_replacement=timedelta(0)))
    assert not stops(launched), "nobody else provisions"
    assert not stops(claim, settings=BESIDE), "it has no node yet, and so there is nothing to keep"


def failing(at: datetime, *pool: NodeClaim, settings: BrakeSettings | None = None) -> FailedLaunch:
    return remembered_launch("lost", "no capacity", pool, settings or BrakeSettings(), at)


def _remembers(at: datetime, since: datetime | None = None) -> dict[str, str]:
    return {FAILED_LAUNCH: replace(failing(at), since=since).written()}


def test_a_pool_waits_after_a_failed_launch_and_says_which() -> None:
    claims = (node_claim("a", annotations=_remembers(ago(minutes=5))), node_claim("b", annotations=_remembers(NOW)))
    stop = stops(*claims).of("default")
    assert stop is not None
    assert stop.message == "cools down until 12:03 UTC: the launch of NodeClaim lost failed (no capacity)"
    assert not stops(*claims, now=NOW + timedelta(minutes=3))
    assert not stops(*claims, settings=OFF)


def test_launches_that_fail_for_ever_stop_a_pool_for_a_quarter_of_an_hour_and_no_longer() -> None:
    claim, end = node_claim("a"), NOW + timedelta(minutes=15)
    for seconds in range(0, 7200, 30):
        now = NOW + timedelta(seconds=seconds)
        if claims_to_tell([claim], failing(now, claim)):
            claim = _with_memory(claim, failing(now, claim))
        assert (stops(claim, now=now).of("default") is not None) is (now < end), now


def test_launches_that_fail_again_after_an_hour_without_failures_are_a_new_row() -> None:
    known = node_claim("a", annotations=_remembers(NOW, since=ago(hours=3)))
    assert failing(NOW + timedelta(minutes=59), known).since == ago(hours=3)
    later = NOW + timedelta(hours=1)
    assert failing(later, known).row_since == later
    patient = BrakeSettings(after_failed_launch=timedelta(hours=2))
    assert failing(later, known, settings=patient).since == ago(hours=3)


def test_a_row_of_failures_is_written_down_less_often_the_longer_it_lasts() -> None:
    long = node_claim("a", annotations=_remembers(NOW, since=ago(days=1)))
    assert claims_to_tell([long], failing(NOW + timedelta(minutes=9), long)) == ()
    assert claims_to_tell([long], failing(NOW + timedelta(minutes=10), long)) == ["a"]


def test_empty_nodes_go_while_launches_fail_because_nothing_is_launched_for_them() -> None:
    held = stops(node_claim("a", annotations=_remembers(NOW)))
    assert held.of("default", empty=True) is None
    nodes = [node("a", claim={"annotations": _remembers(NOW)}), node("used", "large", pods=1)]
    plan = Scenario("failed launch", nodes=nodes).plan(most_steps=None)
    assert [step.command.nodes for step in plan.steps] == [("a",)]
    assert [reason.code for fate in plan.fates if fate.step is None for reason in fate.reasons] == ["CoolingDown"]


def test_a_static_pool_keeps_its_empty_nodes_while_launches_fail() -> None:
    fixed, drifted = pool_of(replicas=1), {"drifted": ago(hours=1)}
    assert Scenario("replaced", nodes=[node("a", claim=drifted)], pools=[fixed]).plan().steps
    braked = {**drifted, "annotations": _remembers(NOW)}
    assert Scenario("kept", nodes=[node("a", claim=braked)], pools=[fixed]).plan().steps == ()


def _with_memory(claim: NodeClaim, failed: FailedLaunch) -> NodeClaim:
    return replace(claim, metadata=replace(claim.metadata, annotations={FAILED_LAUNCH: failed.written()}))


def test_a_memory_that_cannot_be_read_stops_the_pool_and_says_so() -> None:
    stop = stops(node_claim("a", annotations={FAILED_LAUNCH: "?"})).of("default")
    assert stop is not None
    assert stop.object == "NodeClaim a"
    assert "only empty nodes of its pool go until the annotation is removed" in stop.message


def _with(claim: NodeClaim, reason: str, message: str = "") -> NodeClaim:
    launched = Condition(type="Launched", status="Unknown", reason=reason, message=message)
    return replace(claim, status=replace(claim.status, conditions=(launched,)))


def _untouched(created: datetime) -> NodeClaim:
    """A claim that nobody has done anything about."""
    claim = node_claim("a", launched=False, created=created)
    return replace(claim, status=replace(claim.status, conditions=()))


TIMES = LaunchTimes(launch=timedelta(minutes=5), registration=timedelta(minutes=15))
PENDING = _untouched(created=ago(minutes=4))
FAILING = _with(PENDING, "LaunchFailed", "bad subnet")
LATE = _untouched(created=ago(minutes=5))
NO_NODE = node_claim("a", created=ago(minutes=15))


def _deleted(claim: NodeClaim) -> NodeClaim:
    return replace(claim, metadata=replace(claim.metadata, deletion_timestamp=NOW))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (None, PENDING, None),
        (PENDING, FAILING, "bad subnet"),
        (FAILING, FAILING, None),
        (FAILING, _deleted(FAILING), None),
        (PENDING, _deleted(FAILING), "bad subnet"),
        (PENDING, _with(PENDING, "NoSubnet"), "NoSubnet"),
        (PENDING, _with(PENDING, "AwaitingReconciliation"), None),
        (LATE, _deleted(LATE), "it was not launched within 5m"),
        (LATE, None, "it was not launched within 5m"),
        (_with(LATE, "LaunchFailed", "bad subnet"), None, "bad subnet"),
        (LATE, LATE, None),
        (NO_NODE, None, "its node did not register within 15m"),
        (_deleted(LATE), None, None),
        (node_claim("a", registered=True, created=ago(hours=1)), None, None),
    ],
)
def test_what_shows_that_a_launch_failed(old: NodeClaim | None, new: NodeClaim | None, told: str | None) -> None:
    assert launch_failure(old, new, TIMES, NOW) == told


@pytest.mark.parametrize("claim", [PENDING, node_claim("a", created=ago(minutes=14))])
def test_a_claim_that_somebody_deletes_before_its_time_is_over_has_not_failed(claim: NodeClaim) -> None:
    assert launch_failure(claim, _deleted(claim), TIMES, NOW) is None
    assert launch_failure(claim, None, TIMES, NOW) is None


def test_the_oldest_claims_remember_it_and_not_more_often_than_every_half_minute() -> None:
    pool = [node_claim(name, created=ago(hours=hours)) for name, hours in zip("abcde", (1, 5, 2, 4, 3), strict=True)]
    failed = replace(failing(NOW), claim="b")
    assert claims_to_tell(pool, failed) == ["d", "e", "c"]
    knows = [_with_memory(pool[0], failing(ago(seconds=29))), *pool[1:]]
    assert claims_to_tell(knows, failed) == ()
    assert claims_to_tell(knows, replace(failed, at=NOW + timedelta(seconds=1))) == ["d", "e", "c"]
    assert claims_to_tell([_deleted(LATE)], failed) == []
