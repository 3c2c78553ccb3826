"""Nodes and pools of failed commands are left alone, longer after each failure."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.disruption.scenarios import NOW, Scenario, ago, node, pool_of
from tests.factories import node_claim

from karpool.disruption.brakes.failures import HARMLESS, FailedCommand, Failure, FailureCause, after_failure
from karpool.disruption.brakes.settings import BrakeSettings
from karpool.disruption.brakes.stop import Stops
from karpool.disruption.brakes.stops_of import stops_of
from karpool.model.labels import FAILED_COMMAND
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects

REFUSED = FailureCause.REPLACEMENT_REFUSED


def failed(at: datetime, cause: str = REFUSED, tries: int = 1, pool_tries: int = 1) -> dict[str, str]:
    known = FailedCommand(command="c0", cause=cause, at=at, message="quota", tries=tries, pool_tries=pool_tries)
    return {FAILED_COMMAND: known.written()}


def claim(name: str, annotations: dict[str, str] | None = None, pool: str = "default") -> NodeClaim:
    return node_claim(name, pool=pool, node_name=name, annotations=annotations)


def stops(*claims: NodeClaim, now: datetime = NOW) -> Stops:
    return stops_of(Objects(node_claims=claims), BrakeSettings(), now)


def test_the_pool_and_the_nodes_wait_and_say_for_what() -> None:
    held = stops(claim("a", failed(ago(minutes=1))), claim("b"), claim("c", pool="other"))
    pool = held.of("default", "b")
    assert pool is not None
    assert pool.reason.code == "CoolingDown"
    assert pool.message == "cools down until 12:02 UTC: a command failed (ReplacementRefused), last quota"
    node_stop = next(stop for stop in held if stop.node == "a")
    assert node_stop.code == "CommandFailed"
    assert node_stop.message == "is left alone until 12:02 UTC: command c0 failed (quota)"
    assert held.of("other", "c") is None
    assert held.next_release(NOW) == NOW + timedelta(minutes=2)


@pytest.mark.parametrize(("tries", "minutes"), [(1, 3), (2, 6), (3, 12), (5, 48), (6, 60), (1000, 60)])
def test_each_failure_doubles_the_wait_up_to_an_hour(tries: int, minutes: int) -> None:
    at = claim("a", failed(NOW, tries=tries, pool_tries=tries))
    assert stops(at, now=NOW + timedelta(minutes=minutes, seconds=-1))
    assert not stops(at, now=NOW + timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("cause", "pool_waits", "node_waits"),
    [
        (FailureCause.TIMED_OUT, True, True),
        (FailureCause.REPLACEMENT_GONE, True, True),
        (FailureCause.NOT_MARKED, False, True),
        (FailureCause.POD_ARRIVED, False, False),
        (FailureCause.STOPPED, False, False),
    ],
)
def test_what_is_not_the_pools_fault_does_not_stop_it(cause: str, *, pool_waits: bool, node_waits: bool) -> None:
    held = stops(claim("a", failed(NOW, cause)))
    assert (held.of("default") is not None) is pool_waits
    assert (held.of("default", "a") is not None) is node_waits


def test_a_memory_that_cannot_be_read_keeps_the_node_and_says_so() -> None:
    stop = stops(claim("a", {FAILED_COMMAND: "{"})).of("default", "a")
    assert stop is not None
    assert "is left alone until the annotation is removed" in stop.message
    assert stops(claim("a", {FAILED_COMMAND: "{"})).of("default", "b") is None


def after(of: NodeClaim, *pool: NodeClaim, cause: FailureCause = REFUSED, now: datetime = NOW) -> FailedCommand:
    hours = timedelta(hours=2)
    return after_failure(of, Failure(cause, "again"), command="c1", pool=(of, *pool), now=now, forgotten_after=hours)


def test_failures_count_per_node_and_per_pool_and_cause_until_they_are_forgotten() -> None:
    known = claim("a", failed(ago(minutes=10), tries=2, pool_tries=3))
    assert (after(known).tries, after(known).pool_tries) == (3, 4)
    assert (after(claim("b"), known).tries, after(claim("b"), known).pool_tries) == (1, 4)
    other = after(known, cause=FailureCause.TIMED_OUT)
    assert (other.tries, other.pool_tries) == (3, 1)
    late = after(known, now=NOW + timedelta(hours=2))
    assert (late.tries, late.pool_tries) == (1, 1)
    harmless = after(claim("b"), known, cause=FailureCause.POD_ARRIVED)
    assert (harmless.tries, harmless.pool_tries) == (0, 0)


def remembering(name: str, known: FailedCommand) -> NodeClaim:
    return claim(name, {FAILED_COMMAND: known.written()})


@pytest.mark.parametrize("cause", sorted(HARMLESS))
def test_a_command_given_up_for_no_fault_of_its_own_resets_nothing(cause: FailureCause) -> None:
    known = claim("a", failed(ago(minutes=1), tries=4, pool_tries=5))
    given_up = remembering("a", after(known, cause=cause))
    held = stops(given_up).of("default", "a")
    assert held is not None
    assert held.until == stops(known).of("default", "a").until  # type: ignore[union-attr]
    memory = after(given_up)
    assert (memory.tries, memory.pool_tries) == (5, 6)


def test_what_is_written_of_a_command_that_was_given_up_says_so() -> None:
    known = after(claim("a", failed(ago(minutes=1))), cause=FailureCause.POD_ARRIVED)
    assert (known.told_of("c0"), known.told_of("c1"), known.told_of("c2")) == ("quota", "again", None)


def test_causes_that_take_turns_are_counted_each() -> None:
    known, seen = claim("a"), []
    for number in range(6):
        cause = (REFUSED, FailureCause.TIMED_OUT)[number % 2]
        memory = after(known, cause=cause, now=NOW + timedelta(minutes=number))
        seen.append((memory.tries, memory.pool_tries))
        known = remembering("a", memory)
    assert seen == [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3)]


@pytest.mark.parametrize(("longest", "hours"), [(timedelta(hours=1), 2), (timedelta(hours=3), 6)])
def test_failures_are_remembered_for_longer_than_the_longest_wait(longest: timedelta, hours: int) -> None:
    assert BrakeSettings(longest_after_failure=longest).failures_forgotten_after == timedelta(hours=hours)


@given(st.text(max_size=60), st.integers(1, 10**6), st.integers(1, 10**6))
def test_no_message_and_no_number_breaks_the_brake(message: str, tries: int, pool_tries: int) -> None:
    known = FailedCommand(command="c", cause=REFUSED, at=NOW, message=message, tries=tries, pool_tries=pool_tries)
    held = stops(claim("a", {FAILED_COMMAND: known.written()}), now=NOW + timedelta(seconds=1))
    assert held.of("default", "a") is not None


def test_a_plan_says_which_nodes_wait_for_a_failed_command() -> None:
    nodes = [node("a", claim={"annotations": failed(ago(minutes=1), FailureCause.NOT_MARKED)}), node("b")]
    plan = Scenario("failed", nodes=nodes).plan()
    assert [step.command.nodes for step in plan.steps] == [("b",)]
    assert [reason.code for fate in plan.fates if fate.step is None for reason in fate.reasons] == ["CommandFailed"]


def test_a_pool_whose_drifted_nodes_cannot_be_replaced_starves_no_other() -> None:
    """The oldest drift comes first, unless its pool waits after a failure; then it is the next pool's turn."""
    stuck = {"drifted": ago(hours=2), "annotations": failed(ago(seconds=30))}
    for minutes, expected in ((0, "b"), (3, "a")):
        Scenario(
            "two pools",
            nodes=[
                node("a", pods=8, pool="first", claim=stuck),
                node("b", pods=8, pool="second", claim={"drifted": ago(hours=1)}),
            ],
            pools=[pool_of("first"), pool_of("second")],
            now=NOW + timedelta(minutes=minutes),
            removes=expected,
        ).verify()
