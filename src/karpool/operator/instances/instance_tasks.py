"""What launches, terminations and reboots of instances have in common: whom they ask, and where they write."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog

from karpool.controller.store import ClusterStore
from karpool.live.writer import Writer
from karpool.model.nodepool import NodeClaim
from karpool.operator.providers.protocol import Instances

_log = structlog.get_logger()
Alive = Callable[[], bool]
OnUnexpected = Callable[[str], None]
"""Gets where an error happened that nobody declared."""


class InstanceTasks:
    """The provider, the cluster, and how long there is to wait for either."""

    def __init__(
        self,
        instances: Instances,
        store: ClusterStore,
        writer: Writer,
        *,
        clock: Callable[[], datetime],
        alive: Alive,
        on_unexpected: OnUnexpected,
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._instances = instances
        self._store = store
        self._writer = writer
        self._clock = clock
        self._alive = alive
        self._on_unexpected = on_unexpected
        self._sleep = sleep
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """By uid of a claim: what is being asked for it."""

    def stop(self) -> None:
        """Cancel all tasks; a later process continues."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    def _unexpected(self, where: str, claim: NodeClaim) -> None:
        """Log and count the error that is being handled."""
        _log.exception("provider failed; retrying", call=where, claim=claim.name)
        self._on_unexpected(where)
