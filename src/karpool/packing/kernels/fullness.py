"""Which nodes have room for a pod, and which of them are fullest or emptiest: the kernels of a simple scheduler."""

import numpy as np

from karpool.cluster.arrays import Array
from karpool.packing.kernels import compiled

NOBODY = -1
_FINEST = 1e6


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


@compiled
def best(order: Array, mask: Array, taken: Array, room: Array, columns: Array, packs: bool) -> int:
    """The node of the mask with the largest (or smallest) share taken, in millionths; of equals the first in order."""
    chosen, highest = NOBODY, -np.inf
    for node in order:
        if not mask[node]:
            continue
        share = 0.0
        for column in columns:
            share += taken[node, column] / max(room[node, column], 1)
        score = np.rint(share / len(columns) * _FINEST)
        if not packs:
            score = -score
        if score > highest:
            chosen, highest = node, score
    return chosen
