"""The room that pods without a node expect.

Pods that wait for a node, and pods of nodes that are being removed, will take room somewhere. While a context is open
they are bound to the nodes where they would find room today; those that find none are left out of all decisions, and so
are gangs that do not find room as a whole. On leaving the context they are where they were.
"""

from collections.abc import Collection, Mapping, Sequence

from karpool.cluster.snapshot import Snapshot
from karpool.model.pod import Pod
from karpool.packing.directions import Directions
from karpool.packing.engine import Engine
from karpool.packing.gangs import held_back
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.placement import Placement


class ExpectedPods:
    """Pods that are bound to a node only as long as somebody decides; `destinations` says where some of them go."""

    def __init__(self, destinations: Mapping[str, str]) -> None:
        self._destinations = destinations
        self._bound: dict[str, None] = {}
        self.pending: set[str] = set()
        """Keys of pods that wait and are bound to the node where they would find room."""
        self.leaving: set[str] = set()
        """Keys of pods of nodes that are being removed, bound to the node where they would find room."""
        self.unplaced: list[int] = []
        """Rows of pods that wait and find no room."""
        self.held_back: dict[int, str] = {}
        """By row of a pod that finds no room: why its gang does not, if it belongs to one."""

    def __contains__(self, pod: Pod) -> bool:
        """Whether a pod is not on its node yet: it is only expected there."""
        if not self.pending and not self.leaving:
            return False
        key = pod.key
        return key in self.pending or key in self.leaving

    def bind(self, engine: Engine, waiting: list[int], moving: Collection[int] = ()) -> None:
        """Bind pods to existing nodes with room for them; those that wait and find none are unplaced.

        Headroom gets what the others leave.
        """
        pods = engine.snapshot.pods
        headroom = [row for row in waiting if pods.get(row).is_headroom]
        self._bind(engine, [row for row in waiting if not pods.get(row).is_headroom], moving)
        self._bind(engine, headroom)

    def _bind(self, engine: Engine, waiting: list[int], moving: Collection[int] = ()) -> None:
        pods = engine.snapshot.pods
        if not waiting and not moving:
            return

        def homeless(rows: Sequence[int]) -> list[int]:
            return self._place(engine, [*rows, *moving], moving).unplaced

        held = held_back(engine.snapshot, waiting, homeless)
        self.held_back.update(held)
        placement = self._place(engine, [*(row for row in waiting if row not in held), *moving], moving)
        targets = {**dict.fromkeys(held, UNPLACED), **dict(zip(placement.pods, placement.targets, strict=True))}
        self.unplaced += [row for row in waiting if targets[row] == UNPLACED]
        for listed, expected in ((waiting, self.pending), (moving, self.leaving)):
            keys = [pods.get(row).key for row in listed if targets[row] != UNPLACED]
            expected.update(keys)
            self._bound |= dict.fromkeys(keys)
        bound = [row for row, target in targets.items() if target != UNPLACED]
        engine.snapshot.move_all(bound, [targets[row] for row in bound])

    def _place(self, engine: Engine, rows: Sequence[int], moving: Collection[int]) -> Placement:
        """Where pods would go, once those that move are no longer where they are."""
        with engine.what_if() as trial:
            trial.uncount(list(moving))
            directions = self._decided(engine, moving)
            return trial.place(rows, exempt=[True] * len(rows), existing_only=True, directions=directions)

    def release(self, snapshot: Snapshot) -> None:
        """Put every pod back where it was."""
        rows = snapshot.pods.rows
        expected = self.pending | self.leaving
        snapshot.restore_all([rows[key] for key in self._bound if key in expected and key in rows])

    def _decided(self, engine: Engine, moving: Collection[int]) -> Directions | None:
        """Where pods that leave are sent, as far as it is known."""
        decided, pods, nodes = self._destinations, engine.snapshot.pods, engine.snapshot.nodes.rows
        if not decided:
            return None
        names = {row: decided[key] for row in moving if (key := pods.get(row).key) in decided}
        return Directions((), {row: nodes[name] for row, name in names.items() if name in nodes}, every_level=True)
