"""Turns what is seen of objects into records: whoever watches a cluster, or reads about one, says what it saw.

The observer knows the cluster as readers of the recording will: after a restart or a gap it is told all objects again,
and writes down what is different.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from karpool.execution.deadlines import written_deadline
from karpool.live.redaction import Redactor
from karpool.model.labels import DISRUPTIONS, HARM, REGION, ZONE
from karpool.model.nodepool import CONSOLIDATABLE, NodeClaim, NodePool
from karpool.model.objects import Objects
from karpool.model.pod import Pod, PodStatus
from karpool.model.reading.kinds import KINDS
from karpool.model.workloads import BudgetStatus, PodDisruptionBudget
from karpool.recording import records as r
from karpool.recording.history import RECORDED, History
from karpool.wire.merge_patch import patch_between
from karpool.wire.objects import Metadata, Object, condition, encode_value

OWN_LABELS: Final[tuple[str, ...]] = (
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/job-completion-index",
)
"""Labels that differ between pods of one workload."""
_OF_NODES: Final = (ZONE, REGION)
"""Labels that the API server copies from its node to a pod when it is bound: they follow from that."""
DISRUPTED: Final = "DisruptionReason"
_LEDGERS: Final = (DISRUPTIONS, HARM)
_CAUSES: Final = {
    "EvictionByEvictionAPI": r.LeaveCause.EVICTED,
    "PreemptionByScheduler": r.LeaveCause.PREEMPTED,
    "DeletionByTaintManager": r.LeaveCause.TAINT,
    "DeletionByPodGC": r.LeaveCause.NODE_LOST,
    "TerminationByKubelet": r.LeaveCause.KUBELET,
}
_WHOLE_SECONDS: Final = timedelta(seconds=2)
"""How far from a deadline a pod may end that is given as many whole seconds as are left until then."""
_SEEN_LATE: Final = 5.0
"""Seconds: what happened longer ago than this keeps its own time."""
_ENCODER: Final = msgspec.json.Encoder(enc_hook=encode_value)
_DIGITS: Final = 1
Write = Callable[[r.AnyRecord], object]


class Observer:
    """Writes what changed since what `history` has; times come from the caller, and never go back."""

    def __init__(self, history: History, write: Write) -> None:
        self.history = history
        self._write = write
        self._redact = Redactor()
        self._numbers = {history.key_of(number): number for number in history.pods}
        self._next = max(history.pods, default=-1) + 1
        self._templates = {_ENCODER.encode(pod): number for number, pod in history.templates.items()}
        self._claim_of = {
            plain.get("status", {}).get("nodeName", ""): key for key, plain in history.kinds["NodeClaim"].items()
        }

    # -- what is seen --------------------------------------------------------------------------------------------

    def saw(self, kind: str, obj: Any, now: datetime) -> None:
        """An object is as it is now; nothing is written if that was known."""
        if obj.unreadable:
            return
        kept = self._redact(kind, obj)
        if isinstance(kept, Pod):
            self._saw_pod(kept, self._time(now))
        else:
            self._saw_object(kind, kept, self._time(now))

    def lost(self, kind: str, key: str, now: datetime) -> None:
        """An object is there no more."""
        if kind == "Pod":
            number = self._numbers.pop(key, None)
            if number is not None:
                self.tell(r.Died(t=self._time(now), pod=number))
        elif key in self.history.kinds[kind]:
            self.tell(r.Gone(t=self._time(now), kind=kind, key=key))

    def evicted(self, key: str, now: datetime, cause: r.LeaveCause = r.LeaveCause.EVICTED) -> None:
        """A pod is told to leave, by whoever watches more than objects."""
        number = self._numbers.get(key)
        if number is not None and self.history.pods[number].leaving is None:
            self._leave(number, cause, self._time(now))

    def listed(self, objects: Objects, now: datetime, kinds: Iterable[str] = ("Pod", *RECORDED)) -> None:
        """All objects of some kinds, as they are now: what is not among them is gone."""
        named = [name for name in _ORDER if name in set(kinds)]
        for kind in named:
            present: tuple[Any, ...] = getattr(objects, KINDS[kind].collection)
            keys = {obj.key for obj in present}
            known = list(self._numbers if kind == "Pod" else self.history.kinds[kind])
            for key in known:
                if key not in keys:
                    self.lost(kind, key, now)
            for obj in present:
                self.saw(kind, obj, now)

    def priced(self, prices: Mapping[str, float], now: datetime) -> None:
        """What machines cost now."""
        known = self.history.prices
        changes: dict[str, float | None] = {name: price for name, price in prices.items() if known.get(name) != price}
        changes.update(dict.fromkeys(known.keys() - prices.keys()))
        if changes:
            self.tell(r.Prices(t=self._time(now), prices=changes))

    def consolidated(self, settings: dict[str, Any] | None, now: datetime) -> None:
        """How what consolidates the cluster is set, if that is known."""
        if settings != self.history.consolidator:
            self.tell(r.Consolidator(t=self._time(now), settings=settings))

    def gap(self, since: datetime, now: datetime, why: str) -> None:
        """Nothing was seen since a time."""
        begun = round((since - self.history.header.start).total_seconds(), _DIGITS)
        self.tell(r.Gap(t=self._time(now), since=begun, why=why))

    def missed(self, kind: str, why: str, now: datetime) -> None:
        """Objects of a kind cannot be seen, or can again if no reason is given."""
        if self.history.missing.get(kind, "") != why:
            self.tell(r.Missing(t=self._time(now), kind=kind, why=why))

    def alive(self, now: datetime) -> None:
        self.tell(r.Alive(t=self._time(now)))

    # -- pods ----------------------------------------------------------------------------------------------------

    def _saw_pod(self, pod: Pod, now: float) -> None:
        number = self._numbers.get(pod.key)
        created = self._seconds(pod.metadata.creation_timestamp, now)
        stamped = pod.metadata.creation_timestamp is not None
        if number is not None and stamped and self.history.pods[number].created != created:
            self.lost("Pod", pod.key, self.history.moment(now))
            number = None
        if pod.terminal:
            if number is not None:
                del self._numbers[pod.key]
                self._end(number, pod, now)
            return
        template, own = self._template(pod)
        if number is None:
            number = self.number_of(pod.key)
            self.tell(r.Born(t=now, pod=number, template=template, name=pod.name, created=created, labels=own))
        self._update(number, pod, template, now)

    def _update(self, number: int, pod: Pod, template: int, now: float) -> None:
        known = self.history.pods[number]
        if known.template != template:
            self.tell(r.Became(t=now, pod=number, template=template))
        if pod.spec.node_name and not known.node:
            since = self._earlier(pod.status.start_time, now)
            self.tell(r.Bound(t=now, pod=number, node=pod.spec.node_name, since=since))
        ready = condition(pod.status.conditions, "Ready")
        is_ready = ready is not None and ready.status == "True"
        if ready is not None and is_ready != known.ready:
            self.tell(r.Ready(t=now, pod=number, ready=is_ready, since=self._earlier(ready.last_transition_time, now)))
        if pod.terminating and known.leaving is None:
            self._leave(number, self._cause(pod), now)

    def _end(self, number: int, pod: Pod, now: float) -> None:
        cause = self._cause(pod)
        if cause is not r.LeaveCause.DELETED and self.history.pods[number].leaving is None:
            self._leave(number, cause, now)
        how = r.End.SUCCEEDED if pod.status.phase == "Succeeded" else r.End.FAILED
        self.tell(r.Died(t=now, pod=number, how=how))

    def _leave(self, number: int, cause: r.LeaveCause, now: float) -> None:
        node = self.history.pods[number].node
        self.tell(r.Leaving(t=now, pod=number, cause=cause, because=self._disruption_of(node)))

    def _disruption_of(self, node: str) -> str:
        """The reason for which a node is disrupted; empty if it is not, or nobody says."""
        conditions: list[dict[str, str]] = self._claim_on(node).get("status", {}).get("conditions", [])
        said: dict[str, str] = next((entry for entry in conditions if entry["type"] == DISRUPTED), {})
        return str(said.get("reason", "")) if said.get("status") == "True" else ""

    def _cause(self, pod: Pod) -> r.LeaveCause:
        """What the API server says; without that a pod that is to end when its node has to be empty is forced out."""
        said = condition(pod.status.conditions, "DisruptionTarget")
        if said is not None and said.status == "True":
            return _CAUSES.get(said.reason, r.LeaveCause.DELETED)
        ends, plain = pod.metadata.deletion_timestamp, self._claim_on(pod.spec.node_name)
        deadline = None if ends is None else written_deadline(plain.get("metadata", {}).get("annotations", {}))
        late = ends is not None and deadline is not None and abs(ends - deadline) <= _WHOLE_SECONDS
        return r.LeaveCause.FORCED if late else r.LeaveCause.DELETED

    def _claim_on(self, node: str) -> dict[str, Any]:
        """The NodeClaim of a node as it was written down; nothing without one."""
        key = self._claim_of.get(node) if node else None
        return self.history.kinds["NodeClaim"].get(key, {}) if key is not None else {}

    def _template(self, pod: Pod) -> tuple[int, dict[str, str]]:
        """The number of what a pod shares with others, and the labels that it does not."""
        meta = pod.metadata
        own = {key: meta.labels[key] for key in OWN_LABELS if key in meta.labels}
        labels = {key: value for key, value in meta.labels.items() if key not in own and key not in _OF_NODES}
        owners = tuple(replace(owner, uid="") for owner in meta.owner_references)
        shared = Metadata(
            namespace=meta.namespace, labels=labels, annotations=meta.annotations, owner_references=owners
        )
        # A DaemonSet's pods have an affinity to their nodes, which its template does not have.
        affinity = None if pod.is_daemon else pod.spec.affinity
        plain = Pod(metadata=shared, spec=replace(pod.spec, node_name="", affinity=affinity), status=PodStatus())
        return self.template(plain), own

    def template(self, plain: Pod) -> int:
        """The number of what pods share; it is written if it is new."""
        encoded = _ENCODER.encode(plain)
        number = self._templates.get(encoded)
        if number is None:
            number = self._templates[encoded] = len(self._templates)
            self.tell(r.Template(id=number, pod=plain))
        return number

    def number_of(self, key: str) -> int:
        """The number of a pod that is there, or a new one."""
        if key not in self._numbers:
            self._numbers[key] = self._next
            self._next += 1
        return self._numbers[key]

    # -- other objects -------------------------------------------------------------------------------------------

    def _saw_object(self, kind: str, obj: Object, now: float) -> None:
        plain = _plain(obj)
        before = self.history.kinds[kind].get(obj.key)
        if before is None:
            self.tell(r.Put(t=now, kind=kind, object=plain))
        elif patch := patch_between(before, plain):
            self.tell(r.Changed(t=now, kind=kind, key=obj.key, patch=patch))
        if isinstance(obj, NodeClaim) and obj.status.node_name:
            self._claim_of[obj.status.node_name] = obj.key

    # -- times ---------------------------------------------------------------------------------------------------

    def _time(self, now: datetime) -> float:
        seconds = round((now - self.history.header.start).total_seconds(), _DIGITS)
        return max(self.history.time, seconds)

    def _seconds(self, moment: datetime | None, now: float) -> float:
        return now if moment is None else round((moment - self.history.header.start).total_seconds(), _DIGITS)

    def _earlier(self, moment: datetime | None, now: float) -> float | None:
        """When something happened, if that was well before it was seen."""
        happened = self._seconds(moment, now)
        return happened if happened < now - _SEEN_LATE else None

    def tell(self, record: r.AnyRecord) -> None:
        """Write a record down, and know it."""
        self.history.apply(record)
        self._write(record)


_FIRST: Final = ("NodePool", "NodeClaim", "Node", "Pod")
_ORDER: Final = (*_FIRST, *sorted(RECORDED.difference(_FIRST)))
"""Hashes of claims depend on pools, and reasons why pods leave on claims."""


def _plain(obj: Object) -> dict[str, Any]:
    """What is kept of an object: not what follows from pods and from what is done, and changes with each of them."""
    meta = replace(obj.metadata, uid="", generation=0, resource_version="")
    obj = replace(obj, metadata=meta)
    if isinstance(obj, PodDisruptionBudget):
        obj = replace(obj, status=BudgetStatus())
    elif isinstance(obj, NodePool):
        kept = {key: value for key, value in meta.annotations.items() if key not in _LEDGERS}
        obj = replace(obj, metadata=replace(meta, annotations=kept))
    elif isinstance(obj, NodeClaim):
        conditions = tuple(entry for entry in obj.status.conditions if entry.type != CONSOLIDATABLE)
        obj = replace(obj, status=replace(obj.status, last_pod_event_time=None, conditions=conditions))
    plain: dict[str, Any] = msgspec.json.decode(_ENCODER.encode(obj))
    return plain


def copied(history: History, into: Observer) -> None:
    """Tell an observer all that a history knows, as if it were seen now."""
    now = history.moment(history.time)
    for kind, why in history.missing.items():
        into.missed(kind, why, now)
    into.listed(history.objects(), now)
    into.priced(history.prices, now)
    into.consolidated(history.consolidator, now)
