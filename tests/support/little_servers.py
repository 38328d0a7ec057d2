"""Little real servers on loopback: as recorded, and lying in every way that was thought of."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

from aiohttp import web

from stacks.serving.base import Answer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextlib.asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A server whose every request goes to `handler`; its URL (http://, also where it speaks TLS)."""
    application = web.Application(client_max_size=1 << 26)
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def as_recorded(answers: Mapping[str, Answer], **headers: str) -> AsyncIterator[str]:
    """A server that gives these answers by path; `headers` replace recorded ones (underscores for hyphens)."""
    extra = {name.replace("_", "-"): value for name, value in headers.items()}

    async def handle(request: web.Request) -> web.StreamResponse:
        found = answers.get(request.path)
        if found is None:
            return web.json_response({"detail": "Not Found"}, status=404, headers=extra)
        kept = {name: value for name, value in found.headers if name != "content-length"} | extra
        return web.Response(status=found.status or 500, body=found.body, headers=kept)

    async with serving(handle) as url:
        yield url


@contextlib.asynccontextmanager
async def raw_server(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    """A server that talks over the bare connection, whatever it likes; its URL."""

    open_ones: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_ones.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await talk(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            for task in open_ones:
                task.cancel()
            await asyncio.gather(*open_ones, return_exceptions=True)


@contextlib.contextmanager
def in_a_thread(answers: Mapping[str, Answer], handler: Handler | None = None) -> Iterator[str]:
    """A recorded server (or one with a handler) on another thread's loop, for commands that run their own."""
    started: list[str] = []
    ready, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with serving(handler) if handler is not None else as_recorded(answers) as url:
            started.append(url)
            ready.set()
            while not over.is_set():
                await asyncio.sleep(0.01)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(20)
        yield started[0]
    finally:
        over.set()
        thread.join()
