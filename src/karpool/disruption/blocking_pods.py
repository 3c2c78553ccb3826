"""Which pods keep their nodes, and why."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import numpy as np

from karpool.cluster.arrays import Array, grown
from karpool.cluster.snapshot import Snapshot
from karpool.disruption.pdbs import PdbLimits
from karpool.disruption.pods import blocks_until
from karpool.model.pod import Pod
from karpool.model.reasons import Reason

_UNKNOWN: Final = -1


class BlockingPods:
    """The pods of a snapshot that must not be disrupted at a moment; those only `expected` on a node do not block."""

    def __init__(self, snapshot: Snapshot, pdbs: PdbLimits, now: datetime, expected: Callable[[Pod], bool]) -> None:
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
        return known[1]

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
        return np.flatnonzero(bound & ((restricted[labels] == 1) | (pods.protected[:size] != 0))).tolist()
