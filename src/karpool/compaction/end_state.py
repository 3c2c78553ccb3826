"""Where the compactor ends if it is left alone: which nodes it drains in which order, and what is left then.

Marks, ages, windows and pauses only take time, so they count as passed; pods stay as they are. Everything else is as
in a single decision: pools take turns, each gives up one node at a time, the emptiest first.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from msgspec import structs

from karpool.compaction.config import Config
from karpool.compaction.decide import ChosenNode, chosen_node, count_pool, pool_blockers
from karpool.compaction.drain_simulator import DrainSimulator
from karpool.compaction.nodes import NodeView, pod_blockers, view_node, warnings
from karpool.compaction.pdbs import EvictionBudgets
from karpool.compaction.pools import known_sizes
from karpool.compaction.seals import sealed_nodes
from karpool.compaction.settings import CompactionSettings
from karpool.model.autoscaler_rules import SCALE_DOWN_DISABLED
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.objects import Objects
from karpool.model.pod import Pod


@dataclass(frozen=True, slots=True)
class EndState:
    """The nodes that are drained, in order; and those that are on their way out already."""

    drains: tuple[ChosenNode, ...]
    leaving: tuple[str, ...]

    @property
    def gone(self) -> frozenset[str]:
        """The names of all nodes that are gone at the end."""
        return frozenset(self.leaving).union(drain.node for drain in self.drains)


def end_state(objects: Objects, config: Config, now: datetime, settings: CompactionSettings) -> EndState:
    """Drain one node after another until none is left that could go."""
    return _Walk(objects, config, now, settings).walk()


class _Walk:
    def __init__(self, objects: Objects, config: Config, now: datetime, settings: CompactionSettings) -> None:
        self.config, self.now = config, now
        self.settings = replace(settings, minimum_node_age=timedelta(0), needed_marked_time=timedelta(0))
        self.pdbs = EvictionBudgets(objects.pod_disruption_budgets)
        self.sizes = known_sizes(objects, settings.sizes, settings.pool_label)
        self.seals = sealed_nodes(objects)
        self.pods: defaultdict[str, dict[str, Pod]] = defaultdict(dict)
        for pod in objects.pods:
            if pod.bound and not pod.terminal:
                self.pods[pod.spec.node_name][pod.key] = pod
        self.nodes = {node.name: node for node in objects.nodes}
        self.views = {name: self._view(name) for name in sorted(self.nodes)}
        self.leaving = tuple(name for name, view in self.views.items() if view.leaving)
        self.simulator = DrainSimulator(objects, self.leaving)
        self.pools: defaultdict[str, set[str]] = defaultdict(set)
        for name, view in self.views.items():
            if view.pool and view.config.enabled and name not in self.leaving:
                self.pools[view.pool].add(name)
        self.stuck: set[str] = set()
        """Nodes whose pods found no place; asked again when nothing else goes."""

    def _view(self, name: str) -> NodeView:
        pods, seal = tuple(self.pods[name].values()), self.seals.get(name)
        return view_node(self.nodes[name], pods, self.config, self.now, self.settings, sealed=seal)

    def walk(self) -> EndState:
        return EndState(tuple(self._drains()), self.leaving)

    def _drains(self) -> Iterator[ChosenNode]:
        while chosen := self._round() or self._once_more():
            yield from chosen

    def _round(self) -> list[ChosenNode]:
        """A turn of every pool."""
        return [node for pool in sorted(self.pools) if (node := self._next(pool)) is not None]

    def _once_more(self) -> list[ChosenNode]:
        """Another turn, in which nodes are asked again: what their pods kept away from may have moved since."""
        if not self.stuck:
            return []
        self.stuck.clear()
        return self._round()

    def _next(self, pool: str) -> ChosenNode | None:
        """Drain the emptiest node of a pool whose pods fit elsewhere, if the pool may lose one."""
        views = [self.views[name] for name in sorted(self.pools[pool])]
        if not views or self._kept_by_pool(pool, views):
            return None
        for view in sorted((view for view in views if view.underutilized), key=lambda view: view.order):
            if view.name in self.stuck or self._keeps(view):
                continue
            removal = self.simulator.simulate(view.name)
            if removal.reason is not None and view.config.check_fit:
                self.stuck.add(view.name)
                continue
            self.simulator.apply(removal)
            chosen = chosen_node(view, removal, warnings(view, self.pdbs))
            self._move(view.name, removal.places)
            self.pools[pool].discard(view.name)
            return chosen
        return None

    def _kept_by_pool(self, pool: str, views: list[NodeView]) -> bool:
        """Whether its size keeps a pool from losing a node; windows and scale-downs in progress pass."""
        count = count_pool(pool, views, self.sizes.get(pool))
        return bool(pool_blockers(structs.replace(views[0].config, windows=()), count, self.now, None))

    def _keeps(self, view: NodeView) -> bool:
        """Whether something keeps a node whatever time passes."""
        annotations = view.node.metadata.annotations
        refused = "true" in (annotations.get(SCALE_DOWN_DISABLED), annotations.get(DO_NOT_DISRUPT))
        return refused or next(pod_blockers(view, self.pdbs), None) is not None

    def _move(self, name: str, places: Mapping[str, str | None]) -> None:
        """Take note of where the pods of a drained node went."""
        for key, pod in self.pods.pop(name, {}).items():
            target = places.get(key)
            if target is not None:
                self.pods[target][key] = pod
        for target in {target for target in places.values() if target is not None}:
            self.views[target] = self._view(target)
