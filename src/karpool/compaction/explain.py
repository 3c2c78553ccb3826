"""Everything the compactor knows of one node.

The decision names the first kind of reason that keeps a node. Here all reasons are listed, and where its pods would go:
on the cluster without the nodes that are leaving, and without the chosen nodes of pools that are evaluated earlier.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from karpool.compaction.config import Config
from karpool.compaction.decide import (
    CompactionDecision,
    PoolCount,
    decide,
    next_window,
    pool_blockers,
    required_underutilized,
)
from karpool.compaction.nodes import (
    NodeView,
    all_exclusions,
    blockers,
    marked_long_enough_at,
    node_blockers,
    old_enough_at,
    pod_blockers,
    warnings,
)
from karpool.compaction.pacing import next_start
from karpool.compaction.pdbs import EvictionBudgets
from karpool.compaction.pods import must_leave, needs_new_node, why_stays
from karpool.compaction.rates import NO_LEDGER, Ledger
from karpool.compaction.settings import CompactionSettings
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """What the node waits for before it can be drained, or is uncordoned; None: nothing of that kind."""

    old_enough_at: datetime | None = None
    marked_long_enough_at: datetime | None = None
    left_alone_until: datetime | None = None
    window_opens_at: datetime | None = None
    next_begin_at: datetime | None = None
    """When its pool may start another scale-down."""
    underutilized: int | None = None
    """How many nodes of its pool are under-used, and below, how many are needed."""
    underutilized_needed: int | None = None
    pods_leave_by: datetime | None = None
    """When its drain is given up if pods are left then."""
    removed_by: datetime | None = None
    """When it takes pods again if no autoscaler has removed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOutcome:
    pod: Pod
    leaves: bool
    why: str
    """Why it stays, or needs no other node; empty for a pod that must move."""
    keeps: Reason | None
    """Why it blocks the drain."""
    target: str | None
    nowhere: Reason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionExplanation:
    time: datetime
    view: NodeView
    chosen: bool
    waits: Waits
    reasons: tuple[Reason, ...]
    warnings: tuple[Reason, ...]
    pods: tuple[PodOutcome, ...]


def explain(
    objects: Objects,
    config: Config,
    now: datetime,
    name: str,
    settings: CompactionSettings,
    *,
    ledger: Ledger = NO_LEDGER,
) -> CompactionExplanation:
    decision = decide(objects, config, now, settings, ledger=ledger)
    pdbs = EvictionBudgets(objects.pod_disruption_budgets)
    verdict = next(verdict for verdict in decision.nodes if verdict.view.name == name)
    view, count = verdict.view, next(pool for pool in decision.pools if pool.name == verdict.view.pool)
    outcomes = tuple(_outcomes(objects, decision, view, pdbs))
    checked = outcomes if view.config.check_fit and not view.leaving else ()
    unplaced = [outcome.nowhere for outcome in checked if outcome.nowhere is not None]
    reasons = [*_blockers(view, count, pdbs, now, settings, stop=decision.stop), *unplaced, *verdict.reasons]
    return CompactionExplanation(
        time=now,
        view=view,
        chosen=any(chosen.node == name for chosen in decision.chosen),
        waits=_waits(view, count, now, settings),
        reasons=tuple(dict.fromkeys(reasons)),
        warnings=warnings(view, pdbs),
        pods=outcomes,
    )


def _blockers(
    view: NodeView,
    count: PoolCount,
    pdbs: EvictionBudgets,
    now: datetime,
    settings: CompactionSettings,
    *,
    stop: Reason | None,
) -> Iterator[Reason]:
    if view.leaving:
        return
    yield from all_exclusions(view, now, settings)
    if view.underutilized:
        yield from blockers(view, pdbs, now, settings)
    else:
        yield from node_blockers(view, now)
        yield from pod_blockers(view, pdbs)
    if count.enabled:
        yield from pool_blockers(view.config, count, now, stop)


def _waits(view: NodeView, count: PoolCount, now: datetime, settings: CompactionSettings) -> Waits:
    if view.leaving:
        return _waits_leaving(view, settings)
    if not count.enabled:
        return Waits()
    marked = marked_long_enough_at(view, now, settings) if view.mark.marked else None
    return Waits(
        old_enough_at=_if_future(old_enough_at(view.node, settings), now),
        marked_long_enough_at=_if_future(marked, now),
        left_alone_until=_if_future(view.mark.retry_after, now),
        window_opens_at=next_window(view.config, now),
        # Does not matter while the node cannot be chosen anyway.
        next_begin_at=next_start(view.config, count, now, settings) if view.underutilized else None,
        underutilized=count.underutilized,
        underutilized_needed=required_underutilized(view.config, count),
    )


def _waits_leaving(view: NodeView, settings: CompactionSettings) -> Waits:
    started, drained_at = view.mark.updated, view.mark.drained_at
    if not view.mark.in_progress:
        return Waits()
    if any(must_leave(pod) for pod in view.pods):
        return Waits(pods_leave_by=None if started is None else started + settings.drain_timeout)
    return Waits(removed_by=None if drained_at is None else drained_at + settings.removal_timeout)


def _if_future(moment: datetime | None, now: datetime) -> datetime | None:
    return moment if moment is not None and now < moment else None


def _outcomes(
    objects: Objects, decision: CompactionDecision, view: NodeView, pdbs: EvictionBudgets
) -> Iterator[PodOutcome]:
    places, nowhere = _places(objects, decision, view)
    blocking = {reason.object: reason for reason in pod_blockers(view, pdbs)}
    for pod in sorted(view.pods, key=lambda pod: pod.key):
        yield PodOutcome(
            pod=pod,
            leaves=must_leave(pod),
            why=why_stays(pod),
            keeps=blocking.get(f"Pod {pod.key}"),
            target=places.get(pod.key),
            nowhere=nowhere.get(pod.key),
        )


def _places(
    objects: Objects, decision: CompactionDecision, view: NodeView
) -> tuple[dict[str, str | None], dict[str, Reason]]:
    """Where the node's pods go, and why some go nowhere; a chosen node's places are those of the plan."""
    own = {pod.key for pod in view.pods if needs_new_node(pod)}
    if not own:
        return {}, {}
    from karpool.compaction.drain_simulator import DrainSimulator

    leaving = {verdict.view.name for verdict in decision.nodes if verdict.view.leaving}
    simulator = DrainSimulator(objects, leaving - {view.name})
    for chosen in decision.chosen:
        if chosen.pool < view.pool:
            simulator.apply(simulator.simulate(chosen.node))
    removal = simulator.simulate(view.name, every_reason=True)
    places = {key: place for key, place in removal.places.items() if key in own}
    return places, {key: reason for key, reason in removal.nowhere.items() if key in own}
