"""The audit log of an API server as a history: every object that an answer has, from when it was answered.

At level RequestResponse everything is there. At Request what controllers create is there, but not what becomes of it
by patches. At Metadata pods are known by name alone: what they ask for is that of pods of the same workload in a
snapshot, if there is one, and else they are left out, and told.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from karpool.model.objects import Objects
from karpool.model.pod import Pod, PodStatus
from karpool.model.reading.decoding import read_object
from karpool.model.reading.kinds import Kind, find_kind
from karpool.model.workloads import Deployment, StatefulSet
from karpool.recording.history import RECORDED
from karpool.recording.imports.audit_events import AuditEvent, body, events_of, files_of
from karpool.recording.imports.imported_file import ImportedFile, Report
from karpool.recording.imports.text_lines import Line
from karpool.recording.observer import Observer
from karpool.wire.objects import Condition, Object
from karpool.wire.problems import InputError

SOURCE: Final = "audit"
_SCALED: Final = {"deployments": "Deployment", "statefulsets": "StatefulSet"}
_KUBELET: Final = "system:node:"
_METADATA: Final = "Metadata"
_EVERY: Final = 1000


def import_audit(sources: Sequence[str], file: ImportedFile, report: Report, initial: Objects | None = None) -> None:
    """The log files of one cluster; `initial` is what was there when they begin, if somebody knows."""
    importer: _AuditImporter | None = None
    number = 0
    for number, (at, line, event) in enumerate(events_of(files_of(sources)), start=1):
        if importer is None:
            importer = _AuditImporter(file.begin(at, SOURCE), initial or Objects(), at)
        if event.counts:
            importer.take(event, line, at)
        importer.now = at
        if number % _EVERY == 0:
            report(f"Reading the audit log: {at:%Y-%m-%d %H:%M}", number, None)
    if importer is None:
        raise InputError.at(", ".join(sources), "has no audit event in it")
    if not importer.used:
        why = "has no event that changes pods, nodes or workloads; the policy of the log leaves them out"
        raise InputError.at(", ".join(sources), why)
    importer.finish(file, had_cluster=initial is not None)


class _AuditImporter:
    def __init__(self, observer: Observer, initial: Objects, now: datetime) -> None:
        self.now = now
        self.used = 0
        self._observer = observer
        self._known: dict[tuple[str, str], Any] = {}
        self._like: dict[str, Pod] = {}
        self._levels: Counter[str] = Counter()
        self._unknown: set[str] = set()
        self._unreadable = 0
        observer.listed(initial, now)
        for kind, found in (("Pod", initial.pods), ("Deployment", initial.deployments)):
            self._known.update({(kind, entry.key): entry for entry in found})
        self._known.update({("StatefulSet", entry.key): entry for entry in initial.stateful_sets})
        for pod in initial.pods:
            self._remember(pod)

    def take(self, event: AuditEvent, line: Line, at: datetime) -> None:
        ref = event.object_ref
        if ref is None:
            return
        pods = ref.resource == "pods" and not ref.api_group
        if pods and ref.subresource == "eviction":
            self._count(event)
            self._observer.evicted(f"{ref.namespace}/{ref.name}", at)
        elif pods and ref.subresource == "binding":
            self._count(event)
            self._bind(event, at)
        elif ref.subresource == "scale":
            self._scale(event, at)
        elif ref.subresource in ("", "status"):
            self._object(event, line, at)

    def _count(self, event: AuditEvent) -> None:
        self.used += 1
        self._levels[event.level] += 1

    # -- objects -------------------------------------------------------------------------------------------------

    def _object(self, event: AuditEvent, line: Line, at: datetime) -> None:
        ref = event.object_ref
        written = body(event.response_object)
        if written is None or written.get("kind") == "Status":
            written = (
                None
                if event.verb in ("patch", "delete") or ref is None or ref.subresource
                else body(event.request_object)
            )
        if written is not None and isinstance(written.get("kind"), str):
            self._written(event, written, line, at)
        elif ref is not None and event.verb == "delete":
            self._deleted(event, at)
        elif ref is not None and ref.resource == "pods" and not ref.api_group:
            self._count(event)
            self._pod_by_name(event, at)

    def _written(self, event: AuditEvent, written: dict[str, Any], line: Line, at: datetime) -> None:
        version = written.get("apiVersion")
        kind = find_kind(written["kind"], version if isinstance(version, str) else "")
        if kind is None or (kind.name not in RECORDED and kind.name != "Pod"):
            return
        self._count(event)
        obj = self._decoded(written, kind, line)
        if obj is None:
            return
        key = (kind.name, obj.key)
        if _is_gone(written, event.verb):
            self._known.pop(key, None)
            self._observer.lost(kind.name, obj.key, at)
            return
        self._known[key] = obj
        if isinstance(obj, Pod):
            self._remember(obj)
        self._observer.saw(kind.name, obj, at)

    def _decoded(self, written: dict[str, Any], kind: Kind, line: Line) -> Object | None:
        """An object that was accepted by an API server; one without a name was only asked for."""
        try:
            reading = read_object(msgspec.json.encode(written), kind, str(written.get("apiVersion", "")))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise line.refuse(f"has a {kind.name} that cannot be read: {error}") from error
        if reading.object is None:
            self._unreadable += 1
            return None
        return reading.object if reading.object.name else None

    def _deleted(self, event: AuditEvent, at: datetime) -> None:
        """Level Metadata: a pod is gone when its kubelet deletes it, or if it had no node; others at once."""
        ref = event.object_ref
        if ref is None or not ref.name:
            return
        kind = _KIND_OF.get(ref.resource)
        key = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
        if kind is None:
            return
        self._count(event)
        there = self._known.get((kind, key))
        if isinstance(there, Pod) and there.spec.node_name and not event.user.username.startswith(_KUBELET):
            leaving = replace(there, metadata=replace(there.metadata, deletion_timestamp=at))
            self._known[kind, key] = leaving
            self._observer.saw(kind, leaving, at)
            return
        self._known.pop((kind, key), None)
        self._observer.lost(kind, key, at)

    # -- pods ----------------------------------------------------------------------------------------------------

    def _remember(self, pod: Pod) -> None:
        self._like.setdefault(_workload(pod.key), pod)

    def _bind(self, event: AuditEvent, at: datetime) -> None:
        ref = event.object_ref
        if ref is None or not ref.name:
            return
        key = f"{ref.namespace}/{ref.name}"
        if ("Pod", key) not in self._known:
            self._pod_by_name(event, at)
        pod = self._known.get(("Pod", key))
        target = (body(event.request_object) or {}).get("target")
        node = target.get("name") if isinstance(target, dict) else None
        if isinstance(pod, Pod) and isinstance(node, str) and node:
            self._saw_pod(replace(pod, spec=replace(pod.spec, node_name=node)), at)

    def _pod_by_name(self, event: AuditEvent, at: datetime) -> None:
        """Level Metadata: a pod that is known by its name, and its node by whose kubelet speaks of it."""
        ref = event.object_ref
        if ref is None or not ref.name:
            return
        key = f"{ref.namespace}/{ref.name}"
        pod = self._known.get(("Pod", key))
        if pod is None:
            like = self._like.get(_workload(key))
            if like is None:
                self._unknown.add(key)
                return
            pod = _another(like, ref.name, at)
        speaker = event.user.username
        if speaker.startswith(_KUBELET) and ref.subresource == "status" and not pod.spec.node_name:
            pod = _started(pod, speaker.removeprefix(_KUBELET), at)
        self._saw_pod(pod, at)

    def _saw_pod(self, pod: Pod, at: datetime) -> None:
        self._known["Pod", pod.key] = pod
        self._observer.saw("Pod", pod, at)

    # -- workloads -----------------------------------------------------------------------------------------------

    def _scale(self, event: AuditEvent, at: datetime) -> None:
        ref = event.object_ref
        kind = _SCALED.get(ref.resource) if ref is not None else None
        written = body(event.response_object) or body(event.request_object) or {}
        spec = written.get("spec")
        replicas = (
            spec.get("replicas", 0 if written.get("kind") == "Scale" else None) if isinstance(spec, dict) else None
        )
        if ref is None or kind is None or isinstance(replicas, bool) or not isinstance(replicas, int):
            return
        key = (kind, f"{ref.namespace}/{ref.name}")
        there = self._known.get(key)
        if isinstance(there, Deployment | StatefulSet):
            self._count(event)
            self._known[key] = replace(there, spec=replace(there.spec, replicas=max(0, replicas)))
            self._observer.saw(kind, self._known[key], at)

    # -- the end -------------------------------------------------------------------------------------------------

    def finish(self, file: ImportedFile, *, had_cluster: bool) -> None:
        self._observer.alive(self.now)
        if not had_cluster:
            file.note(
                "objects that were there before the log begins are known once they change; --cluster names a snapshot"
            )
        if self._levels[_METADATA]:
            known = (
                "what pods ask for is that of their workloads in --cluster"
                if had_cluster
                else "what pods ask for is unknown"
            )
            file.note(f"{_events(self._levels[_METADATA])} level Metadata, without objects: {known}")
        if self._levels["Request"]:
            file.note(f"{_events(self._levels['Request'])} level Request: what patches changed is not known")
        if self._unknown:
            one = min(self._unknown)
            are = f"pods such as {one} are" if len(self._unknown) > 1 else f"pod, {one}, is"
            asked = "they ask" if len(self._unknown) > 1 else "it asks"
            file.note(f"{len(self._unknown):,} {are} left out, because nothing says what {asked} for")
        if self._unreadable:
            objects = "objects cannot be read, and are" if self._unreadable > 1 else "object cannot be read, and is"
            file.note(f"{self._unreadable:,} {objects} left out")


def _events(number: int) -> str:
    return f"{number:,} events have" if number > 1 else "1 event has"


_KIND_OF: Final = {
    "pods": "Pod",
    "nodes": "Node",
    "nodeclaims": "NodeClaim",
    "nodepools": "NodePool",
    "deployments": "Deployment",
    "statefulsets": "StatefulSet",
    "daemonsets": "DaemonSet",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "persistentvolumes": "PersistentVolume",
    "namespaces": "Namespace",
}


def _is_gone(written: dict[str, Any], verb: str) -> bool:
    """Whether an object that a server answered with is no more: nothing keeps it, and it is deleted."""
    meta = written.get("metadata")
    if not isinstance(meta, dict) or meta.get("finalizers"):
        return False
    if meta.get("deletionTimestamp"):
        return not meta.get("deletionGracePeriodSeconds")
    return verb == "delete"


def _workload(key: str) -> str:
    """What pods of a workload have in common: their names without the last part."""
    return key.rpartition("-")[0]


def _another(like: Pod, name: str, at: datetime) -> Pod:
    """A pod of the same workload that is new."""
    meta = replace(like.metadata, name=name, uid="", creation_timestamp=at, deletion_timestamp=None)
    return Pod(metadata=meta, spec=replace(like.spec, node_name=""), status=PodStatus(phase="Pending"))


def _started(pod: Pod, node: str, at: datetime) -> Pod:
    """A pod of which a kubelet speaks: it is on its node, and taken for ready."""
    ready = Condition(type="Ready", status="True", last_transition_time=at)
    status = PodStatus(phase="Running", conditions=(ready,), start_time=at)
    return replace(pod, spec=replace(pod.spec, node_name=node), status=status)
