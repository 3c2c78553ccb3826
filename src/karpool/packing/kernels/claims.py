"""New nodes: what an open claim may still become, and whether one more pod leaves it a type."""

from karpool.cluster.arrays import Array
from karpool.packing.kernels import inner
from karpool.packing.kernels import columns as c
from karpool.packing.kernels.journal import add_to_domain, add_to_total
from karpool.packing.kernels.topology import hosts_allow


@inner
def try_claim(m: Array, claim: int, class_: int, labels: int, fresh: bool) -> int:
    """Whether a claim takes a pod; if so it is narrowed to what suits all its pods."""
    signature = c.class_signature(m)[class_]
    if not c.tolerates(m)[signature, c.claim_template(m)[claim]] or not c.signature_new_host(m)[signature]:
        return c.NO
    for column in range(c.sizes(m)[c.RESOURCES]):
        if c.claim_used(m)[claim, column] + c.class_requests(m)[class_, column] > c.claim_most(m)[claim, column]:
            return c.NO
    begin = c.blocked_start(m)[class_]
    for at in range(begin, begin + c.blocked_length(m)[class_]):
        if c.claim_host(m)[c.blocked(m)[at], claim] > 0:
            return c.NO
    if not hosts_allow(m, c.claim_host(m), claim):
        return c.NO
    return try_volumes(m, claim, class_, labels, fresh)


@inner
def narrowed(m: Array, requirement: int, incoming: int) -> int:
    """What is left of a requirement under another; c.UNKNOWN if nobody has worked it out yet."""
    found = c.narrow(m)[requirement, incoming]
    if found == c.UNKNOWN:
        c.state(m)[c.MISS_A] = requirement
        c.state(m)[c.MISS_B] = incoming
    return found


@inner
def try_volumes(m: Array, claim: int, class_: int, labels: int, fresh: bool) -> int:
    """Try a claim with each place where the pod's volumes can be reached."""
    signature = c.class_signature(m)[class_]
    base = narrowed(m, c.claim_requirement(m)[claim], c.signature_incoming(m)[signature])
    if base == c.UNKNOWN:
        return c.NEED_NARROW
    if base < 0:
        return c.NO
    count = c.volumes_length(m)[signature]
    for choice in range(max(1, count)):
        requirement = base
        if count:
            requirement = narrowed(m, base, c.volumes(m)[c.volumes_start(m)[signature] + choice])
            if requirement == c.UNKNOWN:
                return c.NEED_NARROW
        if requirement >= 0:
            answer = try_domains(m, claim, class_, labels, requirement, fresh)
            if answer != c.NO:
                return answer
    return c.NO


@inner
def in_domain(m: Array, requirement: int, slot: int, only: int) -> int:
    """What is left of a requirement in the allowed domains of a key, or in one of them; c.UNKNOWN as above."""
    key = c.keys(m)[slot]
    same = c.concrete(m)[requirement, key] == 1
    for domain in range(len(c.miss_mask(m))):
        here = 0
        if domain < c.domains(m)[key]:
            here = c.allow_claim(m)[slot, domain] & c.mask_of(m)[requirement, key, domain]
            if only != c.UNSET and domain != only:
                here = 0
            same = same and here == c.mask_of(m)[requirement, key, domain]
        c.miss_mask(m)[domain] = here
    if same:
        return requirement
    entry = c.domain_head(m)[requirement]
    while entry >= 0:
        if c.domain_key(m)[entry] == key:
            equal = True
            for domain in range(c.domains(m)[key]):
                equal = equal and c.domain_mask(m)[entry, domain] == c.miss_mask(m)[domain]
            if equal:
                return c.domain_result(m)[entry]
        entry = c.domain_next(m)[entry]
    c.state(m)[c.MISS_A] = requirement
    c.state(m)[c.MISS_B] = key
    return c.UNKNOWN


@inner
def try_domains(m: Array, claim: int, class_: int, labels: int, requirement: int, fresh: bool) -> int:
    """Try a claim in the domains that topology allows; where one must be chosen, each in turn, emptiest first."""
    pinned = 0
    for slot in range(c.state(m)[c.KEYS]):
        if not list_pins(m, requirement, slot):
            return c.NO
        if c.pinned(m)[slot]:
            pinned += 1
            c.pin_at(m)[slot] = 0
        else:
            requirement = in_domain(m, requirement, slot, c.UNSET)
            if requirement == c.UNKNOWN:
                return c.NEED_DOMAIN
            if requirement < 0:
                return c.NO
    while True:
        narrow = requirement
        for slot in range(c.state(m)[c.KEYS]):
            if c.pinned(m)[slot] and narrow >= 0:
                narrow = in_domain(m, narrow, slot, c.pins(m)[slot, c.pin_at(m)[slot]])
                if narrow == c.UNKNOWN:
                    return c.NEED_DOMAIN
        if narrow >= 0:
            answer = try_types(m, claim, class_, narrow, fresh)
            if answer == c.YES:
                answer = commit(m, claim, class_, labels, narrow)
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
def precedes(m: Array, key: int, group: int, one: int, other: int) -> bool:
    """Whether a domain is to be tried before another: fewer counted pods, else by name."""
    if group != c.UNSET and c.by_domain(m)[group, one] != c.by_domain(m)[group, other]:
        return c.by_domain(m)[group, one] < c.by_domain(m)[group, other]
    return c.rank(m)[key, one] < c.rank(m)[key, other]


@inner
def next_pins(m: Array) -> bool:
    """Go to the next combination of chosen domains, the last key changing fastest; False after the last one."""
    for slot in range(c.state(m)[c.KEYS] - 1, -1, -1):
        if c.pinned(m)[slot]:
            c.pin_at(m)[slot] += 1
            if c.pin_at(m)[slot] < c.pin_count(m)[slot]:
                return True
            c.pin_at(m)[slot] = 0
    return False


@inner
def try_types(m: Array, claim: int, class_: int, requirement: int, fresh: bool) -> int:
    """Find the types that meet a requirement and hold all pods of a claim and one more."""
    template = c.claim_template(m)[claim]
    ports = c.class_ports(m)[class_]
    count = 0
    for at in range(c.claim_type_count(m)[claim]):
        type_ = c.claim_types(m)[claim, at]
        if not c.types_of(m)[requirement, type_] or c.clash(m)[ports, template, type_]:
            continue
        enough = True
        for column in range(c.sizes(m)[c.RESOURCES]):
            wanted = c.claim_used(m)[claim, column] + c.class_requests(m)[class_, column]
            if wanted > c.type_room(m)[template, type_, column]:
                enough = False
                break
        if enough:
            c.fitting(m)[count] = type_
            count += 1
    c.state(m)[c.FITTING] = count
    if count == 0 or not enough_values(m, claim, fresh):
        return c.NO
    return hold_reservations(m, claim, requirement)


@inner
def enough_values(m: Array, claim: int, fresh: bool) -> bool:
    """Whether the fitting types differ enough in the keys for which a pool wants several values."""
    template = c.claim_template(m)[claim]
    begin = c.min_start(m)[template]
    c.state(m)[c.RELAXED] = c.claim_relaxed(m)[claim]
    for at in range(c.min_length(m)[template]):
        wanted = c.min_wanted(m)[begin + at] if fresh else c.claim_minimum(m)[claim, at]
        found = distinct(m, begin + at)
        if found < wanted:
            if not (fresh and c.state(m)[c.BEST_EFFORT]):
                return False
            wanted = found
            c.state(m)[c.RELAXED] = 1
        c.new_minimum(m)[at] = wanted
    return True


@inner
def distinct(m: Array, row: int) -> int:
    """How many values of a key the fitting types have between them."""
    c.state(m)[c.STAMP] += 1
    stamp = c.state(m)[c.STAMP]
    found = 0
    for at in range(c.state(m)[c.FITTING]):
        begin = c.value_start(m)[row, c.fitting(m)[at]]
        for place in range(begin, begin + c.value_length(m)[row, c.fitting(m)[at]]):
            value = c.values(m)[place]
            if c.value_mark(m)[value] != stamp:
                c.value_mark(m)[value] = stamp
                found += 1
    return found


@inner
def hold_reservations(m: Array, claim: int, requirement: int) -> int:
    """Work out which reservations a claim could hold; strictly, one that could hold some must hold one."""
    if c.sizes(m)[c.RESERVED_OFFERINGS] == 0:
        return c.YES
    c.state(m)[c.STAMP] += 1
    stamp = c.state(m)[c.STAMP]
    for at in range(c.state(m)[c.FITTING]):
        c.type_mark(m)[c.fitting(m)[at]] = stamp
    for number in range(c.sizes(m)[c.RESERVATION_IDS]):
        c.new_held(m)[number] = 0
    compatible, holds, held = False, False, False
    for at in range(c.sizes(m)[c.RESERVED_OFFERINGS]):
        if c.type_mark(m)[c.reserved_type(m)[at]] == stamp and c.reserved_ok(m)[requirement, at]:
            number = c.reserved_id(m)[at]
            compatible = True
            if c.claim_held(m)[claim, number] or c.reservations(m)[number] > 0:
                c.new_held(m)[number] = 1
                holds = True
    for number in range(c.sizes(m)[c.RESERVATION_IDS]):
        held = held or c.claim_held(m)[claim, number] == 1
    if c.state(m)[c.STRICT_RESERVED] and not holds and (compatible or held):
        return c.RESERVED_ERROR
    return c.YES


@inner
def commit(m: Array, claim: int, class_: int, labels: int, requirement: int) -> int:
    """Let a pod take its place on a claim."""
    begin = c.counted_start(m)[labels]
    for at in range(begin, begin + c.counted_length(m)[labels]):
        number = c.group_filter(m)[c.counted_by(m)[at]]
        if c.claim_seen(m)[number, requirement] == c.NOT_KNOWN:
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
    keep_types(m, claim, class_)
    begin = c.taken_start(m)[class_]
    for at in range(begin, begin + c.taken_length(m)[class_]):
        c.claim_host(m)[c.taken(m)[at], claim] += 1
    begin = c.counted_start(m)[labels]
    for at in range(begin, begin + c.counted_length(m)[labels]):
        count_on_claim(m, c.counted_by(m)[at], claim)
    begin = c.declared_start(m)[class_]
    for at in range(begin, begin + c.declared_length(m)[class_]):
        count_on_claim(m, c.declared(m)[at], claim)
    return c.YES


@inner
def keep_types(m: Array, claim: int, class_: int) -> None:
    """Keep the fitting types, add the pod's requests, and note the most that any type holds."""
    template = c.claim_template(m)[claim]
    count = c.state(m)[c.FITTING]
    c.claim_type_count(m)[claim] = count
    for at in range(count):
        c.claim_types(m)[claim, at] = c.fitting(m)[at]
    refund = c.claim_pods(m)[claim] > 1 and c.template_limited(m)[template]
    for column in range(c.sizes(m)[c.RESOURCES]):
        c.claim_used(m)[claim, column] += c.class_requests(m)[class_, column]
        most, largest = 0, 0
        for at in range(count):
            most = max(most, c.type_room(m)[template, c.fitting(m)[at], column])
            largest = max(largest, c.type_capacity(m)[c.fitting(m)[at], column])
        c.claim_most(m)[claim, column] = most
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
        c.claim_host(m)[c.group_row(m)[group], claim] += 1
    elif kind == c.ANTI or kind == c.INVERSE:
        for domain in range(c.domains(m)[key]):
            if c.mask_of(m)[requirement, key, domain]:
                add_to_domain(m, group, domain, 1)
    elif c.single(m)[requirement, key] >= 0:
        add_to_domain(m, group, c.single(m)[requirement, key], 1)
