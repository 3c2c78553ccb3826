"""Leader election: one process among several holds a Lease, and only that one writes.

Clocks of different machines are never compared. The leader counts from the moment it *sent* its last successful
renewal, and stops leading after the renewal deadline. The others count from the moment they *saw* the lease change, and
wait for its whole duration, which is longer. So nobody leads before the last leader has stopped, whatever the
clocks say.
"""

import asyncio
import random
import socket
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar

import structlog
from msgspec.structs import replace

from karpool.kube.api_objects import Lease, LeaseSpec, micro_time
from karpool.kube.client import Client
from karpool.kube.clock import steady_seconds, utc_now
from karpool.kube.errors import ApiError, ConflictError, NotFoundError
from karpool.kube.resources import LEASES

_JITTER: Final = 0.2
# The API server refuses a lease of no duration.
_SHORTEST_LEASE: Final = 1

_log = structlog.get_logger()
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long a lease lasts, how long its holder may fail to renew it, and how often it tries; in seconds."""

    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > self.retry_period > 0:
            raise ValueError(
                f"a lease of {self.duration:g} s has to outlast its renewal deadline of {self.renew_deadline:g} s, and"
                f" that the {self.retry_period:g} s between two tries"
            )


class LeaseLock(Protocol):
    """Where the lease is kept; every method raises an `ApiError` if it fails."""

    async def read(self) -> Lease | None:
        """The lease, if there is one."""

    async def create(self, spec: LeaseSpec) -> Lease:
        """Create the lease; a `ConflictError` if there is one already."""

    async def update(self, spec: LeaseSpec, version: str) -> Lease:
        """Change the lease; a `ConflictError` if it has changed since this version."""


def new_identity() -> str:
    """A name for this process that no other has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class ApiLeaseLock:
    """A Lease of the Kubernetes API; the client must be able to write without leading."""

    def __init__(
        self, client: Client, *, namespace: str, name: str, annotations: Mapping[str, str] | None = None
    ) -> None:
        """`annotations`: what the holder says of itself on the lease."""
        self._client = client
        self._namespace = namespace
        self._name = name
        self._annotations = dict(annotations or {})

    async def read(self) -> Lease | None:
        try:
            return await self._client.get(LEASES, self._name, namespace=self._namespace)
        except NotFoundError:
            return None

    async def create(self, spec: LeaseSpec) -> Lease:
        body = {"metadata": {"name": self._name, "annotations": self._annotations}, "spec": _encoded(spec)}
        return await self._client.create(LEASES, body, namespace=self._namespace)

    async def update(self, spec: LeaseSpec, version: str) -> Lease:
        patch: dict[str, object] = {"spec": _encoded(spec)}
        if self._annotations:
            patch["metadata"] = {"annotations": self._annotations}
        return await self._client.merge_patch(
            LEASES, self._name, patch, namespace=self._namespace, resource_version=version
        )


def _encoded(spec: LeaseSpec) -> dict[str, object]:
    return {
        "holderIdentity": spec.holder_identity,
        "leaseDurationSeconds": spec.lease_duration_seconds,
        "leaseTransitions": spec.lease_transitions,
        "acquireTime": micro_time(spec.acquire_time) if spec.acquire_time else None,
        "renewTime": micro_time(spec.renew_time) if spec.renew_time else None,
    }


@dataclass(eq=False)
class LeaderElector:
    """Tries to hold the lease for as long as `run` runs."""

    lock: LeaseLock
    identity: str
    times: LeaseTimes = field(default_factory=LeaseTimes)
    _: KW_ONLY
    clock: Callable[[], float] = steady_seconds
    """It cannot be set, and decides."""
    wall: Callable[[], datetime] = utc_now
    """It is only written into the lease."""
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    term: int = field(default=0, init=False)
    """How often this process has become the leader."""
    _leads: bool = field(default=False, init=False)
    _leads_until: float = field(default=-1.0, init=False)
    _observed: LeaseSpec | None = field(default=None, init=False)
    _observed_at: float = field(default=0.0, init=False)
    _version: str = field(default="", init=False)

    @property
    def leading(self) -> bool:
        """Whether this process may write; checks the clock, so that a process that was suspended does not."""
        return self._leads and self.clock() < self._leads_until

    async def run(self, on_started: Callable[[], None], on_stopped: Callable[[], None]) -> None:
        """Acquire and renew the lease until cancelled; call `release` afterwards."""
        try:
            while True:
                self._stop_if_expired(on_stopped)
                began = self.clock()
                await self._acquire_or_renew(on_started)
                self._stop_if_expired(on_stopped)
                await self.sleep(self._pause(self.clock() - began))
        finally:
            self._stop_leading(on_stopped)

    async def release(self, lock: LeaseLock | None = None) -> None:
        """Give the lease up after the last write, so that another process leads at once; if that fails, it expires.

        `lock` is another way to the lease, for an election that ran in another thread.
        """
        self._leads, lock = False, lock or self.lock
        try:
            async with asyncio.timeout(self.times.retry_period):
                lease = await lock.read()
                if lease is not None and lease.spec.holder_identity == self.identity:
                    free = replace(
                        lease.spec, holder_identity="", lease_duration_seconds=_SHORTEST_LEASE, renew_time=self.wall()
                    )
                    await lock.update(free, lease.metadata.resource_version)
        except (ApiError, TimeoutError) as error:
            _log.warning("lease not released", error=str(error) or "no answer in time")

    async def _acquire_or_renew(self, on_started: Callable[[], None]) -> None:
        try:
            written_at = await self._hold()
        except ConflictError:
            _log.debug("lease changed by another process")
            return
        except (ApiError, TimeoutError) as error:
            _log.warning("lease not acquired or renewed", error=str(error) or "no answer in time")
            return
        if written_at is None or (self._leads and self.clock() >= self._leads_until):
            return
        self._leads_until = written_at + self.times.renew_deadline
        if not self._leads:
            self._leads = True
            self.term += 1
            _log.info("leading", identity=self.identity)
            on_started()

    async def _hold(self) -> float | None:
        """Write the lease, if it is free or ours; when that was sent, or None if it is not ours."""
        if self._leads and self._observed is not None:
            # Nobody else writes a lease that is ours, so it need not be read first.
            with suppress(ConflictError, NotFoundError):
                return await self._write(self._observed, self._version)
        lease = await self._in_time(self.lock.read())
        if lease is None:
            # If it was deleted, its holder may not know yet.
            if self._observed is not None and not self._may_take(self._observed):
                return None
            return await self._write(None, "")
        self._observe(lease)
        if not self._may_take(lease.spec):
            self._leads_until = -1.0
            return None
        return await self._write(lease.spec, lease.metadata.resource_version)

    async def _write(self, before: LeaseSpec | None, version: str) -> float:
        """Create the lease, or update this version of it; when that was sent."""
        sent, spec = self.clock(), self._own_spec(before)
        write = self.lock.create(spec) if before is None else self.lock.update(spec, version)
        self._observe(await self._in_time(write))
        return sent

    async def _in_time(self, request: Coroutine[Any, Any, T]) -> T:
        """What a request returns within half of the deadline: one without an answer leaves time for another."""
        half = self.times.renew_deadline / 2
        async with asyncio.timeout(min(half, self._leads_until - self.clock()) if self._leads else half):
            return await request

    def _may_take(self, spec: LeaseSpec) -> bool:
        if spec.holder_identity in ("", self.identity):
            return True
        return self.clock() - self._observed_at >= (spec.lease_duration_seconds or self.times.duration)

    def _observe(self, lease: Lease) -> None:
        """Remember when the lease last changed, by our clock."""
        spec, known = lease.spec, self._observed
        if spec.holder_identity not in ("", self.identity, known.holder_identity if known else ""):
            _log.info("standing by", holder=spec.holder_identity)
        if spec != known:
            self._observed, self._observed_at = spec, self.clock()
        self._version = lease.metadata.resource_version

    def _own_spec(self, before: LeaseSpec | None) -> LeaseSpec:
        now = self.wall()
        renewal = before is not None and before.holder_identity == self.identity
        return LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=max(_SHORTEST_LEASE, round(self.times.duration)),
            lease_transitions=0 if before is None else before.lease_transitions + (not renewal),
            acquire_time=before.acquire_time if before is not None and renewal else now,
            renew_time=now,
        )

    def _stop_if_expired(self, on_stopped: Callable[[], None]) -> None:
        if not self.leading:
            self._stop_leading(on_stopped)

    def _stop_leading(self, on_stopped: Callable[[], None]) -> None:
        if self._leads:
            self._leads = False
            _log.info("no longer leading", identity=self.identity)
            on_stopped()

    def _pause(self, took: float) -> float:
        """Seconds until the next try, or until the lead expires; with jitter for those who do not lead.

        The leader counts from the beginning of a try: a server that is slow leaves no time to lose.
        """
        if self._leads:
            return max(0.0, min(self.times.retry_period - took, self._leads_until - self.clock()))
        return self.times.retry_period * random.uniform(1, 1 + _JITTER)
