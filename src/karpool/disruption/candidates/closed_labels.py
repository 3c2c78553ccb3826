"""Which label sets PodDisruptionBudgets cover, remembered from pass to pass.

Which budgets cover a pod depends on its labels and on what budgets select; whether they let it go, on their status,
which changes with every pod. So only the latter is asked in every pass.
"""

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.pod_table import PodTable
from karpool.disruption.candidates.pdbs import PdbLimits


class ClosedLabels:
    """By number of a label set: which budgets cover pods with these labels, under the rules of the last pass."""

    def __init__(self) -> None:
        self._rules: tuple[object, ...] = ()
        self._covering: dict[int, tuple[str, ...]] = {}

    def among(self, rows: Array, pods: PodTable, pdbs: PdbLimits) -> Array:
        """Of each of some pods: whether budgets keep some pods with its labels now."""
        labels = pods.labels_of[rows]
        counts = np.bincount(labels)
        closed = np.zeros(len(counts), dtype=np.bool_)
        if pdbs.rules != self._rules:
            self._rules = pdbs.rules
            self._covering.clear()
        for number in np.flatnonzero(counts).tolist():
            covering = self._covering.get(number)
            if covering is None:
                example = pods.get(int(rows[np.argmax(labels == number)]))
                covering = self._covering[number] = pdbs.names_covering(example)
            closed[number] = not pdbs.let_all_go(covering)
        kept: Array = closed[labels]
        return kept
