"""What every little gateway of the tests shares: sending a request on, keeping headers, and serving on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, cast

import aiohttp
from aiohttp import web

Handler = Callable[[web.Request, aiohttp.ClientSession, str], Awaitable[web.StreamResponse]]
_HOP = {"transfer-encoding", "content-length", "connection", "keep-alive", "content-encoding", "date", "server"}


async def sent_on(
    request: web.Request, session: aiohttp.ClientSession, upstream: str, body: bytes | None = None, **options: Any
) -> aiohttp.ClientResponse:
    """The upstream's answer to the request, with another body where one is given."""
    headers = {name: value for name, value in request.headers.items() if name.lower() not in ("host", "content-length")}
    headers |= options.pop("headers", {})
    data = await request.read() if body is None else body
    return await session.request(request.method, upstream + request.path_qs, headers=headers, data=data, **options)


def kept_headers(answer: aiohttp.ClientResponse, *also: str) -> dict[str, str]:
    """The answer's headers without those of one hop (and of the content coding, unless it is named in `also`)."""
    return {name: value for name, value in answer.headers.items() if name.lower() not in _HOP - set(also)}


async def plain(request: web.Request, session: aiohttp.ClientSession, upstream: str) -> web.StreamResponse:
    """What a good one does: everything on as it came."""
    async with await sent_on(request, session, upstream) as answer:
        response = web.StreamResponse(status=answer.status, headers=kept_headers(answer, "content-encoding"))
        await response.prepare(request)
        async for piece in answer.content.iter_any():
            await response.write(piece)
        await response.write_eof()
        return response


@contextlib.asynccontextmanager
async def serving(handler: Handler, upstream: str, port: int = 0) -> AsyncIterator[int]:
    """`handler` in front of `upstream`; the port."""
    connector = aiohttp.TCPConnector(force_close=True)  # a kept connection may be closed just as it is used
    async with aiohttp.ClientSession(
        auto_decompress=False, connector=connector, timeout=aiohttp.ClientTimeout(total=None)
    ) as session:

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            return await handler(cast("web.Request", request), session, upstream)

        runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0.5)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port, reuse_address=True)
        await site.start()
        try:
            yield runner.addresses[0][1]
        finally:
            await runner.cleanup()


@contextlib.contextmanager
def in_a_thread(handler: Handler, upstream: str, name: str, port: int = 0) -> Iterator[str]:
    """`handler` in front of `upstream`, in a thread of its own; its URL."""
    started = threading.Event()
    where: list[Any] = []

    async def serve() -> None:
        stop = asyncio.Event()
        async with serving(handler, upstream, port) as taken:
            where.extend((taken, asyncio.get_running_loop(), stop))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    if not started.wait(10):
        raise RuntimeError(f"the gateway {name} did not start")
    try:
        yield f"http://127.0.0.1:{where[0]}"
    finally:
        where[1].call_soon_threadsafe(where[2].set)
        thread.join(10)
