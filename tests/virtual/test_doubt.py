"""While the time is in doubt, nothing that passing time would allow happens."""

import pytest
from tests.virtual.doubt import DoubtfulClock, UncertainClock
from tests.virtual.worlds import CATALOG, HOUR, POOL, scenario

from karpool.execution import actions as a
from karpool.virtual.cluster import VirtualCluster

SHRINKS = (
    "workloads: [{name: web, cpu: 900m, memory: 1Gi,"
    " replicas: {steps: [{after: 0s, value: 12}, {after: 20m, value: 2}]}}]"
)
STEADY = "workloads: [{name: web, cpu: 900m, memory: 1Gi, replicas: {steps: [{after: 0s, value: 12}]}}]"
EXPIRING = POOL.replace("spec:\n        requirements", "spec:\n        expireAfter: 40m\n        requirements").replace(
    'budgets: [{nodes: "2"}]', 'budgets: [{nodes: "0"}]'
)
GONE = (a.DeleteClaim, a.DeleteNode, a.EvictPod, a.DeletePod, a.TerminateInstance)


def deeds(text: str, pools: str, *, begins: float, ends: float) -> list[tuple[float, str]]:
    """When the controller asked for something that cannot be undone, or marked a node for it."""
    cluster = VirtualCluster(scenario(text, pools=pools), CATALOG, seed=0)
    cluster.controller.clock = DoubtfulClock(cluster.queue, begins=begins, ends=ends)
    done: list[tuple[float, str]] = []

    def note(action: a.Action) -> None:
        marks = isinstance(action, a.AddTaint) or (isinstance(action, a.SetClaimCondition) and _allows(action))
        if marks or isinstance(action, GONE):
            done.append((cluster.queue.time, type(action).__name__))

    cluster.actuator.observers.append(note)
    cluster.run(2 * HOUR)
    return done


def _allows(action: a.SetClaimCondition) -> bool:
    return action.type in ("Consolidatable", "DisruptionReason")


def within(done: list[tuple[float, str]], begins: float, ends: float) -> list[tuple[float, str]]:
    return [entry for entry in done if begins <= entry[0] < ends]


def test_no_claim_expires_while_the_time_is_in_doubt_and_all_do_when_it_is_certain() -> None:
    doubt = 0.5 * HOUR, 1.5 * HOUR
    certain = deeds(STEADY, EXPIRING, begins=0.0, ends=0.0)
    assert "DeleteClaim" in {name for _, name in within(certain, *doubt)}
    done = deeds(STEADY, EXPIRING, begins=doubt[0], ends=doubt[1])
    assert within(done, *doubt) == []
    assert "DeleteClaim" in {name for _, name in within(done, doubt[1], 2 * HOUR)}


@pytest.mark.slow
def test_nothing_is_consolidated_while_the_time_is_in_doubt() -> None:
    doubt = 0.3 * HOUR, 1.0 * HOUR
    certain = deeds(SHRINKS, POOL, begins=0.0, ends=0.0)
    assert {"AddTaint", "DeleteClaim", "SetClaimCondition"} <= {name for _, name in within(certain, *doubt)}
    done = deeds(SHRINKS, POOL, begins=doubt[0], ends=doubt[1])
    assert within(done, *doubt) == []
    assert {"AddTaint", "DeleteClaim"} <= {name for _, name in within(done, doubt[1], 2 * HOUR)}


def test_a_drain_goes_on_soon_after_a_doubt_in_which_it_may_have_been_an_hour_earlier() -> None:
    """What was planned by that time must not wait for it when the time is certain again."""
    text = SHRINKS.replace("memory: 1Gi,", "memory: 1Gi, protection: {minAvailable: 9},")
    cluster = VirtualCluster(scenario(text), CATALOG, seed=0)
    cluster.queue.at(600.0, lambda: cluster.api.delete(cluster.store.claims, cluster.store.claims.listed()[0].key))
    cluster.controller.clock = DoubtfulClock(cluster.queue, begins=601.0, ends=660.0, back=HOUR)
    cluster.run(0.25 * HOUR)
    assert [node.name for node in cluster.store.nodes if node.terminating] == []


def test_no_node_is_marked_once_a_window_that_forbids_it_has_begun_by_any_clock() -> None:
    text = SHRINKS.replace("12}, {after: 20m", "40}, {after: 20m")
    every_third_minute = '{nodes: "0", schedule: "*/3 * * * *", duration: 1m}'
    pools = POOL.replace('budgets: [{nodes: "2"}]', f"budgets: [{every_third_minute}]")
    cluster = VirtualCluster(scenario(text, pools=pools), CATALOG, seed=0)
    cluster.controller.clock = UncertainClock(cluster.queue, seconds=15.0)
    marked: list[float] = []
    cluster.actuator.observers.append(
        lambda action: marked.append(cluster.queue.time) if isinstance(action, a.AddTaint) else None
    )
    cluster.run(0.75 * HOUR)
    begun = cluster.queue.start
    seconds = [(begun.minute * 60 + begun.second + time) % 180 for time in marked]
    assert seconds
    assert min(seconds) >= 60.0
