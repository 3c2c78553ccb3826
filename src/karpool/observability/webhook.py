"""Sends notices to a webhook, in the background: a bounded queue, time-outs, retries, and nothing that anybody awaits.

A receiver that is slow, broken or gone costs notices and nothing else: when the queue is full the oldest goes, and a
notice that was refused for good, or too often, is given up. What became of notices is counted.
"""

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final, NamedTuple

import aiohttp
import structlog

from karpool.kube.backoff import Backoff
from karpool.observability.metrics import NoticeResult
from karpool.observability.notices import Notice, NoticeEvent, body_of
from karpool.observability.webhook_address import WebhookAddress

SILENT_SECONDS: Final = 600.0
"""The same notice is not sent again within this time."""
_PAUSES: Final = frozenset({NoticeEvent.PAUSED, NoticeEvent.RESUMED})
_MOST_REMEMBERED: Final = 1_000
_LOG_SECONDS: Final = 60.0
_PASSING: Final = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)

_log = structlog.get_logger()


class _Answer(NamedTuple):
    """What came of a try: delivered, or why not, whether another may help, and when the receiver wants it."""

    problem: str = ""
    retry: bool = False
    after: float | None = None


@dataclass(frozen=True, slots=True)
class WebhookPace:
    """How patient the sender is, in seconds."""

    timeout: float = 10.0
    """For one try, from the connection to the answer."""
    tries: int = 5
    first_retry: float = 1.0
    longest_retry: float = 60.0
    longest_wish: float = 300.0
    """How long a receiver may have the sender wait with `Retry-After`."""
    between: float = 1.0
    """Between two notices."""


@dataclass(eq=False)
class Webhook:
    """Queues notices, from any thread; `run` sends them."""

    address: WebhookAddress
    _: KW_ONLY
    program: str = "karpool"
    instance: str = ""
    capacity: int = 100
    """How many notices may wait."""
    pace: WebhookPace = field(default_factory=WebhookPace)
    on_result: Callable[[NoticeResult], None] = lambda _result: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    _queue: deque[Notice] = field(default_factory=deque, init=False)
    _recent: OrderedDict[tuple[str, str, str], float] = field(default_factory=OrderedDict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, init=False)
    _filled: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _logged_at: float = field(default=-_LOG_SECONDS, init=False)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def post(self, notice: Notice) -> None:
        """Queue a notice, unless the same was sent just now; never waits."""
        with self._lock:
            if self._is_repeated(notice):
                return
            self._queue.append(notice)
            full = len(self._queue) > self.capacity
            if full:
                self._queue.popleft()
        if full:
            self.on_result("dropped")
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._filled.set)

    def _is_repeated(self, notice: Notice) -> bool:
        key, now = (notice.event.value, notice.title, notice.text), self.clock()
        if notice.event in _PAUSES:
            # The last word must be what is so: a pause that comes again is news once its end was told, and the reverse.
            (other,) = _PAUSES - {notice.event}
            for told in [told for told in self._recent if told[0] == other and told[2] == notice.text]:
                del self._recent[told]
        known = self._recent.get(key)
        if known is not None and now - known < SILENT_SECONDS:
            return True
        self._recent[key] = now
        self._recent.move_to_end(key)
        if len(self._recent) > _MOST_REMEMBERED:
            self._recent.popitem(last=False)
        return False

    async def run(self) -> None:
        """Send what is queued, until cancelled."""
        self._loop = asyncio.get_running_loop()
        self._filled.set()  # what was posted before
        timeout = aiohttp.ClientTimeout(total=self.pace.timeout)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
            while True:
                await self._filled.wait()
                self._filled.clear()
                while self._queue:
                    await self._deliver(session, self._queue.popleft())
                    await self.sleep(self.pace.between)

    async def _deliver(self, session: aiohttp.ClientSession, notice: Notice) -> None:
        body = body_of(notice, self.address.form, self.program, self.instance)
        backoff = Backoff(first=self.pace.first_retry, most=self.pace.longest_retry)
        answer = _Answer()
        for left in range(self.pace.tries - 1, -1, -1):
            answer = await self._try(session, body)
            if not answer.problem:
                self.on_result("delivered")
                return
            if not answer.retry or not left:
                break
            await self.sleep(backoff.next() if answer.after is None else min(answer.after, self.pace.longest_wish))
        self.on_result("failed")
        self._log_failure(answer.problem)

    async def _try(self, session: aiohttp.ClientSession, body: bytes) -> _Answer:
        headers = {"Content-Type": "application/json; charset=utf-8"}
        try:
            # A redirect could lead the notice, and what its path tells, to somebody else.
            sent = session.post(self.address.url, data=body, headers=headers, allow_redirects=False)
            async with sent as response:
                return _judged(response.status, response.headers.get("Retry-After"))
        except TimeoutError:
            return _Answer(f"no answer within {self.pace.timeout:g} s", retry=True)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # The text of the error may hold the URL.
            return _Answer(type(error).__name__, retry=not isinstance(error, ValueError))

    def _log_failure(self, problem: str) -> None:
        if self.clock() - self._logged_at >= _LOG_SECONDS:
            self._logged_at = self.clock()
            _log.warning("notice not delivered", host=self.address.host, why=problem)


def _judged(status: int, retry_after: str | None) -> _Answer:
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return _Answer()
    passing = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _PASSING
    return _Answer(f"status {status}", retry=passing, after=_seconds(retry_after))


def _seconds(text: str | None) -> float | None:
    """The seconds of a Retry-After, which is a number or a date; None without one that can be read."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (zoned - datetime.now(UTC)).total_seconds())
