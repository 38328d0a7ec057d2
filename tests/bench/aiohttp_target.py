"""A minimal recording proxy on aiohttp, to compare with: what one would write in an afternoon.

Every read of the answer is passed on, then recorded as one JSON line with its time and base64 bytes; a thread writes
the file. Run as `aiohttp_target.py UPSTREAM PORT FILE`.
"""

from __future__ import annotations

import base64
import sys
import threading
import time
from queue import SimpleQueue
from typing import BinaryIO

import aiohttp
import orjson
import uvloop
from aiohttp import web
from multidict import CIMultiDictProxy

Record = tuple[int, str, int, bytes]
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "host", "te", "trailer", "upgrade", "content-length"}


def write_records(queue: SimpleQueue[Record | None], file: BinaryIO) -> None:
    """Write queued records until None comes, all that wait at once."""
    while record := queue.get():
        lines = []
        while record:
            number, kind, at_ns, data = record
            line = {"exchange": number, "kind": kind, "at": at_ns, "data": base64.b64encode(data).decode()}
            lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            record = None if queue.empty() else queue.get()
        file.write(b"".join(lines))
        file.flush()


def end_to_end(headers: CIMultiDictProxy[str]) -> dict[str, str]:
    """The headers that go on."""
    return {name: value for name, value in headers.items() if name.lower() not in HOP_BY_HOP}


class Proxy:
    """Passes requests on to one upstream."""

    def __init__(self, upstream: str, queue: SimpleQueue[Record | None]) -> None:
        self.upstream, self.queue = upstream, queue
        self.number = 0

    async def open(self, app: web.Application) -> None:
        """Open the client session."""
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        self.session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)

    async def close(self, app: web.Application) -> None:
        """Close it."""
        await self.session.close()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One exchange."""
        self.number += 1
        number, put = self.number, self.queue.put
        body = await request.read()
        put((number, "request", time.monotonic_ns(), body))
        url = self.upstream + request.raw_path
        async with self.session.request(request.method, url, headers=end_to_end(request.headers), data=body) as answer:
            headers = end_to_end(answer.headers)
            if answer.content_length is not None:
                headers["Content-Length"] = str(answer.content_length)
            response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
            await response.prepare(request)
            put((number, "head", time.monotonic_ns(), repr(answer.raw_headers).encode()))
            async for data in answer.content.iter_any():
                await response.write(data)
                put((number, "data", time.monotonic_ns(), data))
            await response.write_eof()
        put((number, "end", time.monotonic_ns(), b""))
        return response


def main(upstream: str, port: str, file: str) -> None:
    """Serve until interrupted."""
    uvloop.install()
    queue: SimpleQueue[Record | None] = SimpleQueue()
    with open(file, "ab", buffering=0) as out:
        thread = threading.Thread(target=write_records, args=(queue, out))
        thread.start()
        proxy = Proxy(upstream, queue)
        app = web.Application(client_max_size=1 << 30)
        app.on_startup.append(proxy.open)
        app.on_cleanup.append(proxy.close)
        app.router.add_route("*", "/{path:.*}", proxy.handle)
        try:
            web.run_app(app, host="127.0.0.1", port=int(port), access_log=None, print=None)
        finally:
            queue.put(None)
            thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
