"""How long the event loop is held up, and by what: everything on it waits that long, but for the lease.

A beat on the loop that comes late tells how long; a thread beside it looks where the loop is while it does.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from traceback import extract_stack
from types import FrameType
from typing import Final

import structlog

_log = structlog.get_logger()
BEAT: Final = 0.25
LIMIT: Final = 1.0
"""A loop that is held up for so many seconds is worth a line of the log."""
_OWN: Final = "karpool"


class LoopMeter:
    def __init__(
        self,
        observe: Callable[[float], None],
        *,
        beat: float = BEAT,
        limit: float = LIMIT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`observe` gets by how many seconds each beat was late."""
        self._observe = observe
        self._beat = beat
        self._limit = limit
        self._clock = clock
        self._due = clock() + beat
        self._ended = threading.Event()
        self.where = ""
        """Where the loop is held up now, if it is."""

    async def run(self) -> None:
        """Measure until cancelled."""
        self._due = self._clock() + self._beat
        watcher = threading.Thread(target=self._watch, args=(threading.get_ident(),), name="loop-meter", daemon=True)
        watcher.start()
        try:
            while True:
                await asyncio.sleep(self._beat)
                self._came()
        finally:
            self._ended.set()

    def _came(self) -> None:
        now = self._clock()
        late, self._due = max(0.0, now - self._due), now + self._beat
        self._observe(late)
        if late >= self._limit:
            _log.warning("the event loop was held up", seconds=round(late, 3), by=self.where or "many short steps")
        self.where = ""

    def _watch(self, thread: int) -> None:
        while not self._ended.wait(self._limit / 2):
            if self._clock() - self._due >= self._limit / 2:
                self.where = where(sys._current_frames().get(thread)) or self.where


def where(frame: FrameType | None) -> str:
    """The function of our own that a thread is in, and what that has called."""
    if frame is None:
        return ""
    calls = [(entry.filename, f"{entry.name}:{entry.lineno}") for entry in extract_stack(frame)]
    own = [place for place, (file, _) in enumerate(calls) if f"/{_OWN}/" in file]
    first = own[-1] if own else len(calls) - 1
    return " > ".join(name for _, name in calls[first : first + 3])
