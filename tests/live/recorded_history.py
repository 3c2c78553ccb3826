"""The history of a real cluster: requests as proxies saw them, objects as they were watched."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Self

import aiohttp
import msgspec
from aiohttp import web
from tests.live.proxy import Choice, Proxy, Trouble
from tests.live.trial import Trial
from tests.robustness.checker.records import Change, Json, Mark, Record, Request, Start

from karpool.kube.cache import version_of
from karpool.kube.client import Client
from karpool.kube.clock import utc_now
from karpool.kube.reflector import Reflector
from karpool.kube.resources import LEASES, Resource
from karpool.kube.target import Target
from karpool.live import resources as r
from karpool.wire.objects import Object, encode_value

_WATCHED: Final[dict[str, Resource[Any]]] = {
    "Pod": r.PODS,
    "Node": r.NODES,
    "NodeClaim": r.NODE_CLAIMS,
    "NodePool": r.NODE_POOLS,
    "PodDisruptionBudget": r.POD_DISRUPTION_BUDGETS,
    "Lease": LEASES,
}
_KINDS: Final = {resource.plural: kind for kind, resource in _WATCHED.items()} | {"events": "Event"}
_VERBS: Final = {"PATCH": "patch", "POST": "create", "PUT": "patch", "DELETE": "delete"}


@dataclass
class _Sent:
    """A request on its way: when it was sent, and the version of the object that came of it."""

    request: Request
    at: float
    version: int = 0


class RecordingProxy(Proxy):
    """Belongs to one replica, and writes down what that asks for; its choices apply while `spoils` is set."""

    def __init__(self, behind: Target, who: str, log: "HistoryLog", choice: Choice | None = None) -> None:
        super().__init__(behind, self._choose, delay=0.5)
        self.who = who
        self._log = log
        self.spoil = choice

    def _choose(self, request: web.Request) -> Trouble | None:
        trouble = None if self.spoil is None else self.spoil(request)
        request["trouble"] = trouble
        asked = _asked(self.who, request)
        if trouble is not None and asked is not None:
            asked.fault = str(trouble.value)
            self._log.injected.append(trouble)
            if trouble is Trouble.BROKEN or isinstance(trouble.value, int):
                asked.status = trouble.value if isinstance(trouble.value, int) else 0
                self._log.add(asked)
        return trouble

    @asynccontextmanager
    async def _forward(self, request: web.Request, body: bytes) -> AsyncIterator[aiohttp.ClientResponse]:
        sent = self._log.now()
        async with super()._forward(request, body) as answer:
            asked = _asked(self.who, request)
            if asked is not None:
                content = await answer.read()
                asked.status, asked.fault = answer.status, str(request["trouble"].value) if request["trouble"] else ""
                asked.body = json.loads(body) if body else None
                self._log.add(asked, sent, _version(content))
            yield answer


def _asked(who: str, request: web.Request) -> Request | None:
    """A request that is written down: every write, and lists of the pods of a node."""
    parts = request.path.strip("/").split("/")[2 if request.path.startswith("/api/") else 3 :]
    namespace = parts[1] if parts[0] == "namespaces" and len(parts) > 2 else ""
    plural, *rest = parts[2:] if namespace else parts
    kind = _KINDS.get(plural, plural)
    if request.method == "GET":
        node = request.query.get("fieldSelector", "").removeprefix("spec.nodeName=")
        if kind != "Pod" or "watch" in request.query or not node or "=" in node:
            return None
        return Request(0.0, who, "list", kind, node)
    name = rest[0] if rest else ""
    verb = "evict" if rest[1:] == ["eviction"] else _VERBS[request.method]
    return Request(0.0, who, verb, kind, f"{namespace}/{name}" if namespace else name)


def _version(content: bytes) -> int:
    """The version of the object in an answer; 0 if there is none."""
    try:
        return int(json.loads(content)["metadata"]["resourceVersion"])
    except (ValueError, KeyError, TypeError):
        return 0


class _Watched:
    """Takes every change of one kind from a watch."""

    def __init__(self, kind: str, log: "HistoryLog") -> None:
        self._kind = kind
        self._log = log

    def put(self, obj: Object) -> None:
        self._log.changed(self._kind, obj, _as_json(obj))

    def remove(self, obj: Object) -> None:
        self._log.changed(self._kind, obj, None)

    def replace(self, objects: Sequence[Object], _version: str) -> None:
        for obj in objects:
            self.put(obj)


def _as_json(obj: Object) -> Json:
    found: Json = msgspec.to_builtins(obj, enc_hook=encode_value)
    return found


class HistoryLog:
    """Use as an async context manager around a story; `records` is its history afterwards."""

    def __init__(self, trial: Trial, seed: int) -> None:
        self._client = Client(trial.target)
        self._seed = seed
        self._began = time.monotonic()
        self._epoch = utc_now()
        self._changes: list[tuple[int, Change]] = []
        self._sent: list[_Sent] = []
        self._quiet: float | None = None
        self.injected: list[Trouble] = []

    def now(self) -> float:
        return time.monotonic() - self._began

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._client)
            reflectors: list[Reflector[Any]] = [
                Reflector(self._client, resource, _Watched(kind, self)) for kind, resource in _WATCHED.items()
            ]
            self._tasks = [asyncio.create_task(reflector.run()) for reflector in reflectors]
            for reflector in reflectors:
                await reflector.synced.wait()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self._stack.aclose()

    def changed(self, kind: str, obj: Object, state: Json | None) -> None:
        self._changes.append((version_of(obj), Change(self.now(), kind, obj.key, state)))

    def add(self, request: Request, sent: float | None = None, version: int = 0) -> None:
        request.time = self.now()
        self._sent.append(_Sent(request, request.time if sent is None else sent, version))

    def faults_stop(self) -> None:
        self._quiet = self.now()

    # -- the history ---------------------------------------------------------------------------------------------

    def records(self) -> list[Record]:
        """All of it in one order: changes by their versions, each request just before what came of it, or by time."""
        changes = [change for _, change in sorted(self._changes, key=lambda entry: entry[0])]
        versions = sorted(version for version, _ in self._changes)
        effects: dict[int, _Sent] = {}
        for sent in self._sent:
            place = self._place(sent, changes, versions)
            if place is not None:
                effects.setdefault(place, sent)
        alone = sorted((s for s in self._sent if s not in effects.values()), key=lambda sent: sent.request.time)
        merged: list[Record] = [Start(self._seed, self._epoch.isoformat(), exact=False, settings={"patience": 0.0})]
        places: dict[int, float] = {}
        quiet = self._quiet
        for number, change in enumerate(changes):
            while alone and alone[0].request.time <= change.time:
                _append(merged, places, alone.pop(0))
            if quiet is not None and quiet <= change.time:
                merged.append(Mark(quiet, "quiet"))
                quiet = None
            if number in effects:
                change.by = len(merged)
                _append(merged, places, effects[number])
            merged.append(change)
        for sent in alone:
            _append(merged, places, sent)
        merged.append(Mark(self.now(), "end"))
        return _in_time(merged, places)

    @staticmethod
    def _place(sent: _Sent, changes: list[Change], versions: list[int]) -> int | None:
        """The number of the change that a request made."""
        request = sent.request
        if request.verb == "evict" and request.status == 201:
            for number, change in enumerate(changes):
                going = change.object is None or change.object["metadata"].get("deletionTimestamp")
                if (change.kind, change.key) == ("Pod", request.key) and change.time >= sent.at and going:
                    return number
        for number, version in enumerate(versions):
            if sent.version == version and (changes[number].kind, changes[number].key) == (request.kind, request.key):
                return number
        return None


def _append(merged: list[Record], places: dict[int, float], sent: _Sent) -> None:
    places[len(merged)] = sent.at
    merged.append(sent.request)


def _in_time(merged: list[Record], places: dict[int, float]) -> list[Record]:
    """Let no time run backwards, and say for every request what was there when it was sent."""
    latest = 0.0
    times = []
    for record in merged:
        if not isinstance(record, Start):
            record.time = latest = max(latest, record.time)
        times.append(latest)
    for revision, sent in places.items():
        request = merged[revision]
        if isinstance(request, Request):
            request.sent = request.view = next(i for i, at in enumerate(times) if at >= sent or i == revision)
    return merged
