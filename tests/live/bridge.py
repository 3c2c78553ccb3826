"""Carries connections from one address to another: `bridge.py LISTEN CONNECT`, each HOST:PORT or the path of a socket.

A socket in the file system is seen from every network: this is how a program without one reaches a single port outside.
"""

import asyncio
import sys
from contextlib import suppress

_CHUNK = 65536


async def main(listen: str, connect: str) -> None:
    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            if connect.startswith("/"):
                there = await asyncio.open_unix_connection(connect)
            else:
                there = await asyncio.open_connection(*_split(connect))
            await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))
        writer.close()

    if listen.startswith("/"):
        server = await asyncio.start_unix_server(carry, listen)
    else:
        server = await asyncio.start_server(carry, *_split(listen))
    async with server:
        print("ready", flush=True)  # noqa: T201 - whoever started it waits for that
        await server.serve_forever()


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
