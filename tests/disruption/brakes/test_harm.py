"""Pods that were moved and do not run are held against the command that moved them; others are not."""

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.disruption.scenarios import NOW, Scenario, ago, node, pool_of
from tests.factories import pod

from karpool.disruption.brakes.harm import Harm, HarmedPod, found, harmed_by_moves
from karpool.disruption.brakes.ledger import Blame, LedgerEntry, disruption
from karpool.disruption.brakes.owned_pods import OwnedPods
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stops_of import stops_of
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.explain import explain_node
from karpool.disruption.plan import context_of
from karpool.model.labels import HARM
from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.pod import ContainerState, ContainerStatus, Pod, Waiting

AFTER = timedelta(minutes=10)
MOVED = ago(minutes=20)
HARMED = Harm(
    command="c1",
    at=NOW,
    pods=3,
    examples=("default/web-4 is Pending without a node since 11:41 UTC",),
    method="SingleNodeConsolidation",
    nodes="a",
    commands=("c1",),
)


def moved(*pods: Pod, at: datetime = MOVED, command: str = "c1", everywhere: tuple[Pod, ...] = ()) -> LedgerEntry:
    """A command that moved pods."""
    made = disruption(command, "SingleNodeConsolidation", ["a"], pods, at, everywhere=OwnedPods(everywhere))
    return replace(made, committed=True)


def web(number: int, **rest: object) -> Pod:
    """A pod of the ReplicaSet `web`; by default one that ran on node `a` before."""
    return pod(f"web-{number}", **{"node": "a", **rest})  # type: ignore[arg-type]


def new(number: int, minutes: float = 19, **rest: object) -> Pod:
    """A pod of the ReplicaSet `web` that was made so many minutes ago, and waits."""
    return web(number, **{"node": None, "created": ago(minutes=minutes), **rest})


def crashing(made: Pod, restarts: int = 5) -> Pod:
    waiting = ContainerState(waiting=Waiting(reason="CrashLoopBackOff"))
    status = ContainerStatus(name="main", state=waiting, restart_count=restarts)
    return replace(made, status=replace(made.status, container_statuses=(status,)))


def harmed(entries: list[LedgerEntry], *pods: Pod, after: timedelta = AFTER, now: datetime = NOW) -> list[HarmedPod]:
    return [one for _, one in harmed_by_moves([("default", entry) for entry in entries], OwnedPods(pods), after, now)]


def told(entries: list[LedgerEntry], *pods: Pod, now: datetime = NOW) -> list[tuple[str, str]]:
    return [(one.pod, one.why) for one in harmed(entries, *pods, now=now)]


@pytest.mark.parametrize(
    ("successor", "why"),
    [
        (new(2), "is Pending without a node since 11:41 UTC"),
        (new(2, node="b", phase="Pending"), "is Pending since 11:41 UTC"),
        (new(2, node="b", ready=False), "is not ready since 11:41 UTC"),
        (crashing(new(2, node="b")), "is crash-looping since 11:41 UTC"),
    ],
    ids=["no node", "not started", "unready", "crashing"],
)
def test_a_pod_that_took_the_place_of_a_moved_one_and_does_not_run_is_harmed(successor: Pod, why: str) -> None:
    assert told([moved(web(1))], successor) == [("default/web-2", why)]


@pytest.mark.parametrize(
    "successor",
    [
        new(2, node="b"),
        new(2, minutes=9),
        new(2, minutes=21),
        new(2, deleted=NOW),
        new(2, phase="Failed"),
        new(2, node="b", phase="Succeeded", ready=False),
        pod("other-1", created=ago(minutes=19)),
        pod("web-3", created=ago(minutes=19), namespace="elsewhere"),
        pod("web-3", created=ago(minutes=19), owner="Job"),
        pod("web-3", created=ago(minutes=19), owner=None),
    ],
    ids=[
        "runs",
        "not for long",
        "older than the move",
        "being deleted",
        "failed, another one follows",
        "done",
        "of another controller",
        "of another namespace",
        "of another kind",
        "of nobody",
    ],
)
def test_other_pods_are_not_harmed(successor: Pod) -> None:
    assert told([moved(web(1))], successor) == []


def test_pods_that_were_not_well_before_the_move_are_not_held_against_it() -> None:
    assert told([moved(web(1, ready=False))], new(2)) == []
    assert told([moved(crashing(web(1)))], new(2)) == []
    assert len(told([moved(web(1, ready=False), web(2))], new(3), new(4))) == 1


def test_pods_of_a_controller_that_grew_meanwhile_are_not_held_against_the_move() -> None:
    """The first pods after the move take the place of those that moved; these run."""
    assert told([moved(web(1))], new(2, 19, node="b"), new(3, 18), new(4, 17)) == []
    assert [name for name, _ in told([moved(web(1))], new(2, 19), new(3, 18))] == ["default/web-2"]


def test_a_pod_is_held_against_one_command_only() -> None:
    entries = [moved(web(1)), moved(web(2), at=ago(minutes=19, seconds=30), command="c2")]
    assert len(told(entries, new(3))) == 1
    assert len(told(entries, new(3), new(4))) == 2


def since(made: Pod, moment: datetime) -> Pod:
    """A pod that has not been ready since a moment."""
    conditions = tuple(replace(each, status="False", last_transition_time=moment) for each in made.status.conditions)
    return replace(made, status=replace(made.status, conditions=conditions))


def test_a_single_crash_counts_when_it_lasts_and_a_loop_counts_however_often_it_was_ready_between() -> None:
    successor = new(2, node="b")
    assert told([moved(web(1))], since(crashing(successor, restarts=1), ago(minutes=1))) == []
    assert told([moved(web(1))], since(crashing(successor, restarts=1), ago(minutes=11))) != []
    assert told([moved(web(1))], since(crashing(successor, restarts=3), ago(minutes=1))) != []
    assert told([moved(web(1))], since(crashing(new(2, 9, node="b"), restarts=3), ago(minutes=1))) == []


def test_what_ran_and_stopped_to_be_ready_long_after_counts_from_then() -> None:
    assert told([moved(web(1))], since(new(2, node="b"), ago(minutes=3))) == []


def test_of_an_active_and_a_passive_replica_one_is_never_ready_and_that_is_no_harm() -> None:
    """The active one moves, the passive one takes over, and the one that comes is passive from now on."""
    active, passive = web(1), web(2, node="b", ready=False)
    took_over, came = web(2, node="b"), new(3, node="c", ready=False)
    assert told([moved(active, everywhere=(active, passive))], took_over, came) == []
    assert told([moved(active, everywhere=(active, passive))], passive, came) != []
    assert told([moved(passive, everywhere=(active, passive))], active, new(3, node="c", ready=False)) == []


def test_several_moves_of_a_controller_are_compared_with_how_it_was_before_the_first() -> None:
    """At the second move nothing was well or unwell for good: the passive one had taken over, the new one started."""
    active, passive = web(1), web(2, node="b", ready=False)
    first = moved(active, everywhere=(active, passive))
    second = moved(web(2), at=ago(minutes=15), command="c2", everywhere=(web(2),))
    assert told([first, second], new(3, node="c", ready=False), new(4, 14, node="d")) == []
    assert len(told([first, second], new(3, node="c", ready=False), new(4, 14, node="d", ready=False))) == 1


def test_pods_that_had_just_been_made_excuse_nothing_and_those_that_waited_for_long_do() -> None:
    def entry(minutes: float) -> LedgerEntry:
        siblings = [web(number, node=None, created=MOVED - timedelta(minutes=minutes)) for number in range(3, 6)]
        return moved(web(1), everywhere=(*siblings, pod("other-1", ready=False), pod("web-1", namespace="elsewhere")))

    assert [list(entry(minutes).owners.values()) for minutes in (1, 11)] == [[(1, 0, 4)], [(1, 3, 4)]]
    assert len(told([entry(1)], new(6))) == 1
    assert told([entry(11)], new(6)) == []


def test_a_pod_that_a_command_moved_in_two_pools_counts_in_one() -> None:
    entries = [("one", moved(web(1))), ("two", moved(web(2)))]
    counted = [
        [(pool, one.pod) for pool, one in harmed_by_moves(entries, OwnedPods(pods), AFTER, NOW)]
        for pods in ((new(3), web(4)), (new(3), new(4)))
    ]
    assert counted == [[("one", "default/web-3")], [("one", "default/web-3"), ("two", "default/web-4")]]


def test_pods_that_left_late_in_a_slow_drain_are_looked_after() -> None:
    slow = replace(moved(web(1), web(2), at=ago(hours=2)), at=ago(minutes=20))
    assert [name for name, _ in told([slow], new(3, 110, node="b"), new(4, 19))] == ["default/web-4"]


@pytest.mark.parametrize("hours", [1, 3])
def test_pods_that_may_take_hours_are_looked_after_for_twice_as_long(hours: int) -> None:
    after = timedelta(hours=hours)
    entry = moved(web(1), at=NOW - after - timedelta(minutes=2))
    successor = new(2, 60 * hours + 1)
    assert len(harmed([entry], successor, after=after)) == 1
    assert harmed([entry], successor, after=after, now=NOW + 2 * after) == []


def test_moves_are_looked_after_for_an_hour_and_longer_only_if_they_did_harm() -> None:
    old = moved(web(1), at=ago(minutes=61))
    waits = new(2, 60)
    assert told([old], waits) == []
    assert told([replace(old, blame=Blame.BLAMED)], waits) != []
    assert told([replace(moved(web(1)), blame=Blame.FORGIVEN)], new(2)) == []
    assert told([replace(moved(web(1)), committed=False)], new(2)) == []


def stopped(*harms: Harm, settings: BrakeSettings | None = None) -> list[tuple[str, str | None, str]]:
    pools = tuple(pool_of(f"p{number}", annotations={HARM: harm.written()}) for number, harm in enumerate(harms))
    return [
        (str(s.code), s.pool, s.message) for s in stops_of(Objects(node_pools=pools), settings or BrakeSettings(), NOW)
    ]


def test_a_pool_that_did_harm_is_stopped_and_says_which_command_did_it_and_what_lets_go() -> None:
    ((code, pool, message),) = stopped(HARMED)
    assert (code, pool) == ("HarmDone", "p0")
    assert message == (
        "is stopped: command c1 (SingleNodeConsolidation of a) has done harm: default/web-4 is Pending without a node "
        "since 11:41 UTC and 2 more. It goes on when all of them have run for 15m, when the annotation "
        "karpool.sh/harm is removed, or at 2026-06-16 12:00 UTC"
    )
    assert stopped(HARMED, settings=BrakeSettings(harmed_pods=0)) == []


def test_several_pools_or_many_pods_stop_everything() -> None:
    assert [pool for _, pool, _ in stopped(HARMED, HARMED)] == [None, "p0", "p1"]
    many = replace(HARMED, pods=10)
    assert [pool for _, pool, _ in stopped(many)] == [None, "p0"]
    assert [pool for _, pool, _ in stopped(many, settings=BrakeSettings(harmed_pods_everywhere=11))] == ["p0"]


def test_what_was_found_is_written_with_the_worst_command() -> None:
    entries = [moved(web(1)), moved(web(2), web(3), at=ago(minutes=19, seconds=30), command="c2")]
    bad = harmed(entries, new(4, 19.9), new(5), new(6))
    harm = found(entries, bad, None, NOW)
    assert (harm.command, harm.pods, harm.commands, harm.nodes) == ("c2", 3, ("c1", "c2"), "a")
    assert found(entries, bad[:1], harm, NOW + AFTER).at == NOW


def test_what_cannot_be_read_keeps_its_pool() -> None:
    broken = pool_of("default", annotations={HARM: "[]"})
    (stop,) = stops_of(Objects(node_pools=(broken,)), BrakeSettings(), NOW)
    assert (stop.code, stop.pool, stop.halts) == ("HarmInvalid", "default", True)
    assert stop.message.endswith("nothing is disrupted until the annotation is removed")


def test_explain_shows_the_harm() -> None:
    pool: NodePool = pool_of("default", annotations={HARM: HARMED.written()})
    scenario = Scenario("explained", nodes=[node("a")], pools=(pool,))
    context = context_of(
        scenario.objects, scenario.catalog, now=NOW, settings=scenario.settings, options=scenario.options
    )
    told_of = explain_node(DecisionPass(context), context.candidate(context.snapshot.nodes.rows["a"]))
    (failed,) = [rule for rule in told_of.outcomes if not rule.passed]
    assert failed.reason is not None
    assert failed.reason.code == "HarmDone"
    assert "command c1" in failed.reason.message
