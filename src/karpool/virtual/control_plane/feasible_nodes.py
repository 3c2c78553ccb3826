"""Which nodes can take a pod now, by the columns of the snapshot: room, labels, taints, ports and topology.

As in kube-scheduler, only domains that have nodes count for spread.
"""

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.codes import PRESENT, GroupKind
from karpool.cluster.pod_classes import NO_CLASS
from karpool.cluster.snapshot import Snapshot
from karpool.model.labels import HOSTNAME
from karpool.packing.kernels.fullness import mask_nodes_with_room


def feasible_nodes(snapshot: Snapshot, pod: int, usable: Array) -> Array:
    """A mask over node rows; preferences of the pod are dropped one by one until some node fits."""
    level = int(snapshot.pods.class_of[pod])
    while True:
        mask = _on_level(snapshot, pod, level, usable)
        following = int(snapshot.classes.next[level])
        if following == NO_CLASS or mask.any():
            return mask
        level = following


def depends_on_no_other_pod(snapshot: Snapshot, pod: int) -> bool:
    """Whether other pods have no influence on where this one may go, so that its whole class gets the same answer."""
    number = int(snapshot.pods.class_of[pod])
    return not (
        snapshot.classes.owned.length[number]
        or snapshot.classes.blocked_rows.length[number]
        or snapshot.classes.next[number] != NO_CLASS
        or snapshot.topology.kept_off_by.length[int(snapshot.pods.labels_of[pod])]
        or pod in snapshot.pods.device_rows
    )


def _on_level(snapshot: Snapshot, pod: int, level: int, usable: Array) -> Array:
    nodes, classes = snapshot.nodes, snapshot.classes
    size, width = len(nodes.states), len(snapshot.resources)
    mask: Array = np.zeros(size, dtype=np.bool_)
    suited, requests = snapshot.shapes.suits[classes.signature[level]], classes.requests[level, :width]
    if classes.refused[level] or not mask_nodes_with_room(usable, suited, nodes.shape, nodes.free, requests, mask):
        return mask
    hosts = classes.levels[level].requirements.get(HOSTNAME)
    if hosts is not None:
        mask &= np.array([s is not None and hosts.has(s.labels[HOSTNAME]) for s in nodes.states], dtype=np.bool_)
    for row in classes.blocked_rows.row(level):
        mask &= snapshot.topology.by_host[row, :size] == 0
    if classes.shared_rows.length[level]:
        mask &= _attaches(snapshot, level, size)
    labels = int(snapshot.pods.labels_of[pod])
    for group in classes.owned.row(level) + snapshot.topology.kept_off_by.row(labels):
        if not mask.any():
            break
        mask &= _group_allows(snapshot, group, labels, size)
    return mask


def _attaches(snapshot: Snapshot, level: int, size: int) -> Array:
    """Which nodes can attach the volumes that the pod shares with others."""
    classes, mask = snapshot.classes, np.ones(size, dtype=np.bool_)
    needed: dict[int, Array] = {}
    for row, column in zip(classes.shared_rows.row(level), classes.shared_columns.row(level), strict=True):
        already = needed.get(column, classes.requests[level, column])
        needed[column] = already + (snapshot.topology.by_host[row, :size] == 0)
    for column, amount in needed.items():
        mask &= amount <= snapshot.nodes.free[:size, column]
    return mask


def _group_allows(snapshot: Snapshot, group: int, labels: int, size: int) -> Array:
    topology = snapshot.topology
    kind, by_host = topology.kind[group], topology.groups[group].by_host
    itself = group in topology.counted_by.row(labels)
    counts = topology.by_host[topology.row[group], :size] if by_host else topology.by_domain[group]
    allowed: Array
    if kind == GroupKind.SPREAD:
        lowest = _lowest_host(snapshot, group, size) if by_host else _lowest_domain(snapshot, group)
        allowed = counts + itself - lowest <= topology.skew[group]
    elif kind != GroupKind.AFFINITY:
        allowed = counts == 0
    elif itself and topology.total[group] == 0:  # the first pod of its group may go anywhere
        allowed = np.ones(len(counts), dtype=np.bool_)
    else:
        allowed = counts > 0
    if by_host:
        return allowed
    domains = snapshot.nodes.domain[:size, topology.key[group]]
    in_domain: Array = (domains >= 0) & allowed[domains]
    return in_domain


def _lowest_domain(snapshot: Snapshot, group: int) -> int:
    topology = snapshot.topology
    counts = topology.by_domain[group]
    known = (topology.nodes_seen[topology.filter[group], topology.key[group]][: len(counts)] > 0) | (counts > 0)
    enough = known.sum() >= topology.min_domains[group]
    return int(counts[known].min()) if known.any() and enough else 0


def _lowest_host(snapshot: Snapshot, group: int, size: int) -> int:
    topology, nodes = snapshot.topology, snapshot.nodes
    seen = snapshot.shapes.seen_by[topology.filter[group], nodes.shape[:size]] == 1
    seen &= nodes.live[:size] >= PRESENT
    return int(topology.by_host[topology.row[group], :size][seen].min()) if seen.any() else 0
