"""Topology in columns: domains of label keys, the groups that count pods in them, and the counts.

A host is a domain too, but there are thousands of them, so groups over hosts have a row of counts per node, and share
these rows' matrix with everything else that must not meet on one node (host ports, shared volumes).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Annotated

import numpy as np

from karpool.cluster.arrays import Array, ColumnTable, Ragged, column, grown
from karpool.cluster.codes import GroupKind
from karpool.cluster.groups import ALL_NODES, Group, NodeFilter
from karpool.model.labels import HOSTNAME

LabelSet = tuple[str, tuple[tuple[str, str], ...]]
HOST_KEY = 0


class Domains:
    """The values that topology keys have, numbered per key in order of appearance and ranked by name."""

    def __init__(self) -> None:
        self.keys: dict[str, int] = {HOSTNAME: HOST_KEY}
        self.values: list[dict[str, int]] = [{}]
        self._rank = np.zeros((4, 8), dtype=np.int32)
        self._unranked: set[int] = set()

    @property
    def rank(self) -> Array:
        """The place of every domain of every key in the order of their names."""
        self._rank = grown(self._rank, self.size)
        for key in self._unranked:
            known = self.values[key]
            for place, name in enumerate(sorted(known)):
                self._rank[key, known[name]] = place
        self._unranked.clear()
        return self._rank

    @property
    def size(self) -> tuple[int, int]:
        """The number of keys and the largest number of domains that a key has."""
        return len(self.values), max(1, *(len(values) for values in self.values))

    def key(self, name: str) -> int:
        """The number of a topology key, made if need be."""
        number = self.keys.setdefault(name, len(self.values))
        if number == len(self.values):
            self.values.append({})
        return number

    def domain(self, key: int, value: str) -> int:
        """The number of a domain of a key, made if need be."""
        known = self.values[key]
        if value not in known:
            known[value] = len(known)
            self._unranked.add(key)
        return known[value]


class Topology(ColumnTable):
    """Groups, the pods' labels they match, and how many pods they count in each domain."""

    kind: Annotated[Array, column(np.int32, "groups")]
    key: Annotated[Array, column(np.int32, "groups")]
    skew: Annotated[Array, column(np.int32, "groups")]
    min_domains: Annotated[Array, column(np.int32, "groups")]
    filter: Annotated[Array, column(np.int32, "groups")]
    row: Annotated[Array, column(np.int32, "groups")]
    total: Annotated[Array, column(np.int32, "groups")]
    by_domain: Annotated[Array, column(np.int32, "groups", "domains")]
    by_host: Annotated[Array, column(np.int32, "host_rows", "nodes")]
    nodes_seen: Annotated[Array, column(np.int32, "filters", "keys", "domains")]

    def __init__(self) -> None:
        super().__init__()
        self.domains = Domains()
        self.groups: list[Group] = []
        self.group_ids: dict[Group, int] = {}
        self.filters: list[NodeFilter] = [ALL_NODES]
        self.filter_ids: dict[NodeFilter, int] = {ALL_NODES: 0}
        self.label_sets: list[LabelSet] = []
        self.label_ids: dict[LabelSet, int] = {}
        self.host_rows: dict[object, int] = {}
        self.counted_by = Ragged()
        self.kept_off_by = Ragged()
        self._by_pair: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._unindexed: list[int] = []
        self._labels_by_pair: dict[tuple[str, str], list[int]] = defaultdict(list)

    def group(self, group: Group) -> int:
        """The number of a group, made if need be; its counts start at zero and `recount` is the caller's."""
        number = self.group_ids.get(group)
        return self._add_group(group) if number is None else number

    def _add_group(self, group: Group) -> int:
        number = self.group_ids[group] = len(self.groups)
        self.groups.append(group)
        self.fit(groups=number + 1)
        self.kind[number] = group.kind
        self.key[number] = self.domains.key(group.key)
        self.skew[number] = group.max_skew
        self.min_domains[number] = group.min_domains
        self.filter[number] = self._filter(group.nodes)
        self.row[number] = self.host_row(("group", number)) if group.by_host else number
        self._make_room()
        self._index(number, group)
        for label_set in self._matching_sets(group):
            self._attach(label_set, number, group.kind)
        return number

    def _make_room(self) -> None:
        keys, domains = self.domains.size
        self.fit(filters=len(self.filters), keys=keys, domains=domains)

    def _filter(self, nodes: NodeFilter) -> int:
        number = self.filter_ids.setdefault(nodes, len(self.filters))
        if number == len(self.filters):
            self.filters.append(nodes)
        return number

    def host_row(self, item: object) -> int:
        """The row of counts per node of something that is counted per node."""
        row = self.host_rows.setdefault(item, len(self.host_rows))
        self.fit(host_rows=len(self.host_rows))
        return row

    def domain(self, key: int, value: str) -> int:
        """The number of a domain, with room for its counts."""
        number = self.domains.domain(key, value)
        self._make_room()
        return number

    def labels(self, namespace: str, labels: Mapping[str, str]) -> int:
        """The number of a set of pod labels, matched against all groups when it is new."""
        label_set = (namespace, tuple(sorted(labels.items())))
        known = self.label_ids.get(label_set)
        if known is not None:
            return known
        number = self.label_ids[label_set] = len(self.label_sets)
        self.label_sets.append(label_set)
        for pair in label_set[1]:
            self._labels_by_pair[pair].append(number)
        matching = [g for g in self._candidates(label_set[1]) if self.groups[g].counts(namespace, labels)]
        self.counted_by.append(sorted(g for g in matching if self.groups[g].kind != GroupKind.INVERSE))
        self.kept_off_by.append(sorted(g for g in matching if self.groups[g].kind == GroupKind.INVERSE))
        return number

    def _index(self, number: int, group: Group) -> None:
        selector = group.scope.selector
        if selector is None:
            return
        if selector.pairs:
            self._by_pair[selector.pairs[0]].append(number)
        else:
            self._unindexed.append(number)

    def _candidates(self, pairs: Iterable[tuple[str, str]]) -> Iterable[int]:
        for pair in pairs:
            yield from self._by_pair.get(pair, ())
        yield from self._unindexed

    def _matching_sets(self, group: Group) -> list[int]:
        selector = group.scope.selector
        if selector is None:
            return []
        pairs = selector.pairs
        among = self._labels_by_pair.get(pairs[0], []) if pairs else range(len(self.label_sets))
        return [s for s in among if group.counts(self.label_sets[s][0], dict(self.label_sets[s][1]))]

    def _attach(self, label_set: int, number: int, kind: GroupKind) -> None:
        table = self.kept_off_by if kind == GroupKind.INVERSE else self.counted_by
        table.put(label_set, [*table.row(label_set), number])
