"""Kubernetes Events: what people see with `kubectl describe`. They are sent by a task of their own, and may be lost."""

import asyncio
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

import structlog

from karpool.execution.actions import Kind, RecordEvent
from karpool.kube.api_objects import Event, EventSource, ObjectReference
from karpool.kube.client import Client
from karpool.kube.clock import utc_now
from karpool.kube.errors import ApiError, NotFoundError, NotLeadingError
from karpool.kube.resources import CONFIG_MAPS, EVENTS
from karpool.live.resources import NODE_CLAIMS, NODE_POOLS, NODES, PODS
from karpool.observability.metrics import EventResult
from karpool.wire.objects import Metadata

COMPONENT: Final = "karpool"
QUIET: Final = 120.0
"""The same event is not told again so soon, in seconds."""
REPEAT: Final = 600.0
"""The same event within this long is counted on the one that is there; later it is a new one."""
_LONGEST_MESSAGE: Final = 1024
_LONGEST_NAME: Final = 200
_MOST_REMEMBERED: Final = 10_000
_TELL_EVERY: Final = 60.0
# Events about objects without a namespace are looked for here.
_CLUSTER_WIDE: Final = "default"
_API_VERSIONS: Final = {one.kind: one.api_version for one in (CONFIG_MAPS, NODES, PODS, NODE_CLAIMS, NODE_POOLS)}

log = structlog.get_logger(__name__)

Key = tuple[RecordEvent, str]


class EventSink(Protocol):
    """Tells people of events."""

    def record(self, event: RecordEvent) -> None:
        """Note an event; it is told when there is time."""


@dataclass(slots=True)
class _Told:
    """An event that was told, how often, when last, and whether the API has it."""

    key: Key
    name: str
    first: datetime
    last: datetime
    at: float
    count: int = 1
    created: bool = False


def _ignore(_: EventResult) -> None:
    """Tell nobody."""


def _unknown(_kind: Kind, _name: str) -> str:
    return ""


class EventRecorder:
    """Takes events at any speed and sends them at its own; `run` does the sending."""

    def __init__(
        self,
        client: Client,
        *,
        uid_of: Callable[[Kind, str], str] = _unknown,
        instance: str = "",
        capacity: int = 1000,
        per_second: float = 10.0,
        on_result: Callable[[EventResult], None] = _ignore,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], datetime] = utc_now,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`uid_of` knows the objects, `instance` names this process; beyond `capacity` the oldest events go."""
        self._client = client
        self._uid_of = uid_of
        self._instance = instance
        self._capacity = capacity
        self._pause = 1 / per_second
        self._on_result = on_result
        self._clock = clock
        self._wall = wall
        self._sleep = sleep
        self._told: OrderedDict[Key, _Told] = OrderedDict()
        self._queue: deque[_Told] = deque()
        self._filled = asyncio.Event()
        self._complained = -_TELL_EVERY

    @property
    def waiting(self) -> int:
        """How many events are still to be sent."""
        return len(self._queue)

    def record(self, event: RecordEvent) -> None:
        """Tell people of something that happened to an object; returns at once."""
        key, now = (event, self._uid_of(event.kind, event.name)), self._clock()
        self._forget_old(now)
        told = self._told.get(key)
        if told is not None and now - told.at < QUIET:
            return
        if told is None:
            moment = self._wall()
            told = self._told[key] = _Told(key, _event_name(event), moment, moment, now)
        else:
            told.count, told.last, told.at = told.count + 1, self._wall(), now
            self._told.move_to_end(key)
        self._queue.append(told)
        if len(self._queue) > self._capacity:
            self._give_up(self._queue.popleft(), "dropped")
        self._filled.set()

    async def run(self) -> None:
        """Send events until cancelled."""
        while True:
            await self._filled.wait()
            while self._queue:
                await self._send(self._queue.popleft())
                await self._sleep(self._pause)
            self._filled.clear()

    # -- sending -------------------------------------------------------------------------------------------------

    async def _send(self, told: _Told) -> None:
        again = told.created
        try:
            if not (again and await self._count_up(told)):
                await self._create(told)
        except NotLeadingError:
            self._give_up(told, "dropped")
        except ApiError as error:
            self._give_up(told, "failed")
            self._complain(error)
        else:
            self._on_result("repeated" if again else "sent")

    async def _create(self, told: _Told) -> None:
        event = _event(told, self._instance)
        await self._client.create(EVENTS, event, namespace=event.metadata.namespace)
        told.created = True

    async def _count_up(self, told: _Told) -> bool:
        """Count a repetition on the event that is there; False if it is there no more."""
        patch = {"count": told.count, "lastTimestamp": _seconds(told.last)}
        namespace, _ = _place(told.key[0])
        try:
            await self._client.merge_patch(EVENTS, told.name, patch, namespace=namespace or _CLUSTER_WIDE)
        except NotFoundError:
            told.name = _event_name(told.key[0])
            return False
        return True

    def _give_up(self, told: _Told, result: EventResult) -> None:
        """Lose an event; when it happens again it is told again."""
        self._on_result(result)
        if self._told.get(told.key) is told:
            del self._told[told.key]

    def _complain(self, error: ApiError) -> None:
        if self._clock() - self._complained >= _TELL_EVERY:
            self._complained = self._clock()
            log.warning("events cannot be recorded", error=str(error))

    def _forget_old(self, now: float) -> None:
        while self._told:
            oldest = next(iter(self._told.values()))
            if now - oldest.at < REPEAT and len(self._told) < _MOST_REMEMBERED:
                return
            del self._told[oldest.key]


def _place(event: RecordEvent) -> tuple[str, str]:
    """Namespace and name of the object; the namespace is empty for objects without one."""
    namespace, _, name = event.name.rpartition("/")
    return namespace, name


def _event_name(event: RecordEvent) -> str:
    _, name = _place(event)
    return f"{name[:_LONGEST_NAME].rstrip('-.')}.{uuid.uuid4().hex[:16]}"


def _event(told: _Told, instance: str) -> Event:
    event, uid = told.key
    namespace, name = _place(event)
    return Event(
        metadata=Metadata(told.name, namespace or _CLUSTER_WIDE),
        involved_object=ObjectReference(_API_VERSIONS[event.kind], event.kind, namespace, name, uid),
        type=event.type,
        reason=event.reason,
        message=_shortened(event.message),
        count=told.count,
        source=EventSource(COMPONENT),
        reporting_component=COMPONENT,
        reporting_instance=instance,
        first_timestamp=told.first.replace(microsecond=0),
        last_timestamp=told.last.replace(microsecond=0),
    )


def _seconds(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _shortened(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…"
