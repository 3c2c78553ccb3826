"""The arrays that kernels work on, by name, and the numbers that stand for words in them."""

import numpy as np

from karpool.packing.kernels.memory import column

# The snapshot's columns.
order = column("order", np.int32, 1)
live = column("live", np.uint8, 1)
shape = column("shape", np.int32, 1)
free = column("free", np.int64, 2)
domain = column("domain", np.int32, 2)
head = column("head", np.int32, 1)
node_of = column("node_of", np.int32, 1)
class_of = column("class_of", np.int32, 1)
labels_of = column("labels_of", np.int32, 1)
next_pod = column("next_pod", np.int32, 1)
counted = column("counted", np.uint8, 1)
class_signature = column("class_signature", np.int32, 1)
class_next = column("class_next", np.int32, 1)
class_refused = column("class_refused", np.uint8, 1)
class_requests = column("class_requests", np.int64, 2)
class_ports = column("class_ports", np.int32, 1)
owned_start = column("owned_start", np.int32, 1)
owned_length = column("owned_length", np.int32, 1)
owned = column("owned", np.int32, 1)
declared_start = column("declared_start", np.int32, 1)
declared_length = column("declared_length", np.int32, 1)
declared = column("declared", np.int32, 1)
blocked_start = column("blocked_start", np.int32, 1)
blocked_length = column("blocked_length", np.int32, 1)
blocked = column("blocked", np.int32, 1)
taken_start = column("taken_start", np.int32, 1)
taken_length = column("taken_length", np.int32, 1)
taken = column("taken", np.int32, 1)
shared_start = column("shared_start", np.int32, 1)
shared_length = column("shared_length", np.int32, 1)
shared_row = column("shared_row", np.int32, 1)
shared_column = column("shared_column", np.int32, 1)
counted_start = column("counted_start", np.int32, 1)
counted_length = column("counted_length", np.int32, 1)
counted_by = column("counted_by", np.int32, 1)
kept_off_start = column("kept_off_start", np.int32, 1)
kept_off_length = column("kept_off_length", np.int32, 1)
kept_off_by = column("kept_off_by", np.int32, 1)
suits = column("suits", np.uint8, 2)
seen_by = column("seen_by", np.uint8, 2)
group_kind = column("group_kind", np.int32, 1)
group_key = column("group_key", np.int32, 1)
group_skew = column("group_skew", np.int32, 1)
group_min_domains = column("group_min_domains", np.int32, 1)
group_filter = column("group_filter", np.int32, 1)
group_row = column("group_row", np.int32, 1)
group_total = column("group_total", np.int32, 1)
by_domain = column("by_domain", np.int32, 2)
by_host = column("by_host", np.int32, 2)
nodes_seen = column("nodes_seen", np.int32, 3)
rank = column("rank", np.int32, 2)
domains = column("domains", np.int32, 1)
sizes = column("sizes", np.int64, 1)

# What the engine knows about requirements, pools and types.
signature_incoming = column("signature_incoming", np.int32, 1)
signature_host = column("signature_host", np.int32, 1)
signature_new_host = column("signature_new_host", np.uint8, 1)
host_ok = column("host_ok", np.uint8, 2)
volumes_start = column("volumes_start", np.int32, 1)
volumes_length = column("volumes_length", np.int32, 1)
volumes = column("volumes", np.int32, 1)
tolerates = column("tolerates", np.uint8, 2)
narrow = column("narrow", np.int32, 2)
types_of = column("types_of", np.uint8, 2)
mask_of = column("mask_of", np.uint8, 3)
concrete = column("concrete", np.uint8, 2)
single = column("single", np.int32, 2)
domain_head = column("domain_head", np.int32, 1)
domain_next = column("domain_next", np.int32, 1)
domain_key = column("domain_key", np.int32, 1)
domain_mask = column("domain_mask", np.uint8, 2)
domain_result = column("domain_result", np.int32, 1)
class_strict = column("class_strict", np.int32, 1)
strict_mask = column("strict_mask", np.uint8, 3)
pool_known = column("pool_known", np.uint8, 2)
group_admits = column("group_admits", np.uint8, 2)
claim_seen = column("claim_seen", np.uint8, 2)
template_seen = column("template_seen", np.uint8, 2)
type_room = column("type_room", np.int64, 3)
type_capacity = column("type_capacity", np.int64, 2)
template_requirement = column("template_requirement", np.int32, 1)
template_start = column("template_start", np.int32, 1)
template_length = column("template_length", np.int32, 1)
template_types = column("template_types", np.int32, 1)
template_limited = column("template_limited", np.uint8, 1)
clash = column("clash", np.uint8, 3)
min_start = column("min_start", np.int32, 1)
min_length = column("min_length", np.int32, 1)
min_wanted = column("min_wanted", np.int32, 1)
value_start = column("value_start", np.int32, 2)
value_length = column("value_length", np.int32, 2)
values = column("values", np.int32, 1)
reserved_type = column("reserved_type", np.int32, 1)
reserved_id = column("reserved_id", np.int32, 1)
reserved_ok = column("reserved_ok", np.uint8, 2)

# One run: its journal, its queue, its open claims, and scratch space.
log_array = column("log_array", np.int8, 1)
log_index = column("log_index", np.int64, 1)
log_old = column("log_old", np.int64, 1)
state = column("state", np.int64, 1)
miss_mask = column("miss_mask", np.uint8, 1)
pods = column("pods", np.int32, 1)
queue = column("queue", np.int32, 1)
last_length = column("last_length", np.int32, 1)
exempt = column("exempt", np.uint8, 1)
target = column("target", np.int32, 1)
level = column("level", np.int32, 1)
closed = column("closed", np.uint8, 1)
claim_requirement = column("claim_requirement", np.int32, 1)
claim_template = column("claim_template", np.int32, 1)
claim_pods = column("claim_pods", np.int32, 1)
claim_used = column("claim_used", np.int64, 2)
claim_most = column("claim_most", np.int64, 2)
claim_charged = column("claim_charged", np.int64, 2)
claim_types = column("claim_types", np.int32, 2)
claim_type_count = column("claim_type_count", np.int32, 1)
claim_host = column("claim_host", np.int32, 2)
claim_order = column("claim_order", np.int32, 1)
claim_held = column("claim_held", np.uint8, 2)
claim_minimum = column("claim_minimum", np.int32, 2)
claim_relaxed = column("claim_relaxed", np.uint8, 1)
limits = column("limits", np.int64, 2)
reservations = column("reservations", np.int32, 1)
hint = column("hint", np.int32, 2)
candidates_start = column("candidates_start", np.int32, 1)
candidates_length = column("candidates_length", np.int32, 1)
candidates = column("candidates", np.int32, 1)
keys = column("keys", np.int32, 1)
allow_node = column("allow_node", np.uint8, 2)
allow_claim = column("allow_claim", np.uint8, 2)
pinned = column("pinned", np.uint8, 1)
pin_group = column("pin_group", np.int32, 1)
pins = column("pins", np.int32, 2)
pin_count = column("pin_count", np.int32, 1)
pin_at = column("pin_at", np.int32, 1)
cap_row = column("cap_row", np.int32, 1)
cap_most = column("cap_most", np.int32, 1)
need_row = column("need_row", np.int32, 1)
need_boot = column("need_boot", np.uint8, 1)
fitting = column("fitting", np.int32, 1)
type_mark = column("type_mark", np.int64, 1)
value_mark = column("value_mark", np.int64, 1)
new_minimum = column("new_minimum", np.int32, 1)
new_held = column("new_held", np.uint8, 1)
codes = column("codes", np.int32, 1)

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
STATE_SIZE = 17

# Indices of the column `sizes`.
NODES = 0
RESOURCES = 1
ORDINARY = 2
TEMPLATES = 3
TYPES = 4
RESERVED_OFFERINGS = 5
RESERVATION_IDS = 6
FILTERS = 7
SIZES = 8

# Answers of kernels. Those from NEED_NARROW on ask Python for something and are called again.
NO = 0
YES = 1
RESERVED_ERROR = 2
NEED_NARROW = 3
NEED_DOMAIN = 4
NEED_CLAIM_SEEN = 5
NEED_LOG = 6
NEED_CLAIMS = 7
NEED_CANDIDATES = 8
DONE = 9

# Values of the column `live`: not a destination; a claim whose Node has not appeared; a node.
GONE = 0
EXPECTED = 1
SEEN_LIVE = 2

# Which array a journal entry is about.
FREE = 0
BY_DOMAIN = 1
BY_HOST = 2
TOTAL = 3
SEEN = 4
LIVE = 5

UNPLACED = -1
UNKNOWN = -2
UNSET = -1
NOT_KNOWN = 2
FULL_SCAN = -2
SPREAD = 0
AFFINITY = 1
ANTI = 2
INVERSE = 3
