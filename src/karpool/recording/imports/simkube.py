"""Traces of SimKube (sk-tracer) as a history, in its formats 2 and 3: MessagePack, with objects as they were applied.

A trace has the objects that were tracked, mostly Deployments, and of pods only from when to when those of an object
ran. It has no nodes and no prices. Objects with a number of replicas are taken as they are; of others, such as Jobs,
each lifetime becomes a pod that runs as long.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from karpool.model.pod import Pod
from karpool.model.reading.decoding import read_object
from karpool.model.reading.kinds import KINDS, find_kind
from karpool.recording.history import RECORDED
from karpool.recording.imports.imported_file import ImportedFile, Report
from karpool.recording.imports.lifetimes import Lifetime, LifetimeStep, steps
from karpool.recording.observer import Observer
from karpool.recording.records import EVICTION
from karpool.wire.objects import Metadata, OwnerReference
from karpool.wire.problems import InputError

SOURCE: Final = "simkube"
VERSIONS: Final = (2, 3)
_MOST_BYTES: Final = 2 * 2**30
_LATEST: Final = 4_102_444_800
"""The year 2100."""
_SCALED: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
_PATHS: Final = ("podSpecTemplatePaths", "podSpecTemplatePath")
_USUAL_PATHS: Final = ("/spec/template", "/spec/jobTemplate/spec/template")


class _Event(msgspec.Struct):
    ts: int
    applied_objs: list[dict[str, Any]] = []
    deleted_objs: list[dict[str, Any]] = []


class _Trace(msgspec.Struct):
    version: int
    events: list[_Event]
    config: dict[str, Any] = {}
    index: dict[Any, Any] = {}
    pod_lifecycles: dict[Any, Any] = {}


class _Version(msgspec.Struct):
    version: int = 0


class _Ran(NamedTuple):
    start: int
    end: int | None


def import_simkube(sources: Sequence[str], file: ImportedFile, report: Report) -> None:
    """One trace file, as `sk-tracer` exports it."""
    if len(sources) != 1:
        raise InputError.at("SOURCE", "of simkube is one file; each export of sk-tracer stands alone")
    name = sources[0]
    trace = read_trace(name)
    events = sorted(trace.events, key=lambda event: event.ts)
    if not events:
        raise InputError.at(name, "has no events in it")
    _check_time(name, events[0].ts)
    _check_time(name, events[-1].ts)
    start = datetime.fromtimestamp(events[0].ts, UTC)
    importer = _SimkubeImporter(name, trace, file.begin(start, SOURCE), start)
    why = "the trace has no nodes and no NodePools: name NodePools in a scenario"
    file.lacks(("Node", "NodeClaim", "NodePool"), why, start)
    file.lacks((EVICTION,), "the trace does not say which pods were evicted", start)
    importer.play(events, report)
    for note in importer.notes():
        file.note(note)


def read_trace(name: str) -> _Trace:
    """What a file says; a format that is not known is named."""
    path = Path(name)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError.at(name, f"is larger than {_MOST_BYTES // 2**30} GiB; export a shorter time")
        data = path.read_bytes()
    except OSError as error:
        raise InputError.at(name, f"cannot be read: {error.strerror or error}") from error
    try:
        version = msgspec.msgpack.decode(data, type=_Version).version
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise InputError.at(name, "is no trace of SimKube: it is no MessagePack map with a version") from error
    if version not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        raise InputError.at(name, f"is a trace of format {version}, and this Karpool reads formats {known}")
    try:
        return msgspec.msgpack.decode(data, type=_Trace)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, TypeError, ValueError) as error:
        raise InputError.at(name, f"is a trace of SimKube that cannot be read: {error}") from error


class _SimkubeImporter:
    def __init__(self, name: str, trace: _Trace, observer: Observer, start: datetime) -> None:
        self._name = name
        self._trace = trace
        self._observer = observer
        self._start = start
        self._ran = _lifecycles(trace)
        self._left_out: set[str] = set()

    def play(self, events: Sequence[_Event], report: Report) -> None:
        first = events[0].ts
        applied = (
            LifetimeStep(
                timedelta(seconds=event.ts - first),
                partial(self._event, event, self._start + timedelta(seconds=event.ts - first)),
            )
            for event in events
        )
        tasks = steps(sorted(self._lives(events), key=lambda life: life.born), self._observer, self._start)
        for number, step in enumerate(heapq.merge(applied, tasks, key=lambda step: step.at)):
            step.tell()
            report("Reading the trace", number, None)
        end = self._start + timedelta(seconds=events[-1].ts - first)
        self._observer.alive(max(end, self._observer.history.moment(self._observer.history.time)))

    def notes(self) -> Iterator[str]:
        if self._left_out:
            kinds = ", ".join(sorted(self._left_out)[:5])
            yield f"objects of some kinds are left out: {kinds}; they neither have replicas nor lifetimes of pods"

    def _event(self, event: _Event, now: datetime) -> None:
        for plain in event.applied_objs:
            obj = self._object(plain)
            if obj is not None:
                self._observer.saw(type(obj).__name__, obj, now)
        for plain in event.deleted_objs:
            obj = self._object(plain)
            if obj is not None:
                self._observer.lost(type(obj).__name__, obj.key, now)

    def _object(self, plain: Mapping[str, Any]) -> Any:
        """An object of a kind that recordings hold; None for others."""
        kind = find_kind(str(plain.get("kind", "")), str(plain.get("apiVersion", "")))
        if kind is None or kind.name not in RECORDED:
            return None
        try:
            reading = read_object(msgspec.json.encode(plain), kind, str(plain.get("apiVersion", "")))
        except (msgspec.MsgspecError, TypeError, RecursionError) as error:
            raise InputError.at(self._name, f"has a {kind.name} that cannot be read: {error}") from error
        if reading.object is None or not reading.object.name:
            why = next((flaw.message for flaw in reading.refused), "it has no name")
            raise InputError.at(self._name, f"has a {kind.name} that cannot be read: {why}")
        return reading.object

    # -- pods with lifetimes -------------------------------------------------------------------------------------

    def _lives(self, events: Iterable[_Event]) -> Iterator[Lifetime]:
        """Pods of objects without replicas, which run as long as pods of theirs did."""
        seen: set[tuple[str, str]] = set()
        for event in events:
            for plain in event.applied_objs:
                gvk, key = _identity(plain)
                kind = str(plain.get("kind", ""))
                if kind in _SCALED or (gvk, key) in seen or (kind in KINDS and kind in RECORDED):
                    continue
                seen.add((gvk, key))
                template, ran = self._template(plain, gvk), self._ran.get((gvk, key), ())
                if template is None or not ran:
                    self._left_out.add(kind[:60] or "?")
                    continue
                yield from self._pods(template, key, ran, alone=kind == "Pod")

    def _pods(self, template: Pod, key: str, ran: Iterable[_Ran], *, alone: bool) -> Iterator[Lifetime]:
        namespace, _, name = key.rpartition("/")
        owner = () if alone else (OwnerReference(kind="Job", name=name, controller=True),)
        for number, (start, end) in enumerate(sorted(ran)):
            own = name if alone and not number else f"{name}-{number}"
            meta = Metadata(
                name=own, namespace=namespace or "default", labels=template.metadata.labels, owner_references=owner
            )
            born = max(timedelta(0), self._since(start))
            ended = None if end is None else max(born, self._since(end))
            yield Lifetime(replace(template, metadata=meta), born, born, ended, "Succeeded" if end is not None else "")

    def _since(self, stamp: int) -> timedelta:
        _check_time(self._name, stamp)
        return datetime.fromtimestamp(stamp, UTC) - self._start

    def _template(self, plain: Mapping[str, Any], gvk: str) -> Pod | None:
        if plain.get("kind") == "Pod":
            return self._pod(plain)
        tracked = self._trace.config.get("trackedObjects")
        entry = tracked.get(gvk, {}) if isinstance(tracked, dict) else {}
        written = next((entry[name] for name in _PATHS if entry.get(name)), ()) if isinstance(entry, dict) else ()
        for path in (written,) if isinstance(written, str) else (*written, *_USUAL_PATHS):
            found = _at(plain, str(path))
            if isinstance(found, dict):
                return self._pod(found)
        return None

    def _pod(self, plain: Mapping[str, Any]) -> Pod:
        head = {"metadata": plain.get("metadata") or {}, "spec": plain.get("spec") or {}}
        try:
            reading = read_object(msgspec.json.encode(head), KINDS["Pod"], "v1")
        except (msgspec.MsgspecError, TypeError, RecursionError) as error:
            raise InputError.at(self._name, f"has a pod template that cannot be read: {error}") from error
        if reading.object is None:
            why = next((flaw.message for flaw in reading.refused), "?")
            raise InputError.at(self._name, f"has a pod template that cannot be read: {why}")
        return cast("Pod", reading.object)


def _identity(plain: Mapping[str, Any]) -> tuple[str, str]:
    """What the index calls an object: `group/version.Kind`, and `namespace/name`."""
    meta = plain.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    namespace, name = meta.get("namespace"), meta.get("name")
    return f"{plain.get('apiVersion', '')}.{plain.get('kind', '')}", f"{namespace}/{name}" if namespace else str(name)


def _at(plain: Any, path: str) -> Any:
    """What is at a JSON pointer; `*` is the first of a list."""
    for step in path.strip("/").split("/"):
        if isinstance(plain, list):
            at = 0 if step == "*" else int(step) if step.isdecimal() and len(step) < 6 else len(plain)  # noqa: PLR2004
            plain = plain[at] if at < len(plain) else None
        else:
            plain = plain.get(step) if isinstance(plain, dict) else None
    return plain


def _lifecycles(trace: _Trace) -> dict[tuple[str, str], list[_Ran]]:
    """When pods ran, by the objects that they belong to; both formats say it, each in its own way."""
    found: dict[tuple[str, str], list[_Ran]] = {}
    for owner, by_hash in trace.pod_lifecycles.items():  # format 2
        if isinstance(owner, tuple) and len(owner) == 2 and isinstance(by_hash, dict):  # noqa: PLR2004
            lives = [life for entries in by_hash.values() if isinstance(entries, list) for life in entries]
            found[str(owner[0]), str(owner[1])] = list(_all_ran(lives))
    for gvk, objects in trace.index.items():  # format 3
        for key, by_time in objects.items() if isinstance(objects, dict) else ():
            if isinstance(by_time, dict):
                lives = [life for entries in by_time.values() if isinstance(entries, list) for life in entries]
                found[str(gvk), str(key)] = list(
                    _all_ran(life.get("lifecycle") for life in lives if isinstance(life, dict))
                )
    return found


def _all_ran(lives: Iterable[Any]) -> Iterator[_Ran]:
    for life in lives:
        match life:
            case {"Running": int(start)} | {"Running": [int(start)]}:
                yield _Ran(start, None)
            case {"Finished": [int(start), int(end)]}:
                yield _Ran(start, end)
            case _:
                pass


def _check_time(name: str, stamp: int) -> None:
    if not 0 <= stamp <= _LATEST:
        raise InputError.at(name, f"has an event at {stamp}, which is no time in seconds since 1970")
