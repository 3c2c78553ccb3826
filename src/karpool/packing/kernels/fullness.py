"""Which nodes have room for a pod, and which of them a scheduler likes best.

Of the scores of kube-scheduler these two count: NodeResourcesFit with a weight of one, and TaintToleration with three.
"""

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.resources import CPU, MEMORY
from karpool.packing.kernels import compiled, inner

NOBODY = -1
_CPU, _MEMORY = int(CPU), int(MEMORY)
_FINEST = 1e6
_AVOIDED = 3.0
"""The weight of TaintToleration beside that of NodeResourcesFit."""


@compiled
def mask_nodes_with_room(usable: Array, suited: Array, shape: Array, free: Array, wanted: Array, mask: Array) -> bool:
    """Set the mask where a usable node of a suitable shape has room for all that is wanted; whether any has."""
    any_room = False
    for node in range(len(mask)):
        fits = usable[node] == 1 and suited[shape[node]] == 1
        column = 0
        while fits and column < len(wanted):
            fits = free[node, column] >= wanted[column]
            column += 1
        mask[node] = fits
        any_room |= fits
    return any_room


@inner
def score(taken: Array, room: Array, node: int, avoided: int, packs: bool) -> float:
    """How much a scheduler likes a node, in millionths; one that asks pods to stay away is liked least."""
    full = (taken[node, _CPU] / max(room[node, _CPU], 1) + taken[node, _MEMORY] / max(room[node, _MEMORY], 1)) / 2
    fullness = np.rint(full * _FINEST)
    return (fullness if packs else -fullness) - (_AVOIDED * _FINEST if avoided else 0.0)


@compiled
def best(order: Array, mask: Array, taken: Array, room: Array, avoided: Array, packs: bool) -> int:
    """The node of the mask with the best score; of equals the first in order."""
    chosen, highest = NOBODY, -np.inf
    for node in order:
        if mask[node]:
            found = score(taken, room, node, avoided[node], packs)
            if found > highest:
                chosen, highest = node, found
    return chosen
