"""Parts of a fleet that have nothing to do with each other: their pods can never share a machine, nor a rule.

Pods, nodes and kinds belong together if the pods are there or could go there; pods, if a rule about hosts or domains
concerns both; kinds and nodes of a pool, if the pool has limits. Each part is a problem of its own, and what is best
for each is best for all. Budgets do not join parts: they say how fast nodes go, not which.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.items import Items, kinds_as_machines, nodes_as_machines
from karpool.optimization.problem import FleetProblem, Groups, HostRules, Kinds, Lists, Nodes, SpreadRules


@dataclass(frozen=True, slots=True)
class Part:
    """A problem, and the numbers that its groups, nodes, kinds and spread rules have in the whole one."""

    problem: FleetProblem
    groups: Array
    nodes: Array
    kinds: Array
    rules: Array


def parts_of(problem: FleetProblem) -> tuple[Part, ...]:
    """The independent parts of a problem, largest first; nodes that concern no pod come with the first part.

    Together they have all groups and all nodes of the problem. Kinds that suit no pod are left out.
    """
    groups, nodes, kinds = len(problem.groups.signature), len(problem.nodes.price), len(problem.kinds.price)
    joined = _Joined(groups + nodes + kinds)
    _join_places(problem, joined)
    _join_rules(problem, joined)
    for pool in np.flatnonzero(np.isfinite(problem.pools.left).any(axis=1)).tolist():
        of_pool = groups + np.flatnonzero(problem.nodes.pool == pool)
        joined.join(np.concatenate((of_pool, groups + nodes + np.flatnonzero(problem.kinds.pool == pool))))
    roots = joined.roots()
    of_group, of_node, of_kind = np.split(roots, [groups, groups + nodes])
    numbers, sizes = np.unique(of_group, return_counts=True)
    found = [
        (np.flatnonzero(of_group == number), np.flatnonzero(of_node == number), np.flatnonzero(of_kind == number))
        for number in numbers[np.argsort(-sizes, kind="stable")].tolist()
    ]
    alone = np.flatnonzero(~np.isin(of_node, numbers))
    if not found:
        found = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))]
    first = found[0]
    found[0] = (first[0], np.sort(np.concatenate((first[1], alone))), first[2])
    if len(found) == 1 and len(found[0][2]) == kinds:
        return (Part(problem, *found[0], rules=np.arange(len(problem.spreads.key))),)
    return tuple(_part(problem, *numbered) for numbered in found)


def _join_places(problem: FleetProblem, joined: "_Joined") -> None:
    """Join pods with the machines that could hold one of them alone, and with the nodes that they are on."""
    items = Items.of(problem)
    groups, nodes = len(items.of_group), len(problem.nodes.price)
    fits = np.concatenate(
        (nodes_as_machines(problem, items).copies(items) > 0, kinds_as_machines(problem, items).copies(items) > 0)
    )
    label = np.arange(len(items.count))
    for machine in fits:
        met = np.unique(label[machine])
        if len(met) > 1:
            label[np.isin(label, met)] = met[0]
    used = fits.any(axis=1)
    of_machine = np.where(used, label[fits.argmax(axis=1)], -1) if len(label) else np.full(len(fits), -1)
    taken: Array = np.asarray(fits.any(axis=0))[items.of_group]
    for number in np.unique(of_machine[used]).tolist():
        pods = np.flatnonzero(taken & (label[items.of_group] == number))
        joined.join(np.concatenate((pods, groups + np.flatnonzero(of_machine == number))))
    for node in range(nodes):
        joined.join(np.append(problem.nodes.pods.row(node), groups + node))


def _join_rules(problem: FleetProblem, joined: "_Joined") -> None:
    """Join pods that obey a rule with those that count in it."""
    for lists in ((problem.hosts.caps, problem.hosts.counts), (problem.spreads.owned, problem.spreads.counts)):
        concerned: dict[int, list[int]] = {}
        for rows in lists:
            for group in range(len(rows.start) - 1):
                for rule in rows.row(group).tolist():
                    concerned.setdefault(rule, []).append(group)
        for groups in concerned.values():
            joined.join(np.array(groups))


class _Joined:
    """Which numbers belong together."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def join(self, numbers: Array) -> None:
        """Let numbers belong together."""
        roots = {self._root(number) for number in numbers.tolist()}
        if roots:
            least = min(roots)
            for root in roots:
                self._parent[root] = least

    def roots(self) -> Array:
        """(numbers,) the least number of those that each belongs to."""
        return np.array([self._root(number) for number in range(len(self._parent))], dtype=np.int64)

    def _root(self, number: int) -> int:
        parent = self._parent
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number


def _part(problem: FleetProblem, groups: Array, nodes: Array, kinds: Array) -> Part:
    """The part with some groups, nodes and kinds."""
    number = np.full(len(problem.groups.signature), -1, dtype=np.int64)
    number[groups] = np.arange(len(groups))
    pods, entries = _chosen(problem.nodes.pods, nodes)
    caps, cap_entries = _chosen(problem.hosts.caps, groups)
    counts, _ = _chosen(problem.hosts.counts, groups)
    host_rows, (caps, counts) = _renumbered(caps, counts)
    owned, _ = _chosen(problem.spreads.owned, groups)
    counted, _ = _chosen(problem.spreads.counts, groups)
    rules, (owned, counted) = _renumbered(owned, counted)
    spreads = problem.spreads
    alone = replace(
        problem,
        groups=Groups(**_rows(problem.groups, groups)),
        nodes=Nodes(
            **_rows(problem.nodes, nodes, "pods", "pod_count"),
            pods=Lists(pods.start, number[pods.items].astype(np.int32)),
            pod_count=problem.nodes.pod_count[entries],
        ),
        kinds=Kinds(**_rows(problem.kinds, kinds)),
        hosts=HostRules(
            caps=caps,
            most=problem.hosts.most[cap_entries],
            required=problem.hosts.required[cap_entries],
            counts=counts,
            present=np.ascontiguousarray(problem.hosts.present[host_rows][:, nodes]),
        ),
        spreads=SpreadRules(**_rows(spreads, rules, "owned", "counts"), owned=owned, counts=counted),
        suits_kind=np.ascontiguousarray(problem.suits_kind[:, kinds]),
    )
    return Part(alone, groups, nodes, kinds, rules)


def _rows(table: Groups | Nodes | Kinds | SpreadRules, rows: Array, *without: str) -> dict[str, Any]:
    names = [name for name in table.__dataclass_fields__ if name not in without]
    return {name: np.ascontiguousarray(getattr(table, name)[rows]) for name in names}


def _chosen(lists: Lists, rows: Array) -> tuple[Lists, Array]:
    """Some of the lists, and where their entries were."""
    lengths = np.diff(lists.start)[rows]
    start = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    entries = np.repeat(lists.start[rows] - start[:-1], lengths) + np.arange(start[-1])
    return Lists(start, lists.items[entries]), entries


def _renumbered(*lists: Lists) -> tuple[Array, list[Lists]]:
    """The numbers that occur in lists, and the lists with their places among these."""
    used = np.unique(np.concatenate([entry.items for entry in lists])).astype(np.int64)
    return used, [Lists(e.start, np.searchsorted(used, e.items).astype(np.int32)) for e in lists]
