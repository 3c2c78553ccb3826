"""Where the pods of a drained node would go, on the nodes that stay.

What leaves first is gone for those who come after: each node that is let go is taken out, and its pods take their new
room for good. So two nodes never go that count on each other's room.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog
from karpool.cluster.snapshot import Snapshot
from karpool.compaction.pods import drained
from karpool.compaction.reasons import CompactionReasonCode
from karpool.model.objects import Objects
from karpool.model.reasons import Reason
from karpool.packing.engine import Engine
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.refusals import refusals, sentence
from karpool.wire.objects import condition


@dataclass(frozen=True, slots=True)
class Removal:
    """What taking a node away would mean: where each of its pods goes (None: nowhere), and why some find no place."""

    node: str
    places: Mapping[str, str | None]
    nowhere: Mapping[str, Reason]
    """The reason for the first pod without a place; where asked for, for each."""

    @property
    def reason(self) -> Reason | None:
        """What speaks against it, if anything does."""
        return next(iter(self.nowhere.values()), None)


class Room:
    """The room of a cluster in which some nodes are on their way out already."""

    def __init__(self, objects: Objects, leaving: Collection[str]) -> None:
        # Without claims every node speaks for itself, and no machine that is only expected takes a pod.
        self._snapshot = Snapshot(replace(objects, node_claims=(), node_pools=()))
        self._engine = Engine(self._snapshot, Catalog(()))
        self._closed = np.zeros(len(self._snapshot.nodes.live), dtype=np.uint8)
        for node in objects.nodes:
            ready = condition(node.status.conditions, "Ready")
            if ready is not None and ready.status != "True":
                self._closed[self._snapshot.nodes.rows[node.name]] = 1
        self.stranded = self._seat(leaving)
        """The keys of pods that wait for a node, or are still on one that leaves, and have no place to go to."""

    def without(self, name: str, *, every_reason: bool = False) -> Removal:
        """What taking a node away would mean; nothing changes."""
        rows = self._movers(name)
        with self._engine.what_if() as trial:
            trial.remove([self._snapshot.nodes.rows[name]])
            found = trial.place(rows, closed=self._closed, existing_only=True)
            targets = dict(zip(found.pods, found.targets, strict=True))
            lost = sorted((row for row in targets if targets[row] == UNPLACED), key=self._key)
            nowhere = {self._key(row): self._nowhere(row) for row in (lost if every_reason else lost[:1])}
        return Removal(name, {self._key(row): self._name(target) for row, target in targets.items()}, nowhere)

    def take(self, removal: Removal) -> None:
        """Take a node away; its pods take the places that were found."""
        for key, place in removal.places.items():
            if place is not None:
                self._snapshot.move(self._snapshot.pods.rows[key], place)
        self._snapshot.remove_node(removal.node)

    def _seat(self, leaving: Collection[str]) -> tuple[str, ...]:
        """Give pods of leaving nodes, and pods that wait, the room they find; say who finds none."""
        pods, nodes = self._snapshot.pods, self._snapshot.nodes
        names = sorted(name for name in leaving if name in nodes.rows)
        waiting = [row for row, pod in enumerate(pods.objects) if pod is not None and pod.waits_for_node]
        moving = [row for name in names for row in self._movers(name)]
        with self._engine.what_if() as trial:
            trial.remove([nodes.rows[name] for name in names])
            found = trial.place([*waiting, *moving], closed=self._closed, existing_only=True)
            targets = dict(zip(found.pods, found.targets, strict=True))
        for row, target in targets.items():
            if target != UNPLACED:
                self._snapshot.move(row, nodes.get(target).name)
        for name in names:
            self._snapshot.remove_node(name)
        return tuple(sorted(self._key(row) for row, target in targets.items() if target == UNPLACED))

    def _movers(self, name: str) -> list[int]:
        snapshot = self._snapshot
        return [row for row in snapshot.pods_on(snapshot.nodes.rows[name]) if drained(snapshot.pods.get(row))]

    def _nowhere(self, row: int) -> Reason:
        why = sentence(refusals(self._engine, row)) or "there is no other node"
        return Reason(
            CompactionReasonCode.PODS_WOULD_NOT_FIT, f"would find no other place: {why}", f"Pod {self._key(row)}"
        )

    def _key(self, row: int) -> str:
        return self._snapshot.pods.get(row).key

    def _name(self, target: int) -> str | None:
        return None if target == UNPLACED else self._snapshot.nodes.get(target).name
