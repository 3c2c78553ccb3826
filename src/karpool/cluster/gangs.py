"""Pods of a cluster that wait as gangs: which belong together, and how many of them still have to find room at once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

from karpool.model.gangs import KUEUE, GangId, PodGroup, Workload, gang_of, least_by_pod
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.wire.objects import Object

T = TypeVar("T", bound=Object)
_NO_AGE: Final = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Gang:
    """Waiting pods, by row, that run together or not at all."""

    id: GangId
    rows: tuple[int, ...]
    least: int | None
    """How many of its pods have to run at once, those on nodes included; None: not known, so that all count."""
    on_nodes: int

    @property
    def missing(self) -> int:
        """How many of the waiting pods have to find room at once."""
        if self.least is None:
            return len(self.rows)
        return max(0, self.least - self.on_nodes)


class GangIndex:
    """What PodGroups and Workloads say of gangs, kept up to date by `put`."""

    def __init__(self, objects: Objects) -> None:
        self._groups = {group.key: group for group in objects.pod_groups}
        self._workloads = {workload.key: workload for workload in objects.workloads}

    def put_group(self, key: str, group: PodGroup | None) -> None:
        """Take note of a PodGroup that is new, has changed, or is gone."""
        self._groups = _with(self._groups, key, group)

    def put_workload(self, key: str, workload: Workload | None) -> None:
        """Take note of a Workload that is new, has changed, or is gone."""
        self._workloads = _with(self._workloads, key, workload)

    def least(self, gang: GangId, pods: Iterable[Pod]) -> int | None:
        """How many pods of a gang have to run at once; None if nobody says so."""
        if gang.in_workload:
            workload = self._workloads.get(gang.key)
            known = None if workload is None or workload.unreadable else workload.least(gang.group)
        else:
            group = None if gang.scheduler == KUEUE else self._groups.get(gang.key)
            known = None if group is None else group.least
        said = (least_by_pod(gang, pod) for pod in pods) if known is None else (known,)
        return max((number for number in said if number is not None), default=None)

    def waiting(self, pods: Sequence[Pod | None], rows: Iterable[int], on_nodes: Iterable[int]) -> tuple[Gang, ...]:
        """The gangs among waiting pods that need more than one of them at once, in the order in which they are served.

        `pods` are all by row; `on_nodes` are the rows of those that have a node. The highest priority is served first,
        then the oldest.
        """
        members: dict[GangId, list[int]] = {}
        for row, gang in _marked(pods, rows):
            members.setdefault(gang, []).append(row)
        if not members:
            return ()
        placed = dict.fromkeys(members, 0)
        for _, gang in _marked(pods, on_nodes):
            if gang in placed:
                placed[gang] += 1
        gangs = (self._gang(gang, found, placed[gang], pods) for gang, found in members.items())
        return tuple(sorted((gang for gang in gangs if gang.missing > 1), key=lambda gang: _turn(gang, pods)))

    def _gang(self, gang: GangId, rows: Sequence[int], on_nodes: int, pods: Sequence[Pod | None]) -> Gang:
        waiting = (pod for row in rows if (pod := pods[row]) is not None)
        least = self.least(gang, waiting)
        if gang.scheduler == KUEUE and on_nodes:
            least = 1  # it was let in as a whole, and its pods are scheduled one by one
        return Gang(gang, tuple(rows), least, on_nodes)


def _with(known: dict[str, T], key: str, entry: T | None) -> dict[str, T]:
    others = {name: other for name, other in known.items() if name != key}
    return others if entry is None else {**others, key: entry}


def _marked(pods: Sequence[Pod | None], rows: Iterable[int]) -> Iterator[tuple[int, GangId]]:
    for row in rows:
        pod = pods[row]
        if pod is not None and not pod.is_headroom and (gang := gang_of(pod)) is not None:
            yield row, gang


def _turn(gang: Gang, pods: Sequence[Pod | None]) -> tuple[int, datetime, GangId]:
    """When a gang is served."""
    members = [pod for row in gang.rows if (pod := pods[row]) is not None]
    priority = max((pod.spec.priority or 0 for pod in members), default=0)
    age = min((pod.metadata.creation_timestamp or _NO_AGE for pod in members), default=_NO_AGE)
    return -priority, age, gang.id
