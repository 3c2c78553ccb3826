"""Work that is done again and again beside the loop: gauges, statuses of pools, instances without a claim.

Each part fails alone. An error, expected or not, is logged, counted and followed by another try, with back-off; it
never ends the process.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog

from karpool.kube.backoff import Backoff
from karpool.kube.errors import ApiError

_log = structlog.get_logger()
UPKEEP_INTERVAL: Final = 5.0
"""How often each part is done, in seconds, unless it is wanted sooner."""
_LONGEST_BACKOFF: Final = 300.0
Part = Callable[[], Awaitable[None]]


class Upkeep:
    def __init__(
        self,
        parts: Mapping[str, Part],
        *,
        on_unexpected: Callable[[str], None],
        interval: float = UPKEEP_INTERVAL,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`on_unexpected` gets the name of a part that failed with an error that nobody declared.

        Each part is done every `interval` seconds.
        """
        self._interval = interval
        self._parts = parts
        self._on_unexpected = on_unexpected
        self._clock = clock
        self._sleep = sleep
        self._backoffs = {name: Backoff(first=2 * interval, most=_LONGEST_BACKOFF) for name in parts}
        self._due = dict.fromkeys(parts, 0.0)

    async def run(self) -> None:
        while True:
            for name, part in self._parts.items():
                if self._clock() >= self._due[name]:
                    await self._do(name, part)
            await self._sleep(self._interval)

    async def _do(self, name: str, part: Part) -> None:
        try:
            await part()
        except ApiError as error:
            _log.warning("upkeep failed; retrying", part=name, error=str(error))
        except Exception:  # noqa: BLE001
            _log.exception("upkeep failed; retrying", part=name)
            self._on_unexpected(name)
        else:
            self._backoffs[name].reset()
            return
        self._due[name] = self._clock() + self._backoffs[name].next()
