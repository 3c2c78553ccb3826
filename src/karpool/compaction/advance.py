"""One step of the compactor: begin scale-downs, carry on with those in progress, give up those that lead nowhere.

All it knows of a scale-down is written on the node, so a compactor that was stopped anywhere carries on. The step may
be taken at any time and as often as one likes; nothing happens twice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from karpool.compaction.actions import CompactionAction, SetNodeState
from karpool.compaction.config import Config
from karpool.compaction.decide import Chosen, CompactionDecision, decide
from karpool.compaction.filling import filled_up
from karpool.compaction.marks import ANNOTATION, Mark, begun, given_up, written_mark
from karpool.compaction.nodes import NodeLook, is_deleting
from karpool.compaction.pace import held_back
from karpool.compaction.pods import keeps, leaves
from karpool.compaction.reasons import CompactionReasonCode
from karpool.compaction.settings import DEFAULTS, CompactionSettings
from karpool.execution.actions import DeletePod, EvictPod, RecordEvent
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.reasons import Reason

_PODS_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class CompactionStep:
    """What was decided, what to do now, and when to look again; None: when the usual time to sleep has passed."""

    decision: CompactionDecision
    actions: tuple[CompactionAction, ...]
    requeue_at: datetime | None


def advance(objects: Objects, config: Config, now: datetime, settings: CompactionSettings = DEFAULTS) -> CompactionStep:
    """The next step. The objects must show the effect of all actions asked for before."""
    decision = decide(objects, config, now, settings)
    looks = [verdict.look for verdict in decision.nodes]
    # What the autoscaler removes already needs no help.
    under_way = [look for look in looks if look.before.in_progress and not is_deleting(look.node)]
    ended = _ended(objects, under_way, now, settings)
    actions: list[CompactionAction] = []
    for look in looks:
        actions += _marked(look)
    for look in under_way:
        reason = ended.get(look.name)
        actions += _carry_on(look, now) if reason is None else _give_up(look, reason, now, settings)
    # A pool that just got a node back because it needs it gives none away in the same step.
    full = {look.pool for look in under_way if look.name in ended}
    held = held_back(decision, config, settings)
    begins = [chosen for chosen in decision.chosen if chosen.pool not in full and chosen.pool not in held]
    for chosen in begins:
        actions += _begin(chosen, now)
    # A node that only waits for the autoscaler can wait for the usual look, too.
    draining = begins or any(_left(look) for look in under_way if look.name not in ended)
    soon = [now + settings.drain_interval] if draining else []
    return CompactionStep(decision, tuple(actions), min([*soon, *held.values()], default=None))


def _marked(look: NodeLook) -> Iterator[CompactionAction]:
    if look.mark != look.before:
        yield _state(look, look.mark)


def _begin(chosen: Chosen, now: datetime) -> Iterator[CompactionAction]:
    """Cordon a node; its pods are asked to leave from the next step on, when the cordon is seen to hold."""
    yield SetNodeState(chosen.node, ANNOTATION, written_mark(begun(now)), unschedulable=True)
    moved = len(chosen.placements)
    places = "its 1 pod has another place" if moved == 1 else f"its {moved} pods have other places"
    said = f"is drained so that the autoscaler removes it; {places}"
    yield RecordEvent("Node", chosen.node, "ScaleDownStarted", said)


def _carry_on(look: NodeLook, now: datetime) -> Iterator[CompactionAction]:
    """Ask the pods that are left to go; when none is, note the time."""
    left = _left(look)
    mark = look.mark if look.mark.updated is not None else replace(look.mark, updated=now)
    if not left and mark.drained_at is None:
        yield RecordEvent("Node", look.name, "Drained", "has no pods left to move; the autoscaler can remove it")
        mark = replace(mark, drained_at=now)
    if mark != look.mark:
        yield _state(look, mark)
    ask = EvictPod if look.config.respect_pdbs else DeletePod
    yield from (ask(pod.key, pod.metadata.uid, look.name) for pod in left if pod.active)


def _give_up(look: NodeLook, reason: Reason, now: datetime, settings: CompactionSettings) -> Iterator[CompactionAction]:
    """Let a node take pods again, and leave it alone for a while."""
    yield _state(look, given_up(now, now + settings.retry_after), unschedulable=False)
    yield RecordEvent("Node", look.name, reason.code, f"its scale-down was given up: {_sentence(reason)}", "Warning")


def _sentence(reason: Reason) -> str:
    return f"{reason.object}: {reason.message}" if reason.object.startswith("Pod ") else reason.message


def _state(look: NodeLook, mark: Mark, *, unschedulable: bool | None = None) -> SetNodeState:
    return SetNodeState(look.name, ANNOTATION, written_mark(mark), unschedulable)


# -- which scale-downs to give up --------------------------------------------------------------------------------


def _ended(
    objects: Objects, under_way: Sequence[NodeLook], now: datetime, settings: CompactionSettings
) -> dict[str, Reason]:
    """The scale-downs that lead nowhere, by node, and why."""
    found = {look.name: reason for look in under_way if (reason := _why_end(look, now, settings)) is not None}
    going_on = [look for look in under_way if look.name not in found]
    return found | filled_up(objects, going_on)


def _why_end(look: NodeLook, now: datetime, settings: CompactionSettings) -> Reason | None:
    """Why a scale-down ends, as far as the node itself can tell."""
    about = f"Node {look.name}"
    if not look.node.spec.unschedulable:
        return Reason(CompactionReasonCode.UNCORDONED, "somebody let it take pods again", about)
    if not look.config.enabled:
        return Reason(CompactionReasonCode.POOL_NOT_ENABLED, f"pool {look.pool} is not enabled any more", about)
    left, began = _left(look), look.mark.updated or now
    kept = next((reason for pod in left if (reason := keeps(pod)) is not None), None)
    if kept is not None:
        return kept
    if left and now >= began + settings.drain_timeout:
        return Reason(CompactionReasonCode.DRAIN_STALLED, f"{_names(left)} did not leave in time", about)
    drained_at = look.mark.drained_at
    if not left and drained_at is not None and now >= drained_at + settings.removal_timeout:
        return Reason(CompactionReasonCode.NOT_REMOVED, "it was empty, but no autoscaler removed it", about)
    return None


def _names(pods: Sequence[Pod]) -> str:
    named = ", ".join(f"Pod {pod.key}" for pod in pods[:_PODS_NAMED])
    return named if len(pods) <= _PODS_NAMED else f"{named} and {len(pods) - _PODS_NAMED} others"


def _left(look: NodeLook) -> list[Pod]:
    """The pods that have to leave and are still there."""
    return sorted((pod for pod in look.pods if leaves(pod)), key=lambda pod: pod.key)
