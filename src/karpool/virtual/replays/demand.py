"""What a recorded cluster asked for: the cluster at the beginning, and what workloads and people changed from then on.

What its controller did is not among it: evicted pods are still wanted, and come again. Jobs become tasks, each with the
time that it really ran.
"""

import dataclasses
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from karpool.model.nodepool import NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod
from karpool.model.workloads import DaemonSet, PodTemplateSpec, WorkloadObject
from karpool.recording import records as r
from karpool.recording.history import History, apply_numbered, key_of
from karpool.recording.parts import open_recording
from karpool.virtual.initial_cluster import Group, Kind, group_of
from karpool.virtual.replays.learned_delays import DelayLearner
from karpool.virtual.replays.recorded_policy import recorded_timings
from karpool.virtual.scenario import Scenario, ScenarioWorkload, Timings
from karpool.wire.duration import parse_duration
from karpool.wire.objects import Metadata, Object, encode_value

_SCALED: Final = ("Deployment", "StatefulSet")
REPLAYED: Final = frozenset(
    (
        "NodePool",
        "PodDisruptionBudget",
        "DaemonSet",
        "PersistentVolumeClaim",
        "PersistentVolume",
        "StorageClass",
        "Namespace",
        "CapacityBuffer",
    )
)
"""Kinds of objects that people change; what controllers make is made anew."""
_ROLLOUT_SECONDS: Final = 900.0
"""How long after a rollout pods of the revision before it are stragglers, and no way back."""
_PATIENCE_SECONDS: Final = 30.0
"""How long a workload is given to create a pod again that was evicted; after that it did not want it any more."""


@dataclass(frozen=True, slots=True)
class Appearance:
    """A workload that is new, with what its pods look like."""

    group: Group
    template: Pod


@dataclass(frozen=True, slots=True)
class Rollout:
    """The pods of a workload shall look otherwise from now on."""

    group: Group
    template: Pod


@dataclass(frozen=True, slots=True)
class Scale:
    group: Group
    replicas: int


@dataclass(slots=True, eq=False)
class Task:
    """A pod that no workload keeps up: of a Job, or alone. It runs for a while, until it is deleted, or on and on."""

    name: str
    template: Pod
    begins: float
    length: float | None = None
    """How many seconds it ran from when it was ready until it completed."""
    ends: float | None = None
    """When it was deleted."""
    ready: float | None = None
    """Since when it ran, if it did at the beginning."""

    @property
    def job(self) -> str:
        """The key of the Job that it is of; empty without one."""
        meta = self.template.metadata
        return next((f"{meta.namespace}/{owner.name}" for owner in meta.owner_references if owner.kind == "Job"), "")


@dataclass(frozen=True, slots=True)
class ObjectPut:
    kind: str
    object: Object


@dataclass(frozen=True, slots=True)
class ObjectGone:
    kind: str
    key: str


Event = Appearance | Rollout | Scale | Task | ObjectPut | ObjectGone


@dataclass(frozen=True)
class Demand:
    """A recording as demand; times are seconds since `start`."""

    start: datetime
    length: float
    objects: Objects
    """The cluster at the beginning, without the pods of tasks."""
    running: dict[str, Task]
    """The tasks that are there at the beginning, by the keys of their pods."""
    pods: tuple[Pod, ...]
    """Their pods."""
    events: tuple[tuple[float, Event], ...]
    gaps: tuple[tuple[float, float], ...]
    """From when to when nothing was seen."""
    delays: dict[str, float] = field(default_factory=dict)
    """How many seconds things took, by the names of timings."""
    consolidator: dict[str, Any] | None = None
    """How what consolidated the cluster was set for most of the time, if that was recorded."""
    missing: dict[str, str] = field(default_factory=dict)
    """Kinds of objects that could not be seen, and why."""
    seen: bool = True
    """Whether anything was seen at all."""
    torn: int = 0
    """How many bytes at the ends of its files cannot be read."""


def with_demand(scenario: Scenario, demand: Demand) -> Scenario:
    """The scenario at the time of a recording; as long, and things take as long, where it does not say so itself."""
    length = parse_duration(f"{max(1, round(demand.length))}s") if scenario.length == Scenario().length else None
    usual = Timings()
    learned = {
        name: parse_duration(f"{took:g}s")
        for name, took in demand.delays.items()
        if getattr(scenario.timings, name) == getattr(usual, name)
    }
    set_so = recorded_timings(demand.consolidator)
    for name in Timings.__struct_fields__:
        if getattr(scenario.timings, name) == getattr(usual, name) != getattr(set_so, name):
            learned[name] = getattr(set_so, name)
    timings = replace(scenario.timings, **learned)
    return replace(scenario, start=demand.start, length=length or scenario.length, timings=timings)


def without(demand: Demand, workloads: Iterable[ScenarioWorkload]) -> Demand:
    """The demand of all but these workloads, which a scenario describes itself."""
    own = {(entry.namespace, entry.name) for entry in workloads}

    def is_own(event: Event) -> bool:
        return isinstance(event, Scale | Appearance | Rollout) and event.group[::2] in own

    kept = tuple((time, event) for time, event in demand.events if not is_own(event))
    return dataclasses.replace(demand, events=kept) if own else demand


@lru_cache(maxsize=1)
def read_demand(path: Path) -> Demand:
    """What a recording asks for; it is read once."""
    file = open_recording(path)
    builder = _DemandBuilder(History(file.header))
    for number, record in enumerate(file, start=2):
        builder.expect(record)
        apply_numbered(file, builder.history, number, record)
        builder.take(record)
    return builder.built(file.torn)


@dataclass(slots=True)
class _Workload:
    """What is known of a workload so far."""

    active: dict[int, str] = field(default_factory=dict)
    """The revisions of its pods, by their numbers; without those that leave."""
    owed: list[float] = field(default_factory=list)
    """When pods left against its will that were not yet created again."""
    replicas: int = 0
    declared: bool = False
    """Whether an object says how many pods it wants."""
    revision: str = ""
    since: float = 0.0
    before: set[str] = field(default_factory=set)
    from_object: list[tuple[float, Event]] = field(default_factory=list)
    """What its object says of its pods: it counts where no pod was ever seen."""


class _DemandBuilder:
    """Hears of the records of a recording: `expect` before `history` has one, `take` after that."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._delays = DelayLearner(history)
        self._begin: float | None = None
        self._opened = False
        self._workloads: defaultdict[Group, _Workload] = defaultdict(_Workload)
        self._groups: dict[int, Group] = {}
        self._tasks: dict[int, Task] = {}
        self._retried: defaultdict[str, list[Task]] = defaultdict(list)
        self._node_of: dict[int, str] = {}
        self._forced: set[int] = set()
        self._patience: deque[tuple[float, Group]] = deque()
        self._revisions: dict[int, str] = {}
        self._events: list[tuple[float, Event]] = []
        self._gaps: list[tuple[float, float]] = []
        self._known: dict[tuple[str, str], Object] = {}
        self._objects = Objects()
        self._running: dict[str, Task] = {}
        self._pods: tuple[Pod, ...] = ()
        self._current: tuple[dict[str, Any] | None, float] = (None, 0.0)
        self._settings: list[tuple[dict[str, Any], float]] = []

    def built(self, torn: int = 0) -> Demand:
        if not self._opened:
            self._open()
        for workload in self._workloads.values():
            if not workload.revision:
                self._events += workload.from_object
        return Demand(
            start=self.history.moment(self._begin or 0.0),
            length=self.history.time - (self._begin or 0.0),
            objects=self._objects,
            running=self._running,
            pods=self._pods,
            events=tuple(sorted(self._events, key=lambda entry: entry[0])),
            gaps=tuple(self._gaps),
            delays=self._delays.medians(),
            consolidator=self._longest(),
            missing={kind: why for kind, why in self.history.missing.items() if why},
            seen=self._begin is not None,
            torn=torn,
        )

    def _longest(self) -> dict[str, Any] | None:
        """The settings that held longest."""
        self._settled(self.history.time)
        return max(self._settings, key=lambda entry: entry[1], default=(None, 0.0))[0]

    def _settled(self, now: float) -> None:
        """The settings so far held until now."""
        settings, since = self._current
        self._current = (self.history.consolidator, now)
        if settings is None:
            return
        held = next((held for known, held in self._settings if known == settings), 0.0)
        self._settings = [entry for entry in self._settings if entry[0] != settings]
        self._settings.append((settings, held + now - since))

    def expect(self, record: r.AnyRecord) -> None:
        """A record comes that is not yet applied: the first moment says what is there, later ones what changes."""
        if not isinstance(record, r.TimedRecord):
            return
        if self._begin is None:
            self._begin = record.t
        if not self._opened and record.t > self._begin:
            self._open()

    def take(self, record: r.AnyRecord) -> None:
        if not isinstance(record, r.TimedRecord) or self._begin is None:
            return
        self._delays.take(record)
        now = record.t - self._begin
        while self._patience and self._patience[0][0] <= now:
            until, group = self._patience.popleft()
            self._count(group, until)
        match record:
            case r.Put():
                self._object(record.kind, key_of(record.object), now)
            case r.Changed():
                self._object(record.kind, record.key, now)
            case r.Gone():
                self._gone(record, now)
            case r.Consolidator():
                self._settled(record.t)
            case r.Gap():
                self._gaps.append((max(0.0, record.since - self._begin), now))
            case _:
                self._pod(record, now)

    def _open(self) -> None:
        """The recording begins with what is there now."""
        self._opened = True
        objects, history = self.history.objects(), self.history
        at_first = {history.key_of(number): task for number, task in self._tasks.items() if number in history.pods}
        self._running = at_first
        self._pods = tuple(pod for pod in objects.pods if pod.key in at_first)
        self._objects = replace(objects, pods=tuple(pod for pod in objects.pods if pod.key not in at_first))
        self._events = [
            (0.0, Scale(group, workload.replicas)) for group, workload in self._workloads.items() if workload.declared
        ]

    def _tell(self, now: float, event: Event) -> None:
        self._events.append((now, event))

    # -- pods ----------------------------------------------------------------------------------------------------

    def _pod(self, record: r.TimedRecord, now: float) -> None:
        match record:
            case r.Born():
                self._born(record, now)
            case r.Bound():
                self._node_of[record.pod] = record.node
            case r.Ready(ready=True) if record.pod in self._tasks:
                self._tasks[record.pod].ready = now if record.since is None else record.since - (self._begin or 0.0)
            case r.Leaving():
                self._leaving(record, now)
            case r.Died():
                self._died(record, now)
            case _:
                pass

    def _born(self, record: r.Born, now: float) -> None:
        template = self.history.templates[record.template]
        if template.is_daemon or template.is_mirror:
            return
        owner = next((owner for owner in template.metadata.owner_references if owner.controller), None)
        if owner is None or owner.kind == "Job":
            self._begin_task(record, template, now)
            return
        named = replace(template, metadata=replace(template.metadata, name=record.name))
        group = self._groups[record.pod] = group_of(named)
        workload = self._workloads[group]
        revision = workload.active[record.pod] = self._revision(record.template)
        if workload.owed:
            self._made_again(group, now - workload.owed.pop(0))
        if not workload.revision:
            workload.revision, workload.since = revision, now
            if self._opened:
                self._tell(now, Appearance(group, template))
                if workload.declared:
                    self._tell(now, Scale(group, workload.replicas))
        elif revision != workload.revision and (
            revision not in workload.before or now - workload.since > _ROLLOUT_SECONDS
        ):
            workload.before.add(workload.revision)
            workload.revision, workload.since = revision, now
            self._tell(now, Rollout(group, template))
        self._count(group, now)

    def _made_again(self, group: Group, seconds: float) -> None:
        """How long a workload took to notice; one with ordinals waits until the pod is gone."""
        if group[1] == "Deployment":
            self._delays.took("reaction", seconds)

    def _revision(self, template: int) -> str:
        """What pods of one revision have in common; those of a StatefulSet differ in their volumes."""
        known = self._revisions.get(template)
        if known is None:
            pod = self.history.templates[template]
            if pod.owned_by("StatefulSet"):
                pod = replace(pod, spec=replace(pod.spec, volumes=()))
            encoded = msgspec.json.encode(pod, enc_hook=encode_value)
            known = self._revisions[template] = blake2b(encoded, digest_size=16).hexdigest()
        return known

    def _begin_task(self, record: r.Born, template: Pod, now: float) -> None:
        task = Task(record.name, template, now)
        waiting = self._retried[task.job] if task.job else []
        if waiting:
            self._tasks[record.pod] = waiting.pop(0)
            return
        self._tasks[record.pod] = task
        if self._opened:
            self._tell(now, task)

    def _leaving(self, record: r.Leaving, now: float) -> None:
        if record.cause is not r.LeaveCause.DELETED:
            self._forced.add(record.pod)
            self._retry(self._tasks.get(record.pod))
        self._leave(record.pod, now)

    def _leave(self, pod: int, now: float) -> None:
        """A pod counts no more for its workload, which makes another one if it did not want that."""
        group = self._groups.get(pod)
        if group is not None:
            workload = self._workloads[group]
            if workload.active.pop(pod, None) is not None and pod in self._forced:
                workload.owed.append(now)
                self._patience.append((now + _PATIENCE_SECONDS, group))
            self._count(group, now)

    def _died(self, record: r.Died, now: float) -> None:
        pod, node = record.pod, self._node_of.pop(record.pod, "")
        lost = node and node not in self.history.kinds["Node"]
        task = self._tasks.pop(pod, None)
        if task is not None:
            self._end_task(task, record.how, now, left=pod in self._forced, lost=bool(lost))
        if lost or record.how is not r.End.GONE:
            self._forced.add(pod)
        self._leave(pod, now)
        self._groups.pop(pod, None)
        self._forced.discard(pod)

    def _end_task(self, task: Task, how: r.End, now: float, *, left: bool, lost: bool) -> None:
        """A task that completed ran so long; one that was evicted, or lost its node, is begun again by its Job."""
        if how is not r.End.GONE:
            task.length = max(0.0, now - (now if task.ready is None else task.ready))
            waiting = self._retried[task.job]
            self._retried[task.job] = [entry for entry in waiting if entry is not task]
        elif not left and not lost:
            task.ends = now
        elif not left:
            self._retry(task)

    def _retry(self, task: Task | None) -> None:
        if task is not None and task.job:
            self._retried[task.job].append(task)

    def _count(self, group: Group, now: float) -> None:
        """How many pods a workload wants, where no object says so; while it rolls out, as many as before."""
        workload = self._workloads[group]
        if workload.declared or len(set(workload.active.values())) > 1:
            return
        workload.owed = [since for since in workload.owed if now - since < _PATIENCE_SECONDS]
        wanted = len(workload.active) + len(workload.owed)
        if wanted != workload.replicas:
            workload.replicas = wanted
            if self._opened:
                self._tell(now, Scale(group, wanted))

    # -- other objects -------------------------------------------------------------------------------------------

    def _object(self, kind: str, key: str, now: float) -> None:
        if kind in _SCALED:
            self._workload_object(self.history.decoded(kind, key), cast("Kind", kind), now)
        elif kind in REPLAYED:
            self._other(kind, self.history.decoded(kind, key), now)

    def _workload_object(self, entry: WorkloadObject, kind: Kind, now: float) -> None:
        group = (entry.metadata.namespace, kind, entry.name)
        workload = self._workloads[group]
        if entry.spec.template != PodTemplateSpec():
            self._template_of_object(group, entry, now)
        replicas = 1 if entry.spec.replicas is None else entry.spec.replicas
        if not workload.declared or replicas != workload.replicas:
            workload.declared, workload.replicas = True, replicas
            if self._opened:
                self._tell(now, Scale(group, replicas))

    def _template_of_object(self, group: Group, entry: WorkloadObject, now: float) -> None:
        written = entry.spec.template
        meta = replace(written.metadata, namespace=entry.metadata.namespace, creation_timestamp=None)
        template = Pod(metadata=meta, spec=written.spec)
        before = self._workloads[group].from_object
        templates = [event.template for _, event in before if isinstance(event, Appearance | Rollout)]
        if not templates:
            replicas = 1 if entry.spec.replicas is None else entry.spec.replicas
            before += [(now, Appearance(group, template)), (now, Scale(group, replicas))]
        elif template != templates[-1]:
            before.append((now, Rollout(group, template)))

    def _other(self, kind: str, obj: Any, now: float) -> None:
        """An object that people changed: what controllers write into it is nothing new."""
        said = replace(obj, status=type(obj.status)()) if isinstance(obj, NodePool) else obj
        if isinstance(obj, DaemonSet):
            said = replace(obj, metadata=Metadata(name=obj.name, namespace=obj.metadata.namespace))
        changed = self._known.get((kind, obj.key)) != said
        self._known[kind, obj.key] = said
        if self._opened and changed:
            self._tell(now, ObjectPut(kind, said))

    def _gone(self, record: r.Gone, now: float) -> None:
        if record.kind in _SCALED:
            namespace, _, name = record.key.partition("/")
            group = (namespace, cast("Kind", record.kind), name)
            self._workloads[group].replicas = 0
            self._tell(now, Scale(group, 0))
        elif record.kind in REPLAYED and self._opened:
            self._known.pop((record.kind, record.key), None)
            self._tell(now, ObjectGone(record.kind, record.key))
