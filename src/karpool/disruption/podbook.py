"""What follows from a pod alone: objects are immutable, so an answer holds as long as the very same one is there."""

from typing import NamedTuple

from karpool.cluster.podtable import PodTable
from karpool.disruption.costs import eviction_cost
from karpool.model.labels import DO_NOT_DISRUPT
from karpool.model.pod import Pod


class PodFacts(NamedTuple):
    """What a pod is to decisions; pods with the same `labels` have the same namespace and labels."""

    pod: Pod
    key: str
    labels: int
    reschedulable: bool
    starting: bool
    guarded: bool
    cost: float


class PodBook:
    """Facts of the pods of a table, by row."""

    def __init__(self, pods: PodTable) -> None:
        self._pods = pods
        self._held: list[PodFacts | None] = []

    def of(self, row: int) -> PodFacts:
        """The facts of a pod."""
        held, pod = self._held, self._pods.objects[row]
        if row >= len(held):
            held.extend([None] * (len(self._pods.objects) - len(held)))
        found = held[row]
        if found is None or found.pod is not pod:
            found = held[row] = _facts(self._pods.get(row), int(self._pods.labels_of[row]))
        return found


def _facts(pod: Pod, labels: int) -> PodFacts:
    return PodFacts(
        pod=pod,
        key=pod.key,
        labels=labels,
        reschedulable=pod.reschedulable,
        starting=pod.status.phase == "Pending",
        guarded=DO_NOT_DISRUPT in pod.metadata.annotations,
        cost=eviction_cost(pod),
    )
