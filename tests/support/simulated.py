"""Simulated servers on loopback for tests of probes: honest about being none of the real stacks."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from probe.asking import Asker, Budget
from proxy.session import RecordingSession, SessionOptions

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
RawHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def http_server(handler: Handler) -> AsyncIterator[str]:
    """One handler for every method and path; the URL."""
    server = web.Server(handler)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def raw_server(handler: RawHandler) -> AsyncIterator[str]:
    """A server that does with each connection what `handler` does; the URL."""

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await handler(reader, writer)
        writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@contextlib.asynccontextmanager
async def asking(url: str, folder: Path, budget: Budget | None = None, **more: Any) -> AsyncIterator[Asker]:
    """An asker of one server through a relay of its own; the run lies in `folder`/run."""
    options = SessionOptions(upstreams=(url,), out=folder / "run")
    async with RecordingSession(options) as session, Asker(session, budget=budget, **more) as asker:
        yield asker


def json_answer(value: Any, status: int = 200) -> web.Response:
    """A plain JSON answer."""
    return web.Response(status=status, body=json.dumps(value).encode(), content_type="application/json")
