"""Follows a live cluster and tells a recording what it sees; it only ever lists and watches.

A watch that is cut and goes on from where it was loses nothing. If that took a while, or if everything had to be listed
again, the recording says that there was a gap.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from karpool.kube.client import Client
from karpool.kube.errors import ApiError
from karpool.kube.reflector import Reflector
from karpool.kube.resources import Resource
from karpool.kube.watch_probe import ProbeTimes, WatchProbe
from karpool.live.process import background, finished_before
from karpool.live.reading import REQUIRED
from karpool.model.objects import Objects
from karpool.recording.followed import FOLLOWED, NOT_SERVED, served
from karpool.recording.history import objects_of
from karpool.recording.tape import Tape
from karpool.wire.objects import Object
from karpool.wire.problems import InputError

_log = structlog.get_logger()
PricesOf = Callable[[Objects], dict[str, float]]
"""What the machines of a cluster cost an hour, by what was bought; called in a thread."""
SettingsOf = Callable[[], Awaitable[dict[str, Any] | None]]
"""How what consolidates the cluster is set, if somebody says so."""
_PRICED: Final = ("Node", "NodeClaim", "NodePool")
_RETRY_LOG_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowTimes:
    """How long things take, in seconds."""

    look: float = 1.0
    """How often to look whether something is due."""
    flush: float = 60.0
    price: float = 300.0
    ask: float = 300.0
    """How often to ask for kinds that could not be listed."""
    retry: float = 5.0
    """When to try again what failed at the beginning."""
    outage: float = 5.0
    """How long a watch may be cut before that is a gap."""
    probes: ProbeTimes = field(default_factory=ProbeTimes)


class Follower:
    """Follows a cluster while `run` runs; `on_look` is called about each second."""

    def __init__(
        self,
        client: Client,
        tape: Tape,
        now: Callable[[], datetime],
        prices_of: PricesOf,
        *,
        times: FollowTimes | None = None,
        on_look: Callable[[], None] = lambda: None,
        settings_of: SettingsOf | None = None,
    ) -> None:
        self.tape = tape
        self.now = now
        self.times = times or FollowTimes()
        self.begun = False
        """Whether everything was listed that can be, and written down; from then on changes are."""
        self._client = client
        self._prices_of = prices_of
        self._on_look = on_look
        self._settings_of = settings_of
        self._kinds = [KindFeed(self, variants) for variants in FOLLOWED]
        self._gap_end: datetime | None = None
        self._looked: datetime | None = None
        self._flush_at = 0.0
        self._next_log = 0.0

    async def run(self, stop: asyncio.Event, length: timedelta | None = None) -> None:
        """Record until told to stop, or for a time; raises an ApiError if pods or nodes may not be listed."""
        loop = asyncio.get_running_loop()
        end = None if length is None else loop.time() + length.total_seconds()
        for resource in REQUIRED:
            await served(self._client, (resource,))
        async with background(self._follow()):
            if not await finished_before(stop, self._all_there()):
                return
            self._begin()
            try:
                async with background(self._keep_pricing()):
                    while not stop.is_set() and (end is None or loop.time() < end):
                        await _wait(stop, self.times.look if end is None else min(self.times.look, end - loop.time()))
                        self._look()
            finally:
                self._flush()

    async def _follow(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for kind in self._kinds:
                tasks.create_task(kind.run(self._client))

    async def _all_there(self) -> None:
        for kind in self._kinds:
            await kind.settled.wait()

    def _begin(self) -> None:
        """Write down all that is there, as of one moment."""
        now = self.now()
        if self.tape.ended is not None:
            self.tape.gap(self.tape.ended, now, "nobody recorded")
        for kind in self._kinds:
            self.tape.observer.missed(kind.name, kind.refusal, now)
        there = {kind.name: kind.taken() for kind in self._kinds if kind.synced}
        objects = objects_of(there)
        self.tape.observer.listed(objects, now, there)
        self.begun, self._gap_end = True, now
        self._flush()
        _log.info("recording", file=str(self.tape.path), nodes=len(objects.nodes), pods=len(objects.pods))

    # -- what is seen --------------------------------------------------------------------------------------------

    def moment(self) -> datetime:
        """The time now; if nobody looked for a while, as when the machine slept, there was a gap."""
        now = self.now()
        if self._looked is not None and (now - self._looked).total_seconds() > self.times.look + 2 * self.times.outage:
            self._gap_since(self._looked, now, "the recorder stood still")
            self._looked = now
        return now

    def gap(self, kind: str, seconds: float, why: str, *, lost: bool = False) -> None:
        """Nothing was seen of a kind for so long; gaps of several kinds at the same time are one.

        A short one counts only where changes were lost.
        """
        now = self.now()
        since = now - timedelta(seconds=seconds)
        if lost or seconds > self.times.outage:
            self._gap_since(since, now, f"{kind}: {why}")

    def _gap_since(self, since: datetime, now: datetime, why: str) -> None:
        if self._gap_end is not None and since < self._gap_end:
            since = self._gap_end
            if (now - since).total_seconds() <= self.times.outage:
                return
        _log.warning("nothing was seen for a while", seconds=round((now - since).total_seconds(), 1), reason=why)
        self.tape.gap(since, now, why)
        self._gap_end = now

    def complain(self, what: str, problem: str) -> None:
        """Log what goes wrong, but not each time: all watches fail together."""
        now = asyncio.get_running_loop().time()
        repeated = now < self._next_log
        if not repeated:
            self._next_log = now + _RETRY_LOG_SECONDS
        (_log.debug if repeated else _log.warning)("watch interrupted", resource=what, error=problem)

    # -- now and then --------------------------------------------------------------------------------------------

    def _look(self) -> None:
        self._looked = self.moment()
        loop = asyncio.get_running_loop()
        for kind in self._kinds:
            kind.look()
        if loop.time() >= self._flush_at:
            self._flush()
        self._on_look()

    def _flush(self) -> None:
        now = self.now()
        if not any(kind.cut for kind in self._kinds):
            self.tape.observer.alive(now)
        self.tape.flush(now)
        self._flush_at = asyncio.get_running_loop().time() + self.times.flush

    async def _keep_pricing(self) -> None:
        known = False
        while True:
            if self._settings_of is not None:
                self.tape.observer.consolidated(await self._settings_of(), self.now())
            objects = objects_of(self.tape.observer.history.of_kinds(_PRICED))
            try:
                prices = await asyncio.to_thread(self._prices_of, objects)
            except InputError as error:
                if not known:
                    raise
                _log.warning("prices are not known any more", error=str(error))
            else:
                known = True
                self.tape.observer.priced(prices, self.now())
            await asyncio.sleep(self.times.price)


class KindFeed:
    """Keeps the recording up to date with one kind; until all kinds are there, it keeps what there is."""

    def __init__(self, follower: Follower, variants: tuple[Resource[Any], ...]) -> None:
        self.name = variants[0].kind
        self.settled = asyncio.Event()
        """Set when all objects are known, or when it is known that they cannot be."""
        self.refusal = ""
        """Why they cannot be."""
        self._follower = follower
        self._variants = variants
        self._reflector: Reflector[Any] | None = None
        self._probe: WatchProbe | None = None
        self._kept: dict[str, Object] = {}
        self._down: float | None = None
        """Since when nothing was seen, on the loop's clock."""

    @property
    def synced(self) -> bool:
        return self._reflector is not None and self._reflector.synced.is_set()

    @property
    def cut(self) -> bool:
        """Whether there is no watch just now, and for longer than watches need to start again."""
        loop = asyncio.get_running_loop()
        return self._down is not None and loop.time() - self._down > self._follower.times.outage

    def taken(self) -> tuple[Object, ...]:
        """All objects; they are no longer kept here."""
        kept, self._kept = self._kept, {}
        return tuple(kept.values())

    async def run(self, client: Client) -> None:
        resource = await self._found(client)
        reflector = self._reflector = Reflector(client, resource, self, on_error=self._failed)
        self._probe = WatchProbe(reflector, self._follower.times.probes)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(reflector.run())
            tasks.create_task(self._probe.run())

    async def _found(self, client: Client) -> Resource[Any]:
        """Where the kind is, as soon as it can be listed."""
        while True:
            try:
                found = await served(client, self._variants)
            except ApiError as error:
                self._follower.complain(self._variants[0].plural, str(error))
                await asyncio.sleep(self._follower.times.retry)
                continue
            if isinstance(found, Resource):
                self._refused("")
                return found
            if found != self.refusal:
                (_log.info if found == NOT_SERVED else _log.warning)("left out", kind=self.name, reason=found)
            self._refused(found)
            self.settled.set()
            await asyncio.sleep(self._follower.times.ask)

    def _refused(self, why: str) -> None:
        self.refusal = why
        if self._follower.begun:
            self._follower.tape.observer.missed(self.name, why, self._follower.moment())

    # -- what the reflector tells --------------------------------------------------------------------------------

    def put(self, obj: Object) -> None:
        if not self._follower.begun:
            self._kept[obj.key] = obj
            return
        self.look()
        self._follower.tape.observer.saw(self.name, obj, self._follower.moment())

    def remove(self, obj: Object) -> None:
        if not self._follower.begun:
            self._kept.pop(obj.key, None)
            return
        self.look()
        self._follower.tape.observer.lost(self.name, obj.key, self._follower.moment())

    def replace(self, objects: Sequence[Object], resource_version: str) -> None:  # noqa: ARG002 - all of it is now
        if not self._follower.begun:
            self._kept = {obj.key: obj for obj in objects}
            self.settled.set()
            return
        if self._reflector is not None and self.synced:
            self._follower.gap(self.name, self._silence(), "everything was listed again", lost=True)
            self._down = None
        now = self._follower.moment()
        self._follower.tape.observer.listed(objects_of({self.name: objects}), now, [self.name])

    def look(self) -> None:
        """If the watch goes on after it was cut for a while, there was a gap."""
        if self._down is not None and self._reflector is not None and self._reflector.disconnected_at is None:
            self._follower.gap(self.name, self._silence(), "the watch was cut")
            self._down = None

    def _silence(self) -> float:
        """For how long nothing was seen."""
        since = self._down
        if since is None and self._reflector is not None:
            since = self._reflector.disconnected_at
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    def _failed(self, resource: Resource[Any], error: Exception) -> None:
        self._follower.complain(resource.plural, str(error))
        if self._down is not None or self._reflector is None or self._probe is None:
            return
        now = asyncio.get_running_loop().time()
        # A watch that was found to bring nothing any more brought nothing for a while already.
        doubted = bool(self._probe.doubt(now))
        self._down = self._reflector.last_activity if doubted else self._reflector.disconnected_at


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    """Wait for so long, or until told to stop."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), max(0.0, seconds))
