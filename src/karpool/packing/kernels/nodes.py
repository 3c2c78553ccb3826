"""Existing nodes: the first that accepts a pod, and what it has left afterwards."""

from karpool.cluster.arrays import Array
from karpool.cluster.codes import GONE, SEALED
from karpool.packing.kernels import columns as c
from karpool.packing.kernels import inner
from karpool.packing.kernels.journal import add_to_host, count_pod, record
from karpool.packing.kernels.topology import domains_allow, hosts_allow


@inner
def fits(m: Array, node: int, class_: int) -> bool:
    """Whether a node has room; a node that is overcommitted in any resource has none."""
    wanted, free = c.class_requests(m)[class_], c.free(m)[node]
    for column in range(c.sizes(m)[c.RESOURCES]):
        if wanted[column] > free[column]:
            return False
    return True


@inner
def list_candidates(m: Array, class_: int) -> bool:
    """List the first nodes that could accept a pod of a class now; False if the list needs more space."""
    count = c.sizes(m)[c.NODES]
    used = c.state(m)[c.CANDIDATES_USED]
    if used + c.MOST_LISTED > len(c.candidates(m)):
        return False
    signature = c.class_signature(m)[class_]
    host = c.signature_host(m)[signature]
    order, shapes, suited, candidates = c.order(m), c.shape(m), c.suits(m)[signature], c.candidates(m)
    at, position = used, 0
    while position < count and at < used + c.MOST_LISTED:
        node = order[position]
        position += 1
        if suited[shapes[node]] and (host == c.UNSET or c.host_ok(m)[host, node]) and fits(m, node, class_):
            candidates[at] = node
            at += 1
    c.candidates_resume(m)[class_] = position
    c.candidates_start(m)[class_] = used
    c.candidates_length(m)[class_] = at - used
    c.state(m)[c.CANDIDATES_USED] = at
    return True


@inner
def find_node(m: Array, class_: int, exempt: int, batch: int) -> int:
    """The first node that accepts a pod, or c.UNPLACED."""
    begin, listed = c.candidates_start(m)[class_], c.candidates_length(m)[class_]
    rest = c.candidates_resume(m)[class_] - listed
    count = c.sizes(m)[c.NODES] - rest
    # Nodes only fill up during a run. Where no count can change in a pod's favour, a node that refused an equal pod
    # refuses this one. Equal pods are those of its class if no count matters at all, else those of its batch.
    lasting = c.state(m)[c.TENTATIVE] == 0 and c.shared_length(m)[class_] == 0
    simple = lasting and c.state(m)[c.KEYS] == 0 and c.state(m)[c.CAPS] == 0
    position = 0
    if simple:
        position = c.hint(m)[exempt, class_]
    elif lasting:
        position = c.batch_place(m)[batch]
    chosen = c.UNPLACED
    while position < count:
        node = c.candidates(m)[begin + position] if position < listed else c.order(m)[rest + position]
        if accepts(m, class_, node, exempt, position < listed):
            chosen = node
            break
        position += 1
    if simple:
        c.hint(m)[exempt, class_] = position
    elif lasting:
        c.batch_place(m)[batch] = position
    return chosen


@inner
def accepts(m: Array, class_: int, node: int, exempt: int, suited: bool) -> bool:
    """Whether a node accepts a pod now; `suited`: its labels and taints are known to suit."""
    live = c.live(m)[node]
    if live == GONE or live == SEALED or (c.closed(m)[node] and not exempt):
        return False
    if not suited and not suits(m, class_, node):
        return False
    if not fits(m, node, class_) or used_port(m, class_, node) != c.UNSET:
        return False
    if not attaches(m, class_, node):
        return False
    return hosts_allow(m, c.by_host(m), node) and domains_allow(m, node)


@inner
def suits(m: Array, class_: int, node: int) -> bool:
    """Whether a node's labels and taints suit a pod."""
    signature = c.class_signature(m)[class_]
    host = c.signature_host(m)[signature]
    return c.suits(m)[signature, c.shape(m)[node]] and (host == c.UNSET or c.host_ok(m)[host, node])


@inner
def used_port(m: Array, class_: int, node: int) -> int:
    """The row of the first host port that a pod wants and another pod on a node uses, else c.UNSET."""
    begin = c.blocked_start(m)[class_]
    for at in range(begin, begin + c.blocked_length(m)[class_]):
        if c.by_host(m)[c.blocked(m)[at], node] > 0:
            return int(c.blocked(m)[at])
    return c.UNSET


@inner
def attaches(m: Array, class_: int, node: int) -> bool:
    """Whether a node can attach the volumes that a pod shares with others, and that are not attached yet."""
    begin = c.shared_start(m)[class_]
    end = begin + c.shared_length(m)[class_]
    for at in range(begin, end):
        column = c.shared_column(m)[at]
        wanted = c.class_requests(m)[class_, column]
        for other in range(begin, end):
            if c.shared_column(m)[other] == column and c.by_host(m)[c.shared_row(m)[other], node] == 0:
                wanted += 1
        if wanted > c.free(m)[node, column]:
            return False
    return True


@inner
def put_on_node(m: Array, class_: int, labels: int, node: int) -> None:
    width = c.free(m).shape[1]
    for column in range(c.sizes(m)[c.RESOURCES]):
        wanted = c.class_requests(m)[class_, column]
        if wanted:
            record(m, c.FREE, node * width + column, c.free(m)[node, column])
            c.free(m)[node, column] -= wanted
    begin = c.shared_start(m)[class_]
    for at in range(begin, begin + c.shared_length(m)[class_]):
        if c.by_host(m)[c.shared_row(m)[at], node] == 0:
            column = c.shared_column(m)[at]
            record(m, c.FREE, node * width + column, c.free(m)[node, column])
            c.free(m)[node, column] -= 1
    begin = c.taken_start(m)[class_]
    for at in range(begin, begin + c.taken_length(m)[class_]):
        add_to_host(m, c.taken(m)[at], node, 1)
    count_pod(m, class_, labels, node, 1)
