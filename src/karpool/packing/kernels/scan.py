"""Sets of nodes, one after the other: each is removed, its pods are placed, the outcome is judged, all is undone.

Most sets have to stay, and the kernel sees that without calling Python. It stops at the first set that may go, and
continues behind it when it is called again.
"""

import numpy as np

from karpool.cluster.arrays import Array
from karpool.packing.kernels import columns as c
from karpool.packing.kernels import compiled, inner
from karpool.packing.kernels.journal import remove, undo
from karpool.packing.kernels.place import place, prepare_candidates

# Indices of `progress`.
AT = 0
PLACING = 1

# Flags of a pod: it may go to closed nodes; it may wait for a node that is not up yet.
EXEMPT = 1
PATIENT = 2


@compiled
def scan(
    m: Array,
    progress: Array,
    node_start: Array,
    nodes: Array,
    pod_start: Array,
    pod_count: Array,
    pods: Array,
    flags: Array,
    most_new_nodes: Array,
    below: Array,
    limits: Array,
    reservations: Array,
    unready: Array,
    opened: Array,
    on_nodes: Array,
    on_classes: Array,
    on_groups: Array,
) -> int:
    """Judge sets until one may go (c.YES, `progress` is behind it); c.DONE after the last, or what Python must add."""
    while progress[AT] < len(below):
        at = progress[AT]
        first, count = pod_start[at], pod_count[at]
        if not progress[PLACING]:
            for position in range(node_start[at], node_start[at + 1]):
                if remove(m, nodes[position]) != c.DONE:
                    undo(m)
                    return c.NEED_LOG
            start_queue(m, first, count, pods, flags, limits[min(at, len(limits) - 1)], reservations)
            progress[PLACING] = 1
        answer = prepare_candidates(m)
        if answer == c.DONE:
            answer = place(m)
        if answer == c.DONE:
            answer = judge(m, first, count, flags, most_new_nodes[at], below[at], unready)
        if answer != c.YES and answer != c.NO:
            return answer
        opened[at] = c.state(m)[c.CLAIMS] > 0
        for position in range(node_start[at], node_start[at + 1]):
            mark(on_nodes, at, nodes[position])
        for item in range(count):
            target = c.target(m)[item]
            if target >= 0:
                mark(on_nodes, at, target)
            elif target == c.UNPLACED:
                opened[at] = 1
            mark_rules(m, at, pods[first + item], on_classes, on_groups)
        undo(m)
        progress[AT] = at + 1
        progress[PLACING] = 0
        if answer == c.YES:
            return c.YES
    return c.DONE


@inner
def start_queue(
    m: Array, first: int, count: int, pods: Array, flags: Array, limits: Array, reservations: Array
) -> None:
    """Fill the queue with the pods of a set, which are in order."""
    for item in range(count):
        c.pods(m)[item] = pods[first + item]
        c.queue(m)[item] = item
        c.last_length(m)[item] = c.UNSET
        c.exempt(m)[item] = (flags[first + item] & EXEMPT) != 0
        c.target(m)[item] = c.UNPLACED
    c.hint(m)[:, :] = 0
    c.batch_class(m)[:] = c.UNSET
    c.limits(m)[:, :] = limits
    c.reservations(m)[:] = reservations
    state = c.state(m)
    state[c.HEAD], state[c.WAITING], state[c.QUEUED], state[c.CLAIMS] = 0, count, count, 0


@inner
def judge(m: Array, first: int, count: int, flags: Array, most: int, below: float, unready: Array) -> int:
    """c.NO if a set certainly has to stay; c.YES if it may go; or what Python has to add first."""
    for item in range(count):
        target = c.target(m)[item]
        if target == c.UNPLACED or (target >= 0 and unready[target] and (flags[first + item] & PATIENT) == 0):
            return c.NO
    claims = c.state(m)[c.CLAIMS]
    if claims > most:
        return c.NO
    if claims == 0 or not np.isfinite(below):
        return c.YES
    price = 0.0
    for claim in range(claims):
        # The price of a reservation is not that of the requirements.
        if c.claim_relaxed(m)[claim] or c.claim_held(m)[claim].any():
            return c.YES
        requirement = c.claim_requirement(m)[claim]
        if not c.priced(m)[requirement]:
            c.state(m)[c.MISS_A] = requirement
            return c.NEED_PRICES
        price += cheapest(m, claim, requirement)
    return c.YES if price < below else c.NO


@inner
def cheapest(m: Array, claim: int, requirement: int) -> float:
    """The price of the cheapest type that a new node may have, each type at the most that a launch of it may cost."""
    lowest, prices, types = np.inf, c.worst_price(m)[requirement], c.claim_types(m)[claim]
    for at in range(c.claim_type_count(m)[claim]):
        lowest = min(lowest, prices[types[at]])
    return lowest


@inner
def mark_rules(m: Array, at: int, pod: int, on_classes: Array, on_groups: Array) -> None:
    """Mark a pod's class, and the groups of its rules and of rules of others that concern it."""
    class_, labels = c.class_of(m)[pod], c.labels_of(m)[pod]
    mark(on_classes, at, class_)
    start = c.kept_off_start(m)[labels]
    for position in range(start, start + c.kept_off_length(m)[labels]):
        mark(on_groups, at, c.kept_off_by(m)[position])
    while class_ >= 0:
        start = c.owned_start(m)[class_]
        for position in range(start, start + c.owned_length(m)[class_]):
            mark(on_groups, at, c.owned(m)[position])
        class_ = c.class_next(m)[class_]


@inner
def mark(bits: Array, row: int, number: int) -> None:
    bits[row, number >> 3] |= np.uint8(1 << (number & 7))
