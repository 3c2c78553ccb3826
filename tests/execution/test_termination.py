from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.execution.runs import advanced
from tests.execution.world import START
from tests.factories import claim_for, node, pod, pvc, taint
from tests.tables import row, table

from karpool.execution.actions import (
    Action,
    AddTaint,
    Annotate,
    DeleteClaim,
    DeleteNode,
    DeletePod,
    EvictPod,
    RecordEvent,
    RemoveFinalizer,
    RemoveTaint,
    TerminateInstance,
)
from karpool.execution.conditions import TERMINATED
from karpool.execution.drain import tier
from karpool.execution.settings import ExecutionSettings
from karpool.execution.state import Attempt, ExecutionState, after_attempt
from karpool.execution.termination import deadline_of
from karpool.model.labels import TERMINATION_FINALIZER, TERMINATION_TIMESTAMP
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.storage import VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec
from karpool.wire.objects import Condition, Metadata

SECOND = timedelta(seconds=1)
TAINT = ExecutionSettings().taint
EXCLUDED = {"node.kubernetes.io/exclude-from-external-load-balancers": "karpenter"}


def leaving(*, deadline: str | None = None, drained: str | None = "Unknown", since: datetime = START, **rest: bool):  # noqa: ANN201
    """A node and its claim on their way out, with the taint on and draining begun."""
    made = node("n1", deleted=START, taints=[TAINT], labels=EXCLUDED, ready=rest.get("ready", True))
    notes = {} if deadline is None else {TERMINATION_TIMESTAMP: deadline}
    claim = claim_for(made, deleted=START, annotations=notes, taints=())
    conditions = claim.status.conditions
    if drained is not None:
        conditions += (Condition(type="Drained", status=drained, reason="Draining", last_transition_time=since),)
    if rest.get("gone"):
        conditions += (Condition(type="InstanceTerminating", status="True", reason=TERMINATED),)
    return made, replace(claim, status=replace(claim.status, conditions=conditions))


def reconcile(
    pair: tuple[Node | None, NodeClaim | None],
    *pods: Pod,
    at: timedelta = 6 * SECOND,
    state: ExecutionState | None = None,
    **kinds: tuple[object, ...],
) -> tuple[ExecutionState, list[Action]]:
    nodes = (pair[0],) if pair[0] else ()
    claims = (pair[1],) if pair[1] else ()
    objects = Objects(nodes=nodes, node_claims=claims, pods=pods, **kinds)  # type: ignore[arg-type]
    after, actions = advanced(objects, state or ExecutionState(), START + at)
    return after, [action for action in actions if not isinstance(action, RecordEvent)]


def evicted(actions: list[Action]) -> list[str]:
    return [action.key.partition("/")[2] for action in actions if isinstance(action, EvictPod)]


# -- the claim's side --------------------------------------------------------------------------------------------------


def test_a_deleted_claim_takes_its_node_along() -> None:
    made = node("n1")
    _, actions = reconcile((made, claim_for(made, deleted=START)))
    assert actions == [DeleteNode("n1", "node-n1")]


def test_the_end_of_the_grace_period_is_written_once() -> None:
    made = node("n1")
    claim = claim_for(made, deleted=START, termination_grace_period="10m")
    _, actions = reconcile((made, claim))
    assert actions[0] == Annotate("NodeClaim", "n1", TERMINATION_TIMESTAMP, "2026-06-01T12:10:00Z")
    written = replace(claim.metadata, annotations={TERMINATION_TIMESTAMP: "2026-06-01T12:01:00Z"})
    _, actions = reconcile((made, replace(claim, metadata=written)))
    assert actions == [DeleteNode("n1", "node-n1")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, None), ("soon", None), ("2026-06-01T12:00:06Z", START + 6 * SECOND)],
)
def test_a_deadline_that_cannot_be_read_forces_nobody(text: str | None, expected: datetime | None) -> None:
    _, claim = leaving(deadline=text)
    assert deadline_of(claim) == expected


def test_a_claim_whose_node_never_came_ends_its_machine_and_goes() -> None:
    claim = claim_for(node("n1"), deleted=START)
    state, actions = reconcile((None, claim))
    assert actions == [TerminateInstance("n1", "claim-n1")]
    assert state.requeue_at == START + 11 * SECOND
    assert reconcile((None, claim), state=state, at=7 * SECOND)[1] == []
    assert reconcile((None, claim), state=state, at=11 * SECOND)[1] == actions
    _, gone = leaving(gone=True)
    assert reconcile((None, gone))[1] == [RemoveFinalizer("NodeClaim", "n1", TERMINATION_FINALIZER)]


def test_a_claim_that_never_launched_simply_goes() -> None:
    claim = claim_for(node("n1"), deleted=START, launched=False, registered=False)
    assert reconcile((None, claim))[1] == [RemoveFinalizer("NodeClaim", "n1", TERMINATION_FINALIZER)]


def test_where_another_controller_terminates_nothing_is_done() -> None:
    made, claim = leaving()
    objects = Objects(nodes=(made,), node_claims=(claim,), pods=(pod("web-1", node="n1"),))
    assert advanced(objects, ExecutionState(), START, ExecutionSettings(terminates=False))[1] == ()


# -- the node's side ---------------------------------------------------------------------------------------------------


def test_a_deleted_node_takes_its_claim_along() -> None:
    made = node("n1", deleted=START, taints=[TAINT], labels=EXCLUDED)
    assert DeleteClaim("n1", "claim-n1") in reconcile((made, claim_for(made)))[1]


def test_a_node_whose_machine_is_gone_is_not_drained() -> None:
    _, actions = reconcile(leaving(ready=False, gone=True), pod("web-1", node="n1"))
    assert actions == [RemoveFinalizer("Node", "n1", TERMINATION_FINALIZER)]


def test_no_pod_is_evicted_before_the_taint_is_on_its_node() -> None:
    draining, claim = leaving()
    bare = replace(draining, spec=replace(draining.spec, taints=()))
    _, actions = reconcile((bare, claim), pod("web", node="n1"))
    assert actions == [AddTaint("n1", TAINT)]
    assert evicted(reconcile((draining, claim), pod("web", node="n1"))[1]) == ["web"]


def test_a_taint_of_the_same_key_with_another_effect_is_replaced() -> None:
    wrong = taint("karpenter.sh/disrupted:NoExecute")
    made, claim = leaving()
    made = replace(made, spec=replace(made.spec, taints=(wrong,)))
    assert reconcile((made, claim))[1][:2] == [RemoveTaint("n1", wrong), AddTaint("n1", TAINT)]


@pytest.mark.parametrize(
    ("drained", "at", "done"), [(None, 0, False), ("Unknown", 4, False), ("Unknown", 5, True), ("True", 0, True)]
)
def test_a_drain_takes_five_seconds_at_least(drained: str | None, at: int, *, done: bool) -> None:
    _, actions = reconcile(leaving(drained=drained), at=at * SECOND)
    assert (TerminateInstance("n1", "claim-n1") in actions) is done


def test_a_node_without_a_claim_is_drained_and_goes() -> None:
    made, _ = leaving()
    assert evicted(reconcile((made, None), pod("web-1", node="n1"))[1]) == ["web-1"]
    assert reconcile((made, None))[1] == [RemoveFinalizer("Node", "n1", TERMINATION_FINALIZER)]


# -- tiers -------------------------------------------------------------------------------------------------------------


def critical(made: Pod) -> Pod:
    return replace(made, spec=replace(made.spec, priority_class_name="system-node-critical"))


ORDINARY = pod("web-1", node="n1")
DAEMON = pod("agent-1", node="n1", owner="DaemonSet")
CRITICAL = critical(pod("dns-1", node="n1"))
CRITICAL_DAEMON = critical(pod("proxy-1", node="n1", owner="DaemonSet"))
GOING = pod("going-1", node="n1", deleted=START + 30 * SECOND)
STUCK = pod("stuck-1", node="n1", deleted=START - timedelta(minutes=2))
HELD = pod("held-1", node="n1", annotations={"karpenter.sh/do-not-disrupt": "true"})
TOLERANT = pod("tolerant-1", node="n1", tolerations=["karpenter.sh/disrupted"])
FINISHED = pod("done-1", node="n1", phase="Succeeded")
MIRROR = pod("static-1", node="n1", owner="Node")


@pytest.mark.parametrize(
    ("pods", "asked"),
    [
        ((ORDINARY, DAEMON, CRITICAL, CRITICAL_DAEMON), ["web-1"]),
        ((DAEMON, CRITICAL, CRITICAL_DAEMON), ["agent-1"]),
        ((CRITICAL, CRITICAL_DAEMON), ["dns-1"]),
        ((CRITICAL_DAEMON,), ["proxy-1"]),
        ((GOING, DAEMON), []),
        ((GOING, ORDINARY, DAEMON), ["web-1"]),
        ((STUCK, DAEMON), ["agent-1"]),
        ((HELD, DAEMON), []),
        ((TOLERANT, FINISHED, MIRROR, DAEMON), ["agent-1"]),
    ],
)
def test_pods_leave_tier_by_tier(pods: tuple[Pod, ...], asked: list[str]) -> None:
    assert evicted(reconcile(leaving(), *pods)[1]) == asked


def test_the_four_tiers() -> None:
    assert [tier(pod) for pod in (ORDINARY, DAEMON, CRITICAL, CRITICAL_DAEMON)] == [0, 1, 2, 3]


@pytest.mark.parametrize("only", [TOLERANT, FINISHED, MIRROR, STUCK])
def test_pods_that_nobody_waits_for_do_not_hold_a_node(only: Pod) -> None:
    assert TerminateInstance("n1", "claim-n1") in reconcile(leaving(), only)[1]


# -- back-off ----------------------------------------------------------------------------------------------------------


def test_a_pod_that_stays_is_asked_again_later_and_later() -> None:
    gaps, state, at = [], ExecutionState(), 6 * SECOND
    for _ in range(12):
        state, actions = reconcile(leaving(), ORDINARY, at=at, state=state)
        assert evicted(actions) == ["web-1"]
        assert state.requeue_at is not None
        gaps.append((state.requeue_at - START - at) / SECOND)
        just_before = reconcile(
            leaving(), ORDINARY, at=state.requeue_at - START - timedelta(milliseconds=1), state=state
        )
        assert evicted(just_before[1]) == []
        at = state.requeue_at - START
    assert gaps == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, *[10.0] * 5]


def test_the_next_attempt_wakes_the_controller() -> None:
    state, _ = reconcile(leaving(), ORDINARY)
    assert state.evictions == {"default/web-1": Attempt(1, START + timedelta(seconds=6.1))}
    assert state.requeue_at == START + timedelta(seconds=6.1)


def test_attempts_of_pods_that_are_gone_are_forgotten() -> None:
    state, _ = reconcile(leaving(), ORDINARY)
    after, _ = reconcile(leaving(), DAEMON, state=state)
    assert list(after.evictions) == ["default/agent-1"]


def test_back_off_never_exceeds_ten_seconds() -> None:
    assert after_attempt(Attempt(5000, START), START).again == START + 10 * SECOND


# -- the deadline ------------------------------------------------------------------------------------------------------

AT_TWO_MINUTES = "2026-06-01T12:02:00Z"


@pytest.mark.parametrize(
    ("at", "grace", "expected"),
    [
        (80, 30, None),
        (90, 30, 30),
        (115, 30, 5),
        (119.5, 30, 1),
        (125, 30, 1),
        (90, 60, 30),
        (60, 60, 60),
        (50, 60, None),
    ],
)
def test_pods_are_forced_when_their_grace_would_pass_the_deadline(at: float, grace: int, expected: int | None) -> None:
    protected = pod("held-1", node="n1", grace_seconds=grace, annotations={"karpenter.sh/do-not-disrupt": "true"})
    _, actions = reconcile(leaving(deadline=AT_TWO_MINUTES), protected, at=timedelta(seconds=at))
    forced = [action.grace_seconds for action in actions if isinstance(action, DeletePod)]
    assert forced == ([] if expected is None else [expected])


def test_force_does_not_wait_for_the_tiers() -> None:
    pair = leaving(deadline=AT_TWO_MINUTES)
    _, actions = reconcile(pair, ORDINARY, DAEMON, CRITICAL, at=timedelta(seconds=100))
    assert sum(isinstance(action, DeletePod) for action in actions) == 3


def test_a_pod_that_takes_its_time_is_cut_short_at_the_deadline() -> None:
    slow = pod("slow-1", node="n1", deleted=START + timedelta(minutes=30))
    _, actions = reconcile(leaving(deadline=AT_TWO_MINUTES), slow)
    assert [a for a in actions if isinstance(a, DeletePod)] == [
        DeletePod("default/slow-1", "default/slow-1", "n1", 114)
    ]


def test_the_controller_wakes_when_force_begins() -> None:
    protected = pod("held-1", node="n1", grace_seconds=30, annotations={"karpenter.sh/do-not-disrupt": "true"})
    state, _ = reconcile(leaving(deadline=AT_TWO_MINUTES), protected)
    assert state.requeue_at == START + timedelta(seconds=90)


# -- volumes -----------------------------------------------------------------------------------------------------------


def attachment(volume: str, to: str = "n1") -> VolumeAttachment:
    source = VolumeAttachmentSource(persistent_volume_name=volume)
    return VolumeAttachment(Metadata(name=f"{to}-{volume}"), VolumeAttachmentSpec(node_name=to, source=source))


@table(
    row("a volume of a pod that is gone", volume="vol-1", to="n1", pods=(), at=6, waits=True),
    row("a volume of another node", volume="vol-1", to="n2", pods=(), at=6, waits=False),
    row(
        "a volume of a pod that stays",
        volume="vol-2",
        to="n1",
        pods=(pod("db-1", node="n1", claims=["data"], tolerations=["karpenter.sh/disrupted"]),),
        at=6,
        waits=False,
    ),
    row("the grace period is over", volume="vol-1", to="n1", pods=(), at=120, waits=False),
)
def test_volumes_are_detached_before_the_machine_ends(
    volume: str, to: str, pods: tuple[Pod, ...], at: int, *, waits: bool
) -> None:
    claim = pvc("data", volume="vol-2")
    _, actions = reconcile(
        leaving(deadline=AT_TWO_MINUTES),
        *pods,
        at=timedelta(seconds=at),
        volume_attachments=(attachment(volume, to),),
        persistent_volume_claims=(claim,),
    )
    assert (TerminateInstance("n1", "claim-n1") not in actions) is waits
