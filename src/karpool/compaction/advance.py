"""One step of the compactor: start scale-downs, continue those in progress, give up those that fail.

The state of a scale-down is written on the node, so a compactor that was stopped anywhere continues. A step may be
repeated at any time; nothing happens twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from karpool.cluster.nodes import is_leaving
from karpool.compaction.actions import CompactionAction, SetNodeState
from karpool.compaction.config import Config
from karpool.compaction.decide import ChosenNode, CompactionDecision, decide
from karpool.compaction.marks import Mark
from karpool.compaction.needed_again import needed_again
from karpool.compaction.nodes import NodeView
from karpool.compaction.pacing import paced_pools
from karpool.compaction.pods import eviction_blocker, must_leave
from karpool.compaction.rates import NO_LEDGER, Ledger, rates_in_force, renewed, started
from karpool.compaction.reasons import CompactionReasonCode as Code
from karpool.compaction.settings import CompactionSettings
from karpool.disruption.brakes.ledger import LedgerEntry
from karpool.execution.actions import DeletePod, EvictPod, RecordEvent
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.reasons import Reason

_PODS_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class CompactionStep:
    """The decision, the actions to take now, and when to run again; None: after the usual sleep."""

    decision: CompactionDecision
    actions: tuple[CompactionAction, ...]
    requeue_at: datetime | None
    entries: Mapping[str, LedgerEntry] = field(default_factory=dict)
    """By node: what is to be in the ledger before a drain starts, or goes on."""


def advance(
    objects: Objects,
    config: Config,
    now: datetime,
    settings: CompactionSettings,
    *,
    ledger: Ledger = NO_LEDGER,
    uncertainty: timedelta = timedelta(0),
) -> CompactionStep:
    """The next step; the objects must show the effect of all earlier actions."""
    decision = decide(objects, config, now, settings, ledger=ledger, uncertainty=uncertainty)
    # Nothing is written on a node that cannot be read: nobody knows what is there.
    views = [verdict.view for verdict in decision.nodes if not verdict.view.node.unreadable]
    # The autoscaler removes these already.
    in_progress = [view for view in views if view.stored_mark.in_progress and not is_leaving(view.node)]
    failed = _failed(objects, in_progress, now, settings, decision.stop)
    actions: list[CompactionAction] = [
        SetNodeState(view.name, view.mark) for view in views if view.mark != view.stored_mark
    ]
    for view in in_progress:
        reason = failed.get(view.name)
        actions += _continue(view, now) if reason is None else _give_up(view, reason, now, settings)
    # A pool that gets a node back in this step gives none away.
    refilled = {view.pool for view in in_progress if view.name in failed}
    waiting = paced_pools(decision, config, settings)
    begun = [chosen for chosen in decision.chosen if chosen.pool not in refilled and chosen.pool not in waiting]
    for chosen in begun:
        actions += _start(chosen, now)
    # A node that only waits for the autoscaler can wait for the usual sleep, too.
    emptied = [view for view in in_progress if view.name not in failed and _pods_left(view)]
    soon = [now + settings.drain_interval] if begun or emptied else []
    requeue_at = min([*soon, *waiting.values()], default=None)
    entries = dict[str, LedgerEntry]()
    if rates_in_force(objects, settings.brakes, now):
        names = {chosen.node for chosen in begun}
        entries = {view.name: started(view, now) for view in views if view.name in names}
        entries |= {view.name: entry for view in emptied if (entry := renewed(view, ledger, now)) is not None}
    return CompactionStep(decision, tuple(actions), requeue_at, entries)


def _start(chosen: ChosenNode, now: datetime) -> Iterator[CompactionAction]:
    """Cordon a node; its pods are evicted from the next step on, when the cordon is visible."""
    yield SetNodeState(chosen.node, Mark(in_progress=True, updated=now), unschedulable=True)
    moved = len(chosen.placements)
    places = "its 1 pod has another place" if moved == 1 else f"its {moved} pods have other places"
    message = f"is drained so that the autoscaler removes it; {places}"
    yield RecordEvent("Node", chosen.node, "ScaleDownStarted", message)


def _continue(view: NodeView, now: datetime) -> Iterator[CompactionAction]:
    """Evict the pods that are left; when none is, write the time."""
    left = _pods_left(view)
    mark = view.mark if view.mark.updated is not None else replace(view.mark, updated=now)
    if not left and mark.drained_at is None:
        yield RecordEvent("Node", view.name, "Drained", "has no pods left to move; the autoscaler can remove it")
        mark = replace(mark, drained_at=now)
    if mark != view.mark:
        yield SetNodeState(view.name, mark)
    removal = EvictPod if view.config.respect_pdbs else DeletePod
    yield from (removal(pod.key, pod.metadata.uid, view.name) for pod in left if pod.active)


def _give_up(view: NodeView, reason: Reason, now: datetime, settings: CompactionSettings) -> Iterator[CompactionAction]:
    """Uncordon a node, and leave it alone for a while; a brake says by itself how long it holds."""
    retry = None if reason.code in (Code.PAUSED, Code.CLUSTER_UNHEALTHY) else now + settings.retry_after
    yield SetNodeState(view.name, Mark(updated=now, retry_after=retry), unschedulable=False)
    pod = "" if reason.object.startswith("Node ") else f"{reason.object}: "
    message = f"its scale-down was given up: {pod}{reason.message}"
    yield RecordEvent("Node", view.name, reason.code, message, "Warning")


def _failed(
    objects: Objects,
    in_progress: Sequence[NodeView],
    now: datetime,
    settings: CompactionSettings,
    stop: Reason | None,
) -> dict[str, Reason]:
    reasons = {view.name: _failure(view, now, settings) or _stopped(view, stop) for view in in_progress}
    failed = {name: reason for name, reason in reasons.items() if reason is not None}
    others = [view for view in in_progress if view.name not in failed]
    return failed | needed_again(objects, others)


def _stopped(view: NodeView, stop: Reason | None) -> Reason | None:
    """The brake that takes a drain back; a node that is empty already waits for the autoscaler all the same."""
    return stop if view.mark.drained_at is None else None


def _failure(view: NodeView, now: datetime, settings: CompactionSettings) -> Reason | None:
    """Why to give up a scale-down, as far as the node itself shows."""
    about = f"Node {view.name}"
    if not view.node.spec.unschedulable:
        return Reason(Code.UNCORDONED, "somebody let it take pods again", about)
    if view.sealed is not None:
        return view.sealed
    if not view.config.enabled:
        return Reason(Code.POOL_NOT_ENABLED, f"pool {view.pool} is not enabled any more", about)
    left, started = _pods_left(view), view.mark.updated or now
    blocker = next((reason for pod in left if (reason := eviction_blocker(pod)) is not None), None)
    if blocker is not None:
        return blocker
    if left and now >= started + settings.drain_timeout:
        return Reason(Code.DRAIN_STALLED, f"{_names(left)} did not leave in time", about)
    drained_at = view.mark.drained_at
    if not left and drained_at is not None and now >= drained_at + settings.removal_timeout:
        return Reason(Code.NOT_REMOVED, "it was empty, but no autoscaler removed it", about)
    return None


def _names(pods: Sequence[Pod]) -> str:
    named = ", ".join(f"Pod {pod.key}" for pod in pods[:_PODS_NAMED])
    return named if len(pods) <= _PODS_NAMED else f"{named} and {len(pods) - _PODS_NAMED} others"


def _pods_left(view: NodeView) -> list[Pod]:
    return sorted((pod for pod in view.pods if must_leave(pod)), key=lambda pod: pod.key)
