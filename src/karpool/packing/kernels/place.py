"""The queue: pods one by one, each to the first place that accepts it; preferences are given up only if none does."""

from karpool.cluster.arrays import Array
from karpool.packing.kernels import columns as c
from karpool.packing.kernels import compiled, inner
from karpool.packing.kernels.claims import intersection, try_claim
from karpool.packing.kernels.journal import entries_for, room_for
from karpool.packing.kernels.nodes import find_node, list_candidates, put_on_node
from karpool.packing.kernels.topology import prepare


@compiled
def place(m: Array) -> int:
    """Place all pods of the queue; c.DONE, or what Python has to add."""
    size = c.state(m)[c.QUEUED]
    while c.state(m)[c.WAITING] > 0:
        head = c.state(m)[c.HEAD]
        item = c.queue(m)[head]
        if c.last_length(m)[item] == c.state(m)[c.WAITING]:
            break
        pod = c.pods(m)[item]
        answer = place_pod(m, item, pod)
        if answer != c.YES and answer != c.NO and answer != c.RESERVED_ERROR:
            return answer
        c.state(m)[c.HEAD] = (head + 1) % size
        if answer == c.YES:
            c.state(m)[c.WAITING] -= 1
        else:
            c.queue(m)[(head + c.state(m)[c.WAITING]) % size] = item
            c.last_length(m)[item] = c.state(m)[c.WAITING]
    return c.DONE


@compiled
def prepare_candidates(m: Array) -> int:
    """List candidates for every class of the queue, before any pod is placed."""
    for item in range(c.state(m)[c.QUEUED]):
        class_ = c.class_of(m)[c.pods(m)[item]]
        while class_ >= 0:
            if c.candidates_length(m)[class_] == c.UNSET and not list_candidates(m, class_):
                return c.NEED_CANDIDATES
            class_ = c.class_next(m)[class_]
    return c.DONE


@inner
def place_pod(m: Array, item: int, pod: int) -> int:
    """Try to place one pod, giving up one preference after the other."""
    class_ = c.class_of(m)[pod]
    labels = c.labels_of(m)[pod]
    if c.class_refused(m)[class_]:
        return c.NO
    if not room_for(m, entries_for(m, class_, labels)):
        return c.NEED_LOG
    while class_ >= 0:
        if prepare(m, class_, labels):
            batch = batch_of(m, class_, labels, c.exempt(m)[item])
            node = find_node(m, class_, c.exempt(m)[item], batch)
            if node != c.UNPLACED:
                put_on_node(m, class_, labels, node)
                c.target(m)[item] = node
                return c.YES
            if not c.state(m)[c.EXISTING_ONLY]:
                answer = on_claim(m, item, class_, labels, batch)
                if answer != c.NO:
                    return answer
        class_ = c.class_next(m)[class_]
    return c.NO


@inner
def batch_of(m: Array, class_: int, labels: int, exempt: int) -> int:
    """The batch of equal pods that a pod belongs to; a new batch replaces the remembered one if that is another.

    A node or claim that refused a pod refuses an equal pod, unless that is allowed a domain that the first was not.
    """
    batch = (class_ + 17 * labels) & (c.BATCHES - 1)
    alike = (
        c.batch_class(m)[batch] == class_ and c.batch_labels(m)[batch] == labels and c.batch_exempt(m)[batch] == exempt
    )
    if not alike or allowed_more(m, batch):
        c.batch_class(m)[batch] = class_
        c.batch_labels(m)[batch] = labels
        c.batch_exempt(m)[batch] = exempt
        c.batch_place(m)[batch] = 0
        c.state(m)[c.STAMP] += 1
        c.batch_stamp(m)[batch] = c.state(m)[c.STAMP]
    for slot in range(c.state(m)[c.KEYS]):
        c.batch_nodes(m)[batch, slot] = c.allow_node(m)[slot]
        c.batch_claims(m)[batch, slot] = c.allow_claim(m)[slot]
    return batch


@inner
def allowed_more(m: Array, batch: int) -> bool:
    """Whether a pod is allowed some domain that the one before it in its batch was not."""
    for slot in range(c.state(m)[c.KEYS]):
        nodes, claims = c.batch_nodes(m)[batch, slot], c.batch_claims(m)[batch, slot]
        for domain in range(c.domains(m)[c.keys(m)[slot]]):
            if c.allow_node(m)[slot, domain] > nodes[domain] or c.allow_claim(m)[slot, domain] > claims[domain]:
                return True
    return False


@inner
def on_claim(m: Array, item: int, class_: int, labels: int, batch: int) -> int:
    """Try open claims, those with the fewest pods first, then a new one of each pool in order."""
    stamp = c.batch_stamp(m)[batch]
    for position in range(c.state(m)[c.CLAIMS]):
        claim = c.claim_order(m)[position]
        if c.claim_mark(m)[batch, claim] == stamp:
            continue
        answer = try_claim(m, claim, class_, labels, False)
        if answer == c.NEVER:
            c.claim_mark(m)[batch, claim] = stamp
            continue
        if answer == c.YES:
            c.target(m)[item] = -2 - claim
            move_back(m, position)
            return c.YES
        if answer not in (c.NO, c.RESERVED_ERROR):
            return answer
    for template in range(c.sizes(m)[c.TEMPLATES]):
        answer = open_claim(m, template, class_, labels)
        if answer == c.YES:
            claim = c.state(m)[c.CLAIMS]
            c.state(m)[c.CLAIMS] = claim + 1
            c.target(m)[item] = -2 - claim
            charge(m, claim)
            c.claim_order(m)[claim] = claim
            move_forward(m, claim)
            return c.YES
        if answer not in (c.NO, c.NEVER):
            return answer
    return c.NO


@inner
def move_back(m: Array, position: int) -> None:
    """Move a claim that got one more pod behind those with fewer."""
    order, claim = c.claim_order(m), c.claim_order(m)[position]
    end = first_after(m, claim, position + 1, c.state(m)[c.CLAIMS]) - 1
    for at in range(position, end):
        order[at] = order[at + 1]
    order[end] = claim


@inner
def move_forward(m: Array, position: int) -> None:
    """Move a new claim, which has one pod, before those with more."""
    order, claim = c.claim_order(m), c.claim_order(m)[position]
    begin = first_after(m, claim, 0, position)
    for at in range(position, begin, -1):
        order[at] = order[at - 1]
    order[begin] = claim


@inner
def first_after(m: Array, claim: int, begin: int, end: int) -> int:
    """The first position from `begin` on of a claim with more pods, or with as many and opened later."""
    pods = c.claim_pods(m)
    while begin < end:
        middle = (begin + end) // 2
        other = c.claim_order(m)[middle]
        if pods[other] > pods[claim] or (pods[other] == pods[claim] and other > claim):
            end = middle
        else:
            begin = middle + 1
    return begin


@inner
def open_claim(m: Array, template: int, class_: int, labels: int) -> int:
    """Try a new claim of a pool."""
    claim = c.state(m)[c.CLAIMS]
    if claim >= len(c.claim_pods(m)):
        return c.NEED_CLAIMS
    signature = c.class_signature(m)[class_]
    if not c.tolerates(m)[signature, template] or c.template_length(m)[template] == 0:
        return c.NO
    base = intersection(m, c.template_requirement(m)[template], c.signature_incoming(m)[signature])
    if base == c.UNCOMPUTED:
        return c.NEED_INTERSECTION
    if base < 0 or c.limits(m)[template, c.sizes(m)[c.RESOURCES]] < 1:
        return c.NO
    clear_claim(m, claim, template)
    if c.claim_type_count(m)[claim] == 0:
        return c.NO
    return try_claim(m, claim, class_, labels, True)


@inner
def clear_claim(m: Array, claim: int, template: int) -> None:
    """Reset a claim to all types of its pool that the limits allow."""
    c.claim_template(m)[claim] = template
    c.claim_requirement(m)[claim] = c.template_requirement(m)[template]
    c.claim_pods(m)[claim] = 0
    c.claim_relaxed(m)[claim] = 0
    c.claim_host(m)[claim, :] = 0
    c.claim_held(m)[claim, :] = 0
    limited = False
    for column in range(c.sizes(m)[c.RESOURCES]):
        c.claim_used(m)[claim, column] = 0
        c.claim_most(m)[claim, column] = c.template_most(m)[template, column]
        limited = limited or c.template_largest(m)[template, column] > c.limits(m)[template, column]
    count = 0
    begin = c.template_start(m)[template]
    for at in range(begin, begin + c.template_length(m)[template]):
        type_ = c.template_types(m)[at]
        if not limited or within_limits(m, template, type_):
            c.claim_types(m)[claim, count] = type_
            count += 1
    c.claim_type_count(m)[claim] = count


@inner
def within_limits(m: Array, template: int, type_: int) -> bool:
    """Whether a node of a type stays within what is left of a pool's limits."""
    for column in range(c.sizes(m)[c.RESOURCES]):
        if c.type_capacity(m)[type_, column] > c.limits(m)[template, column]:
            return False
    return True


@inner
def charge(m: Array, claim: int) -> None:
    """Subtract the largest of a new claim's types from its pool's limits."""
    template = c.claim_template(m)[claim]
    for column in range(c.sizes(m)[c.RESOURCES]):
        c.limits(m)[template, column] -= c.claim_charged(m)[claim, column]
    c.limits(m)[template, c.sizes(m)[c.RESOURCES]] -= 1
