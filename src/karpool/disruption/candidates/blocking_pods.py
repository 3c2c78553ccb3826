"""Which pods keep their nodes, and why."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.candidates.closed_labels import ClosedLabels
from karpool.disruption.candidates.group_rules import autoscaler_block
from karpool.disruption.candidates.pdbs import PdbLimits
from karpool.disruption.candidates.pods import blocks_until
from karpool.model.node_group import NodeGroup
from karpool.model.pod import Pod
from karpool.model.reasons import Reason

_UNKNOWN: Final = -1


class BlockingPods:
    """The pods of a snapshot that must not be disrupted at a moment; those only `expected` on a node do not block."""

    def __init__(
        self,
        snapshot: Snapshot,
        pdbs: PdbLimits,
        now: datetime,
        expected: Callable[[Pod], bool],
        groups: Mapping[str, NodeGroup],
        *,
        closed_labels: ClosedLabels,
    ) -> None:
        """`groups`: node groups by name, whose autoscalers have rules of their own."""
        self._groups = groups
        self._snapshot = snapshot
        self._pdbs = pdbs
        self._now = now
        self._expected = expected
        self._closed_labels = closed_labels
        self._block_of: dict[int, tuple[Pod, Reason | None]] = {}
        self._autoscaler_says: dict[int, tuple[Pod, NodeGroup, Reason | None]] = {}
        self._by_node: dict[int, list[tuple[Pod, Reason]]] = {}
        self._seen = _UNKNOWN
        """The number of the last change of a node that is in `_by_node`."""
        self._current = False

    def forget(self) -> None:
        """Look again: the snapshot has changed."""
        self._current = False

    def by_node(self) -> dict[int, list[tuple[Pod, Reason]]]:
        """By row of a node: the pods that block, and why."""
        if not self._current:
            self._current = True
            pods = self._snapshot.pods
            for row in self._suspects(self._pods_of_changed_nodes()):
                pod = pods.get(row)
                reason = None if self._expected(pod) else self._block(row, pod)
                if reason is not None:
                    self._by_node.setdefault(int(pods.node_of[row]), []).append((pod, reason))
        return self._by_node

    def _pods_of_changed_nodes(self) -> Array:
        """Rows of the pods of nodes of which, or of whose pods, something has changed; they are looked at again."""
        pods, nodes = self._snapshot.pods, self._snapshot.nodes
        seen, self._seen = self._seen, nodes.changes
        if seen == _UNKNOWN:
            return np.flatnonzero(pods.node_of[: len(pods.objects)] >= 0)
        changed = np.flatnonzero(nodes.changed[: len(nodes.states)] > seen).tolist()
        for node in changed:
            self._by_node.pop(node, None)
        return np.array(sorted(row for node in changed for row in self._snapshot.pods_on(node)), dtype=np.int64)

    def _block(self, row: int, pod: Pod) -> Reason | None:
        known = self._block_of.get(row)
        if known is None or known[0] is not pod:
            reason = blocks_until(pod, self._now) or self._pdbs.eviction_blocked(pod, self._now)
            known = self._block_of[row] = (pod, reason)
        return known[1] or self._autoscaler_block(row, pod)

    def _autoscaler_block(self, row: int, pod: Pod) -> Reason | None:
        """Why the autoscaler of its node's group keeps the node for a pod, if it does."""
        state = self._snapshot.nodes.get(int(self._snapshot.pods.node_of[row])) if self._groups else None
        group = None if state is None else self._groups.get(state.group)
        if group is None:
            return None
        known = self._autoscaler_says.get(row)
        if known is None or known[0] is not pod or known[1] is not group:
            known = self._autoscaler_says[row] = (pod, group, autoscaler_block(pod, group, self._pdbs))
        return known[2]

    def _suspects(self, rows: Array) -> list[int]:
        """Those of some bound pods that may block: do-not-disrupt, or labels that some budget does not let go."""
        pods = self._snapshot.pods
        suspect = self._closed_labels.among(rows, pods, self._pdbs) | (pods.protected[rows] != 0)
        if self._groups:
            suspect |= np.fromiter((self._kept(row) for row in rows.tolist()), dtype=np.bool_, count=len(rows))
        return [int(row) for row in rows[suspect].tolist()]

    def _kept(self, row: int) -> bool:
        """Whether the autoscaler of a group would not move a bound pod."""
        return self._autoscaler_block(row, self._snapshot.pods.get(row)) is not None
