"""Who leads: one process among several holds a Lease, and only the one that holds it writes.

Clocks of different machines are never compared. A holder counts from the moment it *asked* for its last renewal that
worked, and ceases to lead after the renewal deadline; the others count from the moment they *saw* the lease change, and
wait for its whole, longer duration. So nobody leads before the last one has stopped, whatever the clocks say.
"""

import asyncio
import random
import socket
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

import structlog
from msgspec.structs import replace

from karpool.kube.api_objects import Lease, LeaseSpec, micro_time
from karpool.kube.client import Client
from karpool.kube.clock import utc_now
from karpool.kube.errors import ApiError, ConflictError, NotFoundError
from karpool.kube.resources import LEASES

_JITTER: Final = 0.2
# The API server refuses a lease of no duration.
_SHORTEST_LEASE: Final = 1

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long a lease lasts, how long its holder may fail to renew it, and how often it is tried; in seconds."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry_period > 0:
            raise ValueError(
                f"a lease of {self.duration:g} s has to outlast its renewal deadline of {self.renew_deadline:g} s, and"
                f" that the {self.retry_period:g} s between two tries"
            )


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A lease as it was read: what it says, and the version that says so."""

    spec: LeaseSpec
    version: str


class LeaseLock(Protocol):
    """Where the lease is kept; every method raises an `ApiError` if it cannot."""

    async def read(self) -> LeaseRecord | None:
        """The lease, if there is one."""

    async def create(self, spec: LeaseSpec) -> LeaseRecord:
        """Make the lease; a `ConflictError` if there is one already."""

    async def update(self, spec: LeaseSpec, version: str) -> LeaseRecord:
        """Change the lease; a `ConflictError` if somebody else changed it since this version."""


def new_identity() -> str:
    """A name for this process that no other has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class ApiLeaseLock:
    """A Lease of the Kubernetes API. The client must be one that also those use who do not lead."""

    def __init__(self, client: Client, *, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name

    async def read(self) -> LeaseRecord | None:
        """The lease, if there is one."""
        try:
            return _held(await self._client.get(LEASES, self._name, namespace=self._namespace))
        except NotFoundError:
            return None

    async def create(self, spec: LeaseSpec) -> LeaseRecord:
        """Make the lease."""
        body = {"metadata": {"name": self._name}, "spec": _written(spec)}
        return _held(await self._client.create(LEASES, body, namespace=self._namespace))

    async def update(self, spec: LeaseSpec, version: str) -> LeaseRecord:
        """Change the lease, if it still has this version."""
        patch = {"spec": _written(spec)}
        changed = await self._client.merge_patch(
            LEASES, self._name, patch, namespace=self._namespace, resource_version=version
        )
        return _held(changed)


def _held(lease: Lease) -> LeaseRecord:
    return LeaseRecord(lease.spec, lease.metadata.resource_version)


def _written(spec: LeaseSpec) -> dict[str, object]:
    return {
        "holderIdentity": spec.holder_identity,
        "leaseDurationSeconds": spec.lease_duration_seconds,
        "leaseTransitions": spec.lease_transitions,
        "acquireTime": micro_time(spec.acquire_time) if spec.acquire_time else None,
        "renewTime": micro_time(spec.renew_time) if spec.renew_time else None,
    }


def steady_seconds() -> float:
    """A clock that nobody sets, and that goes on while the machine sleeps, where there is one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class LeaderElector:
    """Tries to hold the lease for as long as `run` runs."""

    def __init__(
        self,
        leases: LeaseLock,
        identity: str,
        times: LeaseTimes | None = None,
        *,
        clock: Callable[[], float] = steady_seconds,
        wall: Callable[[], datetime] = utc_now,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`clock` never jumps and decides; `wall` only tells people when."""
        self.identity = identity
        self.term = 0
        """How often this process has begun to lead."""
        self._leases = leases
        self._times = times or LeaseTimes()
        self._clock = clock
        self._wall = wall
        self._sleep = sleep
        self._leads = False
        self._until = -1.0
        self._seen: LeaseSpec | None = None
        self._seen_at = 0.0

    @property
    def leading(self) -> bool:
        """Whether this process may write; asked of the clock, so that one that was held up does not lead by mistake."""
        return self._leads and self._clock() < self._until

    async def run(self, on_started: Callable[[], None], on_stopped: Callable[[], None]) -> None:
        """Hold the lease whenever it can be had, until cancelled; then `release` gives it up."""
        try:
            while True:
                self._step_down_if_late(on_stopped)
                await self._try_once(on_started)
                self._step_down_if_late(on_stopped)
                await self._sleep(self._pause())
        finally:
            self._step_down(on_stopped)

    async def release(self) -> None:
        """Let somebody else lead at once; call it when the last write is done. What fails is left to expire."""
        self._leads = False
        try:
            async with asyncio.timeout(self._times.retry_period):
                held = await self._leases.read()
                if held is not None and held.spec.holder_identity == self.identity:
                    free = replace(held.spec, holder_identity="", lease_duration_seconds=_SHORTEST_LEASE)
                    await self._leases.update(replace(free, renew_time=self._wall()), held.version)
        except (ApiError, TimeoutError) as error:
            log.warning("the lease could not be released", error=str(error) or "no answer in time")

    # -- one try -------------------------------------------------------------------------------------------------

    async def _try_once(self, on_started: Callable[[], None]) -> None:
        """Renew the lease or take it, if it is ours or free."""
        asked = self._clock()
        # Half of the deadline: one request that is never answered leaves time for another.
        deadline = self._times.renew_deadline
        timeout = min(deadline / 2, self._until - asked if self._leads else deadline)
        try:
            async with asyncio.timeout(timeout):
                held = await self._hold()
        except ConflictError:
            log.debug("somebody else changed the lease")
            return
        except (ApiError, TimeoutError) as error:
            log.warning("the lease could not be had or renewed", error=str(error) or "no answer in time")
            return
        if held is None or (self._leads and self._clock() >= self._until):
            return
        self._until = asked + self._times.renew_deadline
        if not self._leads:
            self._leads = True
            self.term += 1
            log.info("leading", identity=self.identity)
            on_started()

    async def _hold(self) -> LeaseRecord | None:
        """The lease, now ours; None if somebody else has it."""
        held = await self._leases.read()
        if held is None and (self._seen is None or self._ours_or_free(self._seen)):
            return self._noted(await self._leases.create(self._ours(None)))
        if held is None:
            # Somebody deleted the lease, and its holder does not know yet.
            return None
        self._noted(held)
        if not self._ours_or_free(held.spec):
            self._lose()
            return None
        return self._noted(await self._leases.update(self._ours(held.spec), held.version))

    def _ours_or_free(self, spec: LeaseSpec) -> bool:
        if spec.holder_identity in ("", self.identity):
            return True
        return self._clock() - self._seen_at >= (spec.lease_duration_seconds or self._times.duration)

    def _noted(self, held: LeaseRecord) -> LeaseRecord:
        """Remember when the lease last changed, by our clock."""
        if held.spec.holder_identity not in ("", self.identity, self._seen.holder_identity if self._seen else ""):
            log.info("standing by", holder=held.spec.holder_identity)
        if held.spec != self._seen:
            self._seen, self._seen_at = held.spec, self._clock()
        return held

    def _ours(self, before: LeaseSpec | None) -> LeaseSpec:
        now = self._wall()
        kept = before is not None and before.holder_identity == self.identity
        transitions = 0 if before is None else before.lease_transitions + (not kept)
        return LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=max(_SHORTEST_LEASE, round(self._times.duration)),
            lease_transitions=transitions,
            acquire_time=before.acquire_time if before is not None and kept else now,
            renew_time=now,
        )

    # -- giving up -----------------------------------------------------------------------------------------------

    def _lose(self) -> None:
        """Somebody else holds the lease, so we do not, whatever the clock says."""
        self._until = -1.0

    def _step_down_if_late(self, on_stopped: Callable[[], None]) -> None:
        if not self.leading:
            self._step_down(on_stopped)

    def _step_down(self, on_stopped: Callable[[], None]) -> None:
        if self._leads:
            self._leads = False
            log.info("no longer leading", identity=self.identity)
            on_stopped()

    def _pause(self) -> float:
        """Until the next try, or until the lead is over; those who wait for their turn do so out of step."""
        if self._leads:
            return min(self._times.retry_period, max(0.0, self._until - self._clock()))
        return self._times.retry_period * random.uniform(1, 1 + _JITTER)
