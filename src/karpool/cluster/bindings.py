"""Which pod is on which node, and what it takes there."""

from collections.abc import Sequence

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.group_counts import GroupCounts
from karpool.cluster.node_table import NodeTable
from karpool.cluster.pod_table import END, NOWHERE, PodTable
from karpool.cluster.resources import ResourceTable


class Bindings:
    """Binds pods to nodes, and keeps what nodes have left and what groups count in step."""

    def __init__(self, pods: PodTable, nodes: NodeTable, counts: GroupCounts, resources: ResourceTable) -> None:
        self.pods = pods
        self.nodes = nodes
        self.counts = counts
        self.classes = pods.classes
        self.resources = resources
        self.awaiting_node: dict[str, set[int]] = {}
        """By name of a node that is not there: the pods that name it."""

    def bind_all(self) -> None:
        """Bind every pod to its node at once, then count each group once."""
        pods, nodes = self.pods, self.nodes
        for row, pod in enumerate(pods.objects):
            if pod is not None and pod.spec.node_name:
                self._link(row, pod.spec.node_name)
        size, width = len(pods.objects), len(self.resources)
        bound = np.flatnonzero(pods.node_of[:size] >= 0)
        amounts = self.classes.requests[pods.class_of[bound], :width]
        np.add.at(nodes.taken[:, :width], pods.node_of[bound], amounts)
        daemon = pods.daemon[bound] == 1
        np.add.at(nodes.daemon_taken[:, :width], pods.node_of[bound[daemon]], amounts[daemon])
        for row in bound[(self.classes.taken_rows.length[pods.class_of[bound]] > 0)]:
            self.counts.occupy(int(pods.class_of[row]), int(pods.node_of[row]), 1)
        nodes.refresh_all()
        self.counts.count_new_groups()

    def bind(self, row: int, name: str) -> None:
        """Bind a pod that is on no node; if there is no such node, it waits for it."""
        node = self._link(row, name)
        if node != NOWHERE:
            self.nodes.touch(node)
            self.counts.occupy(int(self.pods.class_of[row]), node, 1)
            self.counts.count(row, 1)
            self._take(row, node, 1)

    def unbind(self, row: int) -> None:
        """Take a bound pod away from its node."""
        node = int(self.pods.node_of[row])
        self.nodes.touch(node)
        self.counts.occupy(int(self.pods.class_of[row]), node, -1)
        self.counts.count(row, -1)
        self._unlink(row)
        self._take(row, node, -1)

    def leave(self, row: int) -> None:
        """Take a pod away from its node, or from those that wait for their node to come back."""
        if self.pods.node_of[row] >= 0:
            self.unbind(row)
        name = self.pods.get(row).spec.node_name
        waiting = self.awaiting_node.get(name)
        if waiting is not None:
            waiting.discard(row)
            if not waiting:
                del self.awaiting_node[name]

    def rebind(self, rows: Sequence[int], targets: Sequence[int]) -> None:
        """Bind many pods at once, wherever they are now, each to the node of a row, or to none."""
        pods, nodes = self.pods, self.nodes
        moving, after = np.array(rows, dtype=np.int64), np.array(targets, dtype=np.int64)
        before = pods.node_of[moving].astype(np.int64)
        bound, coming = before >= 0, after >= 0
        self.counts.count_all(moving, -1)
        self._occupy_all(moving[bound], before[bound], -1)
        for row, node in zip(moving[bound].tolist(), before[bound].tolist(), strict=True):
            del nodes.pods[node][row]
        pods.node_of[moving], pods.next[moving] = after, END
        for row, node in zip(moving[coming].tolist(), after[coming].tolist(), strict=True):
            nodes.pods[node][row] = None
        self.counts.count_all(moving, 1)
        self._occupy_all(moving[coming], after[coming], 1)
        touched = np.flatnonzero(np.bincount(np.concatenate((before[bound], after[coming]))))
        self._chain(touched.tolist())
        nodes.touch_all(touched)
        self._take_all(moving[bound], before[bound], -1)
        self._take_all(moving[coming], after[coming], 1)
        nodes.refresh_some(touched)

    def _occupy_all(self, rows: Array, at: Array, change: int) -> None:
        classes = self.pods.class_of[rows]
        special = self.classes.taken_rows.length[classes] > 0
        for number, node in zip(classes[special].tolist(), at[special].tolist(), strict=True):
            self.counts.occupy(number, node, change)

    def _chain(self, touched: Sequence[int]) -> None:
        """List the pods of nodes for kernels, the latest first."""
        heads, rows, following = list[int](), list[int](), list[int]()
        for node in touched:
            here = list(reversed(self.nodes.pods[node]))
            heads.append(here[0] if here else END)
            rows += here
            following += here[1:]
            if here:
                following.append(END)
        self.nodes.head[touched] = heads
        self.pods.next[rows] = following

    def _take_all(self, rows: Array, at: Array, sign: int) -> None:
        width, nodes = len(self.resources), self.nodes
        amounts = sign * self.classes.requests[self.pods.class_of[rows], :width]
        np.add.at(nodes.taken[:, :width], at, amounts)
        daemon = self.pods.daemon[rows] == 1
        if daemon.any():
            np.add.at(nodes.daemon_taken[:, :width], at[daemon], amounts[daemon])

    def _link(self, row: int, name: str) -> int:
        node = self.nodes.rows.get(name, NOWHERE)
        if node == NOWHERE:
            self.awaiting_node.setdefault(name, set()).add(row)
            return NOWHERE
        self.pods.node_of[row] = node
        self.pods.next[row] = self.nodes.head[node]
        self.nodes.head[node] = row
        self.nodes.pods[node][row] = None
        return node

    def _unlink(self, row: int) -> None:
        node = int(self.pods.node_of[row])
        rows = self.nodes.pods[node]
        before = END
        for at in reversed(rows):
            if at == row:
                break
            before = at
        if before == END:
            self.nodes.head[node] = self.pods.next[row]
        else:
            self.pods.next[before] = self.pods.next[row]
        del rows[row]
        self.pods.node_of[row], self.pods.next[row] = NOWHERE, END

    def _take(self, row: int, node: int, sign: int) -> None:
        width, nodes = len(self.resources), self.nodes
        amounts = self.classes.requests[int(self.pods.class_of[row]), :width]
        # Views, changed in place: an item that is assigned would be copied once more.
        taken, free = nodes.taken[node, :width], nodes.free[node, :width]
        if self.pods.daemon[row] or self.resources.attach:
            taken += sign * amounts
            if self.pods.daemon[row]:
                nodes.daemon_taken[node, :width] += sign * amounts
            nodes.refresh(node)
        elif sign > 0:
            taken += amounts
            free -= amounts
        else:
            taken -= amounts
            free += amounts
