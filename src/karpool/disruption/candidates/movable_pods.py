"""Which pods need another place when their node goes, remembered from pass to pass.

A pod is asked once: as long as it is the same object and budgets have the same rules, the answer stays. Only pods with
an annotation that ends after some time are asked each time.
"""

from collections.abc import Iterable
from datetime import datetime

from karpool.cluster.pod_table import PodTable
from karpool.disruption.candidates.pdbs import PdbLimits, currently_reschedulable
from karpool.disruption.candidates.pods import FOREVER, protected_until
from karpool.model.pod import Pod


class MovablePods:
    """By row of a pod: whether it can move, and of which object that is known."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Pod, bool]] = {}
        self._rules: tuple[object, ...] = ()

    def among(self, rows: Iterable[int], pods: PodTable, pdbs: PdbLimits, now: datetime) -> list[int]:
        """The pods that need another place when their node goes, and that nothing keeps where they are."""
        rules = pdbs.rules
        if rules != self._rules:
            self._rules = rules
            self._known.clear()
        return [row for row in rows if self._movable(row, pods.get(row), pdbs, now)]

    def _movable(self, row: int, pod: Pod, pdbs: PdbLimits, now: datetime) -> bool:
        known = self._known.get(row)
        if known is not None and known[0] is pod:
            return known[1]
        movable = currently_reschedulable(pod, pdbs, now)
        if protected_until(pod) in (None, FOREVER):
            self._known[row] = (pod, movable)
        return movable
