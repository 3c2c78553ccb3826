"""Which nodes have room for a pod, and which of them a scheduler likes best.

Of the scores of kube-scheduler, each from 0 to 100, these count, as its default profile weighs them: how full a node is
once the pod is there (1), whether the pod makes its use of CPU and memory more even (1), how many pods of the same
workload are on the node and in its zone (2), and whether the node asks pods to stay away (3). Preferences of pods are
held as long as they can be, and images are everywhere.
"""

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.resources import CPU, MEMORY
from karpool.packing.kernels import compiled, inner

NOBODY = -1
_CPU, _MEMORY = int(CPU), int(MEMORY)
_FULL = 100
_SPREAD = 2
_AVOIDED = 3
_HOST_SKEW, _ZONE_SKEW = 3, 5
"""Of the constraints that every scheduler has if it is not given others."""


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
def best(
    order: Array,
    mask: Array,
    taken: Array,
    room: Array,
    avoided: Array,
    zone: Array,
    wanted: Array,
    alike: Array,
    packs: bool,
) -> int:
    """The node of the mask with the best score for a pod; of equals the first in order.

    `alike`: by node, how many pods of the pod's workload are there; empty if the scheduler does not spread them.
    """
    return most_liked(order, mask, taken, room, avoided, zone, wanted, alike, packs)


@inner
def most_liked(
    order: Array,
    mask: Array,
    taken: Array,
    room: Array,
    avoided: Array,
    zone: Array,
    wanted: Array,
    alike: Array,
    packs: bool,
) -> int:
    """As `best`, for other kernels."""
    chosen, highest = NOBODY, -np.inf
    crowds = np.zeros(len(mask), dtype=np.int64)
    least, most = crowd(order, mask, zone, alike, crowds) if len(alike) else (0, 0)
    for node in order:
        if mask[node]:
            liked = fit(taken, room, wanted, node, packs) + evenness(taken, room, wanted, node)
            if most > 0:
                liked += _SPREAD * (_FULL * (most + least - crowds[node]) // most)
            if avoided[node]:
                liked -= _AVOIDED * _FULL
            if liked > highest:
                chosen, highest = node, liked
    return int(chosen)


@inner
def fit(taken: Array, room: Array, wanted: Array, node: int, packs: bool) -> int:
    """How much of a node's CPU and memory is left, or taken, once a pod is there."""
    score = 0
    for column in (_CPU, _MEMORY):
        whole = room[node, column]
        used = min(whole, taken[node, column] + wanted[column])
        if whole > 0:
            score += _FULL * (used if packs else whole - used) // whole
    return score // 2


@inner
def evenness(taken: Array, room: Array, wanted: Array, node: int) -> int:
    """Whether a pod brings the used shares of CPU and memory nearer to each other; 0 everywhere without requests."""
    if wanted[_CPU] == 0 and wanted[_MEMORY] == 0:
        return 0
    apart = np.zeros(2, dtype=np.float64)
    for after in range(2):
        shares = np.zeros(2, dtype=np.float64)
        for at, column in enumerate((_CPU, _MEMORY)):
            whole = max(room[node, column], 1)
            shares[at] = min(1.0, (taken[node, column] + after * wanted[column]) / whole)
        apart[after] = abs(shares[0] - shares[1]) / 2
    before, now = int((1 - apart[0]) * _FULL), int((1 - apart[1]) * _FULL)
    return _FULL // 2 + (_FULL // 2 + now - before) // 2


@inner
def crowd(order: Array, mask: Array, zone: Array, alike: Array, crowds: Array) -> tuple[int, int]:
    """Work out how crowded nodes of the mask and their zones are with pods of a workload; the least and the most."""
    in_zone = np.zeros(zone.max() + 1, dtype=np.int64)
    open_zone = np.zeros(len(in_zone), dtype=np.bool_)
    nodes = 0
    for node in order:
        if zone[node] >= 0:
            in_zone[zone[node]] += alike[node]
        if mask[node]:
            nodes += 1
            if zone[node] >= 0:
                open_zone[zone[node]] = True
    of_node, of_zone = np.log(nodes + 2.0), np.log(open_zone.sum() + 2.0)
    least, most = 2**62, 0
    for node in order:
        if mask[node]:
            found = alike[node] * of_node + (_HOST_SKEW - 1)
            if zone[node] >= 0:
                found += in_zone[zone[node]] * of_zone + (_ZONE_SKEW - 1)
            crowds[node] = int(np.floor(found + 0.5))
            least, most = min(least, crowds[node]), max(most, crowds[node])
    return least, most
