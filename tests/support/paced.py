"""A forwarder that lets a server's answers through in small pieces with pauses, as a slower model would write them.

The canaries write a whole answer within a few milliseconds: nobody could tell whether such a stream was held back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

_PIECE = 256
"""Bytes: about one event of a stream."""


@contextlib.asynccontextmanager
async def paced(url: str, pause: float) -> AsyncIterator[str]:
    """The address of a forwarder to `url` (`http://host:port`) that waits `pause` seconds after each piece."""
    place = urlsplit(url)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            from_server, to_server = await asyncio.open_connection(place.hostname, place.port)
            async with asyncio.TaskGroup() as both:
                both.create_task(_pass(reader, to_server, 0.0))
                both.create_task(_pass(from_server, writer, pause))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pause: float) -> None:
    try:
        while data := await reader.read(_PIECE if pause else 65536):
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(pause)
    except OSError:
        pass
    finally:
        with contextlib.suppress(OSError):
            writer.close()
