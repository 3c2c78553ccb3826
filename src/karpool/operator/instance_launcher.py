"""Launches and ends of machines: each claim in a task of its own, so that one that is stuck stalls only itself."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from karpool.controller.store import ClusterStore
from karpool.execution import actions as a
from karpool.execution.conditions import INSTANCE_TERMINATING, LAUNCHED, REGISTERED, TERMINATED, TERMINATING
from karpool.kube.errors import ApiError
from karpool.live.writer import Writer
from karpool.model.nodepool import NodeClaim
from karpool.operator.providers.protocol import Instances, InsufficientCapacityError, LaunchedInstance, LaunchError

_log = structlog.get_logger()
AT_ONCE: Final = 100
FIRST_RETRY: Final = 1.0
LAST_RETRY: Final = 60.0
COLLECTION: Final = 120.0
"""How often to look for machines without a claim, and claims without a machine, in seconds."""
_YOUNG: Final = timedelta(seconds=30)
Alive = Callable[[], bool]


class InstanceLauncher:
    """Sees to it that every claim gets its machine, and that every machine that is to go ends."""

    def __init__(
        self,
        machines: Instances,
        store: ClusterStore,
        writer: Writer,
        *,
        clock: Callable[[], datetime],
        alive: Alive,
        record: Callable[[a.RecordEvent], None],
    ) -> None:
        self._machines = machines
        self._store = store
        self._writer = writer
        self._clock = clock
        self._alive = alive
        self._record = record
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._launching: dict[str, asyncio.Task[None]] = {}
        self._done: set[str] = set()
        self._ending: dict[str, asyncio.Task[None]] = {}

    def catch_up(self) -> None:
        """Begin the launches of claims that came, and those that an earlier process left unfinished."""
        for claim in self._store.claims:
            uid = claim.metadata.uid
            if uid not in self._done and uid not in self._launching and _to_launch(claim):
                self._launching[uid] = _task(self._launch(claim))

    def stop(self) -> None:
        """Leave everything as it is; a later process goes on."""
        for task in (*self._launching.values(), *self._ending.values()):
            task.cancel()
        self._launching.clear()
        self._ending.clear()
        self._done.clear()

    # -- launch --------------------------------------------------------------------------------------------------

    async def _launch(self, claim: NodeClaim) -> None:
        uid, delay = claim.metadata.uid, FIRST_RETRY
        try:
            while not await self._attempt(claim):
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_RETRY)
                held = self._store.claims.get(claim.name)
                if held is None or held.metadata.uid != uid or not _to_launch(held):
                    return
                claim = held
            self._done.add(uid)
        finally:
            self._launching.pop(uid, None)

    async def _attempt(self, claim: NodeClaim) -> bool:
        """Whether the launch is over, in one way or another."""
        if not self._alive():
            return False
        try:
            async with self._slots:
                launched = await self._machines.launch(claim)
            await self._report(claim, launched)
        except InsufficientCapacityError as error:
            return await self._give_up(claim, str(error))
        except (LaunchError, ApiError) as error:
            await self._failed(claim, str(error))
            return False
        return True

    async def _report(self, claim: NodeClaim, launched: LaunchedInstance) -> None:
        """Write into the claim what was launched: labels first, because its node is known by them."""
        labels = {key: value for key, value in launched.labels.items() if key not in claim.metadata.labels}
        await self._writer.edit([a.SetLabel("NodeClaim", claim.name, key, value) for key, value in labels.items()])
        said = a.SetClaimCondition(claim.name, LAUNCHED, "True", LAUNCHED)
        status = {
            "providerID": launched.provider_id,
            "capacity": {name: str(amount) for name, amount in launched.capacity.items()},
            "allocatable": {name: str(amount) for name, amount in launched.allocatable.items()},
        }
        await self._writer.edit([said], also={"status": status})

    async def _failed(self, claim: NodeClaim, message: str) -> None:
        _log.warning("launch failed", claim=claim.name, error=message)
        if claim.is_true(LAUNCHED):
            return
        try:
            await self._writer.edit([a.SetClaimCondition(claim.name, LAUNCHED, "Unknown", "LaunchFailed", message)])
        except ApiError as error:
            _log.warning("launch failed, and so did its report", claim=claim.name, error=str(error))

    async def _give_up(self, claim: NodeClaim, message: str) -> bool:
        self._record(a.RecordEvent("NodeClaim", claim.name, "InsufficientCapacityError", message, "Warning"))
        try:
            await self._writer.apply(a.DeleteClaim(claim.name, claim.metadata.uid))
        except ApiError as error:
            _log.warning("a claim without a machine could not be deleted", claim=claim.name, error=str(error))
            return False
        return True

    # -- end -----------------------------------------------------------------------------------------------------

    def terminate(self, action: a.TerminateInstance) -> None:
        """End the machine of a claim, unless that is under way."""
        claim = self._store.claims.get(action.claim)
        if claim is None or claim.metadata.uid != action.uid:
            return
        launching = self._launching.pop(action.uid, None)
        if launching is not None:
            launching.cancel()
        if action.uid not in self._ending:
            self._ending[action.uid] = _task(self._end(claim))

    async def _end(self, claim: NodeClaim) -> None:
        try:
            gone = await self._machines.terminate(claim)
            reason = TERMINATED if gone else TERMINATING
            await self._writer.edit([a.SetClaimCondition(claim.name, INSTANCE_TERMINATING, "True", reason)])
        except (LaunchError, ApiError) as error:
            _log.warning("a machine could not be ended; it is asked for again", claim=claim.name, error=str(error))
        finally:
            self._ending.pop(claim.metadata.uid, None)

    # -- what belongs to nobody ----------------------------------------------------------------------------------

    async def collect(self) -> None:
        """End machines without a claim, and say of claims without a machine that it is gone."""
        existing = await self._machines.existing()
        for provider_id, name in existing.items():
            if name not in self._store.claims and not await self._writer.has_claim(name):
                _log.info("a machine that no claim stands for is ended", provider_id=provider_id)
                await self._machines.end(provider_id)
        for claim in self._store.claims.listed():
            if claim.status.provider_id not in existing and self._settled(claim):
                gone = a.SetClaimCondition(claim.name, INSTANCE_TERMINATING, "True", TERMINATED)
                await self._writer.edit([gone])

    def _settled(self, claim: NodeClaim) -> bool:
        created = claim.metadata.creation_timestamp
        old = created is not None and self._clock() - created > _YOUNG
        return old and claim.metadata.deletion_timestamp is None and claim.is_true(REGISTERED)


def _to_launch(claim: NodeClaim) -> bool:
    return claim.metadata.deletion_timestamp is None and not claim.is_true(REGISTERED)


def _task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.create_task(work)
