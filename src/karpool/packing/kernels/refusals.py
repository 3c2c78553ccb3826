"""Why existing nodes refuse a pod: one code per node, for the first check that fails.

A code is the number of the check times STEP plus a detail (a shape, a resource column, a row of hosts, twice the
position of a topology rule among the pod's, plus one if the node has no domain for it). Checks are numbered in
their order, so of two codes the larger got further.
"""

from karpool.cluster.arrays import Array
from karpool.cluster.codes import GONE, SEALED
from karpool.packing.kernels import columns as c
from karpool.packing.kernels import compiled, inner
from karpool.packing.kernels.nodes import attaches, fits, used_port
from karpool.packing.kernels.topology import consider, domains_allow, hosts_allow

STEP = 1 << 24
SHAPE, ATTACH, PORT, RESOURCE, HOST, TOPOLOGY, CLOSED, UNREADABLE, FITS = range(1, 10)


@compiled
def explain_nodes(m: Array, class_: int, labels: int, exempt: int) -> None:
    """Fill the column `codes`: zero for rows that are no destination, else what refuses the pod there."""
    codes = c.codes(m)
    codes[:] = 0
    for position in range(c.sizes(m)[c.NODES]):
        node = c.order(m)[position]
        if c.live(m)[node] != GONE:
            codes[node] = refused_by_node(m, class_, node)
    for at in range(rule_count(m, class_, labels)):
        group = prepare_rule(m, class_, labels, at)
        for position in range(c.sizes(m)[c.NODES]):
            node = c.order(m)[position]
            if codes[node] == FITS * STEP:
                codes[node] = refused_by_rule(m, group, at, node)
    for position in range(c.sizes(m)[c.NODES]):
        node = c.order(m)[position]
        if codes[node] == FITS * STEP:
            if c.live(m)[node] == SEALED:
                codes[node] = UNREADABLE * STEP
            elif c.closed(m)[node] and not exempt:
                codes[node] = CLOSED * STEP


@compiled
def prepare_rule_alone(m: Array, class_: int, labels: int, at: int) -> int:
    """Prepare what one of a pod's topology rules allows by itself; its group, or c.UNSET after the last."""
    if at >= rule_count(m, class_, labels):
        return c.UNSET
    return int(prepare_rule(m, class_, labels, at))


@inner
def rule_count(m: Array, class_: int, labels: int) -> int:
    """How many topology rules hold for a pod: its own, and the anti-affinity of others."""
    return int(c.owned_length(m)[class_] + c.kept_off_length(m)[labels])


@inner
def prepare_rule(m: Array, class_: int, labels: int, at: int) -> int:
    """Prepare one topology rule as if there were no other."""
    own = c.owned_length(m)[class_]
    if at < own:
        group = c.owned(m)[c.owned_start(m)[class_] + at]
    else:
        group = c.kept_off_by(m)[c.kept_off_start(m)[labels] + at - own]
    c.state(m)[c.KEYS] = c.state(m)[c.CAPS] = c.state(m)[c.NEEDS] = 0
    consider(m, group, class_, labels)
    return int(group)


@inner
def refused_by_node(m: Array, class_: int, node: int) -> int:
    """What refuses a pod on a node, topology aside."""
    signature = c.class_signature(m)[class_]
    if not c.suits(m)[signature, c.shape(m)[node]]:
        return int(SHAPE * STEP + c.shape(m)[node])
    if not attaches(m, class_, node):
        return int(ATTACH * STEP + c.shared_column(m)[c.shared_start(m)[class_]])
    ordinary = c.sizes(m)[c.ORDINARY]
    column = missing_resource(m, class_, node, ordinary, c.sizes(m)[c.RESOURCES])
    if column != c.UNSET:
        return int(ATTACH * STEP + column)
    port = used_port(m, class_, node)
    if port != c.UNSET:
        return int(PORT * STEP + port)
    if not fits(m, node, class_):
        return int(RESOURCE * STEP + max(0, missing_resource(m, class_, node, 0, ordinary)))
    host = c.signature_host(m)[signature]
    if host != c.UNSET and not c.host_ok(m)[host, node]:
        return HOST * STEP
    return FITS * STEP


@inner
def missing_resource(m: Array, class_: int, node: int, first: int, end: int) -> int:
    """The first of some resources of which a node has too little, else c.UNSET."""
    for column in range(first, end):
        free = c.free(m)[node, column]
        wanted = c.class_requests(m)[class_, column]
        if wanted > free and (wanted > 0 or column < c.sizes(m)[c.ORDINARY]):
            return column
    return c.UNSET


@inner
def refused_by_rule(m: Array, group: int, at: int, node: int) -> int:
    """Whether a topology rule, the only one that is prepared, refuses a node."""
    key = c.group_key(m)[group]
    if key != 0 and c.domain(m)[node, key] < 0:
        return TOPOLOGY * STEP + 2 * at + 1
    if hosts_allow(m, c.by_host(m), node) and domains_allow(m, node):
        return FITS * STEP
    return TOPOLOGY * STEP + 2 * at
