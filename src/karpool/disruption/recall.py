"""Answers of earlier steps that nothing since can have changed.

A refusal rests on the nodes its pods would have gone to, on the counts their rules read, and on no other node having
had room. A step that touches none of these leaves the refusal standing, so it need not be worked out again.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from karpool.disruption.evaluate import Footprint
from karpool.disruption.situation import Situation
from karpool.model.reasons import Reason


@dataclass(frozen=True, slots=True)
class Change:
    """What a step changed: nodes that went or filled up, nodes with more room, counts, and pools' limits."""

    nodes: frozenset[int]
    roomier: frozenset[int]
    groups: frozenset[int]
    limits: bool


class Recall:
    """Refusals by the set of nodes that was refused."""

    def __init__(self) -> None:
        self._held: dict[Hashable, tuple[Reason, Footprint]] = {}

    def get(self, key: Hashable) -> Reason | None:
        """The refusal of a set of nodes, if it still stands."""
        found = self._held.get(key)
        return None if found is None else found[0]

    def put(self, key: Hashable, reason: Reason, footprint: Footprint) -> None:
        """Remember a refusal."""
        self._held[key] = (reason, footprint)

    def forget(self, situation: Situation, change: Change) -> None:
        """Drop the refusals that a change may have overtaken."""
        open_to: dict[int, bool] = {}

        def may_enter(number: int) -> bool:
            if number not in open_to:
                open_to[number] = any(_takes(situation, row, number) for row in change.roomier)
            return open_to[number]

        self._held = {
            key: (reason, rests)
            for key, (reason, rests) in self._held.items()
            if not (
                rests.nodes & (change.nodes | change.roomier)
                or rests.groups & change.groups
                or (change.limits and rests.opened)
                or any(may_enter(number) for number in rests.classes)
            )
        }


def _takes(situation: Situation, row: int, number: int) -> bool:
    """Whether a node has room for a pod of a class, at any level of its wishes; rules about other pods aside."""
    snapshot = situation.snapshot
    width = len(snapshot.resources)
    level = number
    while level >= 0:
        suited = snapshot.shapes.suits[snapshot.classes.signature[level], snapshot.nodes.shape[row]]
        if suited and bool(np.all(snapshot.classes.requests[level, :width] <= snapshot.nodes.free[row, :width])):
            return True
        level = int(snapshot.classes.next[level])
    return False
