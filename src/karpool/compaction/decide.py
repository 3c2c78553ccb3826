"""The compactor's decision: which marks to set and to remove, and which node of each pool to drain.

Of every pool at most one node is chosen, and every other node gets a reason. Pools are evaluated in the order of their
names, each on the cluster as the earlier choices leave it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from karpool.compaction.config import Config, PoolConfig
from karpool.compaction.nodes import NodeView, blockers, view_node, warnings
from karpool.compaction.pdbs import EvictionBudgets
from karpool.compaction.pods import needs_new_node
from karpool.compaction.pools import known_sizes
from karpool.compaction.rates import NO_LEDGER, DrainRates, Ledger
from karpool.compaction.reasons import CompactionReasonCode as Code
from karpool.compaction.seals import sealed_nodes
from karpool.compaction.settings import CompactionSettings
from karpool.disruption.brakes.stops_of import stops_of
from karpool.disruption.reasons import clock
from karpool.model.cron import parse_schedule
from karpool.model.group_sizes import Sizes
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.reasons import Reason

if TYPE_CHECKING:
    from karpool.compaction.drain_simulator import DrainSimulator, SimulatedRemoval


@dataclass(frozen=True, slots=True)
class DrainPlacement:
    """Where a pod of a drained node goes; None: nowhere, which only pools without `checkFit` accept."""

    pod: str
    source: str
    target: str | None


@dataclass(frozen=True, slots=True)
class ChosenNode:
    """A node to drain, with the places of its pods and what may stop the autoscaler from removing it."""

    node: str
    pool: str
    placements: tuple[DrainPlacement, ...]
    warnings: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class CompactionVerdict:
    """A node, and why it is not chosen; no reason: it is."""

    view: NodeView
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class PoolCount:
    name: str
    enabled: bool
    nodes: int
    underutilized: int
    marked: int
    in_progress: int
    last_started: datetime | None = None
    """When the latest of the scale-downs in progress started."""
    least: int | None = None
    """How many nodes it keeps in any case, if that is known."""


@dataclass(frozen=True, slots=True)
class CompactionDecision:
    time: datetime
    pools: tuple[PoolCount, ...]
    nodes: tuple[CompactionVerdict, ...]
    chosen: tuple[ChosenNode, ...]
    stop: Reason | None = None
    """The brake that keeps every node, if one holds."""


def decide(
    objects: Objects,
    config: Config,
    now: datetime,
    settings: CompactionSettings,
    *,
    ledger: Ledger = NO_LEDGER,
    uncertainty: timedelta = timedelta(0),
) -> CompactionDecision:
    """What to do now, after what the ledger tells; it may be later than that by as much as the uncertainty."""
    return _Decider(objects, config, now, settings, ledger, uncertainty).decide()


def nodes_by_reason(decision: CompactionDecision) -> dict[str, int]:
    """How many nodes stay for each reason, by its code, the commonest first; a node may count for several."""
    counts = Counter(code for verdict in decision.nodes for code in {str(reason.code) for reason in verdict.reasons})
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _pods_by_node(pods: Iterable[Pod]) -> defaultdict[str, list[Pod]]:
    by_node: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.bound and not pod.terminal:
            by_node[pod.spec.node_name].append(pod)
    return by_node


class _Decider:
    def __init__(  # noqa: PLR0917
        self,
        objects: Objects,
        config: Config,
        now: datetime,
        settings: CompactionSettings,
        ledger: Ledger,
        uncertainty: timedelta,
    ) -> None:
        self.objects, self.now, self.settings, self.uncertainty = objects, now, settings, uncertainty
        self.pdbs = EvictionBudgets(objects.pod_disruption_budgets)
        pods = _pods_by_node(objects.pods)
        nodes = sorted(objects.nodes, key=lambda node: node.name)
        self.sizes = known_sizes(objects, settings.sizes, settings.pool_label)
        seals = sealed_nodes(objects)
        self.views = [
            view_node(node, pods[node.name], config, now, settings, sealed=seals.get(node.name)) for node in nodes
        ]
        self.reasons: dict[str, tuple[Reason, ...]] = {view.name: view.exclusions for view in self.views}
        self.chosen: list[ChosenNode] = []
        self.rates = DrainRates(objects, ledger, settings.brakes, now)
        # Rates take no drain back, and have a ledger of their own.
        brakes = replace(settings.brakes, most_nodes_per_hour=None, most_evictions_per_hour=None)
        stop = stops_of(objects, brakes, now).of("")
        self.stop = None if stop is None else stop.reason
        self.receivers: dict[str, str] = {}
        """Nodes that pods of chosen nodes go to, each with one of those."""
        self._simulator: DrainSimulator | None = None

    def decide(self) -> CompactionDecision:
        pools: defaultdict[str, list[NodeView]] = defaultdict(list)
        for view in self.views:
            pools[view.pool].append(view)
        counts = tuple(count_pool(name, pools[name], self.sizes.get(name)) for name in sorted(pools))
        for count in counts:
            if count.enabled:
                self._choose(pools[count.name], count)
        verdicts = tuple(CompactionVerdict(view, self.reasons[view.name]) for view in self.views)
        return CompactionDecision(self.now, counts, verdicts, tuple(self.chosen), self.stop)

    def _choose(self, views: Sequence[NodeView], count: PoolCount) -> None:
        by_pool = pool_blockers(views[0].config, count, self.now, self.stop, self.uncertainty)
        first: NodeView | None = None
        for view in sorted((view for view in views if view.underutilized), key=lambda view: view.order):
            reasons = (*_lasting(tuple(blockers(view, self.pdbs, self.now, self.settings))), *by_pool)
            if first is not None and not reasons:
                reasons = (_another_first(first, view),)
            if not reasons and (too_fast := self.rates.refusal(view)) is not None:
                reasons = (too_fast,)
            self.reasons[view.name] = reasons
            if not reasons:
                first = self._try(view)

    def _try(self, view: NodeView) -> NodeView | None:
        """Choose a node if its pods have a place, and no chosen node's pods go to it."""
        source = self.receivers.get(view.name)
        if source is not None:
            message = f"takes pods of node {source}, which goes first"
            self.reasons[view.name] = (Reason(Code.TAKES_PODS, message, f"Node {view.name}"),)
            return None
        removal = self._drains().simulate(view.name)
        if removal.reason is not None and view.config.check_fit:
            self.reasons[view.name] = (removal.reason,)
            return None
        self._drains().apply(removal)
        self.rates.take(view)
        self.receivers |= {place: view.name for place in removal.places.values() if place is not None}
        self.chosen.append(chosen_node(view, removal, warnings(view, self.pdbs)))
        return view

    def _drains(self) -> "DrainSimulator":
        if self._simulator is None:
            from karpool.compaction.drain_simulator import DrainSimulator

            self._simulator = DrainSimulator(self.objects, [view.name for view in self.views if view.leaving])
        return self._simulator


def count_pool(name: str, views: Sequence[NodeView], sizes: Sizes | None = None) -> PoolCount:
    """A pool in numbers; how small it may become is as its configuration says, else as its autoscaler does."""
    known = None if sizes is None else sizes.minimum
    return PoolCount(
        least=known if views[0].config.minimum is None else views[0].config.minimum,
        name=name,
        enabled=bool(name) and views[0].config.enabled,
        nodes=len(views),
        underutilized=sum(view.underutilized for view in views),
        marked=sum(view.mark.marked for view in views),
        in_progress=sum(view.mark.in_progress for view in views),
        last_started=max(
            (view.mark.updated for view in views if view.mark.in_progress and view.mark.updated), default=None
        ),
    )


def required_underutilized(config: PoolConfig, count: PoolCount) -> int:
    return config.required_count + count.in_progress


def next_window(config: PoolConfig, now: datetime, uncertainty: timedelta = timedelta(0)) -> datetime | None:
    """When the pool's next window opens; None: one is certainly open, or it has none."""
    moments = (now, now + uncertainty)
    if not config.windows or all(any(window.open(moment) for window in config.windows) for moment in moments):
        return None
    return min(parse_schedule(window.schedule).next_after(now) for window in config.windows)


def _lasting(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """The reasons without that of a short mark, where others keep the node when it is marked for long enough."""
    return tuple(reason for reason in reasons if reason.code != Code.MARKED_TOO_SHORT) or reasons


def pool_blockers(
    config: PoolConfig, count: PoolCount, now: datetime, stop: Reason | None, uncertainty: timedelta = timedelta(0)
) -> tuple[Reason, ...]:
    """Why no node of a pool is drained now, as far as the pool is concerned."""
    reasons, about = [] if stop is None else [stop], f"NodePool {count.name}"
    needed = required_underutilized(config, count)
    if count.underutilized < needed:
        busy = f", {count.in_progress} of them for scale-downs in progress" if count.in_progress else ""
        there = "1 node" if count.underutilized == 1 else f"{count.underutilized} nodes"
        under_used = f"{there} of pool {count.name} {_are(count.underutilized)} under-used"
        message = f"{under_used}; {needed} {_are(needed)} needed{busy}"
        reasons.append(Reason(Code.TOO_FEW_UNDERUTILIZED, message, about))
    if config.max_in_progress is not None and count.in_progress >= config.max_in_progress:
        scale_downs = "1 scale-down" if count.in_progress == 1 else f"{count.in_progress} scale-downs"
        message = f"{scale_downs} of pool {count.name} {_are(count.in_progress)} in progress; no more may be at once"
        reasons.append(Reason(Code.TOO_MANY_IN_PROGRESS, message, about))
    left = count.nodes - count.in_progress
    if count.least is not None and left <= count.least:
        there = "1 node" if left == 1 else f"{left} nodes"
        message = (
            f"pool {count.name} has {there} that {'stays' if left == 1 else 'stay'}, and keeps at least {count.least}"
        )
        reasons.append(Reason(Code.GROUP_AT_MINIMUM, message, about))
    opens = next_window(config, now, uncertainty)
    if opens is not None:
        message = f"scale-downs of pool {count.name} begin only in its windows; the next opens at {clock(opens, now)}"
        reasons.append(Reason(Code.OUTSIDE_WINDOW, message, about))
    return tuple(reasons)


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _another_first(first: NodeView, view: NodeView) -> Reason:
    message = (
        f"node {first.name} goes first ({first.order[0]:.1%} of its CPU requested, here {view.order[0]:.1%}); "
        "a pool starts one scale-down at a time"
    )
    return Reason(Code.ANOTHER_NODE_FIRST, message, f"Node {view.name}")


def chosen_node(view: NodeView, removal: "SimulatedRemoval", warned: tuple[Reason, ...]) -> ChosenNode:
    """A node that is drained, with the places of its pods."""
    return ChosenNode(view.name, view.pool, _placements(view, removal), warned)


def _placements(view: NodeView, removal: "SimulatedRemoval") -> tuple[DrainPlacement, ...]:
    """The places of the node's own pods, without pods that were only expected there."""
    own = sorted(pod.key for pod in view.pods if needs_new_node(pod))
    return tuple(DrainPlacement(key, view.name, removal.places.get(key)) for key in own)
