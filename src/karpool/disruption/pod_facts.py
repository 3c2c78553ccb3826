"""What follows from a pod alone: objects are immutable, so an answer holds as long as the very same one is there."""

from collections.abc import Iterable
from typing import NamedTuple

from karpool.cluster.pod_table import PodTable
from karpool.disruption.costs import eviction_cost
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.pod import Pod


class PodFacts(NamedTuple):
    """What a pod is to decisions; pods with the same `labels` have the same namespace and labels."""

    row: int
    pod: Pod
    key: str
    labels: int
    reschedulable: bool
    starting: bool
    guarded: bool
    cost: float


class PodFactsCache:
    """Facts of the pods of a table, by row."""

    def __init__(self, pods: PodTable) -> None:
        self._pods = pods
        self._held: list[PodFacts | None] = []

    def of(self, rows: Iterable[int]) -> list[PodFacts]:
        """The facts of pods, in the order of their rows."""
        held, pods = self._held, self._pods.objects
        if len(held) < len(pods):
            held.extend([None] * (len(pods) - len(held)))
        found = []
        for row in rows:
            facts = held[row]
            if facts is None or facts.pod is not pods[row]:
                facts = held[row] = _facts(row, self._pods.get(row), int(self._pods.labels_of[row]))
            found.append(facts)
        return found


def _facts(row: int, pod: Pod, labels: int) -> PodFacts:
    return PodFacts(
        row=row,
        pod=pod,
        key=pod.key,
        labels=labels,
        reschedulable=pod.reschedulable,
        starting=pod.status.phase == "Pending",
        guarded=DO_NOT_DISRUPT in pod.metadata.annotations,
        cost=eviction_cost(pod),
    )
