"""A page that takes long to render: made in another thread, by one request for all, at most once a second."""

import asyncio
from collections.abc import Callable
from typing import Final

KEPT_SECONDS: Final = 1.0


class RenderedPage:
    """The text of a page, at most a second old."""

    def __init__(self, render: Callable[[], bytes]) -> None:
        self._render = render
        self._rendering: asyncio.Task[bytes] | None = None
        self._since = 0.0

    async def text(self) -> bytes:
        now = asyncio.get_running_loop().time()
        if self._rendering is None or (self._rendering.done() and self._is_over(self._rendering, now)):
            self._rendering = asyncio.create_task(asyncio.to_thread(self._render))
            self._rendering.add_done_callback(self._note_end)
        # A client that goes away takes nothing from the others.
        return await asyncio.shield(self._rendering)

    def _is_over(self, rendering: "asyncio.Task[bytes]", now: float) -> bool:
        return now - self._since >= KEPT_SECONDS or rendering.cancelled() or rendering.exception() is not None

    def _note_end(self, _rendering: "asyncio.Task[bytes]") -> None:
        self._since = asyncio.get_running_loop().time()
