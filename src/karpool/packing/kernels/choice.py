"""What kube-scheduler chooses: pods one by one, each to the node with the best score of those that can take it.

Unlike the engine, which looks for any place that does, this says where pods really come. Nodes that are only foreseen
have rows behind those of the snapshot. Everything is a copy: nothing has to be undone.
"""

from typing import NamedTuple

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.codes import GroupKind
from karpool.packing.kernels import compiled, inner
from karpool.packing.kernels.fullness import NOBODY, most_liked

_SPREAD = int(GroupKind.SPREAD)
_AFFINITY = int(GroupKind.AFFINITY)
_ANYWHERE = 2**31 - 1


class ScoredNodes(NamedTuple):
    """Nodes by row."""

    order: Array
    """Rows in the order in which equals are chosen."""
    usable: Array
    avoided: Array
    """Whether a node asks pods to stay away."""
    shape: Array
    zone: Array
    domain: Array
    free: Array
    taken: Array
    room: Array


class NumberLists(NamedTuple):
    """Lists of numbers, one after the other."""

    start: Array
    items: Array


class PodKinds(NamedTuple):
    """Equal pods are of one kind, which has levels: its rules, and what is left of them as preferences are given up."""

    levels: Array
    """(kinds + 1,) where the levels of a kind begin."""
    signature: Array
    requests: Array
    refused: Array
    hosts: Array
    """The row of `host_ok` that says which nodes a level names, -1 if it names none."""
    host_ok: Array
    suits: Array
    """(signatures, shapes)"""
    groups: NumberLists
    """By level: the groups that say where its pods may go."""
    itself: Array
    """By entry of `groups`: whether the group counts the pod as well."""
    blocked: NumberLists
    """By level: the rows of ports that must be free."""
    shared: NumberLists
    """By level: the rows of volumes that pods share; and the resources that count them."""
    shared_column: Array
    counting: NumberLists
    """By kind: the groups in which its pods count."""
    held: NumberLists
    """By kind: the rows of ports and shared volumes that its pods take."""


class TopologyGroups(NamedTuple):
    """Rules about topology, and how many pods are where."""

    kind: Array
    key: Array
    skew: Array
    least_domains: Array
    by_host: Array
    row: Array
    seen_by: Array
    """(groups, shapes)"""
    known: Array
    """(groups, domains) which domains have nodes."""
    in_domain: Array
    """(groups, domains)"""
    at_host: Array
    """(rows, nodes)"""
    total: Array


class SpreadWorkloads(NamedTuple):
    """Pods that a scheduler spreads although nobody asked for it."""

    of: Array
    """By kind: the workload, -1 for none."""
    on_node: Array
    """(workloads, nodes)"""


@compiled
def choose(
    nodes: ScoredNodes,
    kinds: PodKinds,
    groups: TopologyGroups,
    workloads: SpreadWorkloads,
    pods: Array,
    sources: Array,
    packs: bool,
    target: Array,
) -> int:
    """Give every pod a node, or nobody, and let it take its room there; how many found one."""
    placed = 0
    nowhere = np.zeros(0, dtype=np.int64)
    for at in range(len(pods)):
        count_pod(nodes, kinds, groups, pods[at], sources[at], -1)
        workload = workloads.of[pods[at]]
        alike = nowhere if workload < 0 else workloads.on_node[workload]
        if workload >= 0 and sources[at] >= 0:
            alike[sources[at]] -= 1
        target[at] = best_node(nodes, kinds, groups, alike, pods[at], packs)
        if target[at] != NOBODY:
            take(nodes, kinds, groups, pods[at], target[at])
            placed += 1
            if workload >= 0:
                alike[target[at]] += 1
    return placed


@inner
def best_node(nodes: ScoredNodes, kinds: PodKinds, groups: TopologyGroups, alike: Array, kind: int, packs: bool) -> int:
    """The node with the best score; preferences are given up one by one until some node can take the pod."""
    mask = np.zeros(len(nodes.shape), dtype=np.bool_)
    asked = kinds.requests[kinds.levels[kind]]
    for level in range(kinds.levels[kind], kinds.levels[kind + 1]):
        if kinds.refused[level]:
            continue
        suited, names = kinds.suits[kinds.signature[level]], kinds.hosts[level]
        wanted = kinds.requests[level]
        limits = limits_of(nodes, kinds, groups, level)
        some = False
        for node in nodes.order:
            if not nodes.usable[node] or not suited[nodes.shape[node]]:
                continue
            if not has_room(nodes, wanted, node) or (names >= 0 and not kinds.host_ok[names, node]):
                continue
            if not accepts(nodes, kinds, groups, level, node, limits):
                continue
            mask[node] = some = True
        if some:
            return most_liked(
                nodes.order, mask, nodes.taken, nodes.room, nodes.avoided, nodes.zone, asked, alike, packs
            )
    return NOBODY


@inner
def has_room(nodes: ScoredNodes, wanted: Array, node: int) -> bool:
    for column in range(len(wanted)):
        if wanted[column] > nodes.free[node, column]:
            return False
    return True


@inner
def limits_of(nodes: ScoredNodes, kinds: PodKinds, groups: TopologyGroups, level: int) -> Array:
    """By group of a level: how many pods a domain may have for one more to be let in."""
    begin, end = kinds.groups.start[level], kinds.groups.start[level + 1]
    limits = np.zeros(end - begin, dtype=np.int64)
    for at in range(begin, end):
        group, itself = kinds.groups.items[at], kinds.itself[at]
        if groups.kind[group] == _SPREAD:
            limits[at - begin] = lowest(nodes, groups, group) + groups.skew[group] - itself
        elif groups.kind[group] == _AFFINITY and itself and groups.total[group] == 0:
            limits[at - begin] = _ANYWHERE  # the first pod of its group may go anywhere
    return limits


@inner
def lowest(nodes: ScoredNodes, groups: TopologyGroups, group: int) -> int:
    """How many pods of a group the domain has that has the fewest; only domains with nodes count."""
    least, domains = _ANYWHERE, 0
    if groups.by_host[group]:
        for node in nodes.order:
            if groups.seen_by[group, nodes.shape[node]]:
                least = min(least, groups.at_host[groups.row[group], node])
                domains += 1
    else:
        for domain in range(groups.in_domain.shape[1]):
            if groups.known[group, domain] or groups.in_domain[group, domain] > 0:
                least = min(least, groups.in_domain[group, domain])
                domains += 1
    return least if domains and domains >= groups.least_domains[group] else 0


@inner
def accepts(nodes: ScoredNodes, kinds: PodKinds, groups: TopologyGroups, level: int, node: int, limits: Array) -> bool:
    """Whether ports, shared volumes and topology let a pod onto a node."""
    blocked, shared, owned = kinds.blocked, kinds.shared, kinds.groups
    for at in range(blocked.start[level], blocked.start[level + 1]):
        if groups.at_host[blocked.items[at], node] > 0:
            return False
    begin, end = shared.start[level], shared.start[level + 1]
    for at in range(begin, end):
        column = kinds.shared_column[at]
        wanted = kinds.requests[level, column]
        for other in range(begin, end):
            if kinds.shared_column[other] == column and groups.at_host[shared.items[other], node] == 0:
                wanted += 1
        if wanted > nodes.free[node, column]:
            return False
    begin = owned.start[level]
    for at in range(begin, owned.start[level + 1]):
        group, limit = owned.items[at], limits[at - begin]
        if groups.by_host[group]:
            here = groups.at_host[groups.row[group], node]
        else:
            domain = nodes.domain[node, groups.key[group]]
            if domain < 0:
                return False
            here = groups.in_domain[group, domain]
        if groups.kind[group] == _AFFINITY:
            if limit == 0 and here == 0:
                return False
        elif here > limit:
            return False
    return True


@inner
def count_pod(nodes: ScoredNodes, kinds: PodKinds, groups: TopologyGroups, kind: int, node: int, change: int) -> None:
    """Count a pod in, or out of, every group that it takes part in; nowhere if it is on no node."""
    if node < 0:
        return
    counting = kinds.counting
    for at in range(counting.start[kind], counting.start[kind + 1]):
        group = counting.items[at]
        if not groups.seen_by[group, nodes.shape[node]]:
            continue
        if groups.by_host[group]:
            groups.at_host[groups.row[group], node] += change
            groups.total[group] += change
        elif nodes.domain[node, groups.key[group]] >= 0:
            groups.in_domain[group, nodes.domain[node, groups.key[group]]] += change
            groups.total[group] += change


@inner
def take(nodes: ScoredNodes, kinds: PodKinds, groups: TopologyGroups, kind: int, node: int) -> None:
    """Let a pod take its room, its ports and its volumes."""
    level, shared = kinds.levels[kind], kinds.shared
    for column in range(kinds.requests.shape[1]):
        nodes.free[node, column] -= kinds.requests[level, column]
        nodes.taken[node, column] += kinds.requests[level, column]
    for at in range(shared.start[level], shared.start[level + 1]):
        if groups.at_host[shared.items[at], node] == 0:
            nodes.free[node, kinds.shared_column[at]] -= 1
            nodes.taken[node, kinds.shared_column[at]] += 1
    for at in range(kinds.held.start[kind], kinds.held.start[kind + 1]):
        groups.at_host[kinds.held.items[at], node] += 1
    count_pod(nodes, kinds, groups, kind, node, 1)
