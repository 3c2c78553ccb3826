"""Asks the API server for the time now and then, and often while it is in doubt: a quiet process hears too little."""

import asyncio
from contextlib import suppress
from typing import Final

from karpool.kube.client import Client
from karpool.kube.errors import ApiError
from karpool.kube.server_time import ServerTime

USUAL_SECONDS: Final = 30.0
DOUBT_SECONDS: Final = 2.0
_PATH: Final = "/version"
"""Everybody may read it, and the answer is short."""


async def keep_time(client: Client, time: ServerTime) -> None:
    """Have `time` observe responses, for ever; a failure has a `Date`, too, or says nothing."""
    loop = asyncio.get_running_loop()
    asked = loop.time()
    while True:
        await asyncio.sleep(DOUBT_SECONDS)
        if time.doubt or loop.time() - asked >= USUAL_SECONDS:
            asked = loop.time()
            with suppress(ApiError):
                await client.raw("GET", _PATH)
