"""Work that takes long, beside the decisions: a thread for each piece, and its result as a task of the queue."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import structlog

from karpool.operator.task_queue import TaskQueue

_log = structlog.get_logger()
T = TypeVar("T")


class SideWork:
    """Runs work in threads that do not keep the process from ending."""

    def __init__(self, queue: TaskQueue, wake: Callable[[], None] = lambda: None) -> None:
        """`wake` is called from other threads when a task is due."""
        self._queue = queue
        self._wake = wake

    def __call__(self, work: Callable[[], T], done: Callable[[T | None, float], object]) -> None:
        """Run work, then `done` with what came of it, or None if it failed, and the seconds that it took."""
        threading.Thread(target=self._run, args=(work, done), name="side-work", daemon=True).start()

    def _run(self, work: Callable[[], T], done: Callable[[T | None, float], object]) -> None:
        started, result = time.perf_counter(), None
        try:
            result = work()
        except Exception:  # noqa: BLE001
            # Decisions go on without it.
            _log.exception("work beside the decisions failed")
        self._queue.after(0.0, partial(done, result, time.perf_counter() - started))
        self._wake()
