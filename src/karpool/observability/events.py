"""Records Kubernetes Events, which `kubectl describe` shows; they are sent in the background, and may be lost."""

import asyncio
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import Final, Protocol

import structlog

from karpool.execution.actions import Kind, RecordEvent
from karpool.kube.api_objects import Event, EventSource, ObjectReference
from karpool.kube.client import Client
from karpool.kube.clock import utc_now
from karpool.kube.errors import ApiError, NotFoundError, NotLeadingError
from karpool.kube.resources import EVENTS
from karpool.live.patches import timestamp
from karpool.live.resources import CONFIG_MAPS, NODE_CLAIMS, NODE_POOLS, NODES, PODS
from karpool.observability.metrics import EventResult
from karpool.wire.objects import Metadata

COMPONENT: Final = "karpool"
SILENT_SECONDS: Final = 120.0
"""The same event is not sent again within this time."""
_REPEAT_SECONDS: Final = 600.0
"""The same event within this time raises the count of the first one; later it is a new one."""
_LONGEST_MESSAGE: Final = 1024
_LONGEST_NAME: Final = 200
_MOST_REMEMBERED: Final = 10_000
_LOG_SECONDS: Final = 60.0
# `kubectl describe` looks here for events about objects without a namespace.
_DEFAULT_NAMESPACE: Final = "default"
_RESOURCES: Final = (CONFIG_MAPS, NODES, PODS, NODE_CLAIMS, NODE_POOLS)
_API_VERSIONS: Final = {resource.kind: resource.api_version for resource in _RESOURCES}

_log = structlog.get_logger()

Key = tuple[RecordEvent, str]


class EventSink(Protocol):
    def record(self, event: RecordEvent) -> None:
        """Queue an event to be sent."""


@dataclass(slots=True)
class _Recorded:
    """An event that was recorded: how often, when, and whether the API server has it."""

    key: Key
    name: str
    first: datetime
    last: datetime
    seconds: float
    count: int = 1
    created: bool = False


@dataclass(eq=False)
class EventRecorder:
    """Queues events; `run` sends them at a limited rate."""

    client: Client
    _: KW_ONLY
    uid_of: Callable[[Kind, str], str] = lambda _kind, _name: ""
    """Gives the uid of an object."""
    instance: str = ""
    """Names this process."""
    capacity: int = 1000
    """How many events may wait."""
    per_second: float = 10.0
    on_result: Callable[[EventResult], None] = lambda _result: None
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], datetime] = utc_now
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    _recent: OrderedDict[Key, _Recorded] = field(default_factory=OrderedDict, init=False)
    _queue: deque[_Recorded] = field(default_factory=deque, init=False)
    _filled: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _logged_at: float = field(default=-_LOG_SECONDS, init=False)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def record(self, event: RecordEvent) -> None:
        key, now = (event, self.uid_of(event.kind, event.name)), self.clock()
        self._forget_old_events(now)
        recorded = self._recent.get(key)
        if recorded is not None and now - recorded.seconds < SILENT_SECONDS:
            return
        if recorded is None:
            moment = self.wall()
            recorded = self._recent[key] = _Recorded(key, _event_name(event), moment, moment, now)
        else:
            recorded.count, recorded.last, recorded.seconds = recorded.count + 1, self.wall(), now
            self._recent.move_to_end(key)
        self._queue.append(recorded)
        if len(self._queue) > self.capacity:
            self._drop(self._queue.popleft(), "dropped")
        self._filled.set()

    async def run(self) -> None:
        while True:
            await self._filled.wait()
            while self._queue:
                await self._send(self._queue.popleft())
                await self.sleep(1 / self.per_second)
            self._filled.clear()

    async def _send(self, recorded: _Recorded) -> None:
        repeated = recorded.created
        try:
            if not (repeated and await self._raise_count(recorded)):
                await self._create(recorded)
        except NotLeadingError:
            self._drop(recorded, "dropped")
        except ApiError as error:
            self._drop(recorded, "failed")
            self._log_failure(error)
        else:
            self.on_result("repeated" if repeated else "sent")

    async def _create(self, recorded: _Recorded) -> None:
        event = _event(recorded, self.instance)
        await self.client.create(EVENTS, event, namespace=event.metadata.namespace)
        recorded.created = True

    async def _raise_count(self, recorded: _Recorded) -> bool:
        """Raise the count of the event that was sent; False if it no longer exists."""
        patch = {"count": recorded.count, "lastTimestamp": timestamp(recorded.last)}
        namespace, _ = _namespace_and_name(recorded.key[0])
        try:
            await self.client.merge_patch(EVENTS, recorded.name, patch, namespace=namespace or _DEFAULT_NAMESPACE)
        except NotFoundError:
            recorded.name = _event_name(recorded.key[0])
            return False
        return True

    def _drop(self, recorded: _Recorded, result: EventResult) -> None:
        """Forget an event, so that it is sent when it happens again."""
        self.on_result(result)
        if self._recent.get(recorded.key) is recorded:
            del self._recent[recorded.key]

    def _log_failure(self, error: ApiError) -> None:
        if self.clock() - self._logged_at >= _LOG_SECONDS:
            self._logged_at = self.clock()
            _log.warning("events not recorded", error=str(error))

    def _forget_old_events(self, now: float) -> None:
        while self._recent:
            oldest = next(iter(self._recent.values()))
            if now - oldest.seconds < _REPEAT_SECONDS and len(self._recent) < _MOST_REMEMBERED:
                return
            del self._recent[oldest.key]


def _namespace_and_name(event: RecordEvent) -> tuple[str, str]:
    """Of the object; the namespace is empty for objects without one."""
    namespace, _, name = event.name.rpartition("/")
    return namespace, name


def _event_name(event: RecordEvent) -> str:
    _, name = _namespace_and_name(event)
    return f"{name[:_LONGEST_NAME].rstrip('-.')}.{uuid.uuid4().hex[:16]}"


def _event(recorded: _Recorded, instance: str) -> Event:
    event, uid = recorded.key
    namespace, name = _namespace_and_name(event)
    return Event(
        metadata=Metadata(recorded.name, namespace or _DEFAULT_NAMESPACE),
        involved_object=ObjectReference(_API_VERSIONS[event.kind], event.kind, namespace, name, uid),
        type=event.type,
        reason=event.reason,
        message=_shortened(event.message),
        count=recorded.count,
        source=EventSource(COMPONENT),
        reporting_component=COMPONENT,
        reporting_instance=instance,
        first_timestamp=recorded.first.replace(microsecond=0),
        last_timestamp=recorded.last.replace(microsecond=0),
    )


def _shortened(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…"
