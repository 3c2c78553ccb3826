"""How many pods of each group are where, and who has which port or shared volume."""

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.node_shapes import ShapeTable
from karpool.cluster.node_table import NodeTable
from karpool.cluster.pod_table import PodTable


class GroupCounts:
    """Keeps the counts of a topology in step with the pods that are bound."""

    def __init__(self, pods: PodTable, nodes: NodeTable, shapes: ShapeTable) -> None:
        self.pods = pods
        self.nodes = nodes
        self.shapes = shapes
        self.classes = pods.classes
        self.topology = pods.topology
        self._counted_groups = 0

    @property
    def behind(self) -> bool:
        """Whether there are groups that nobody has counted yet."""
        return self._counted_groups < len(self.topology.groups)

    def count_new_groups(self) -> None:
        """Count the pods of groups that are new."""
        pods, topology = self.pods, self.topology
        fresh = range(self._counted_groups, len(topology.groups))
        if not fresh:
            return
        self._counted_groups = len(topology.groups)
        self._count_in(np.arange(len(pods.objects)), fresh, 1)

    def count_all(self, rows: Array, change: int) -> None:
        """Count many pods, those of them that are bound, in, or out of, every group that they take part in."""
        self._count_in(rows, range(len(self.topology.groups)), change)

    def _count_in(self, rows: Array, groups: range, change: int) -> None:
        pods, topology = self.pods, self.topology
        rows = rows[(pods.node_of[rows] >= 0) & (pods.counted[rows] == 1)]
        for number_of, groups_of in ((pods.labels_of, topology.counted_by), (pods.class_of, self.classes.declared)):
            members = rows[groups_of.length[number_of[rows]] > 0]
            for number, alike in _rows_by(number_of[members], members).items():
                for group in groups_of.row(number):
                    if group in groups:
                        self._tally(group, alike, change)

    def _tally(self, group: int, rows: Array, change: int) -> None:
        topology, nodes = self.topology, self.nodes
        at = self.pods.node_of[rows]
        at = at[self.shapes.seen_by[topology.filter[group], nodes.shape[at]] == 1]
        if topology.groups[group].by_host:
            np.add.at(topology.by_host[topology.row[group]], at, change)
            topology.total[group] += change * len(at)
        else:
            domains = nodes.domain[at, topology.key[group]]
            domains = domains[domains >= 0]
            np.add.at(topology.by_domain[group], domains, change)
            topology.total[group] += change * len(domains)

    def count(self, row: int, change: int) -> None:
        """Count a bound pod in, or out of, every group that it takes part in."""
        pods, topology = self.pods, self.topology
        if not pods.counted[row]:
            return
        node, number, labels = int(pods.node_of[row]), int(pods.class_of[row]), int(pods.labels_of[row])
        if not topology.counted_by.length[labels] and not self.classes.declared.length[number]:
            return
        for group in topology.counted_by.row(labels) + self.classes.declared.row(number):
            if not self.shapes.seen_by[topology.filter[group], self.nodes.shape[node]]:
                continue
            if topology.groups[group].by_host:
                topology.by_host[topology.row[group], node] += change
                topology.total[group] += change
            elif (domain := int(self.nodes.domain[node, topology.key[group]])) >= 0:
                topology.by_domain[group, domain] += change
                topology.total[group] += change

    def occupy(self, number: int, node: int, change: int) -> None:
        """Note ports and shared volumes that a pod of a class brings to a node, or takes away."""
        classes, by_host = self.classes, self.topology.by_host
        if not classes.taken_rows.length[number]:
            return
        for row in classes.taken_rows.row(number):
            by_host[row, node] += change
        # A shared volume is attached with its first pod and detached with its last.
        alone = 1 if change > 0 else 0
        for row, column in zip(classes.shared_rows.row(number), classes.shared_columns.row(number), strict=True):
            if by_host[row, node] == alone:
                self.nodes.taken[node, column] += change


def _rows_by(keys: Array, rows: Array) -> dict[int, Array]:
    if not len(rows):
        return {}
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    parts = np.split(rows[order], starts[1:])
    return dict(zip(distinct.tolist(), parts, strict=True))
