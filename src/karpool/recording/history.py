"""The cluster of a recording at a time: records are applied one after the other, and objects are made of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from karpool.model.objects import Objects
from karpool.model.pod import Pod, PodStatus
from karpool.model.reading.kinds import KINDS
from karpool.recording import records as r
from karpool.wire.merge_patch import merged
from karpool.wire.objects import Condition, Object, decode_value
from karpool.wire.problems import InputError

CLAIM: Final = "NodeClaim"
RECORDED: Final = frozenset(
    (
        "NodePool",
        "NodeClaim",
        "Node",
        "PodDisruptionBudget",
        "DaemonSet",
        "Deployment",
        "StatefulSet",
        "PersistentVolumeClaim",
        "PersistentVolume",
        "StorageClass",
        "CSINode",
        "Namespace",
        "NodeOverlay",
        "CapacityBuffer",
        "PodTemplate",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceSlice",
        "DeviceClass",
        "PodGroup",
        "Workload",
    )
)
"""The kinds of objects that are written as they are, besides pods."""


@dataclass(slots=True)
class RecordedPod:
    """A pod as far as it is known; times are seconds since the start."""

    template: int
    name: str
    created: float
    labels: dict[str, str]
    node: str = ""
    bound: float = 0.0
    ready: bool = False
    ready_since: float | None = None
    leaving: float | None = None


class History:
    """What is known at `time`."""

    def __init__(self, header: r.Header) -> None:
        self.header = header
        self.time = 0.0
        self.templates: dict[int, Pod] = {}
        self.pods: dict[int, RecordedPod] = {}
        self.kinds: defaultdict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        self.prices: dict[str, float] = {}
        self.consolidator: dict[str, Any] | None = None
        """How what consolidates the cluster is set, if that is known."""
        self.missing: dict[str, str] = {}
        """Why objects of a kind cannot be seen."""
        self.last_pod_event: dict[str, float] = {}
        """By node: when a pod last came to it or went."""

    def moment(self, time: float) -> datetime:
        return self.header.start + timedelta(seconds=time)

    def apply(self, record: r.AnyRecord) -> None:
        """Go on by one record; a ValueError says what it refers to that is not there."""
        match record:
            case r.Template():
                self.templates[record.id] = record.pod
            case r.Born():
                _known(self.templates, record.template, "template")
                self.pods[record.pod] = RecordedPod(record.template, record.name, record.created, record.labels)
            case r.Became():
                _known(self.templates, record.template, "template")
                self.pod(record.pod).template = record.template
            case r.Bound() | r.Ready() | r.Leaving() | r.Died():
                self._change_pod(record)
            case r.Put():
                self._put(record)
            case r.Changed():
                objects = self.kinds[record.kind]
                objects[record.key] = merged(_known(objects, record.key, record.kind), record.patch)
            case r.Gone():
                _known(self.kinds[record.kind], record.key, record.kind)
                del self.kinds[record.kind][record.key]
            case r.Prices() | r.Missing() | r.Consolidator():
                self._learn(record)
            case _:
                pass
        if isinstance(record, r.TimedRecord):
            self.time = record.t

    def pod(self, number: int) -> RecordedPod:
        pod: RecordedPod = _known(self.pods, number, "pod")
        return pod

    def template_of(self, number: int) -> Pod:
        return self.templates[self.pod(number).template]

    def key_of(self, number: int) -> str:
        """`namespace/name` of a pod."""
        return f"{self.template_of(number).metadata.namespace}/{self.pods[number].name}"

    def _change_pod(self, record: r.Bound | r.Ready | r.Leaving | r.Died) -> None:
        pod = self.pod(record.pod)
        since = getattr(record, "since", None)
        since = record.t if since is None else since
        match record:
            case r.Bound():
                pod.node, pod.bound = record.node, since
                self._pod_event(pod.node, since)
            case r.Ready():
                pod.ready, pod.ready_since = record.ready, since
            case r.Leaving():
                pod.leaving = record.t
                self._pod_event(pod.node, record.t)
            case r.Died():
                self._pod_event(pod.node, record.t)
                del self.pods[record.pod]

    def _pod_event(self, node: str, time: float) -> None:
        if node:
            self.last_pod_event[node] = max(time, self.last_pod_event.get(node, time))

    def _put(self, record: r.Put) -> None:
        if record.kind not in RECORDED:
            raise ValueError(f"is of kind {record.kind[:60]!r}, which no recording has")
        if not _is_named(record.object.get("metadata")):
            raise ValueError(f"has a {record.kind} without a name")
        self.kinds[record.kind][key_of(record.object)] = record.object

    def _learn(self, record: r.Prices | r.Missing | r.Consolidator) -> None:
        if isinstance(record, r.Missing):
            self.missing[record.kind] = record.why
            return
        if isinstance(record, r.Consolidator):
            self.consolidator = record.settings
            return
        for name, price in record.prices.items():
            if price is None:
                self.prices.pop(name, None)
            else:
                self.prices[name] = price

    # -- objects -------------------------------------------------------------------------------------------------

    def decoded(self, kind: str, key: str) -> Any:
        """One object; a NodeClaim knows when a pod last came to its node or went."""
        obj: Any = decoded(kind, self.kinds[kind][key])
        if kind == CLAIM and obj.status.node_name in self.last_pod_event:
            at = self.moment(self.last_pod_event[obj.status.node_name])
            obj = replace(obj, status=replace(obj.status, last_pod_event_time=at))
        return obj

    def objects(self) -> Objects:
        """All of the cluster, as `-f` reads it."""
        pods = [self.pod_object(number) for number in self.pods]
        return objects_of({**self.of_kinds(self.kinds), "Pod": pods})

    def of_kinds(self, kinds: Iterable[str]) -> dict[str, list[Any]]:
        """All objects of these kinds but pods."""
        return {kind: [self.decoded(kind, key) for key in self.kinds[kind]] for kind in list(kinds)}

    def pod_object(self, number: int) -> Pod:
        pod, template = self.pods[number], self.template_of(number)
        since = None if pod.ready_since is None else self.moment(pod.ready_since)
        conditions = (
            () if since is None else (Condition(type="Ready", status=str(pod.ready), last_transition_time=since),)
        )
        meta = replace(
            template.metadata,
            name=pod.name,
            labels={**template.metadata.labels, **pod.labels} if pod.labels else template.metadata.labels,
            creation_timestamp=self.moment(pod.created),
            deletion_timestamp=None if pod.leaving is None else self.moment(pod.leaving),
        )
        status = PodStatus(
            phase="Running" if pod.ready else "Pending",
            conditions=conditions,
            start_time=self.moment(pod.bound) if pod.node else None,
        )
        return Pod(metadata=meta, spec=replace(template.spec, node_name=pod.node), status=status)


def objects_of(by_kind: Mapping[str, Iterable[Any]]) -> Objects:
    contents: dict[str, tuple[Any, ...]] = {KINDS[kind].collection: tuple(found) for kind, found in by_kind.items()}
    return Objects(**contents)


def _known(entries: Any, key: Any, what: str) -> Any:
    found = entries.get(key)
    if found is None:
        raise ValueError(f"is about {what} {str(key)[:80]!r}, which is not there")
    return found


def _is_named(metadata: Any) -> bool:
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def key_of(plain: dict[str, Any]) -> str:
    """`namespace/name` of an object, or its name alone."""
    metadata = plain["metadata"]
    namespace = metadata.get("namespace", "")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def decoded(kind: str, plain: dict[str, Any]) -> Object:
    """An object of a kind, from what a record has of it; a ValueError if it is none."""
    try:
        return msgspec.convert(plain, KINDS[kind].struct, dec_hook=decode_value, str_keys=True)
    except msgspec.ValidationError as error:
        raise ValueError(f"has a {kind} that cannot be read: {error}") from error


class Recording(Protocol):
    """The records of a recording, as often as they are asked for."""

    path: Path
    header: r.Header

    def __iter__(self) -> Iterator[r.AnyRecord]:
        """All records behind the header."""


def histories(file: Recording, history: History) -> Iterator[r.AnyRecord]:
    """The records of a file, each after it was applied; what cannot be is an InputError."""
    for number, record in enumerate(file, start=2):
        apply_numbered(file, history, number, record)
        yield record


def apply_numbered(file: Recording, history: History, number: int, record: r.AnyRecord) -> None:
    try:
        history.apply(record)
    except ValueError as error:
        raise InputError.at(str(file.path), f"record {number} {error}") from error
