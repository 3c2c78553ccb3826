"""Probes watches that are silent: nothing may have happened, or nothing may arrive any more.

API servers send a bookmark about once a minute. A watch that has been silent for half of that is compared with a second
one, which goes on from the same version for a moment: if that one brings a change, the first should have brought it.
"""

import asyncio
import random
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from karpool.kube.errors import ApiError
from karpool.kube.reflector import Reflector


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeTimes:
    """How long to wait, in seconds."""

    after: float = 30.0
    """How long a watch may be silent before it is probed."""
    again: float = 5.0
    """When to probe again after a probe that failed."""
    length: float = 2.0
    """How long the second watch lasts; Kubernetes counts whole seconds."""
    grace: float = 8.0
    """How much later the second watch may end, and how much later than it the first may bring a change."""
    silent: float = 75.0
    """A watch that brought neither a change nor a bookmark for so long, and passed no probe, is not trusted."""


@dataclass(eq=False)
class WatchProbe:
    """Watches one reflector's watch while `run` runs."""

    reflector: Reflector[Any]
    times: ProbeTimes = field(default_factory=ProbeTimes)
    passed_at: float = field(default=0.0, init=False)
    """When the last probe began that the watch passed, on the loop's clock."""
    _failed: tuple[float, str] | None = field(default=None, init=False)
    _due: float = field(default=0.0, init=False)

    def doubt(self, now: float) -> str:
        """Why the watch cannot be trusted; empty if it can. `now` is the time of the loop's clock."""
        reflector = self.reflector
        trusted_at = max(reflector.last_activity, self.passed_at)
        if not reflector.synced.is_set():
            return ""
        if self._failed is not None and self._failed[0] >= trusted_at:
            return self._failed[1]
        silence = now - trusted_at
        return f"its watch has been silent for {silence:.0f} s" if silence > self.times.silent else ""

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self.reflector.synced.wait()
            due = max(self._due, self.reflector.last_activity + self.times.after * random.uniform(0.8, 1))
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            elif self.reflector.disconnected_at is not None:
                await asyncio.sleep(self.times.again)
            else:
                await self._probe()

    async def _probe(self) -> None:
        """Compare the watch with a second one; if it does not keep up, have it start again."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            behind = await self._brings_news() and not await self._catches_up(began)
            problem = "its watch did not bring a change that another one did" if behind else ""
        except TimeoutError:
            problem = "its watch is silent, and another one did not end in time"
        except ApiError as error:
            problem = f"its watch is silent, and another one failed: {error}"
        if problem and self.reflector.last_activity <= began:
            self._failed = loop.time(), problem
            self._due = loop.time() + self.times.again
            self.reflector.cut()
        else:
            self.passed_at, self._failed = began, None
            self._due = loop.time() + self.times.after

    async def _brings_news(self) -> bool:
        """Whether a watch from the version of the first brings a change."""
        reflector = self.reflector
        events = reflector.client.watch(
            reflector.resource,
            reflector.version,
            namespace=reflector.namespace,
            field_selector=reflector.field_selector,
            timeout_seconds=self.times.length,
        )
        async with asyncio.timeout(self.times.length + self.times.grace), aclosing(events):
            async for event in events:
                if event.type != "BOOKMARK":
                    return True
        return False

    async def _catches_up(self, began: float) -> bool:
        """Whether the first watch has brought anything since the probe began, or does so soon."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self.times.grace
        while loop.time() < end and self.reflector.last_activity <= began:  # noqa: ASYNC110
            await asyncio.sleep(self.times.grace / 40)
        return self.reflector.last_activity > began
