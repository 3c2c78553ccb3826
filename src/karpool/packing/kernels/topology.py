"""What spread, affinity and anti-affinity allow a pod: the domains it may go to, and what its host must count."""

from karpool.cluster.arrays import Array
from karpool.packing.kernels import columns as c
from karpool.packing.kernels import inner


@inner
def prepare(m: Array, class_: int, labels: int) -> bool:
    """Prepare what all groups together allow; False if no domain is left for some key.

    Counts only grow in a run, so a refusal lasts, unless the pod waits for others to come first: then it is tentative.
    """
    c.state(m)[c.KEYS] = c.state(m)[c.CAPS] = c.state(m)[c.NEEDS] = c.state(m)[c.TENTATIVE] = 0
    begin = c.owned_start(m)[class_]
    for at in range(begin, begin + c.owned_length(m)[class_]):
        consider(m, c.owned(m)[at], class_, labels)
    begin = c.kept_off_start(m)[labels]
    for at in range(begin, begin + c.kept_off_length(m)[labels]):
        consider(m, c.kept_off_by(m)[at], class_, labels)
    for slot in range(c.state(m)[c.KEYS]):
        left = False
        for domain in range(c.domains(m)[c.keys(m)[slot]]):
            left = left or c.allow_node(m)[slot, domain] or c.allow_claim(m)[slot, domain]
        if not left:
            return False
    return True


@inner
def counts_itself(m: Array, group: int, labels: int) -> bool:
    """Whether a pod with these labels is one of those a group counts."""
    begin = c.counted_start(m)[labels]
    for at in range(begin, begin + c.counted_length(m)[labels]):
        if c.counted_by(m)[at] == group:
            return True
    return False


@inner
def consider(m: Array, group: int, class_: int, labels: int) -> None:
    """Restrict what is allowed to what one group allows."""
    if c.group_key(m)[group] == 0:
        consider_hosts(m, group, labels)
        return
    slot = slot_of(m, c.group_key(m)[group])
    kind = c.group_kind(m)[group]
    if kind == c.SPREAD:
        allow_spread(m, group, labels, slot)
    elif kind == c.AFFINITY:
        allow_affinity(m, group, class_, labels, slot)
    else:
        for domain in range(c.domains(m)[c.group_key(m)[group]]):
            if c.by_domain(m)[group, domain] > 0:
                c.allow_node(m)[slot, domain] = 0
                c.allow_claim(m)[slot, domain] = 0
            elif not known(m, group, domain):
                c.allow_claim(m)[slot, domain] = 0


@inner
def consider_hosts(m: Array, group: int, labels: int) -> None:
    """Record the most that a host may count, or that it must count something."""
    kind = c.group_kind(m)[group]
    itself = counts_itself(m, group, labels)
    if kind == c.AFFINITY:
        c.state(m)[c.TENTATIVE] = 1
        at = c.state(m)[c.NEEDS]
        c.need_row(m)[at] = c.group_row(m)[group]
        c.need_boot(m)[at] = itself and c.group_total(m)[group] == 0
        c.state(m)[c.NEEDS] = at + 1
    else:
        at = c.state(m)[c.CAPS]
        c.cap_row(m)[at] = c.group_row(m)[group]
        c.cap_most(m)[at] = c.group_skew(m)[group] - itself if kind == c.SPREAD else 0
        c.state(m)[c.CAPS] = at + 1


@inner
def slot_of(m: Array, key: int) -> int:
    """The scratch row of a topology key, everything allowed at first."""
    for slot in range(c.state(m)[c.KEYS]):
        if c.keys(m)[slot] == key:
            return slot
    slot = c.state(m)[c.KEYS]
    c.state(m)[c.KEYS] = slot + 1
    c.keys(m)[slot] = key
    c.pinned(m)[slot] = 0
    c.pin_group(m)[slot] = c.UNSET
    for domain in range(c.domains(m)[key]):
        c.allow_node(m)[slot, domain] = 1
        c.allow_claim(m)[slot, domain] = 1
    return slot


@inner
def known(m: Array, group: int, domain: int) -> bool:
    """Whether a group knows of a domain: some pool offers it, some node is in it, or pods are counted in it."""
    return (
        c.pool_known(m)[group, domain] == 1
        or c.by_domain(m)[group, domain] > 0
        or c.nodes_seen(m)[c.group_filter(m)[group], c.group_key(m)[group], domain] > 0
    )


@inner
def allow_spread(m: Array, group: int, labels: int, slot: int) -> None:
    """Allow the domains in which one more pod keeps the skew."""
    key = c.group_key(m)[group]
    counts, admits = c.by_domain(m)[group], c.group_admits(m)[group]
    lowest, eligible = 0, 0
    for domain in range(c.domains(m)[key]):
        if admits[domain] and known(m, group, domain):
            count = counts[domain]
            lowest = count if eligible == 0 else min(lowest, count)
            eligible += 1
    if eligible < c.group_min_domains(m)[group]:
        lowest = 0
    most = c.group_skew(m)[group] + lowest - counts_itself(m, group, labels)
    for domain in range(c.domains(m)[key]):
        if counts[domain] > most or not known(m, group, domain):
            c.allow_node(m)[slot, domain] = 0
            c.allow_claim(m)[slot, domain] = 0
    c.pinned(m)[slot] = 1
    if c.pin_group(m)[slot] == c.UNSET:
        c.pin_group(m)[slot] = group


@inner
def allow_affinity(m: Array, group: int, class_: int, labels: int, slot: int) -> None:
    """Allow the domains where such pods run; for the first of its kind any domain it may use."""
    key = c.group_key(m)[group]
    mine = c.strict_mask(m)[c.class_strict(m)[class_], key]
    first = c.group_total(m)[group] == 0 and counts_itself(m, group, labels)
    for domain in range(c.domains(m)[key]):
        allowed = mine[domain] == 1 and (first or c.by_domain(m)[group, domain] > 0)
        if not allowed:
            c.allow_node(m)[slot, domain] = 0
        if not allowed or (first and not known(m, group, domain)):
            c.allow_claim(m)[slot, domain] = 0
    if first:
        c.pinned(m)[slot] = 1


@inner
def hosts_allow(m: Array, counts: Array, at: int) -> bool:
    """Whether the counts of a node or claim, column `at` of a matrix of rows, are as the pod needs them."""
    for cap in range(c.state(m)[c.CAPS]):
        if counts[c.cap_row(m)[cap], at] > c.cap_most(m)[cap]:
            return False
    for need in range(c.state(m)[c.NEEDS]):
        if not c.need_boot(m)[need] and counts[c.need_row(m)[need], at] == 0:
            return False
    return True


@inner
def domains_allow(m: Array, node: int) -> bool:
    for slot in range(c.state(m)[c.KEYS]):
        domain = c.domain(m)[node, c.keys(m)[slot]]
        if domain < 0 or not c.allow_node(m)[slot, domain]:
            return False
    return True
