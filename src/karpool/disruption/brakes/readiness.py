"""How many pods that commands moved are away: what takes their place is not there, or not ready yet.

Everything is read from pods and from the ledgers of pools, so that a restart forgets no pod that is away. A controller
that had so many pods when a command began, and has fewer now, misses some; those that it made lately and that are not
ready are on their way. Neither counts for ever: some replacements never come.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple

from karpool.disruption.brakes.ledger import RENEWED, LedgerEntry
from karpool.disruption.brakes.owned_pods import OwnedPods, owner_key, owners_of
from karpool.disruption.brakes.wellness import unwell
from karpool.model.pod import Pod
from karpool.wire.duration import Duration

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_PodState = Literal["ready", "starting", "leaving"]


@dataclass(frozen=True, slots=True)
class Pacing:
    """How many pods commands may have away at a time."""

    workload_percent: float = 25.0
    """Of the pods of one controller, rounded down, but at least one; 0: any number."""
    pods_percent: float = 5.0
    """Of all pods that have a controller, rounded down, but at least `least_pods`; 0: any number."""
    least_pods: int = 10
    ready_within: timedelta = timedelta(minutes=5)
    """How long the replacement of a pod is waited for."""

    @property
    def off(self) -> bool:
        """Whether drains wait for nothing."""
        return not self.ready_within or not (self.workload_percent or self.pods_percent)

    @property
    def node_waits(self) -> timedelta:
        """How long a node is kept waiting that no pod leaves, whatever is known of replacements."""
        return 6 * self.ready_within


# -- pods by controller ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Workload:
    active: int = 0
    leaving: int = 0
    starting: dict[str, datetime] = field(default_factory=dict)
    """The pods that are not ready: when each was created."""


class WorkloadReadiness:
    """The pods of every controller, kept in step by changes of pods."""

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        self.pods = 0
        """How many pods there are that their controllers would make again."""
        self._of: dict[str, _Workload] = {}
        self.owned = OwnedPods()
        for pod in pods:
            self.change(None, pod)

    def change(self, old: Pod | None, new: Pod | None) -> bool:
        """Note that a pod came, changed or went; whether that matters to who is away."""
        owners = owners_of(old, new)
        ill = new is not None and owners[1] is not None and unwell(new) is not None
        self.owned.note(old, new, *owners, ill=ill)
        before, after = self._counted_before(old, owners[0]), _counted(new, owners[1], ill=ill)
        if before == after:
            return False
        if old is not None and before is not None:
            self._count(old, *before, step=-1)
        if new is not None and after is not None:
            self._count(new, *after, step=1)
        return True

    def _counted_before(self, pod: Pod | None, owner: str | None) -> tuple[str, _PodState] | None:
        """What was said of a pod when it came or changed; whether it was ready then is known."""
        if pod is None or owner is None:
            return None
        known = self._of.get(owner)
        return _counted(pod, owner, ill=known is not None and pod.key in known.starting)

    def of(self, key: str) -> _Workload:
        """The pods of a controller."""
        return self._of.get(key, _NOBODY)

    def _count(self, pod: Pod, key: str, state: _PodState, *, step: int) -> None:
        mine = self._of.setdefault(key, _Workload())
        if state == "leaving":
            mine.leaving += step
        else:
            mine.active += step
            self.pods += step
        if state == "starting" and step > 0:
            mine.starting[pod.key] = pod.metadata.creation_timestamp or _LONG_AGO
        else:
            mine.starting.pop(pod.key, None)
        if not mine.active and not mine.leaving:
            del self._of[key]


_NOBODY: Final = _Workload()


def _counted(pod: Pod | None, owner: str | None, *, ill: bool) -> tuple[str, _PodState] | None:
    """Whose pod it is and how it is; None for one that nobody makes again, or that has ended."""
    if pod is None or owner is None or not _comes_back(pod) or pod.terminal:
        return None
    return owner, "leaving" if pod.terminating else "starting" if ill or pod.unreadable else "ready"


def moving_key(pod: Pod) -> str | None:
    """What stands for the controller of a pod that comes back elsewhere when its node goes."""
    return owner_key(pod) if _comes_back(pod) else None


def _comes_back(pod: Pod) -> bool:
    return not (pod.is_daemon or pod.is_mirror or pod.is_headroom)


def ready(pod: Pod) -> bool:
    """Whether a pod does its work, so that it is missed when it goes."""
    return not pod.unreadable and unwell(pod) is None


# -- who is away -------------------------------------------------------------------------------------------------------


class Lapse(NamedTuple):
    """Pods of a controller that went and for which none were made: how many, since when, and how many are given up."""

    missing: int
    since: datetime
    given_up: int = 0


class Held(NamedTuple):
    """Why a pod stays where it is for now."""

    message: str


class LetGo(NamedTuple):
    """A pod may go; `overdue` says what is not waited for any longer, if that made the difference."""

    overdue: str = ""


class _Absence(NamedTuple):
    """Pods of one controller: how many are waited for, how many are not any more, and how many it will have."""

    awaited: int
    overdue: int
    size: int


class Away:
    """Who is away at a moment, and who else may go; those that are let go count at once."""

    def __init__(
        self,
        workloads: WorkloadReadiness,
        entries: Iterable[LedgerEntry],
        pacing: Pacing,
        now: datetime,
        *,
        here: Mapping[str, int],
        leaving: Mapping[str, int],
        lapses: Mapping[str, Lapse],
    ) -> None:
        """`here`: pods still on nodes of the commands, by controller; `leaving`: those of them as good as gone."""
        self._workloads = workloads
        self._pacing = pacing
        self._now = now
        self._here = here
        self._moved: Counter[str] = Counter()
        self._replicas: dict[str, int] = {}
        self._since: dict[str, datetime] = {}
        for entry in sorted(entries, key=lambda one: one.since):
            for key, moved in entry.owners.items():
                self._moved[key] += moved.pods
                # A later command may have seen a controller that missed pods already.
                self._replicas[key] = max(moved.replicas, self._replicas.get(key, 0))
                self._since.setdefault(key, entry.since)
        self.lapses: dict[str, Lapse] = {}
        self._absences = {key: self._absence(key, lapses.get(key)) for key in self._moved}
        self._taken = Counter(leaving)
        self._all = sum(absence.awaited for absence in self._absences.values()) + self._taken.total()
        self._overdue = sum(absence.overdue for absence in self._absences.values())

    def ask(self, pod: Pod) -> Held | LetGo:
        """Whether a pod may go now; one that does no work, or that nobody makes again, is not missed."""
        key = moving_key(pod)
        if key is None or not ready(pod):
            return LetGo()
        absence = self._absences.get(key) or self._absence(key, None)
        away, most = absence.awaited + self._taken[key], self._most_of(absence)
        if away >= most:
            return Held(f"{away} of {absence.size} pods of its controller are away, and no more than {most} may be")
        everywhere = self._most_of_all()
        if self._all >= everywhere:
            return Held(f"{self._all} pods that commands moved are away, and no more than {everywhere} may be")
        self._taken[key] += 1
        self._all += 1
        late = absence.overdue if away + absence.overdue >= most else 0
        late = late or (self._overdue if self._all + self._overdue > everywhere else 0)
        within = Duration(self._pacing.ready_within // timedelta(microseconds=1) * 1000)
        return LetGo(f"the replacements of {late} pods were not ready within {within}" if late else "")

    def ask_all(self, pods: Sequence[Pod]) -> Held | LetGo:
        """Whether all these pods may go now; more than may be away go alone, when nobody else is away."""
        wanted = Counter(key for pod in pods if ready(pod) and (key := moving_key(pod)) is not None)
        for key, count in wanted.items():
            absence = self._absences.get(key) or self._absence(key, None)
            away, most = absence.awaited + self._taken[key], self._most_of(absence)
            if away and away + count > most:
                return Held(f"{away} of {absence.size} pods of a controller are away, and no more than {most} may be")
        everywhere = self._most_of_all()
        if self._all and self._all + wanted.total() > everywhere:
            return Held(f"{self._all} pods that commands moved are away, and no more than {everywhere} may be")
        self._taken += wanted
        self._all += wanted.total()
        return LetGo()

    def _most_of(self, absence: _Absence) -> int:
        percent = self._pacing.workload_percent
        return max(1, int(absence.size * percent / 100)) if percent else sys.maxsize

    def _most_of_all(self) -> int:
        percent = self._pacing.pods_percent
        return max(self._pacing.least_pods, int(self._workloads.pods * percent / 100)) if percent else sys.maxsize

    def _absence(self, key: str, lapse: Lapse | None) -> _Absence:
        mine, latest = self._workloads.of(key), self._now - self._pacing.ready_within
        # More cannot be away by our doing than went.
        gone = max(0, self._moved[key] - self._here.get(key, 0)) if key in self._moved else sys.maxsize
        if not self._replicas.get(key):
            starting = sum(created > latest for created in mine.starting.values())
            return _Absence(min(gone, mine.leaving + starting), 0, mine.active + mine.leaving)
        lost = max(0, self._replicas[key] - mine.active)
        given_up = self._given_up(key, lost, lapse)
        missing = min(gone, lost - given_up)
        made = [created for created in mine.starting.values() if created >= self._since[key]]
        late = sum(created <= latest for created in made)
        awaited = min(gone, missing + len(made) - late)
        return _Absence(awaited, min(gone - awaited, given_up + late), mine.active + missing)

    def _given_up(self, key: str, missing: int, lapse: Lapse | None) -> int:
        """How many of the missing pods nobody waits for any more: nobody made any for long."""
        if not missing:
            return 0
        if lapse is None or missing != lapse.missing:
            known = 0 if lapse is None else min(lapse.given_up, missing)
            lapse = Lapse(missing, self._now, known)
        elif self._now - lapse.since >= self._pacing.ready_within:
            lapse = Lapse(missing, lapse.since, missing)
        self.lapses[key] = lapse
        return lapse.given_up


def awaited(entry: LedgerEntry, pacing: Pacing, now: datetime) -> bool:
    """Whether pods that a command moved may still be waited for; its last node may have gone a little later."""
    return entry.committed and now - entry.at < pacing.ready_within + RENEWED
