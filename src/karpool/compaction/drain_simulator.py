"""Where the pods of a drained node would go, on the nodes that stay.

A drain that is applied removes its node and moves its pods for all later simulations, so two nodes never rely on each
other's free resources.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from karpool.catalog.instance_types import Catalog
from karpool.cluster.snapshot import Snapshot
from karpool.compaction.pods import needs_new_node
from karpool.compaction.reasons import CompactionReasonCode as Code
from karpool.model.objects import Objects
from karpool.model.reasons import Reason
from karpool.packing.engine import Engine
from karpool.packing.gangs import held_back
from karpool.packing.kernels.columns import UNPLACED
from karpool.packing.placement import Placement
from karpool.packing.refusals import why_unplaced
from karpool.wire.objects import condition


@dataclass(frozen=True, slots=True)
class SimulatedRemoval:
    """Where each pod of a removed node goes (None: nowhere), and why some find no place."""

    node: str
    places: Mapping[str, str | None]
    nowhere: Mapping[str, Reason]
    """The reason of the first pod without a place, or of each if asked for."""

    @property
    def reason(self) -> Reason | None:
        return next(iter(self.nowhere.values()), None)


class DrainSimulator:
    def __init__(self, objects: Objects, leaving: Collection[str]) -> None:
        # Without claims and pools, pods go to existing nodes only.
        self._snapshot = Snapshot(replace(objects, node_claims=(), node_pools=()))
        self._engine = Engine(self._snapshot, Catalog(()))
        self._closed = np.zeros(len(self._snapshot.nodes.live), dtype=np.uint8)
        for node in objects.nodes:
            ready = condition(node.status.conditions, "Ready")
            if ready is not None and ready.status != "True":
                self._closed[self._snapshot.nodes.rows[node.name]] = 1
        self.unplaced = self._remove(leaving)
        """The keys of pending pods, and of pods on leaving nodes, that no node can take."""

    def simulate(self, name: str, *, every_reason: bool = False) -> SimulatedRemoval:
        """Simulate the removal of a node; nothing changes."""
        rows = self._movers(name)
        with self._engine.what_if() as trial:
            trial.remove([self._snapshot.nodes.rows[name]])
            placement = trial.place(rows, closed=self._closed, existing_only=True)
            targets = dict(zip(placement.pods, placement.targets, strict=True))
            unplaced = sorted((row for row in targets if targets[row] == UNPLACED), key=self._key)
            nowhere = {self._key(row): self._reason(row) for row in (unplaced if every_reason else unplaced[:1])}
        return SimulatedRemoval(name, {self._key(row): self._name(target) for row, target in targets.items()}, nowhere)

    def apply(self, removal: SimulatedRemoval) -> None:
        for key, place in removal.places.items():
            if place is not None:
                self._snapshot.move(self._snapshot.pods.rows[key], place)
        self._snapshot.remove_node(removal.node)

    def _remove(self, leaving: Collection[str]) -> tuple[str, ...]:
        """Remove leaving nodes, and place their pods and pending pods; the keys of pods without a place."""
        pods, nodes = self._snapshot.pods, self._snapshot.nodes
        names = sorted(name for name in leaving if name in nodes.rows)
        pending = [row for row, pod in enumerate(pods.objects) if pod is not None and pod.waits_for_node]
        moving = [row for name in names for row in self._movers(name)]
        gone = [nodes.rows[name] for name in names]
        held = held_back(self._snapshot, pending, lambda rows: self._place([*rows, *moving], gone).unplaced)
        placement = self._place([*(row for row in pending if row not in held), *moving], gone)
        targets = {**dict.fromkeys(held, UNPLACED), **dict(zip(placement.pods, placement.targets, strict=True))}
        for row, target in targets.items():
            if target != UNPLACED:
                self._snapshot.move(row, nodes.get(target).name)
        for name in names:
            self._snapshot.remove_node(name)
        return tuple(sorted(self._key(row) for row, target in targets.items() if target == UNPLACED))

    def _place(self, rows: Sequence[int], gone: Sequence[int]) -> Placement:
        """Where pods would go without some of the nodes."""
        with self._engine.what_if() as trial:
            trial.remove(gone)
            return trial.place(rows, closed=self._closed, existing_only=True)

    def _movers(self, name: str) -> list[int]:
        snapshot = self._snapshot
        return [row for row in snapshot.pods_on(snapshot.nodes.rows[name]) if needs_new_node(snapshot.pods.get(row))]

    def _reason(self, row: int) -> Reason:
        why = why_unplaced(self._engine, row) or "there is no other node"
        message = f"would find no other place: {why}"
        return Reason(Code.PODS_WOULD_NOT_FIT, message, f"Pod {self._key(row)}")

    def _key(self, row: int) -> str:
        return self._snapshot.pods.get(row).key

    def _name(self, target: int) -> str | None:
        return None if target == UNPLACED else self._snapshot.nodes.get(target).name
