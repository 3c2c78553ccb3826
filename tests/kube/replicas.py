"""Processes that compete for a lease, and the calls that they get."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from karpool.kube.election import LeaderElector


@dataclass
class Replica:
    """A process that wants to lead: its elector, and what that told it."""

    elector: LeaderElector
    calls: list[str] = field(default_factory=list)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None

    def start(self) -> None:
        run = self.elector.run(lambda: self.calls.append("started"), self._ceased)
        self.task = asyncio.create_task(run)

    def _ceased(self) -> None:
        self.calls.append("stopped")
        self.stopped.set()

    async def stop(self) -> None:
        """End as on SIGTERM, without giving up the lease."""
        assert self.task is not None
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


def now() -> float:
    return asyncio.get_running_loop().time()


async def time_until_leading(replica: Replica, limit: float = 60) -> float:
    start = now()
    while not replica.elector.leading:
        assert now() - start < limit
        await asyncio.sleep(0.05)
    return now() - start
