"""Changes that can be undone: every write is recorded with the value it replaces."""

from karpool.cluster.arrays import Array
from karpool.cluster.codes import PRESENT
from karpool.packing.kernels import columns as c
from karpool.packing.kernels import compiled, inner


@inner
def record(m: Array, array: int, index: int, old: int) -> None:
    """Record a value that is about to be replaced."""
    used = c.state(m)[c.LOG_USED]
    c.log_array(m)[used] = array
    c.log_index(m)[used] = index
    c.log_old(m)[used] = old
    c.state(m)[c.LOG_USED] = used + 1


@inner
def room_for(m: Array, entries: int) -> bool:
    """Whether the journal has room for some more entries."""
    return c.state(m)[c.LOG_USED] + entries <= len(c.log_array(m))


@compiled
def undo(m: Array) -> None:
    """Put back everything that was changed."""
    free = c.free(m).reshape(-1)
    by_domain = c.by_domain(m).reshape(-1)
    by_host = c.by_host(m).reshape(-1)
    seen = c.nodes_seen(m).reshape(-1)
    for entry in range(c.state(m)[c.LOG_USED] - 1, -1, -1):
        array, index, old = c.log_array(m)[entry], c.log_index(m)[entry], c.log_old(m)[entry]
        if array == c.FREE:
            free[index] = old
        elif array == c.BY_DOMAIN:
            by_domain[index] = old
        elif array == c.BY_HOST:
            by_host[index] = old
        elif array == c.TOTAL:
            c.group_total(m)[index] = old
        elif array == c.SEEN:
            seen[index] = old
        elif array == c.LIVE:
            c.live(m)[index] = old
    c.state(m)[c.LOG_USED] = 0


@inner
def add_to_host(m: Array, row: int, node: int, change: int) -> None:
    """Change a count that is kept per node."""
    index = row * c.by_host(m).shape[1] + node
    record(m, c.BY_HOST, index, c.by_host(m)[row, node])
    c.by_host(m)[row, node] += change


@inner
def add_to_domain(m: Array, group: int, domain: int, change: int) -> None:
    """Change a count that is kept per domain."""
    index = group * c.by_domain(m).shape[1] + domain
    record(m, c.BY_DOMAIN, index, c.by_domain(m)[group, domain])
    c.by_domain(m)[group, domain] += change


@inner
def add_to_total(m: Array, group: int, change: int) -> None:
    """Change how many pods a group counts in all domains together."""
    record(m, c.TOTAL, group, c.group_total(m)[group])
    c.group_total(m)[group] += change


@inner
def count_group(m: Array, group: int, node: int, change: int) -> None:
    """Add a pod on a node to the counts of a group, or subtract it."""
    if not c.seen_by(m)[c.group_filter(m)[group], c.shape(m)[node]]:
        return
    key = c.group_key(m)[group]
    if key == 0:
        add_to_host(m, c.group_row(m)[group], node, change)
        add_to_total(m, group, change)
    else:
        domain = c.domain(m)[node, key]
        if domain >= 0:
            add_to_domain(m, group, domain, change)
            add_to_total(m, group, change)


@inner
def count_pod(m: Array, class_: int, labels: int, node: int, change: int) -> None:
    """Add a pod on a node to the counts of every group that it belongs to, or subtract it."""
    begin = c.counted_start(m)[labels]
    for at in range(begin, begin + c.counted_length(m)[labels]):
        count_group(m, c.counted_by(m)[at], node, change)
    begin = c.declared_start(m)[class_]
    for at in range(begin, begin + c.declared_length(m)[class_]):
        count_group(m, c.declared(m)[at], node, change)


@inner
def entries_for(m: Array, class_: int, labels: int) -> int:
    """The most journal entries that placing or counting one pod can need."""
    groups = c.counted_length(m)[labels] + c.declared_length(m)[class_]
    return (
        2 * c.sizes(m)[c.RESOURCES]
        + groups * (c.by_domain(m).shape[1] + 2)
        + c.taken_length(m)[class_]
        + c.shared_length(m)[class_]
        + 8
    )


@inner
def entries_to_uncount(m: Array, class_: int, labels: int) -> int:
    """The most journal entries that uncounting one pod can need."""
    return 2 * (c.counted_length(m)[labels] + c.declared_length(m)[class_])


@compiled
def uncount(m: Array, pods: Array) -> int:
    """Stop counting pods on the nodes where they are: they need a new place."""
    need = 0
    for pod in pods:
        need += entries_to_uncount(m, c.class_of(m)[pod], c.labels_of(m)[pod])
    if not room_for(m, need):
        return c.NEED_LOG
    for pod in pods:
        node = c.node_of(m)[pod]
        if node >= 0 and c.counted(m)[pod]:
            count_pod(m, c.class_of(m)[pod], c.labels_of(m)[pod], node, -1)
    return c.DONE


@compiled
def remove(m: Array, node: int) -> int:
    """Remove a node with everything on it."""
    need = c.nodes_seen(m).shape[0] * c.nodes_seen(m).shape[1] + 8
    pod = c.head(m)[node]
    while pod >= 0:
        need += entries_to_uncount(m, c.class_of(m)[pod], c.labels_of(m)[pod])
        pod = c.next_pod(m)[pod]
    if not room_for(m, need):
        return c.NEED_LOG
    pod = c.head(m)[node]
    while pod >= 0:
        if c.counted(m)[pod]:
            count_pod(m, c.class_of(m)[pod], c.labels_of(m)[pod], node, -1)
        pod = c.next_pod(m)[pod]
    if c.live(m)[node] >= PRESENT:
        hide_domains(m, node)
    record(m, c.LIVE, node, c.live(m)[node])
    c.live(m)[node] = 0
    return c.DONE


@inner
def hide_domains(m: Array, node: int) -> None:
    """Stop counting a node among those that make its domains known to spread rules."""
    seen = c.nodes_seen(m)
    for key in range(1, len(c.domains(m))):
        domain = c.domain(m)[node, key]
        if domain < 0:
            continue
        for number in range(c.sizes(m)[c.FILTERS]):
            if c.seen_by(m)[number, c.shape(m)[node]]:
                record(m, c.SEEN, (number * seen.shape[1] + key) * seen.shape[2] + domain, seen[number, key, domain])
                seen[number, key, domain] -= 1
