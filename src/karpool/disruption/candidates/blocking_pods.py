"""Which pods keep their nodes, and why."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array, grown
from karpool.cluster.snapshot import Snapshot
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
    ) -> None:
        """`groups`: node groups by name, whose autoscalers have rules of their own."""
        self._groups = groups
        self._kept: Array = np.full(0, _UNKNOWN, dtype=np.int8)
        """By row of a pod: whether it keeps a node of a group."""
        self._snapshot = snapshot
        self._pdbs = pdbs
        self._now = now
        self._expected = expected
        self._restricted: Array = np.full(0, _UNKNOWN, dtype=np.int8)
        """By label set: whether a PodDisruptionBudget keeps some pods with these labels."""
        self._block_of: dict[int, tuple[Pod, Reason | None]] = {}
        self._by_node: dict[int, list[tuple[Pod, Reason]]] | None = None

    def forget(self) -> None:
        """Look again: the snapshot has changed."""
        self._by_node = None

    def by_node(self) -> dict[int, list[tuple[Pod, Reason]]]:
        """By row of a node: the pods that block, and why."""
        if self._by_node is None:
            self._by_node = {}
            pods = self._snapshot.pods
            for row in self._suspects():
                pod = pods.get(row)
                reason = None if self._expected(pod) else self._block(row, pod)
                if reason is not None:
                    self._by_node.setdefault(int(pods.node_of[row]), []).append((pod, reason))
        return self._by_node

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
        return None if group is None else autoscaler_block(pod, group, self._pdbs)

    def _suspects(self) -> list[int]:
        """Rows of bound pods that may block: do-not-disrupt, or labels that some budget does not let go."""
        pods = self._snapshot.pods
        size = len(pods.objects)
        bound, labels = pods.node_of[:size] >= 0, pods.labels_of[:size]
        examples: Array = np.full(len(self._snapshot.topology.label_sets), -1, dtype=np.int64)
        rows = np.flatnonzero(bound)
        examples[labels[rows]] = rows
        restricted = self._restricted = grown(self._restricted, (len(examples),), _UNKNOWN)
        for number in np.flatnonzero((examples >= 0) & (restricted[: len(examples)] == _UNKNOWN)).tolist():
            restricted[number] = not self._pdbs.open_to_all(pods.get(int(examples[number])))
        suspect = (restricted[labels] == 1) | (pods.protected[:size] != 0) | self._kept_by_autoscalers(bound)
        return np.flatnonzero(bound & suspect).tolist()

    def _kept_by_autoscalers(self, bound: Array) -> Array:
        """Which bound pods the autoscaler of a group would not move."""
        pods, nodes = self._snapshot.pods, self._snapshot.nodes
        kept: Array = np.zeros(len(bound), dtype=np.bool_)
        if not self._groups:
            return kept
        grouped = np.array([state is not None and bool(state.group) for state in nodes.states], dtype=np.bool_)
        here = np.flatnonzero(bound)
        here = here[grouped[pods.node_of[here]]]
        judged = self._kept = grown(self._kept, (len(bound),), _UNKNOWN)
        for row in here[judged[here] == _UNKNOWN].tolist():
            judged[row] = self._autoscaler_block(row, pods.get(row)) is not None
        kept[here] = judged[here] == 1
        return kept
