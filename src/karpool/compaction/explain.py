"""Everything the compactor knows of one node, also of one that it would not look at twice.

The decision names the first kind of reason that keeps a node; here all of them are found, and where its pods would go
if it went nevertheless: on the cluster without the nodes on their way out, and without those that pools before its own
give away.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from karpool.compaction.config import Config
from karpool.compaction.decide import (
    CompactionDecision,
    CompactionVerdict,
    PoolCount,
    against_pool,
    decide,
    needed_count,
    next_window,
)
from karpool.compaction.nodes import (
    NodeLook,
    every_outside,
    held_by,
    held_by_node,
    held_by_pods,
    marked_long_enough_at,
    old_enough_at,
    warnings,
)
from karpool.compaction.pace import next_begin
from karpool.compaction.pdbs import EvictionBudgets
from karpool.compaction.pods import drained, leaves, why_stays
from karpool.compaction.settings import DEFAULTS, CompactionSettings
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """What has to pass before the node can go, or be given back; None: nothing of that kind."""

    old_enough_at: datetime | None = None
    marked_long_enough_at: datetime | None = None
    left_alone_until: datetime | None = None
    window_opens_at: datetime | None = None
    next_begin_at: datetime | None = None
    """When its pool may begin another scale-down."""
    underutilized: int | None = None
    """How many nodes of its pool are under-used, and below, how many are needed."""
    needed: int | None = None
    pods_leave_by: datetime | None = None
    """When its drain is given up if pods are left then."""
    removed_by: datetime | None = None
    """When it takes pods again if no autoscaler has removed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFate:
    """What becomes of a pod when its node is drained."""

    pod: Pod
    leaves: bool
    why: str
    """Why it stays, or needs no other place; empty for a pod that has to move."""
    keeps: Reason | None
    """Why it keeps the node."""
    target: str | None
    nowhere: Reason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One node, and all that is known of it."""

    time: datetime
    look: NodeLook
    chosen: bool
    waits: Waits
    reasons: tuple[Reason, ...]
    warnings: tuple[Reason, ...]
    pods: tuple[PodFate, ...]


def explain(
    objects: Objects, config: Config, now: datetime, name: str, settings: CompactionSettings = DEFAULTS
) -> Explained:
    """Everything about a node, which must be one of the objects."""
    decision, pdbs = decide(objects, config, now, settings), EvictionBudgets(objects.pod_disruption_budgets)
    verdict = next(verdict for verdict in decision.nodes if verdict.look.name == name)
    look, count = verdict.look, next(pool for pool in decision.pools if pool.name == verdict.look.pool)
    fates = tuple(_fates(objects, decision, look, pdbs))
    reasons = [*_kept(verdict, count, pdbs, now, settings), *_unfit(look, fates), *verdict.reasons]
    return Explained(
        time=now,
        look=look,
        chosen=any(chosen.node == name for chosen in decision.chosen),
        waits=_waits(look, count, now, settings),
        reasons=tuple(dict.fromkeys(reasons)),
        warnings=warnings(look, pdbs),
        pods=fates,
    )


# -- what keeps the node ---------------------------------------------------------------------------------------------


def _kept(
    verdict: CompactionVerdict, count: PoolCount, pdbs: EvictionBudgets, now: datetime, settings: CompactionSettings
) -> Iterator[Reason]:
    """What keeps the node, its pool included; where its pods would go is left out."""
    look = verdict.look
    if look.leaving:
        return
    yield from every_outside(look, now, settings)
    if look.underutilized:
        yield from held_by(look, pdbs, now, settings)
    else:
        yield from held_by_node(look, now)
        yield from held_by_pods(look, pdbs)
    if count.enabled:
        yield from against_pool(look.config, count, now)


def _unfit(look: NodeLook, fates: tuple[PodFate, ...]) -> Iterator[Reason]:
    """The pods without another place, where that is asked."""
    if look.config.check_fit and not look.leaving:
        yield from (fate.nowhere for fate in fates if fate.nowhere is not None)


# -- what it waits for -----------------------------------------------------------------------------------------------


def _waits(look: NodeLook, count: PoolCount, now: datetime, settings: CompactionSettings) -> Waits:
    if look.leaving:
        return _waits_leaving(look, settings)
    if not count.enabled:
        return Waits()
    marked = marked_long_enough_at(look, now, settings) if look.mark.marked else None
    return Waits(
        old_enough_at=_still(old_enough_at(look.node, settings), now),
        marked_long_enough_at=_still(marked, now),
        left_alone_until=_still(look.mark.retry_after, now),
        window_opens_at=next_window(look.config, now),
        # Of no interest while the node could not be chosen anyway.
        next_begin_at=next_begin(look.config, count, now, settings) if look.underutilized else None,
        underutilized=count.underutilized,
        needed=needed_count(look.config, count),
    )


def _waits_leaving(look: NodeLook, settings: CompactionSettings) -> Waits:
    began, drained_at = look.mark.updated, look.mark.drained_at
    if not look.mark.in_progress:
        return Waits()
    if any(leaves(pod) for pod in look.pods):
        return Waits(pods_leave_by=None if began is None else began + settings.drain_timeout)
    return Waits(removed_by=None if drained_at is None else drained_at + settings.removal_timeout)


def _still(moment: datetime | None, now: datetime) -> datetime | None:
    return moment if moment is not None and now < moment else None


# -- its pods --------------------------------------------------------------------------------------------------------


def _fates(objects: Objects, decision: CompactionDecision, look: NodeLook, pdbs: EvictionBudgets) -> Iterator[PodFate]:
    places, nowhere = _places(objects, decision, look)
    keeping = {reason.object: reason for reason in held_by_pods(look, pdbs)}
    for pod in sorted(look.pods, key=lambda pod: pod.key):
        yield PodFate(
            pod=pod,
            leaves=leaves(pod),
            why=why_stays(pod),
            keeps=keeping.get(f"Pod {pod.key}"),
            target=places.get(pod.key),
            nowhere=nowhere.get(pod.key),
        )


def _places(
    objects: Objects, decision: CompactionDecision, look: NodeLook
) -> tuple[dict[str, str | None], dict[str, Reason]]:
    """Where the pods go with the node gone, and why some go nowhere; a chosen node's places are those of the plan."""
    own = {pod.key for pod in look.pods if drained(pod)}
    if not own:
        return {}, {}
    from karpool.compaction.room import Room

    leaving = {verdict.look.name for verdict in decision.nodes if verdict.look.leaving}
    room = Room(objects, leaving - {look.name})
    for chosen in decision.chosen:
        if chosen.pool < look.pool:
            room.take(room.without(chosen.node))
    removal = room.without(look.name, every_reason=True)
    places = {key: place for key, place in removal.places.items() if key in own}
    return places, {key: reason for key, reason in removal.nowhere.items() if key in own}
