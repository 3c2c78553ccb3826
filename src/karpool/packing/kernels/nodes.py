"""Existing nodes: which is the first that takes a pod, and what it then has left."""

from karpool.cluster.arrays import Array
from karpool.cluster.codes import GONE
from karpool.packing.kernels import columns as c
from karpool.packing.kernels import inner
from karpool.packing.kernels.journal import add_to_host, count_pod, note
from karpool.packing.kernels.topology import domains_allow, hosts_allow


@inner
def fits(m: Array, node: int, class_: int) -> bool:
    """Whether a node has room; one that is overfull in anything takes nobody."""
    wanted, free = c.class_requests(m)[class_], c.free(m)[node]
    for column in range(c.sizes(m)[c.RESOURCES]):
        if wanted[column] > free[column]:
            return False
    return True


@inner
def list_candidates(m: Array, class_: int) -> bool:
    """List the first nodes that could take a pod of a class as things stand; False if there is no room for the list."""
    count = c.sizes(m)[c.NODES]
    used = c.state(m)[c.CANDIDATES_USED]
    if used + c.MOST_LISTED > len(c.candidates(m)):
        return False
    signature = c.class_signature(m)[class_]
    host = c.signature_host(m)[signature]
    order, shapes, suited, candidates = c.order(m), c.shape(m), c.suits(m)[signature], c.candidates(m)
    at, place = used, 0
    while place < count and at < used + c.MOST_LISTED:
        node = order[place]
        place += 1
        if suited[shapes[node]] and (host == c.UNSET or c.host_ok(m)[host, node]) and fits(m, node, class_):
            candidates[at] = node
            at += 1
    c.candidates_resume(m)[class_] = place
    c.candidates_start(m)[class_] = used
    c.candidates_length(m)[class_] = at - used
    c.state(m)[c.CANDIDATES_USED] = at
    return True


@inner
def find_node(m: Array, class_: int, exempt: int, batch: int) -> int:
    """The first node that takes a pod, or c.UNPLACED."""
    begin, listed = c.candidates_start(m)[class_], c.candidates_length(m)[class_]
    rest = c.candidates_resume(m)[class_] - listed
    count = c.sizes(m)[c.NODES] - rest
    # Nodes only fill up during a run, so where no count can change in a pod's favour, what refused its like refuses it.
    # Its like is any pod of its class as long as no count matters at all, else those of its batch.
    lasting = c.state(m)[c.FICKLE] == 0 and c.shared_length(m)[class_] == 0
    simple = lasting and c.state(m)[c.KEYS] == 0 and c.state(m)[c.CAPS] == 0
    place = 0
    if simple:
        place = c.hint(m)[exempt, class_]
    elif lasting:
        place = c.batch_place(m)[batch]
    found = c.UNPLACED
    while place < count:
        node = c.candidates(m)[begin + place] if place < listed else c.order(m)[rest + place]
        if takes(m, class_, node, exempt, place < listed):
            found = node
            break
        place += 1
    if simple:
        c.hint(m)[exempt, class_] = place
    elif lasting:
        c.batch_place(m)[batch] = place
    return found


@inner
def takes(m: Array, class_: int, node: int, exempt: int, suited: bool) -> bool:
    """Whether a node takes a pod now; `suited`: labels and taints were looked at before."""
    if c.live(m)[node] == GONE or (c.closed(m)[node] and not exempt):
        return False
    if not suited and not suits(m, class_, node):
        return False
    if not fits(m, node, class_) or not ports_free(m, class_, node):
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
def ports_free(m: Array, class_: int, node: int) -> bool:
    """Whether nobody on a node holds the ports that a pod wants."""
    begin = c.blocked_start(m)[class_]
    for at in range(begin, begin + c.blocked_length(m)[class_]):
        if c.by_host(m)[c.blocked(m)[at], node] > 0:
            return False
    return True


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
    """Let a pod take its room on a node."""
    width = c.free(m).shape[1]
    for column in range(c.sizes(m)[c.RESOURCES]):
        wanted = c.class_requests(m)[class_, column]
        if wanted:
            note(m, c.FREE, node * width + column, c.free(m)[node, column])
            c.free(m)[node, column] -= wanted
    begin = c.shared_start(m)[class_]
    for at in range(begin, begin + c.shared_length(m)[class_]):
        if c.by_host(m)[c.shared_row(m)[at], node] == 0:
            column = c.shared_column(m)[at]
            note(m, c.FREE, node * width + column, c.free(m)[node, column])
            c.free(m)[node, column] -= 1
    begin = c.taken_start(m)[class_]
    for at in range(begin, begin + c.taken_length(m)[class_]):
        add_to_host(m, c.taken(m)[at], node, 1)
    count_pod(m, class_, labels, node, 1)
