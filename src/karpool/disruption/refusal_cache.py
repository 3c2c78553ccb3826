"""Refusals of earlier passes, or earlier steps of a plan, that nothing since can have changed.

A refusal depends on the nodes its pods would have gone to, on the counts their rules read, and on no other node having
had room. A change that touches none of these leaves it valid. docs/controller.md says what this saves.
"""

from collections.abc import Collection, Hashable
from dataclasses import dataclass

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.single_node_refusals import SingleNodeRefusals, classes_with_room
from karpool.model.reasons import Reason


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
