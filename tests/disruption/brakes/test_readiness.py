"""Who is away: pods that commands moved and that are not ready elsewhere; and who else may go."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.factories import pod

from karpool.disruption.brakes.ledger import LedgerEntry, Moved, disruption
from karpool.disruption.brakes.owned_pods import OwnedPods, owner_key
from karpool.disruption.brakes.readiness import Away, Held, Lapse, LetGo, Pacing, WorkloadReadiness, awaited
from karpool.disruption.brakes.wellness import unwell
from karpool.model.pod import Pod

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
MOVED = NOW - timedelta(minutes=1)
PACING = Pacing()


def web(number: int, **given: object) -> Pod:
    return pod(f"web-{number}", node="a", **given)  # type: ignore[arg-type]


def new(number: int, minutes: float = 0.5, *, ready: bool = False, node: str | None = "b") -> Pod:
    return pod(f"web-{number}", node=node, ready=ready, created=NOW - timedelta(minutes=minutes))


def entry(moving: list[Pod], everywhere: list[Pod], command: str = "c1") -> LedgerEntry:
    return replace(disruption(command, "Drift", ["a"], moving, MOVED, everywhere=OwnedPods(everywhere)), committed=True)


def away(
    pods: list[Pod],
    *entries: LedgerEntry,
    pacing: Pacing = PACING,
    here: int = 0,
    leaving: int = 0,
    lapses: dict[str, Lapse] | None = None,
) -> Away:
    key = str(owner_key(web(0)))
    return Away(
        WorkloadReadiness(pods), entries, pacing, NOW, here={key: here}, leaving={key: leaving}, lapses=lapses or {}
    )


def free(asked: Away, pods: list[Pod]) -> int:
    """How many of these pods may go now."""
    return sum(isinstance(asked.ask(each), LetGo) for each in pods)


def test_a_quarter_of_a_workload_may_go_at_a_time_and_at_least_one_pod() -> None:
    for size, most in ((1, 1), (2, 1), (3, 1), (4, 1), (7, 1), (8, 2), (20, 5)):
        pods = [web(number) for number in range(size)]
        assert free(away(pods, entry(pods, pods), here=size), pods) == most


def test_pods_that_went_count_until_their_replacements_are_ready() -> None:
    pods = [web(number) for number in range(8)]
    noted = entry(pods, pods)
    left = pods[2:]
    assert free(away(left, noted, here=6), left) == 0
    assert free(away([*left, new(8), new(9)], noted, here=6), left) == 0
    assert free(away([*left, new(8, ready=True), new(9)], noted, here=6), left) == 1
    assert free(away([*left, new(8, ready=True), new(9, ready=True)], noted, here=6), left) == 2


def test_a_pod_that_ends_is_gone_though_it_is_still_there() -> None:
    pods = [web(number) for number in range(8)]
    ending = [replace(each, metadata=replace(each.metadata, deletion_timestamp=NOW)) for each in pods[:2]]
    assert free(away([*ending, *pods[2:]], entry(pods, pods), here=6), pods[2:]) == 0


def test_an_eviction_that_is_not_seen_yet_counts() -> None:
    pods = [web(number) for number in range(8)]
    assert free(away(pods, entry(pods, pods), here=8, leaving=1), pods) == 1
    assert free(away(pods, entry(pods, pods), here=8, leaving=2), pods) == 0


def test_pods_that_nobody_misses_may_always_go() -> None:
    pods = [web(number) for number in range(4)]
    noted, none_left = entry(pods, pods), pods[1:]
    asked = away(none_left, noted, here=3)
    unready, daemon, alone = web(9, ready=False), pod("agent-1", owner="DaemonSet"), pod("alone", owner=None)
    assert free(asked, [unready, daemon, alone]) == 3
    assert isinstance(asked.ask(pods[1]), Held)


def test_pods_that_were_not_well_before_hold_nobody_back() -> None:
    pods = [web(number) for number in range(8)]
    sick = [pod(f"web-{number}", node="c", ready=False, created=NOW - timedelta(hours=1)) for number in range(10, 14)]
    noted = entry(pods, [*pods, *sick])
    assert free(away([*pods, *sick], noted, here=8), pods) == 3


def test_more_than_went_is_not_waited_for() -> None:
    """A workload that was made smaller, or larger, owes nothing to a command that moved one of its pods."""
    pods = [web(number) for number in range(40)]
    noted = entry(pods[:1], pods)
    one_bound = Pacing(pods_percent=0)
    assert free(away(pods[11:], noted, pacing=one_bound), pods[11:]) == 6
    grown = [*pods[1:], *(new(number) for number in range(50, 70))]
    assert free(away(grown, noted, pacing=one_bound), pods[1:]) == 13


def test_replacements_that_are_not_ready_in_time_are_not_waited_for() -> None:
    pods = [web(number) for number in range(4)]
    noted = replace(entry(pods, pods), since=NOW - timedelta(minutes=10))
    waiting = away([*pods[1:], new(8, minutes=4.9)], noted, here=3)
    assert isinstance(waiting.ask(pods[1]), Held)
    over = away([*pods[1:], new(8, minutes=5, node=None)], noted, here=3)
    assert over.ask(pods[1]) == LetGo("the replacements of 1 pods were not ready within 5m")
    assert isinstance(over.ask(pods[2]), Held)


def test_replacements_that_nobody_makes_are_not_waited_for_either() -> None:
    pods = [web(number) for number in range(8)]
    key, noted, left = str(owner_key(web(0))), entry(pods, pods), pods[2:]
    first = away(left, noted, here=6)
    assert first.lapses == {key: Lapse(2, NOW)}
    since = NOW - timedelta(minutes=5)
    assert free(away(left, noted, here=6, lapses={key: Lapse(2, since + timedelta(seconds=1))}), left) == 0
    over = away(left, noted, here=6, lapses={key: Lapse(2, since)})
    assert over.lapses == {key: Lapse(2, since, given_up=2)}
    assert free(over, left) == 1  # of six: two will not come back
    # The next wave is waited for as long as the first.
    more = away(left[1:], noted, here=5, lapses=over.lapses)
    assert more.lapses == {key: Lapse(3, NOW, given_up=2)}
    assert free(more, left[1:]) == 0


def test_a_later_command_does_not_take_missing_pods_for_a_smaller_workload() -> None:
    pods = [web(number) for number in range(8)]
    left = pods[2:]
    later = replace(entry(left[:1], left, "c2"), since=NOW)
    assert free(away(left, entry(pods, pods), later, here=7), left) == 0


def test_pods_of_all_workloads_together_are_bounded() -> None:
    pods = [pod(f"app{number}-1", node="a") for number in range(400)]
    noted = replace(disruption("c1", "Drift", ["a"], pods, MOVED, everywhere=OwnedPods(pods)), committed=True)
    here = dict.fromkeys(noted.owners, 1)
    asked = Away(WorkloadReadiness(pods), [noted], PACING, NOW, here=here, leaving={}, lapses={})
    assert free(asked, pods) == 20
    refused = asked.ask(pods[-1])
    assert refused == Held("20 pods that commands moved are away, and no more than 20 may be")
    few = pods[:30]
    here = dict.fromkeys([str(owner_key(each)) for each in few], 1)
    asked = Away(WorkloadReadiness(few), [noted], PACING, NOW, here=here, leaving={}, lapses={})
    assert free(asked, few) == 0  # 370 are missing


def test_a_small_cluster_may_have_ten_pods_away() -> None:
    pods = [pod(f"app{number}-1", node="a") for number in range(30)]
    asked = Away(WorkloadReadiness(pods), [], PACING, NOW, here={}, leaving={}, lapses={})
    assert free(asked, pods) == 10


def test_each_bound_can_be_switched_off() -> None:
    pods = [web(number) for number in range(40)]
    noted = entry(pods, pods)
    assert free(away(pods, noted, here=40, pacing=Pacing(workload_percent=0)), pods) == 10
    assert free(away(pods, noted, here=40, pacing=Pacing(workload_percent=50, pods_percent=0)), pods) == 20
    assert Pacing(workload_percent=0, pods_percent=0).off
    assert Pacing(ready_within=timedelta(0)).off
    assert not PACING.off


def test_a_job_that_ends_leaves_nobody_waiting() -> None:
    pods = [pod(f"job-{number}", node="a", owner="Job") for number in range(4)]
    noted = replace(disruption("c1", "Drift", ["a"], pods, MOVED, everywhere=OwnedPods(pods)), committed=True)
    left = [pods[3]]
    asked = Away(
        WorkloadReadiness(left), [noted], PACING, NOW, here={owner_key(pods[0]) or "": 1}, leaving={}, lapses={}
    )
    assert free(asked, left) == 1


def test_a_workload_that_no_ledger_names_is_judged_by_its_pods() -> None:
    pods = [web(number) for number in range(8)]
    assert free(away(pods), pods) == 2
    assert free(away([*pods, new(8), new(9)]), pods) == 0


def test_a_ledger_that_says_nothing_of_replicas_is_read() -> None:
    assert Moved(2, 1) == (2, 1, 0)
    pods = [web(number) for number in range(8)]
    old = LedgerEntry(command="c1", since=MOVED, at=MOVED, committed=True, owners={str(owner_key(web(0))): Moved(2)})
    assert free(away(pods, old, here=2), pods) == 2


def test_a_node_whose_pods_go_at_once_goes_when_nobody_else_is_away() -> None:
    pods = [web(number) for number in range(8)]
    noted = entry(pods, pods)
    asked = away(pods, noted, here=8)
    assert isinstance(asked.ask_all(pods[:4]), LetGo)
    assert isinstance(asked.ask_all(pods[4:]), Held)
    assert isinstance(asked.ask_all([web(9, ready=False)]), LetGo)
    assert isinstance(
        away([*pods[4:], *(new(n, ready=True) for n in range(8, 12))], noted, here=4).ask_all(pods[4:]), LetGo
    )


@pytest.mark.parametrize(("minutes", "counts"), [(0.0, True), (5.9, True), (6.0, False)])
def test_moves_count_as_long_as_replacements_may_take(minutes: float, *, counts: bool) -> None:
    one = replace(entry([web(1)], [web(1)]), at=NOW - timedelta(minutes=minutes))
    assert awaited(one, PACING, NOW) == counts
    assert not awaited(replace(one, committed=False), PACING, NOW)


# -- pods by controller ------------------------------------------------------------------------------------------------

STATES = st.sampled_from(["none", "ready", "starting", "leaving", "ended", "daemon"])


def in_state(name: str, state: str) -> Pod | None:
    made = pod(name, node="a", ready=state != "starting", owner="DaemonSet" if state == "daemon" else "ReplicaSet")
    if state == "leaving":
        return replace(made, metadata=replace(made.metadata, deletion_timestamp=NOW))
    if state == "ended":
        return replace(made, status=replace(made.status, phase="Failed"))
    return None if state == "none" else made


@given(st.lists(st.tuples(st.sampled_from(["web-1", "web-2", "api-1", "api-2"]), STATES), max_size=30))
def test_pods_that_come_change_and_go_are_counted_as_if_all_were_read_anew(steps: list[tuple[str, str]]) -> None:
    known: dict[str, Pod] = {}
    kept = WorkloadReadiness()
    for name, state in steps:
        made = in_state(name, state)
        kept.change(known.get(name), made)
        if made is None:
            known.pop(name, None)
        else:
            known[name] = made
    fresh = WorkloadReadiness(known.values())
    assert kept.pods == fresh.pods
    for each in (web(1), pod("api-1")):
        assert kept.of(str(owner_key(each))) == fresh.of(str(owner_key(each)))
        alike = [other for other in known.values() if owner_key(other) == owner_key(each)]
        owned, key = kept.owned, str(owner_key(each))
        assert owned.of(key) == {one.key: one for one in alike}
        assert owned.unwell(key) == {one.key: one for one in alike if unwell(one) is not None}
        assert owned.replicas(key) == sum(one.active for one in alike)
        assert owned.replicas(key, but={each.key}) == sum(one.active for one in alike if one.key != each.key)
