"""A session of the controller: what is in memory from its start to its stop."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from karpool.controller.cluster_state import ClusterState
from karpool.controller.observer import DecisionObserver
from karpool.controller.ports import (
    Actuator,
    Beside,
    CatalogSource,
    Clock,
    Distrusted,
    FactSource,
    Intervals,
    PdbSource,
)
from karpool.controller.store import ClusterStore
from karpool.disruption.brakes.doubt import doubts
from karpool.disruption.brakes.dropped_commands import Dropped, dropped_lately
from karpool.disruption.brakes.failures import FailedCommand
from karpool.disruption.brakes.stop import Stop, Stops
from karpool.disruption.brakes.stops_of import halts_of, stops_of
from karpool.disruption.settings import DisruptionSettings
from karpool.execution.actions import Action
from karpool.execution.settings import ExecutionSettings
from karpool.execution.state import ExecutionState
from karpool.model.labels import FAILED_COMMAND
from karpool.model.nodepool import NodeClaim
from karpool.model.pod import Pod
from karpool.model.reading.unreadable import UNKNOWN
from karpool.packing.engine import Engine
from karpool.packing.options import Options

_SPARE: Final = 20_000
"""How many answers about requirements that nobody asks for any more an engine may always keep."""


@dataclass
class Session:
    """What the parts of a running controller share."""

    store: ClusterStore
    clock: Clock
    cluster_state: ClusterState
    actuator: Actuator
    catalog_source: CatalogSource
    pdb_source: PdbSource
    settings: DisruptionSettings
    options: Options
    execution: ExecutionSettings
    intervals: Intervals
    facts: FactSource
    beside: Beside
    distrusted: Distrusted
    observers: Sequence[DecisionObserver]
    state: ExecutionState = field(default_factory=ExecutionState)
    alive: bool = True
    unwritten: dict[str, FailedCommand] = field(default_factory=dict)
    """By name of a claim: a failed command that could not be written on it, because the API server refuses that too."""
    dropped: Dropped = field(default_factory=dict)
    """Commands that were dropped when they were to start."""
    _engine: Engine | None = None
    _rests_on: tuple[Any, ...] = ()
    _most_remembered: int = 0

    def engine(self) -> Engine:
        """The engine on the current snapshot, made anew when what new nodes would be like has changed."""
        catalog = self.catalog_source.catalog
        self.cluster_state.use_catalog(catalog)
        snapshot = self.cluster_state.current()
        attached = snapshot.nodes.attached_by_types()
        rests_on = (snapshot, snapshot.daemons, snapshot.withheld_pools, catalog, self.cluster_state.pools(), attached)
        engine = self._engine
        same = engine is not None and all(old is new for old, new in zip(self._rests_on, rests_on, strict=True))
        if engine is None or not same or engine.remembered > self._most_remembered:
            snapshot.objects = self.store.but_pods()
            engine = self._engine = Engine(snapshot, catalog, self.options)
            self._rests_on = rests_on
            self._most_remembered = 2 * engine.remembered + _SPARE
        return engine

    def doubts(self) -> tuple[Stop, ...]:
        """Why what is known of the cluster cannot be trusted now."""
        return tuple(doubts(self.clock.doubt, self.distrusted()))

    def stops(self, now: datetime) -> Stops:
        """What brakes hold now."""
        objects = self.store.but_pods()
        self.unwritten = {name: failed for name, failed in self.unwritten.items() if name in self.store.claims}
        if self.unwritten:
            claims = tuple(_remembering(claim, self.unwritten.get(claim.name)) for claim in objects.node_claims)
            objects = replace(objects, node_claims=claims)
        brakes = self.settings.brakes
        dropped = dropped_lately(self.dropped, self._pool_of, brakes, now)
        return Stops((*self.doubts(), *stops_of(objects, brakes, now), *dropped))

    def halts(self, now: datetime) -> Stops:
        """What rolls commands back that are under way, which is less to ask for than all that stops disruption."""
        return Stops((*self.doubts(), *halts_of(self.store.but_pods(), self.settings.brakes, now)))

    def _pool_of(self, node: str) -> str:
        nodes = self.cluster_state.snapshot.nodes
        return nodes.get(nodes.rows[node]).pool if node in nodes.rows else ""

    def execute(self, actions: Sequence[Action], *, in_order: bool = False) -> None:
        """Execute actions while the session lasts."""
        if actions:
            self.actuator.execute(actions, alive=lambda: self.alive, in_order=in_order)

    def pods_on(self, node: str) -> list[Pod]:
        """The unfinished pods on a node; on the one called UNKNOWN are those whose node cannot be read."""
        snapshot = self.cluster_state.snapshot
        if node == UNKNOWN:
            lost = [entry for entry in snapshot.unreadable if isinstance(entry, Pod)]
            return [pod for pod in lost if pod.spec.node_name == UNKNOWN]
        row = snapshot.nodes.rows.get(node)
        return [] if row is None else [snapshot.pods.get(at) for at in sorted(snapshot.pods_on(row))]


def _remembering(claim: NodeClaim, failed: FailedCommand | None) -> NodeClaim:
    """A claim as it would be, had the failed command been written on it."""
    if failed is None:
        return claim
    annotations = {**claim.metadata.annotations, FAILED_COMMAND: failed.written()}
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations))
