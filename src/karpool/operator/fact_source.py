"""The controller's way to what the API server has of nodes now."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import structlog

from karpool.controller.ports import FactsRead
from karpool.execution.fresh_facts import FreshFacts, FreshNode
from karpool.live.fresh_facts import FactReader
from karpool.operator.task_queue import TaskQueue

_log = structlog.get_logger()


class ApiFactSource:
    """Reads in the event loop, and hands the facts over as a task of the queue."""

    def __init__(self, reader: FactReader, queue: TaskQueue, wake: Callable[[], None]) -> None:
        """To be made in the event loop; `wake` lets the controller look for tasks."""
        self._reader = reader
        self._queue = queue
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._reads: set[asyncio.Task[None]] = set()

    def read(self, nodes: Sequence[str], done: FactsRead) -> None:
        """Read nodes, from any thread; `done` is called in any case."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._begin, tuple(nodes), done)

    def _begin(self, nodes: Sequence[str], done: FactsRead) -> None:
        task = self._loop.create_task(self._read(nodes, done))
        self._reads.add(task)
        task.add_done_callback(self._reads.discard)

    async def _read(self, nodes: Sequence[str], done: FactsRead) -> None:
        facts: FreshFacts
        try:
            facts = await self._reader.read(nodes)
        except Exception as error:  # noqa: BLE001
            # Whatever it is, nobody may act on what was not read, or wait for ever.
            _log.exception("reading nodes again failed", nodes=list(nodes))
            facts = dict.fromkeys(nodes, FreshNode(problem=f"{type(error).__name__}: {error}"))
        self._queue.after(0.0, partial(done, facts))
        self._wake()
