"""One life of the controller: what it has in memory, gone when it stops."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from karpool.controller.ground import Clock, Guard, Hands, Offers, Pace
from karpool.controller.mirror import Mirror
from karpool.controller.store import Store
from karpool.controller.watching import Observer
from karpool.disruption.settings import Settings
from karpool.execution.actions import Action
from karpool.execution.settings import Settings as ExecutionSettings
from karpool.execution.state import State
from karpool.model.pod import Pod
from karpool.packing.engine import Engine
from karpool.packing.question import Options


@dataclass
class Session:
    """What the parts of a running controller share."""

    store: Store
    clock: Clock
    mirror: Mirror
    hands: Hands
    offers: Offers
    guard: Guard
    settings: Settings
    options: Options
    execution: ExecutionSettings
    pace: Pace
    observers: Sequence[Observer]
    state: State = field(default_factory=State)
    alive: bool = True
    _engine: Engine | None = None
    _rests_on: tuple[Any, ...] = ()

    def engine(self) -> Engine:
        """The engine on the mirror's snapshot, made anew when pools changed or the provider offers something else."""
        snapshot = self.mirror.current()
        rests_on = (snapshot, self.offers.catalog, self.mirror.pools())
        if self._engine is None or any(old is not new for old, new in zip(self._rests_on, rests_on, strict=True)):
            snapshot.objects = self.store.but_pods()
            self._engine = Engine(snapshot, self.offers.catalog, self.options)
            self._rests_on = rests_on
        return self._engine

    def carry_out(self, actions: Sequence[Action], *, in_order: bool = False) -> None:
        """Have actions carried out while the controller lives."""
        if actions:
            self.hands.carry_out(actions, alive=lambda: self.alive, in_order=in_order)

    def pods_on(self, node: str) -> list[Pod]:
        """The unfinished pods on a node."""
        snapshot = self.mirror.snapshot
        row = snapshot.nodes.rows.get(node)
        return [] if row is None else [snapshot.pods.get(at) for at in sorted(snapshot.pods_on(row))]
