"""One life of the controller: what it has in memory, gone when it stops."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from karpool.disruption.settings import Settings
from karpool.execution.actions import Action
from karpool.execution.state import State
from karpool.model.pod import Pod
from karpool.packing.engine import Engine
from karpool.packing.question import Options
from karpool.virtual.cloud import Cloud
from karpool.virtual.hands import Hands
from karpool.virtual.mirror import Mirror
from karpool.virtual.world import World


@dataclass
class Session:
    """What the parts of a running controller share."""

    world: World
    mirror: Mirror
    hands: Hands
    cloud: Cloud
    settings: Settings
    options: Options
    state: State = field(default_factory=State)
    alive: bool = True
    _engine: Engine | None = None

    def engine(self) -> Engine:
        """The engine on the mirror's snapshot, made anew when the provider offers something else."""
        if self._engine is None or self._engine.catalog is not self.cloud.catalog:
            self._engine = Engine(self.mirror.snapshot, self.cloud.catalog, self.options)
        return self._engine

    def carry_out(self, actions: Sequence[Action]) -> None:
        """Have actions carried out while the controller lives."""
        self.hands.carry_out(actions, alive=lambda: self.alive)

    def pods_on(self, node: str) -> list[Pod]:
        """The unfinished pods on a node."""
        snapshot = self.mirror.snapshot
        row = snapshot.nodes.rows.get(node)
        return [] if row is None else [snapshot.pods.get(at) for at in sorted(snapshot.pods_on(row))]
