"""The arrays that kernels work on, declared once: name, type, what each axis counts, and what a new entry contains.

Kernels look at an array with `c.free(m)`. Arrays of the snapshot and of the tables are made by their owners and only
checked; growing tables and scratch space are allocated from what is declared here. Below follow the numbers that stand
for words in these arrays.
"""

import numpy as np

from karpool.cluster.codes import GroupKind
from karpool.packing.kernels.memory import column, family, growing, ragged, scratch

UNPLACED = -1
UNSET = -1
UNCOMPUTED = -2
UNJUDGED = 2

# Columns of the snapshot.
order = column("order", np.int32, "places")
live = column("live", np.uint8, "nodes")
shape = column("shape", np.int32, "nodes")
free = column("free", np.int64, "nodes", "resources")
domain = column("domain", np.int32, "nodes", "keys")
head = column("head", np.int32, "nodes")
node_of = column("node_of", np.int32, "pods")
class_of = column("class_of", np.int32, "pods")
labels_of = column("labels_of", np.int32, "pods")
next_pod = column("next_pod", np.int32, "pods")
counted = column("counted", np.uint8, "pods")
class_signature = column("class_signature", np.int32, "classes")
class_next = column("class_next", np.int32, "classes")
class_refused = column("class_refused", np.uint8, "classes")
class_requests = column("class_requests", np.int64, "classes", "resources")
class_ports = column("class_ports", np.int32, "classes")
owned_start, owned_length, owned = ragged("owned", "classes")
declared_start, declared_length, declared = ragged("declared", "classes")
blocked_start, blocked_length, blocked = ragged("blocked", "classes")
taken_start, taken_length, taken = ragged("taken", "classes")
shared_start = column("shared_start", np.int32, "classes")
shared_length = column("shared_length", np.int32, "classes")
shared_row = column("shared_row", np.int32, "items")
shared_column = column("shared_column", np.int32, "items")
counted_start, counted_length, counted_by = ragged("counted_by", "labels")
kept_off_start, kept_off_length, kept_off_by = ragged("kept_off_by", "labels")
suits = column("suits", np.uint8, "signatures", "shapes")
seen_by = column("seen_by", np.uint8, "filters", "shapes")
group_kind = column("group_kind", np.int32, "groups")
group_key = column("group_key", np.int32, "groups")
group_skew = column("group_skew", np.int32, "groups")
group_min_domains = column("group_min_domains", np.int32, "groups")
group_filter = column("group_filter", np.int32, "groups")
group_row = column("group_row", np.int32, "groups")
group_total = column("group_total", np.int32, "groups")
by_domain = column("by_domain", np.int32, "groups", "domains")
by_host = column("by_host", np.int32, "host_rows", "nodes")
nodes_seen = column("nodes_seen", np.int32, "filters", "keys", "domains")
rank = column("rank", np.int32, "keys", "domains")
domains = column("domains", np.int32, "keys")
sizes = column("sizes", np.int64, "size")

# Tables of requirements, pools and types.
signature_incoming = column("signature_incoming", np.int32, "signatures")
signature_host = column("signature_host", np.int32, "signatures")
signature_new_host = column("signature_new_host", np.uint8, "signatures")
host_ok = column("host_ok", np.uint8, "items", "items")
volumes_start, volumes_length, volumes = ragged("volumes", "signatures")
tolerates = column("tolerates", np.uint8, "signatures", "templates")
intersections = growing("intersections", np.int32, "requirements", "incoming", fill=UNCOMPUTED)
types_of = growing("types_of", np.uint8, "requirements", "types")
mask_of = growing("mask_of", np.uint8, "requirements", "keys", "domains")
concrete = growing("concrete", np.uint8, "requirements", "keys")
single = growing("single", np.int32, "requirements", "keys", fill=UNSET)
domain_head = growing("domain_head", np.int32, "requirements", fill=UNSET)
domain_next = growing("domain_next", np.int32, "domain_results")
domain_key = growing("domain_key", np.int32, "domain_results")
domain_mask = growing("domain_mask", np.uint8, "domain_results", "domains")
domain_result = growing("domain_result", np.int32, "domain_results")
class_strict = column("class_strict", np.int32, "classes")
strict_mask = column("strict_mask", np.uint8, "items", "keys", "domains")
pool_known = column("pool_known", np.uint8, "groups", "domains")
group_admits = column("group_admits", np.uint8, "groups", "domains")
claim_seen = growing("claim_seen", np.uint8, "filters", "requirements", fill=UNJUDGED)
priced = growing("priced", np.uint8, "requirements")
worst_price = growing("worst_price", np.float64, "requirements", "types")
template_seen = column("template_seen", np.uint8, "filters", "templates")
type_room = column("type_room", np.int64, "templates", "types", "resources")
type_capacity = column("type_capacity", np.int64, "types", "resources")
template_requirement = column("template_requirement", np.int32, "templates")
template_start, template_length, template_types = ragged("template_types", "templates")
template_most = column("template_most", np.int64, "templates", "resources")
template_largest = column("template_largest", np.int64, "templates", "resources")
template_limited = column("template_limited", np.uint8, "templates")
clash = column("clash", np.uint8, "port_sets", "templates", "types")
min_start = column("min_start", np.int32, "templates")
min_length = column("min_length", np.int32, "templates")
min_wanted = column("min_wanted", np.int32, "items")
value_start = column("value_start", np.int32, "items", "types")
value_length = column("value_length", np.int32, "items", "types")
values = column("values", np.int32, "items")
reserved_type = column("reserved_type", np.int32, "reserved")
reserved_id = column("reserved_id", np.int32, "reserved")
value_allowed = growing("value_allowed", np.uint8, "requirements", "values")
reserved_ok = growing("reserved_ok", np.uint8, "requirements", "reserved")

# Scratch space of a run: its journal, its queue, its open claims.
log_array = scratch("log_array", np.int8, "log")
log_index = scratch("log_index", np.int64, "log")
log_old = scratch("log_old", np.int64, "log")
state = scratch("state", np.int64, "state")
miss_mask = scratch("miss_mask", np.uint8, "domains")
pods = scratch("pods", np.int32, "queue")
queue = scratch("queue", np.int32, "queue")
last_length = scratch("last_length", np.int32, "queue")
exempt = scratch("exempt", np.uint8, "queue")
target = scratch("target", np.int32, "queue")
closed = scratch("closed", np.uint8, "nodes")
claim_requirement = scratch("claim_requirement", np.int32, "claims")
claim_template = scratch("claim_template", np.int32, "claims")
claim_pods = scratch("claim_pods", np.int32, "claims")
claim_used = scratch("claim_used", np.int64, "claims", "resources")
claim_most = scratch("claim_most", np.int64, "claims", "resources")
claim_least = scratch("claim_least", np.int64, "claims", "resources")
claim_charged = scratch("claim_charged", np.int64, "claims", "resources")
claim_types = scratch("claim_types", np.int32, "claims", "types")
claim_type_count = scratch("claim_type_count", np.int32, "claims")
claim_host = scratch("claim_host", np.int32, "claims", "host_rows")
claim_order = scratch("claim_order", np.int32, "claims")
claim_held = scratch("claim_held", np.uint8, "claims", "reservations")
claim_minimum = scratch("claim_minimum", np.int32, "claims", "minimums")
claim_relaxed = scratch("claim_relaxed", np.uint8, "claims")
limits = scratch("limits", np.int64, "templates", "limits")
reservations = scratch("reservations", np.int32, "reservations")
hint = scratch("hint", np.int32, "exemptions", "classes")
batch_class = scratch("batch_class", np.int32, "batches")
batch_labels = scratch("batch_labels", np.int32, "batches")
batch_exempt = scratch("batch_exempt", np.int32, "batches")
batch_stamp = scratch("batch_stamp", np.int64, "batches")
batch_place = scratch("batch_place", np.int32, "batches")
batch_nodes = scratch("batch_nodes", np.uint8, "batches", "keys", "domains")
batch_claims = scratch("batch_claims", np.uint8, "batches", "keys", "domains")
claim_mark = scratch("claim_mark", np.int64, "batches", "claims")
candidates_start = scratch("candidates_start", np.int32, "classes")
candidates_length = scratch("candidates_length", np.int32, "classes", fill=UNSET)
candidates_resume = scratch("candidates_resume", np.int32, "classes")
candidates = scratch("candidates", np.int32, "candidates")
keys = scratch("keys", np.int32, "keys")
allow_node = scratch("allow_node", np.uint8, "keys", "domains")
allow_claim = scratch("allow_claim", np.uint8, "keys", "domains")
pinned = scratch("pinned", np.uint8, "keys")
pin_group = scratch("pin_group", np.int32, "keys")
pins = scratch("pins", np.int32, "keys", "domains")
pin_count = scratch("pin_count", np.int32, "keys")
pin_at = scratch("pin_at", np.int32, "keys")
cap_row = scratch("cap_row", np.int32, "rules")
cap_most = scratch("cap_most", np.int32, "rules")
need_row = scratch("need_row", np.int32, "rules")
need_boot = scratch("need_boot", np.uint8, "rules")
fitting = scratch("fitting", np.int32, "types")
type_mark = scratch("type_mark", np.int64, "types")
value_mark = scratch("value_mark", np.int64, "values")
new_minimum = scratch("new_minimum", np.int32, "minimums")
new_held = scratch("new_held", np.uint8, "reservations")
codes = scratch("codes", np.int32, "nodes")

GROWING = family("growing")
SCRATCH = family("scratch")

# Indices of the column `state`.
LOG_USED = 0
CLAIMS = 1
MISS_A = 2
MISS_B = 3
HEAD = 4
WAITING = 5
CANDIDATES_USED = 6
KEYS = 7
CAPS = 8
NEEDS = 9
FITTING = 10
STAMP = 11
EXISTING_ONLY = 12
STRICT_RESERVED = 13
BEST_EFFORT = 14
RELAXED = 15
QUEUED = 16
TENTATIVE = 17
ALL_FIT = 18
STATE_SIZE = 19

# Indices of the column `sizes`.
NODES, RESOURCES, ORDINARY, TEMPLATES, RESERVED_OFFERINGS, RESERVATION_IDS, FILTERS, SIZES = range(8)

# Answers of kernels. After one named NEED_, Python adds what is missing and calls the kernel again. NO may change with
# the next placement, NEVER holds until the run ends, for all pods that are alike.
NO = 0
YES = 1
RESERVED_ERROR = 2
NEED_INTERSECTION = 3
NEED_DOMAIN = 4
NEED_CLAIM_SEEN = 5
NEED_LOG = 6
NEED_CLAIMS = 7
NEED_CANDIDATES = 8
DONE = 9
NEVER = 10
NEED_PRICES = 11

# Which array a journal entry is about.
FREE, BY_DOMAIN, BY_HOST, TOTAL, SEEN, LIVE = range(6)

# How many batches of pods that are alike are remembered at a time: a power of two.
BATCHES = 128

# How many nodes are listed as candidates of a class; after them, all nodes that follow are tried.
MOST_LISTED = 256

SPREAD = int(GroupKind.SPREAD)
AFFINITY = int(GroupKind.AFFINITY)
ANTI = int(GroupKind.ANTI)
INVERSE = int(GroupKind.INVERSE)
