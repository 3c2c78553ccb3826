"""New nodes: which types and domains an open claim may still have, and whether one more pod leaves any."""

from karpool.cluster.arrays import Array
from karpool.packing.kernels import columns as c
from karpool.packing.kernels import inner
from karpool.packing.kernels.journal import add_to_domain, add_to_total
from karpool.packing.kernels.topology import hosts_allow


@inner
def try_claim(m: Array, claim: int, class_: int, labels: int, fresh: bool) -> int:
    """Put a pod on a claim if some type still suits all its pods; the claim is then restricted to those types."""
    signature = c.class_signature(m)[class_]
    if not c.tolerates(m)[signature, c.claim_template(m)[claim]] or not c.signature_new_host(m)[signature]:
        return c.NEVER
    used, most, wanted = c.claim_used(m)[claim], c.claim_most(m)[claim], c.class_requests(m)[class_]
    for column in range(c.sizes(m)[c.RESOURCES]):
        if used[column] + wanted[column] > most[column]:
            return c.NEVER
    begin = c.blocked_start(m)[class_]
    for at in range(begin, begin + c.blocked_length(m)[class_]):
        if c.claim_host(m)[claim, c.blocked(m)[at]] > 0:
            return c.NEVER
    answer = c.NO
    if hosts_allow(m, c.claim_host(m).T, claim):
        answer = try_volumes(m, claim, class_, labels, fresh)
    return c.NEVER if answer == c.NO and not c.state(m)[c.TENTATIVE] else answer


@inner
def intersection(m: Array, requirement: int, incoming: int) -> int:
    """The intersection of two requirements; c.UNCOMPUTED if Python has to compute it."""
    both = c.intersections(m)[requirement, incoming]
    if both == c.UNCOMPUTED:
        c.state(m)[c.MISS_A] = requirement
        c.state(m)[c.MISS_B] = incoming
    return both


@inner
def try_volumes(m: Array, claim: int, class_: int, labels: int, fresh: bool) -> int:
    """Try a claim with each alternative of where the pod's volumes can be reached."""
    signature = c.class_signature(m)[class_]
    base = intersection(m, c.claim_requirement(m)[claim], c.signature_incoming(m)[signature])
    if base == c.UNCOMPUTED:
        return c.NEED_INTERSECTION
    if base < 0:
        return c.NO
    count = c.volumes_length(m)[signature]
    for choice in range(max(1, count)):
        requirement = base
        if count:
            requirement = intersection(m, base, c.volumes(m)[c.volumes_start(m)[signature] + choice])
            if requirement == c.UNCOMPUTED:
                return c.NEED_INTERSECTION
        if requirement >= 0:
            answer = try_domains(m, claim, class_, labels, requirement, fresh)
            if answer != c.NO:
                return answer
    return c.NO


@inner
def in_domain(m: Array, requirement: int, slot: int, only: int) -> int:
    """A requirement restricted to the allowed domains of a key, or to one of them; c.UNCOMPUTED as above."""
    key = c.keys(m)[slot]
    same = c.concrete(m)[requirement, key] == 1
    left, mask, allowed = c.miss_mask(m), c.mask_of(m)[requirement, key], c.allow_claim(m)[slot]
    left[:] = 0
    for domain in range(c.domains(m)[key]):
        if only == c.UNSET or domain == only:
            left[domain] = allowed[domain] & mask[domain]
        same = same and left[domain] == mask[domain]
    if same:
        return requirement
    entry = c.domain_head(m)[requirement]
    while entry >= 0:
        if c.domain_key(m)[entry] == key:
            equal, known = True, c.domain_mask(m)[entry]
            for domain in range(c.domains(m)[key]):
                equal = equal and known[domain] == left[domain]
            if equal:
                return c.domain_result(m)[entry]
        entry = c.domain_next(m)[entry]
    c.state(m)[c.MISS_A] = requirement
    c.state(m)[c.MISS_B] = key
    return c.UNCOMPUTED


@inner
def try_domains(m: Array, claim: int, class_: int, labels: int, requirement: int, fresh: bool) -> int:
    """Try a claim in the domains that topology allows; where one has to be chosen, each in turn, emptiest first."""
    pinned = 0
    for slot in range(c.state(m)[c.KEYS]):
        if not list_pins(m, requirement, slot):
            return c.NO
        if c.pinned(m)[slot]:
            pinned += 1
            c.pin_at(m)[slot] = 0
        else:
            requirement = in_domain(m, requirement, slot, c.UNSET)
            if requirement == c.UNCOMPUTED:
                return c.NEED_DOMAIN
            if requirement < 0:
                return c.NO
    while True:
        pinned_requirement = requirement
        for slot in range(c.state(m)[c.KEYS]):
            if c.pinned(m)[slot] and pinned_requirement >= 0:
                pinned_requirement = in_domain(m, pinned_requirement, slot, c.pins(m)[slot, c.pin_at(m)[slot]])
                if pinned_requirement == c.UNCOMPUTED:
                    return c.NEED_DOMAIN
        if pinned_requirement >= 0:
            answer = try_types(m, claim, class_, pinned_requirement, fresh)
            if answer == c.YES:
                answer = commit(m, claim, class_, labels, pinned_requirement)
            if answer != c.NO:
                return answer
        if pinned == 0 or not next_pins(m):
            return c.NO


@inner
def list_pins(m: Array, requirement: int, slot: int) -> bool:
    """List the domains of a key that a claim could be in, those with the fewest counted pods first."""
    key = c.keys(m)[slot]
    group = c.pin_group(m)[slot]
    count = 0
    for domain in range(c.domains(m)[key]):
        if not (c.allow_claim(m)[slot, domain] and c.mask_of(m)[requirement, key, domain]):
            continue
        at = count
        while at > 0 and precedes(m, key, group, domain, c.pins(m)[slot, at - 1]):
            c.pins(m)[slot, at] = c.pins(m)[slot, at - 1]
            at -= 1
        c.pins(m)[slot, at] = domain
        count += 1
    c.pin_count(m)[slot] = count
    return count > 0


@inner
def precedes(m: Array, key: int, group: int, domain: int, other: int) -> bool:
    """Whether a domain is tried before another: fewer counted pods, else by name."""
    if group != c.UNSET and c.by_domain(m)[group, domain] != c.by_domain(m)[group, other]:
        return c.by_domain(m)[group, domain] < c.by_domain(m)[group, other]
    return c.rank(m)[key, domain] < c.rank(m)[key, other]


@inner
def next_pins(m: Array) -> bool:
    """Choose the next combination of domains, the last key changing fastest; False after the last combination."""
    for slot in range(c.state(m)[c.KEYS] - 1, -1, -1):
        if c.pinned(m)[slot]:
            c.pin_at(m)[slot] += 1
            if c.pin_at(m)[slot] < c.pin_count(m)[slot]:
                return True
            c.pin_at(m)[slot] = 0
    return False


@inner
def try_types(m: Array, claim: int, class_: int, requirement: int, fresh: bool) -> int:
    """List the types that meet a requirement and have room for all pods of a claim and one more."""
    template = c.claim_template(m)[claim]
    ports = c.class_ports(m)[class_]
    if all_fit(m, claim, class_, requirement, fresh):
        return c.YES
    used, wanted, width = c.claim_used(m)[claim], c.class_requests(m)[class_], c.sizes(m)[c.RESOURCES]
    types, suitable = c.claim_types(m)[claim], c.types_of(m)[requirement]
    clash, rooms, fitting = c.clash(m)[ports, template], c.type_room(m)[template], c.fitting(m)
    shares = c.shared_length(m)[class_] > 0
    count = 0
    for at in range(c.claim_type_count(m)[claim]):
        type_ = types[at]
        enough = suitable[type_] and not clash[type_]
        for column in range(width):
            enough = enough and used[column] + wanted[column] <= rooms[type_, column]
        if enough and (not shares or attaches(m, claim, class_, type_)):
            fitting[count] = type_
            count += 1
    c.state(m)[c.FITTING] = count
    c.state(m)[c.ALL_FIT] = 0
    if count == 0 or not enough_values(m, claim, requirement, fresh):
        return c.NO
    return hold_reservations(m, claim, requirement)


@inner
def attaches(m: Array, claim: int, class_: int, type_: int) -> bool:
    """Whether a type can attach the volumes that a pod shares with others, and that its claim does not have yet."""
    rooms = c.type_room(m)[c.claim_template(m)[claim]]
    begin = c.shared_start(m)[class_]
    end = begin + c.shared_length(m)[class_]
    for at in range(begin, end):
        column = c.shared_column(m)[at]
        wanted = c.class_requests(m)[class_, column]
        for other in range(begin, end):
            if c.shared_column(m)[other] == column and c.claim_host(m)[claim, c.shared_row(m)[other]] == 0:
                wanted += 1
        if c.claim_used(m)[claim, column] + wanted > rooms[type_, column]:
            return False
    return True


@inner
def all_fit(m: Array, claim: int, class_: int, requirement: int, fresh: bool) -> bool:
    """Whether a claim certainly keeps all its types: its requirement stays and the smallest type has room."""
    template = c.claim_template(m)[claim]
    plain = c.min_length(m)[template] == 0 and c.sizes(m)[c.RESERVED_OFFERINGS] == 0 and c.class_ports(m)[class_] == 0
    if fresh or not plain or requirement != c.claim_requirement(m)[claim] or c.shared_length(m)[class_] > 0:
        return False
    used, least, wanted = c.claim_used(m)[claim], c.claim_least(m)[claim], c.class_requests(m)[class_]
    for column in range(c.sizes(m)[c.RESOURCES]):
        if used[column] + wanted[column] > least[column]:
            return False
    c.state(m)[c.ALL_FIT] = 1
    c.state(m)[c.RELAXED] = c.claim_relaxed(m)[claim]
    return True


@inner
def enough_values(m: Array, claim: int, requirement: int, fresh: bool) -> bool:
    """Whether the fitting types have as many values that a requirement allows as the pool's minValues ask for."""
    template = c.claim_template(m)[claim]
    begin = c.min_start(m)[template]
    c.state(m)[c.RELAXED] = c.claim_relaxed(m)[claim]
    for at in range(c.min_length(m)[template]):
        wanted = c.min_wanted(m)[begin + at] if fresh else c.claim_minimum(m)[claim, at]
        count = distinct(m, begin + at, requirement)
        if count < wanted:
            if not (fresh and c.state(m)[c.BEST_EFFORT]):
                return False
            wanted = count
            c.state(m)[c.RELAXED] = 1
        c.new_minimum(m)[at] = wanted
    return True


@inner
def distinct(m: Array, row: int, requirement: int) -> int:
    """How many distinct values of a key the fitting types have, of those that a requirement allows."""
    c.state(m)[c.STAMP] += 1
    stamp = c.state(m)[c.STAMP]
    count = 0
    for at in range(c.state(m)[c.FITTING]):
        begin = c.value_start(m)[row, c.fitting(m)[at]]
        for position in range(begin, begin + c.value_length(m)[row, c.fitting(m)[at]]):
            value = c.values(m)[position]
            if c.value_mark(m)[value] != stamp and c.value_allowed(m)[requirement, value]:
                c.value_mark(m)[value] = stamp
                count += 1
    return count


@inner
def hold_reservations(m: Array, claim: int, requirement: int) -> int:
    """List the reservations that a claim could hold; in strict mode, a claim that could hold some must hold one."""
    if c.sizes(m)[c.RESERVED_OFFERINGS] == 0:
        return c.YES
    c.state(m)[c.STAMP] += 1
    stamp = c.state(m)[c.STAMP]
    for at in range(c.state(m)[c.FITTING]):
        c.type_mark(m)[c.fitting(m)[at]] = stamp
    c.new_held(m)[:] = 0
    compatible = False
    for at in range(c.sizes(m)[c.RESERVED_OFFERINGS]):
        if c.type_mark(m)[c.reserved_type(m)[at]] == stamp and c.reserved_ok(m)[requirement, at]:
            number = c.reserved_id(m)[at]
            compatible = True
            if c.claim_held(m)[claim, number] or c.reservations(m)[number] > 0:
                c.new_held(m)[number] = 1
    could_hold = compatible or c.claim_held(m)[claim].any()
    if c.state(m)[c.STRICT_RESERVED] and could_hold and not c.new_held(m).any():
        return c.RESERVED_ERROR
    return c.YES


@inner
def commit(m: Array, claim: int, class_: int, labels: int, requirement: int) -> int:
    begin = c.counted_start(m)[labels]
    for at in range(begin, begin + c.counted_length(m)[labels]):
        number = c.group_filter(m)[c.counted_by(m)[at]]
        if c.claim_seen(m)[number, requirement] == c.UNJUDGED:
            c.state(m)[c.MISS_A] = number
            c.state(m)[c.MISS_B] = requirement
            return c.NEED_CLAIM_SEEN
    c.claim_requirement(m)[claim] = requirement
    c.claim_pods(m)[claim] += 1
    c.claim_relaxed(m)[claim] = c.state(m)[c.RELAXED]
    for at in range(c.min_length(m)[c.claim_template(m)[claim]]):
        c.claim_minimum(m)[claim, at] = c.new_minimum(m)[at]
    for number in range(c.sizes(m)[c.RESERVATION_IDS]):
        c.reservations(m)[number] += c.claim_held(m)[claim, number] - c.new_held(m)[number]
        c.claim_held(m)[claim, number] = c.new_held(m)[number]
    for column in range(c.sizes(m)[c.RESOURCES]):
        c.claim_used(m)[claim, column] += c.class_requests(m)[class_, column]
    begin = c.shared_start(m)[class_]
    for at in range(begin, begin + c.shared_length(m)[class_]):
        if c.claim_host(m)[claim, c.shared_row(m)[at]] == 0:
            c.claim_used(m)[claim, c.shared_column(m)[at]] += 1
    if not c.state(m)[c.ALL_FIT]:
        keep_types(m, claim)
    begin = c.taken_start(m)[class_]
    for at in range(begin, begin + c.taken_length(m)[class_]):
        c.claim_host(m)[claim, c.taken(m)[at]] += 1
    begin = c.counted_start(m)[labels]
    for at in range(begin, begin + c.counted_length(m)[labels]):
        count_on_claim(m, c.counted_by(m)[at], claim)
    begin = c.declared_start(m)[class_]
    for at in range(begin, begin + c.declared_length(m)[class_]):
        count_on_claim(m, c.declared(m)[at], claim)
    return c.YES


@inner
def keep_types(m: Array, claim: int) -> None:
    """Restrict a claim to the fitting types, and record the most and the least room that any of them has."""
    template = c.claim_template(m)[claim]
    count = c.state(m)[c.FITTING]
    if count == c.claim_type_count(m)[claim] and c.claim_pods(m)[claim] > 1:
        return
    c.claim_type_count(m)[claim] = count
    types, fitting = c.claim_types(m)[claim], c.fitting(m)
    rooms, capacities = c.type_room(m)[template], c.type_capacity(m)
    for at in range(count):
        types[at] = fitting[at]
    refund = c.claim_pods(m)[claim] > 1 and c.template_limited(m)[template]
    for column in range(c.sizes(m)[c.RESOURCES]):
        most, largest = 0, 0
        least = rooms[fitting[0], column]
        for at in range(count):
            room = rooms[fitting[at], column]
            most = max(most, room)
            least = min(least, room)
            largest = max(largest, capacities[fitting[at], column])
        c.claim_most(m)[claim, column] = most
        c.claim_least(m)[claim, column] = least
        if refund:
            c.limits(m)[template, column] += c.claim_charged(m)[claim, column] - largest
        c.claim_charged(m)[claim, column] = largest


@inner
def count_on_claim(m: Array, group: int, claim: int) -> None:
    """Count a pod on a claim in one group: where it certainly will be, or, to keep others off, where it may be."""
    requirement = c.claim_requirement(m)[claim]
    number = c.group_filter(m)[group]
    if not c.claim_seen(m)[number, requirement] or not c.template_seen(m)[number, c.claim_template(m)[claim]]:
        return
    key = c.group_key(m)[group]
    kind = c.group_kind(m)[group]
    add_to_total(m, group, 1)
    if key == 0:
        c.claim_host(m)[claim, c.group_row(m)[group]] += 1
    elif kind == c.ANTI or kind == c.INVERSE:
        for domain in range(c.domains(m)[key]):
            if c.mask_of(m)[requirement, key, domain]:
                add_to_domain(m, group, domain, 1)
    elif c.single(m)[requirement, key] >= 0:
        add_to_domain(m, group, c.single(m)[requirement, key], 1)
