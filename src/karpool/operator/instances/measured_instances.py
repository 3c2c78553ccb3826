"""Instances whose calls are measured: how long each took, and what kind of error it ended in."""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final, Protocol

from karpool.model.nodepool import NodeClaim
from karpool.operator.providers.protocol import (
    Instances,
    InsufficientCapacityError,
    LaunchedInstance,
    LaunchError,
    NodeClassNotReadyError,
    RebootError,
    Reboots,
)

_FORESEEN: Final = (InsufficientCapacityError, NodeClassNotReadyError, LaunchError, RebootError)


class OnCall(Protocol):
    """Is told of a call that has ended: its method, its seconds, and the kind of its error, if it ended in one."""

    def __call__(self, method: str, seconds: float, error: str) -> None:
        """Take note of it."""


class MeasuredInstances:
    """Passes every call on."""

    def __init__(self, instances: Instances, on_call: OnCall) -> None:
        self._instances = instances
        self._on_call = on_call

    async def launch(self, claim: NodeClaim) -> LaunchedInstance:
        async with self._measured("Create"):
            return await self._instances.launch(claim)

    async def terminate(self, claim: NodeClaim) -> bool:
        async with self._measured("Delete"):
            return await self._instances.terminate(claim)

    async def list(self) -> Mapping[str, str]:
        async with self._measured("List"):
            return await self._instances.list()

    async def terminate_orphan(self, provider_id: str) -> None:
        async with self._measured("Delete"):
            await self._instances.terminate_orphan(provider_id)

    @asynccontextmanager
    async def _measured(self, method: str) -> AsyncIterator[None]:
        began, error = time.perf_counter(), ""
        try:
            yield
        except _FORESEEN as problem:
            error = type(problem).__name__
            raise
        except Exception:
            error = "unknown"
            raise
        finally:
            self._on_call(method, time.perf_counter() - began, error)


class MeasuredReboots(MeasuredInstances):
    """The same for instances that can be rebooted."""

    def __init__(self, instances: Instances, reboots: Reboots, on_call: OnCall) -> None:
        super().__init__(instances, on_call)
        self._reboots = reboots

    async def reboot(self, claim: NodeClaim, operation: str) -> None:
        async with self._measured("Reboot"):
            await self._reboots.reboot(claim, operation)


def measured(instances: Instances, on_call: OnCall) -> Instances:
    """The same instances, whose calls are measured; they can be rebooted if they could."""
    if isinstance(instances, Reboots):
        return MeasuredReboots(instances, instances, on_call)
    return MeasuredInstances(instances, on_call)
