"""Reboots step by step: each pass does the next safe thing, from what is written on the objects alone."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import claim_for, node, pod

from karpool.disruption.brakes.stop import Stop
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.execution import actions as a
from karpool.execution.advance import advance
from karpool.execution.reboot import FENCE
from karpool.execution.settings import ExecutionSettings
from karpool.execution.state import ExecutionState
from karpool.model.labels import (
    DO_NOT_DISRUPT,
    INITIALIZED,
    PRE_BOOT_ID,
    REBOOT_BOUND,
    REBOOT_ISSUED,
    REBOOT_REFUSED,
    REBOOTS,
    TERMINATION_TIMESTAMP,
)
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.wire.objects import Condition

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
TAINT = f"{FENCE.key}:{FENCE.effect}"


def ago(**since: float) -> datetime:
    return NOW - timedelta(**since)


def step(
    reason: str = "RebootRequested",
    *,
    since: datetime = NOW,
    fenced: bool = True,
    boot_id: str = "one",
    notes: dict[str, str] | None = None,
    pods: Sequence[Pod] = (),
    there: bool = True,
    stop: Stop | None = None,
    doubts: Sequence[Stop] = (),
    **rest: Any,
) -> list[a.Action]:
    """What the next pass does about a node that is being rebooted."""
    made = node("n", taints=[TAINT] if fenced else [], boot_id=boot_id, **rest)
    claim = claim_for(made, annotations=notes or {}, taints=())
    rebooting = Condition(type="Rebooting", status="True", reason=reason, last_transition_time=since)
    disrupted = Condition(type="DisruptionReason", status="True", reason="Unhealthy", last_transition_time=since)
    claim = replace(claim, status=replace(claim.status, conditions=(*claim.status.conditions, rebooting, disrupted)))
    objects = Objects(node_claims=(claim,), nodes=(made,) if there else ())
    _, actions = advance(
        objects,
        ExecutionState(),
        NOW,
        settings=ExecutionSettings(),
        pods_on=lambda _name: tuple(pods),
        pdbs=PdbLimits(()),
        halting=lambda _pool: stop,
        doubts=doubts,
    )
    return [action for action in actions if not isinstance(action, a.RecordEvent)]


def asked(actions: Sequence[a.Action]) -> list[str]:
    return [action.operation for action in actions if isinstance(action, a.RebootInstance)]


def ended(actions: Sequence[a.Action]) -> str:
    """How the reboot ended, if it did."""
    told = [x for x in actions if isinstance(x, a.SetClaimCondition) and (x.type, x.status) == ("Rebooting", "False")]
    return told[0].message.partition(":")[0] if told else ""


def deleted(actions: Sequence[a.Action]) -> bool:
    return any(isinstance(action, a.DeleteClaim) for action in actions)


ONE = {PRE_BOOT_ID: "one"}
WEB = pod("web", node="n")
GUARDED = pod("guarded", node="n", annotations={DO_NOT_DISRUPT: "true"})


def test_the_fence_comes_first() -> None:
    assert step(fenced=False, notes={REBOOT_BOUND: "0s"}) == [a.AddTaint("n", FENCE)]


def test_without_time_to_leave_nobody_is_evicted_and_the_provider_is_asked_once_the_boot_id_is_noted() -> None:
    assert step(notes={REBOOT_BOUND: "0s"}, pods=[WEB]) == [a.Annotate("NodeClaim", "n", PRE_BOOT_ID, "one")]
    (action,) = step(notes={REBOOT_BOUND: "0s", **ONE}, pods=[WEB])
    assert isinstance(action, a.RebootInstance)
    assert action.operation == f"claim-n-{int(NOW.timestamp())}000000000-one"


@pytest.mark.parametrize(
    ("since", "bound", "pods", "goes_on"),
    [
        (ago(seconds=4), "1m", [], False),
        (ago(seconds=5), "1m", [], True),
        (ago(seconds=59), "1m", [GUARDED], False),
        (ago(seconds=60), "1m", [GUARDED], True),
        (ago(seconds=4), "1s", [GUARDED], False),
        (ago(seconds=5), "1s", [GUARDED], True),
        (ago(hours=9), None, [GUARDED], False),
        (ago(hours=9), None, [], True),
    ],
)
def test_pods_have_their_time(since: datetime, bound: str | None, pods: list[Pod], *, goes_on: bool) -> None:
    notes = ONE if bound is None else {**ONE, REBOOT_BOUND: bound}
    actions = step(since=since, notes=notes, pods=pods)
    assert bool(asked(actions)) is goes_on
    assert not any(isinstance(action, a.DeletePod | a.EvictPod) for action in actions)


def test_pods_that_may_leave_are_evicted_and_never_deleted() -> None:
    actions = step(since=ago(seconds=30), notes={**ONE, REBOOT_BOUND: "31s"}, pods=[WEB, GUARDED])
    assert [action.key for action in actions if isinstance(action, a.EvictPod)] == [WEB.key]
    assert not any(isinstance(action, a.DeletePod) for action in actions)


@pytest.mark.parametrize("text", ["soon", "-1s", "Never"])
def test_a_request_that_makes_no_sense_ends_and_the_node_stays(text: str) -> None:
    actions = step(notes={REBOOT_BOUND: text})
    assert ended(actions) == "invalid_request"
    assert not deleted(actions)
    assert a.RemoveTaint("n", FENCE) in actions


def test_a_node_that_has_booted_already_is_not_rebooted_again() -> None:
    actions = step(notes={**ONE, REBOOT_BOUND: "0s"}, boot_id="two")
    assert not asked(actions)
    assert any(isinstance(x, a.SetClaimCondition) and x.reason == "RebootIssued" for x in actions)


def test_a_provider_that_refuses_costs_the_node() -> None:
    actions = step(notes={**ONE, REBOOT_BOUND: "1m", REBOOT_REFUSED: "not implemented"})
    assert ended(actions) == "provider_error"
    assert deleted(actions)
    assert a.RemoveTaint("n", FENCE) in actions
    assert a.Annotate("NodeClaim", "n", TERMINATION_TIMESTAMP, "2026-06-15T12:01:00Z") in actions


def issued(**since: float) -> dict[str, str]:
    return {**ONE, REBOOT_BOUND: "1m", REBOOT_ISSUED: ago(**since).isoformat()}


def test_a_node_that_reboots_counts_as_not_initialized() -> None:
    actions = step("RebootIssued", notes=issued(seconds=5))
    assert a.SetLabel("Node", "n", INITIALIZED, None) in actions
    assert any(isinstance(x, a.SetClaimCondition) and (x.type, x.status) == ("Initialized", "Unknown") for x in actions)
    assert not ended(actions)


@pytest.mark.parametrize(
    ("boot_id", "ready", "minutes", "result"),
    [
        ("two", True, 1, "succeeded"),
        ("two", False, 1, ""),
        ("two", False, 20, "recovery_timeout"),
        ("one", True, 19, ""),
        ("one", True, 20, "recovery_timeout"),
    ],
)
def test_a_node_is_back_when_it_has_booted_and_is_ready(
    boot_id: str, minutes: float, result: str, *, ready: bool
) -> None:
    rest = {"initialized": False, "ready": ready}
    actions = step("RebootIssued", boot_id=boot_id, notes=issued(minutes=minutes), since=ago(minutes=30), **rest)
    assert ended(actions) == result
    assert deleted(actions) is (result == "recovery_timeout")
    if result == "succeeded":
        cleared = {action.key for action in actions if isinstance(action, a.Annotate) and action.value is None}
        assert cleared == {PRE_BOOT_ID, REBOOT_BOUND, REBOOT_ISSUED}
        assert a.RemoveTaint("n", FENCE) in actions
        assert a.ClearClaimCondition("n", "DisruptionReason") in actions


@pytest.mark.parametrize(("minutes", "result"), [(4, ""), (5, "provider_error")])
def test_a_node_that_is_not_there_is_waited_for_only_so_long(minutes: float, result: str) -> None:
    actions = step(since=ago(minutes=minutes), notes={**ONE, REBOOT_BOUND: "1m"}, there=False)
    assert ended(actions) == result


PAUSED = Stop("Paused", "pauses everything", "ConfigMap karpool/karpool-pause", halts=True)
DOUBT = Stop("TimeInDoubt", "the time is in doubt", "Clock")
EARLIER = "2026-06-15T06:00:00Z"


@pytest.mark.parametrize("there", [True, False], ids=["", "its node is gone"])
@pytest.mark.parametrize("doubts", [(), (DOUBT,)], ids=["", "in doubt"])
def test_a_pause_takes_a_request_back_and_it_does_not_count(doubts: tuple[Stop, ...], *, there: bool) -> None:
    notes = {REBOOT_BOUND: "1m", REBOOTS: f"{EARLIER},2026-06-15T11:50:00Z"}
    actions = step(since=ago(minutes=10), notes=notes, pods=[WEB], there=there, stop=PAUSED, doubts=doubts)
    assert ended(actions) == "stopped"
    assert (a.RemoveTaint("n", FENCE) in actions) is there
    assert a.Annotate("NodeClaim", "n", REBOOTS, EARLIER) in actions
    assert a.Annotate("NodeClaim", "n", REBOOT_BOUND, None) in actions
    assert a.ClearClaimCondition("n", "DisruptionReason") in actions
    assert not any(isinstance(action, a.EvictPod | a.DeleteClaim | a.RebootInstance | a.AddTaint) for action in actions)


def test_a_reboot_that_the_provider_may_have_been_asked_for_is_finished_under_a_pause() -> None:
    assert asked(step(notes={**ONE, REBOOT_BOUND: "0s"}, stop=PAUSED))
    issued = {**ONE, REBOOT_ISSUED: ago(minutes=1).isoformat()}
    actions = step("RebootIssued", since=ago(minutes=2), notes=issued, boot_id="two", stop=PAUSED)
    assert a.RemoveTaint("n", FENCE) in actions


@pytest.mark.parametrize("fenced", [True, False])
@pytest.mark.parametrize(
    "notes", [{}, {REBOOT_BOUND: "0s"}, {**ONE, REBOOT_BOUND: "0s"}, {**ONE, REBOOT_REFUSED: "no"}]
)
def test_a_reboot_stands_still_in_doubt(notes: dict[str, str], *, fenced: bool) -> None:
    assert step(since=ago(minutes=1), notes=notes, fenced=fenced, pods=[WEB])
    assert step(since=ago(minutes=1), notes=notes, fenced=fenced, pods=[WEB], doubts=(DOUBT,)) == []
