"""Refusals of earlier passes, or earlier steps of a plan, that nothing since can have changed.

A refusal depends on the nodes its pods would have gone to, on the counts their rules read, and on no other node having
had room. A change that touches none of these leaves it valid. docs/controller.md says what this saves.
"""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from karpool.cluster.arrays import Array, grown
from karpool.cluster.snapshot import Snapshot
from karpool.model.reasons import Reason
from karpool.packing.scan import Scan

_BITS = ("on_nodes", "on_classes", "on_groups")


@dataclass(frozen=True, slots=True)
class Footprint:
    """What an answer depends on: if none of it changes, neither does the answer."""

    nodes: frozenset[int]
    groups: frozenset[int]
    classes: frozenset[int]
    opened: bool

    def union(self, other: "Footprint") -> "Footprint":
        """What two answers together depend on."""
        return Footprint(
            self.nodes | other.nodes,
            self.groups | other.groups,
            self.classes | other.classes,
            self.opened or other.opened,
        )


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """What changed: nodes that went or filled up, nodes with more room, counts, and pools' limits."""

    nodes: frozenset[int]
    roomier: frozenset[int]
    groups: frozenset[int]
    limits: bool


class SingleNodeRefusals:
    """Refusals by the row of the node; reasons are worked out when they are asked for."""

    def __init__(self) -> None:
        self.valid: Array = np.zeros(0, dtype=np.uint8)
        self.opened: Array = np.zeros(0, dtype=np.uint8)
        self.on_nodes: Array = np.zeros((0, 0), dtype=np.uint8)
        self.on_classes: Array = np.zeros((0, 0), dtype=np.uint8)
        self.on_groups: Array = np.zeros((0, 0), dtype=np.uint8)
        self._reasons: dict[int, Reason] = {}

    def refused(self, row: int) -> bool:
        """Whether a node cannot go alone, as far as is known."""
        return row < len(self.valid) and bool(self.valid[row])

    def rows(self) -> set[int]:
        """The rows of nodes that cannot go alone, as far as is known."""
        return set(np.flatnonzero(self.valid).tolist())

    def reason(self, row: int) -> Reason | None:
        """Why a node cannot go alone, if that was asked before and is still valid."""
        return self._reasons.get(row) if self.refused(row) else None

    def explain(self, row: int, reason: Reason) -> None:
        """Keep the reason of a refusal that is valid."""
        if self.refused(row):
            self._reasons[row] = reason

    def put(self, scan: Scan, rows: Sequence[int], chosen: Sequence[int]) -> None:
        """Keep the refusals of some sets of a scan, each of one node."""
        if not rows:
            return
        at, size = np.array(rows, dtype=np.int64), max(rows) + 1
        self.valid, self.opened = grown(self.valid, (size,)), grown(self.opened, (size,))
        for name in _BITS:
            bits: Array = getattr(scan, name)
            kept = grown(getattr(self, name), (size, bits.shape[1]))
            kept[at] = 0
            kept[at, : bits.shape[1]] = bits[chosen]
            setattr(self, name, kept)
        self.valid[at] = 1
        self.opened[at] = scan.opened[chosen]

    def forget(self, *, nodes: Array, groups: Array, classes: Array, limits: bool) -> None:
        """Drop the refusals that depend on any of these; masks are as long as what they are about."""
        stale = np.zeros(len(self.valid), dtype=np.bool_)
        for name, mask in zip(_BITS, (nodes, classes, groups), strict=True):
            known: Array = getattr(self, name)
            bits = np.packbits(mask, bitorder="little")[: known.shape[1]]
            if bits.any():
                stale |= (known[: len(stale), : len(bits)] & bits).any(axis=1)
        if limits:
            stale |= self.opened[: len(stale)] != 0
        for row in np.flatnonzero(stale & (self.valid != 0)).tolist():
            self._reasons.pop(row, None)
        self.valid[stale] = 0


class RefusalCache:
    """Refusals by the set of nodes that was refused; those of single nodes are kept in columns."""

    def __init__(self) -> None:
        self.single = SingleNodeRefusals()
        self._refusals: dict[Hashable, tuple[Reason, Footprint]] = {}

    def get(self, key: Hashable) -> Reason | None:
        """The refusal of a set of nodes, if it is still valid."""
        known = self._refusals.get(key)
        return None if known is None else known[0]

    def put(self, key: Hashable, reason: Reason, footprint: Footprint) -> None:
        """Remember a refusal."""
        self._refusals[key] = (reason, footprint)

    def forget(self, snapshot: Snapshot, change: SnapshotChange) -> None:
        """Drop the refusals that a change may have made wrong."""
        classes = classes_with_room(snapshot, sorted(change.roomier))
        nodes = change.nodes | change.roomier
        self.single.forget(
            nodes=_mask(nodes, len(snapshot.nodes.states)),
            groups=_mask(change.groups, len(snapshot.topology.groups)),
            classes=classes,
            limits=change.limits,
        )
        open_to = frozenset(np.flatnonzero(classes).tolist())
        self._refusals = {
            key: (reason, depends)
            for key, (reason, depends) in self._refusals.items()
            if not (
                depends.nodes & nodes
                or depends.groups & change.groups
                or (change.limits and depends.opened)
                or depends.classes & open_to
            )
        }


def _mask(numbers: Collection[int], size: int) -> Array:
    mask = np.zeros(size, dtype=np.bool_)
    mask[list(numbers)] = True
    return mask


def classes_with_room(snapshot: Snapshot, rows: Sequence[int]) -> Array:
    """Which classes of pods some node has room for, at any level of their preferences; rules about other pods aside."""
    size, width = snapshot.classes.size, len(snapshot.resources)
    requests, signature = snapshot.classes.requests[:size, :width], snapshot.classes.signature[:size]
    taken = np.zeros(size, dtype=np.bool_)
    for row in rows:
        suited = snapshot.shapes.suits[signature, snapshot.nodes.shape[row]] != 0
        taken |= suited & (requests <= snapshot.nodes.free[row, :width]).all(axis=1)
    fitting, level = taken.copy(), snapshot.classes.next[:size]
    while (deeper := level >= 0).any():
        fitting[deeper] |= taken[level[deeper]]
        level = np.where(deeper, snapshot.classes.next[level], -1)
    return fitting
