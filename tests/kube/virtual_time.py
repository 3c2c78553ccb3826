"""An event loop whose time jumps when all tasks wait, so that waiting takes no time."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everybody waits for something that never comes")
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """For coroutines that wait for time and for each other, not for sockets."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def pass_time(self, seconds: float) -> None:
        """Let time pass in one go, as it does when something blocks the loop."""
        self._virtual.now += seconds


def run_virtually(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns, on a loop of its own."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)
