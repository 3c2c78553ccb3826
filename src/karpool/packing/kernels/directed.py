"""Pods with a destination: each is tried there, before the queue looks for a place for all others.

Equal pods share their destinations: each of these takes so many of them, and it does not matter which.
"""

from karpool.cluster.arrays import Array
from karpool.packing.kernels import columns as c
from karpool.packing.kernels import compiled, inner
from karpool.packing.kernels.claims import try_claim
from karpool.packing.kernels.journal import entries_for, room_for
from karpool.packing.kernels.nodes import accepts, put_on_node
from karpool.packing.kernels.place import charge, clear_claim
from karpool.packing.kernels.topology import prepare

# Indices of `progress`.
AT = 0
PLACED = 1
PLACED_BEFORE = 2
PROGRESS = 3


@compiled
def place_directed(
    m: Array,
    progress: Array,
    every_level: int,
    kind_of: Array,
    start: Array,
    destinations: Array,
    left: Array,
    refused: Array,
    template: Array,
    requirement: Array,
    types: Array,
    claim_of: Array,
) -> int:
    """Go through the queue until a whole round places no pod; c.DONE, or what Python has to add.

    A round may place what an earlier one refused: a pod may have to wait until others are where they should be.
    `every_level`: what a destination refuses, it is asked again with one preference less.
    """
    while True:
        while progress[AT] < c.state(m)[c.QUEUED]:
            item = progress[AT]
            kind = kind_of[item]
            # What was refused is refused again as long as no other pod has found its place.
            if kind >= 0 and c.target(m)[item] == c.UNPLACED and refused[kind] != progress[PLACED]:
                answer = c.NO
                class_ = c.class_of(m)[c.pods(m)[item]]
                labels = c.labels_of(m)[c.pods(m)[item]]
                if not c.class_refused(m)[class_] and not room_for(m, entries_for(m, class_, labels)):
                    return c.NEED_LOG
                while class_ >= 0 and answer == c.NO and not c.class_refused(m)[class_]:
                    if prepare(m, class_, labels):
                        answer = send(
                            m,
                            item,
                            class_,
                            start[kind],
                            start[kind + 1],
                            destinations,
                            left,
                            template,
                            requirement,
                            types,
                            claim_of,
                        )
                    class_ = c.class_next(m)[class_] if every_level else c.UNSET
                if answer == c.YES:
                    progress[PLACED] += 1
                elif answer == c.NO:
                    refused[kind] = progress[PLACED]
                else:
                    return answer
            progress[AT] = item + 1
        if progress[PLACED] == progress[PLACED_BEFORE]:
            return c.DONE
        progress[PLACED_BEFORE] = progress[PLACED]
        progress[AT] = 0


@inner
def send(
    m: Array,
    item: int,
    class_: int,
    begin: int,
    end: int,
    destinations: Array,
    left: Array,
    template: Array,
    requirement: Array,
    types: Array,
    claim_of: Array,
) -> int:
    """Put a pod on the first of its destinations that still takes one of its kind."""
    labels = c.labels_of(m)[c.pods(m)[item]]
    for at in range(begin, end):
        target = destinations[at]
        if left[at] == 0:
            continue
        if target >= 0:
            if not accepts(m, class_, target, c.exempt(m)[item], False):
                continue
            put_on_node(m, class_, labels, target)
        else:
            new = -2 - target
            if c.state(m)[c.EXISTING_ONLY] or requirement[new] < 0:
                continue
            if claim_of[new] >= 0:
                answer = try_claim(m, claim_of[new], class_, labels, False)
            else:
                answer = open_directed(m, template[new], requirement[new], types[new], class_, labels)
            if answer == c.NO or answer == c.NEVER or answer == c.RESERVED_ERROR:
                continue
            if answer != c.YES:
                return answer
            if claim_of[new] < 0:
                claim_of[new] = c.state(m)[c.CLAIMS]
                c.state(m)[c.CLAIMS] += 1
                charge(m, claim_of[new])
            target = -2 - claim_of[new]
        c.target(m)[item] = target
        left[at] -= 1
        return c.YES
    return c.NO


@inner
def open_directed(m: Array, template: int, requirement: int, types: Array, class_: int, labels: int) -> int:
    """Try a new claim with the requirements and types that are asked for."""
    claim = c.state(m)[c.CLAIMS]
    if claim >= len(c.claim_pods(m)):
        return c.NEED_CLAIMS
    if c.limits(m)[template, c.sizes(m)[c.RESOURCES]] < 1:
        return c.NO
    clear_claim(m, claim, template)
    c.claim_requirement(m)[claim] = requirement
    count = 0
    for at in range(c.claim_type_count(m)[claim]):
        type_ = c.claim_types(m)[claim, at]
        if types[type_]:
            c.claim_types(m)[claim, count] = type_
            count += 1
    c.claim_type_count(m)[claim] = count
    return try_claim(m, claim, class_, labels, True) if count else c.NO
