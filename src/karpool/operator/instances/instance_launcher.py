"""Launches and terminates instances: each claim in its own task, so that a stuck one delays no other.

A provider may fail in ways that it does not declare. Such an error is logged with its trace, counted, and retried with
back-off like any other; it ends neither the task nor the process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from typing import Final

import structlog

from karpool.controller.store import ClusterStore
from karpool.execution import actions as a
from karpool.execution.conditions import (
    INITIALIZED,
    INSTANCE_TERMINATING,
    LAUNCHED,
    READY,
    REGISTERED,
    TERMINATED,
    TERMINATING,
)
from karpool.execution.registration import NODE_NOT_FOUND
from karpool.kube.backoff import Backoff
from karpool.kube.errors import ApiError
from karpool.live.writer import Writer
from karpool.model.labels import TERMINATION_FINALIZER
from karpool.model.nodepool import NodeClaim
from karpool.model.reading.unreadable import unidentified
from karpool.operator.instances.instance_reboots import InstanceReboots
from karpool.operator.instances.instance_tasks import Alive, InstanceTasks, OnUnexpected
from karpool.operator.providers.protocol import (
    Instances,
    InsufficientCapacityError,
    LaunchedInstance,
    LaunchError,
    NodeClassNotReadyError,
)
from karpool.wire.objects import condition

_log = structlog.get_logger()
CONCURRENT_LAUNCHES: Final = 100
GC_INTERVAL: Final = 120.0
"""How often to look for instances without a claim, and claims without an instance, in seconds."""
_AWAITED: Final = (INITIALIZED, READY)
_GC_MINIMUM_AGE: Final = timedelta(seconds=30)
_NO_CAPACITY: Final = "InsufficientCapacityError"
_MOST_PODS_TOLD: Final = 10
"""Of how many pods it is said that the node they wait for could not be had."""


class InstanceLauncher(InstanceTasks):
    def __init__(
        self,
        instances: Instances,
        store: ClusterStore,
        writer: Writer,
        *,
        clock: Callable[[], datetime],
        alive: Alive,
        record: Callable[[a.RecordEvent], None],
        ours: Callable[[NodeClaim], bool] = lambda _claim: True,
        planned_for: Callable[[str], Collection[str]] = lambda _claim: (),
        on_unexpected: OnUnexpected = lambda _where: None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`planned_for`: the keys of the pods that a claim was made for, by its name."""
        super().__init__(instances, store, writer, clock=clock, alive=alive, on_unexpected=on_unexpected, sleep=sleep)
        self._record = record
        self._planned_for = planned_for
        self._ours = ours
        self._slots = asyncio.Semaphore(CONCURRENT_LAUNCHES)
        self._done: set[str] = set()
        self._terminating: dict[str, asyncio.Task[None]] = {}
        self.reboots = InstanceReboots(
            instances, store, writer, clock=clock, alive=alive, on_unexpected=on_unexpected, sleep=sleep
        )

    def launch_pending(self) -> None:
        if len(self._done) > len(self._store.claims):
            self._done &= {claim.metadata.uid for claim in self._store.claims}
        for claim in self._store.claims:
            uid = claim.metadata.uid
            if uid not in self._done and uid not in self._tasks and self._needs_launch(claim):
                self._tasks[uid] = asyncio.create_task(self._launch(claim))

    def stop(self) -> None:
        """Cancel all tasks; a later process continues."""
        super().stop()
        for task in self._terminating.values():
            task.cancel()
        self._terminating.clear()
        self._done.clear()
        self.reboots.stop()

    async def _launch(self, claim: NodeClaim) -> None:
        uid, backoff = claim.metadata.uid, Backoff(first=1.0, most=60.0)
        try:
            while not await self._attempt(claim):
                await self._sleep(backoff.next())
                current = self._store.claims.get(claim.name)
                if current is None or current.metadata.uid != uid or not self._needs_launch(current):
                    return
                claim = current
            self._done.add(uid)
        finally:
            self._tasks.pop(uid, None)

    async def _attempt(self, claim: NodeClaim) -> bool:
        """Whether the launch has ended, successfully or not."""
        if not self._alive():
            return False
        try:
            return await self._ended(claim)
        except (LaunchError, ApiError) as error:
            message = str(error)
        except Exception as error:  # noqa: BLE001
            self._unexpected("launch", claim)
            message = f"the provider failed: {type(error).__name__}: {error}"
        await self._write_failure(claim, message)
        return False

    async def _ended(self, claim: NodeClaim) -> bool:
        try:
            async with self._slots:
                launched = await self._instances.launch(claim)
            await self._write_status(claim, launched)
        except InsufficientCapacityError as error:
            self._tell_pods(claim, str(error))
            return await self._give_up(claim, _NO_CAPACITY, str(error))
        except NodeClassNotReadyError as error:
            return await self._give_up(claim, "NodeClassNotReady", str(error))
        return True

    async def _write_status(self, claim: NodeClaim, launched: LaunchedInstance) -> None:
        """Write the instance into the claim: labels first, because its node is matched by them."""
        labels = {key: value for key, value in launched.labels.items() if key not in claim.metadata.labels}
        named = [a.SetLabel("NodeClaim", claim.name, key, value) for key, value in labels.items()]
        conditions = [a.SetClaimCondition(claim.name, LAUNCHED, "True", LAUNCHED), *_awaited(claim)]
        if condition(claim.status.conditions, REGISTERED) is None:  # or registration would have to write it
            conditions.append(a.SetClaimCondition(claim.name, REGISTERED, "Unknown", *NODE_NOT_FOUND))
        status = {
            "providerID": launched.provider_id,
            "capacity": {name: str(amount) for name, amount in launched.capacity.items()},
            "allocatable": {name: str(amount) for name, amount in launched.allocatable.items()},
        }
        await self._writer.edit([*named, *conditions], also={"status": status})
        launched.written()

    async def _write_failure(self, claim: NodeClaim, message: str) -> None:
        _log.warning("launch failed", claim=claim.name, error=message)
        if claim.is_true(LAUNCHED):
            return
        try:
            failed = a.SetClaimCondition(claim.name, LAUNCHED, "Unknown", "LaunchFailed", message)
            await self._writer.edit([failed, *_awaited(claim)])
        except ApiError as error:
            _log.warning("launch failure not written", claim=claim.name, error=str(error))
        except Exception:  # noqa: BLE001
            self._unexpected("launch", claim)

    async def _give_up(self, claim: NodeClaim, reason: str, message: str) -> bool:
        self._record(a.RecordEvent("NodeClaim", claim.name, reason, message, "Warning"))
        # Whoever sees the deletion is to know that it was for this, and not a person's.
        await self._write_failure(claim, message)
        try:
            await self._writer.apply(a.DeleteClaim(claim.name, claim.metadata.uid))
        except ApiError as error:
            _log.warning("claim deletion failed; retrying", claim=claim.name, error=str(error))
            return False
        return True

    def _tell_pods(self, claim: NodeClaim, message: str) -> None:
        """Say of pods that wait for a node why they go on waiting."""
        planned = (self._store.pods.get(key) for key in sorted(self._planned_for(claim.name)))
        waiting = [pod for pod in planned if pod is not None and not pod.bound and pod.active]
        for pod in waiting[:_MOST_PODS_TOLD]:
            self._record(a.RecordEvent("Pod", pod.key, _NO_CAPACITY, f"NodeClaim {claim.name}: {message}", "Warning"))

    def terminate(self, action: a.TerminateInstance) -> None:
        claim = self._store.claims.get(action.claim)
        if claim is None or claim.metadata.uid != action.uid:
            return
        launching = self._tasks.pop(action.uid, None)
        if launching is not None:
            launching.cancel()
        if action.uid not in self._terminating:
            self._terminating[action.uid] = asyncio.create_task(self._terminate(claim))

    async def _terminate(self, claim: NodeClaim) -> None:
        uid, backoff = claim.metadata.uid, Backoff(first=1.0, most=60.0)
        try:
            while self._alive() and not await self._attempt_termination(claim):
                await self._sleep(backoff.next())
                current = self._store.claims.get(claim.name)
                if current is None or current.metadata.uid != uid:
                    return
        finally:
            self._terminating.pop(uid, None)

    async def _attempt_termination(self, claim: NodeClaim) -> bool:
        """Whether the provider answered, and its answer is written; who still waits for the instance asks again."""
        try:
            gone = await self._instances.terminate(claim)
            reason = TERMINATED if gone else TERMINATING
            await self._writer.edit([a.SetClaimCondition(claim.name, INSTANCE_TERMINATING, "True", reason)])
        except (LaunchError, ApiError) as error:
            _log.warning("instance termination failed; retrying", claim=claim.name, error=str(error))
            return False
        except Exception:  # noqa: BLE001
            self._unexpected("terminate", claim)
            return False
        return True

    async def collect_garbage(self) -> None:
        """Terminate instances without a claim, and write into claims without an instance that it is gone."""
        existing = await self._instances.list()
        # An instance may be that of a claim whose name cannot be read.
        lost = any(unidentified(claim) for claim in self._store.claims.listed())
        for provider_id, name in existing.items():
            if name not in self._store.claims and not lost and not await self._writer.has_claim(name):
                _log.info("terminating an instance without a claim", provider_id=provider_id)
                await self._terminate_orphan(provider_id)
        if any(node.unreadable and not node.spec.provider_id for node in self._store.nodes.listed()):
            return  # one of them may be the instance that seems to be gone
        for claim in self._store.claims.listed():
            if claim.status.provider_id not in existing and self._was_registered(claim):
                await self._writer.edit([a.SetClaimCondition(claim.name, INSTANCE_TERMINATING, "True", TERMINATED)])

    async def _terminate_orphan(self, provider_id: str) -> None:
        """Terminate an instance; one that cannot be terminated keeps no other, and is found again the next time."""
        try:
            await self._instances.terminate_orphan(provider_id)
        except (LaunchError, ApiError) as error:
            _log.warning("instance termination failed; retrying", provider_id=provider_id, error=str(error))
        except Exception:  # noqa: BLE001
            _log.exception("provider failed; retrying", call="terminate_orphan", provider_id=provider_id)
            self._on_unexpected("terminate_orphan")

    def _needs_launch(self, claim: NodeClaim) -> bool:
        """Whether a claim waits for an instance; without the finalizer it could go, and leave the instance behind."""
        ours = TERMINATION_FINALIZER in claim.metadata.finalizers and self._ours(claim)
        return ours and not claim.unreadable and not claim.terminating and not claim.is_true(REGISTERED)

    def _was_registered(self, claim: NodeClaim) -> bool:
        created = claim.metadata.creation_timestamp
        old = created is not None and self._clock() - created > _GC_MINIMUM_AGE
        stays = self._ours(claim) and not claim.unreadable and not claim.terminating
        return old and stays and claim.is_true(REGISTERED)


def _awaited(claim: NodeClaim) -> list[a.SetClaimCondition]:
    """Conditions that a claim does not have yet, and that others wait for."""
    missing = [kind for kind in _AWAITED if condition(claim.status.conditions, kind) is None]
    message = "the node is not there yet"
    return [a.SetClaimCondition(claim.name, kind, "Unknown", "AwaitingReconciliation", message) for kind in missing]
