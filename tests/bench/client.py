"""The load generator of the benchmark: closed-loop requests and streams over raw connections, timed on arrival.

Run as a process of its own; it reads one JSON order a line on stdin (see `Order`), opens its connections, warms them
up, prints `{"ready": true}`, waits for a line, runs, and prints what it measured. The order of a load is the same for
every target; nothing but the port differs.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from tests.bench import wire

TERMINATOR = b"\r\n0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Order:
    """What to run: `count` exchanges at most, for `seconds` at most, over `connections`."""

    port: int
    connections: int
    count: int
    seconds: float
    stream: bool = False
    fresh: bool = False
    """Open a new connection for each exchange."""
    warm: int = 3
    digests: bool = False
    """Report the size and SHA-256 of every streamed answer as it came over the wire."""


class Reads(NamedTuple):
    """One answer as it arrived: when the request was written, and every read with its time."""

    sent_ns: int
    reads: list[tuple[int, bytes]]


class Connection(asyncio.Protocol):
    """One client connection; `done` is called with each whole answer."""

    def __init__(self, done: Callable[[Connection, Reads], None], lost: Callable[[Connection], None]) -> None:
        self.done, self.lost = done, lost
        self.waiting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def ask(self, request: bytes) -> None:
        """Send one request; its answer comes to `done`."""
        self.reads: list[tuple[int, bytes]] = []
        self.head: bytes | None = b""
        self.missing: int | None = None
        self.tail = b""
        self.waiting = True
        self.sent_ns = time.monotonic_ns()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        if not self.waiting:
            return
        self.reads.append((now, data))
        if self._complete(data):
            self.waiting = False
            self.done(self, Reads(self.sent_ns, self.reads))

    def _complete(self, data: bytes) -> bool:
        if self.head is not None:
            self.head += data
            head_end = self.head.find(b"\r\n\r\n") + 4
            if head_end < 4:
                return False
            self.missing = wire.body_length(self.head[:head_end])
            data, self.head = self.head[head_end:], None
        if self.missing is not None:
            self.missing -= len(data)
            return self.missing <= 0
        self.tail = (self.tail + data)[-len(TERMINATOR) :]
        return self.tail == TERMINATOR

    def connection_lost(self, exc: Exception | None) -> None:
        if self.waiting:
            self.waiting = False
            self.lost(self)


class Load:
    """Runs one order and keeps the answers."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.loop = asyncio.get_running_loop()
        self.requests = wire.requests(order.port, stream=False)
        self.connections: set[Connection] = set()
        self.answers: list[Reads] = []
        self.failed = 0
        self.begun = 0
        self.running = 0
        self.deadline = float("inf")
        self.count = 0
        self.finished: asyncio.Future[None] = self.loop.create_future()
        self.tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> Connection:
        """A new connection to the target."""
        _, connection = await self.loop.create_connection(
            lambda: Connection(self._done, self._lost), "127.0.0.1", self.order.port
        )
        self.connections.add(connection)
        return connection

    async def warm_up(self) -> None:
        """Open the connections and run a few plain requests over each, so that pools and caches are filled."""
        for _ in range(self.order.connections):
            await self.open()
        await self._run(self.order.warm * len(self.connections), 60.0)
        if self.failed or any(not _is_ok(answer) for answer in self.answers):
            raise RuntimeError(f"warming up: {self.failed} lost, first answer {self.answers[:1]!r:.400}")
        if self.order.stream:
            self.requests = wire.requests(self.order.port, stream=True)
        self.answers = []

    async def run(self) -> None:
        """The load itself."""
        await self._run(self.order.count, self.order.seconds)

    async def _run(self, count: int, seconds: float) -> None:
        self.finished = self.loop.create_future()
        self.begun, self.count = 0, count
        self.deadline = self.loop.time() + seconds
        for connection in list(self.connections)[:count]:
            self._next(connection)
        await self.finished

    def _next(self, connection: Connection) -> None:
        if self.begun < self.count and self.loop.time() < self.deadline:
            self.begun += 1
            self.running += 1
            connection.ask(self.requests[self.begun % len(self.requests)])
        elif not self.running and not self.finished.done():
            self.finished.set_result(None)

    def _done(self, connection: Connection, answer: Reads) -> None:
        self.answers.append(answer)
        self.running -= 1
        if self.order.fresh:
            self._replace(connection)
        else:
            self._next(connection)

    def _lost(self, connection: Connection) -> None:
        self.failed += 1
        self.running -= 1
        self._replace(connection)

    def _replace(self, connection: Connection) -> None:
        connection.transport.close()
        self.connections.discard(connection)
        task = self.loop.create_task(self._reopen())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _reopen(self) -> None:
        began = time.monotonic_ns()
        connection = await self.open()
        self._next(connection)
        if self.order.fresh:
            connection.sent_ns = began

    def close(self) -> None:
        """Close what is open."""
        for connection in self.connections:
            connection.transport.abort()


def _is_ok(answer: Reads) -> bool:
    return answer.reads[0][1].startswith(b"HTTP/1.1 200")


def plain_figures(answers: list[Reads]) -> dict[str, Any]:
    """Of whole answers: nanoseconds from request to last byte, how many were 200, how many bodies were unchanged."""
    whole = [b"".join(data for _, data in answer.reads) for answer in answers]
    return {
        "latency_ns": [answer.reads[-1][0] - answer.sent_ns for answer in answers],
        "ok": sum(map(_is_ok, answers)),
        "unchanged": sum(data.endswith(wire.ANSWER_BODY) for data in whole),
    }


class StreamFigures(NamedTuple):
    """Of one streamed answer; times in nanoseconds, spans from the first chunk to the last."""

    first_chunk: int
    hops: list[int]
    client_span: int
    upstream_span: int
    alone: int
    """Chunks that arrived in a read with no other chunk's end in it."""
    in_order: bool


def stream_figures(answer: Reads) -> StreamFigures:
    """When each chunk was whole at the client, against when the upstream wrote it."""
    ends: list[tuple[int, int]] = []
    size = 0
    for at_ns, data in answer.reads:
        size += len(data)
        ends.append((size, at_ns))
    found = wire.stamps(b"".join(data for _, data in answer.reads))
    arrivals: list[int] = []
    where: list[int] = []
    read = 0
    for stamp in found:
        while ends[read][0] < stamp.end:
            read += 1
        where.append(read)
        arrivals.append(ends[read][1])
    alone = sum(
        (i == 0 or where[i - 1] != where[i]) and (i + 1 == len(where) or where[i + 1] != where[i])
        for i in range(len(where))
    )
    return StreamFigures(
        arrivals[0] - answer.sent_ns if arrivals else 0,
        [at - stamp.at_ns for at, stamp in zip(arrivals, found, strict=True)],
        arrivals[-1] - arrivals[0] if arrivals else 0,
        found[-1].at_ns - found[0].at_ns if found else 0,
        alone,
        [stamp.sequence for stamp in found] == list(range(len(found))),
    )


def streamed_figures(answers: list[Reads], *, digests: bool) -> dict[str, Any]:
    """Of all streamed answers together; `digests` adds (chunks, bytes, SHA-256) of each as it came over the wire."""
    each = [stream_figures(answer) for answer in answers]
    figures: dict[str, Any] = {
        "first_chunk_ns": [one.first_chunk for one in each],
        "hop_ns": [hop for one in each for hop in one.hops],
        "spans_ns": [(one.client_span, one.upstream_span) for one in each],
        "alone": sum(one.alone for one in each),
        "in_order": sum(one.in_order for one in each),
        "ok": sum(map(_is_ok, answers)),
    }
    if digests:
        rows = []
        for answer, one in zip(answers, each, strict=True):
            whole = b"".join(data for _, data in answer.reads)
            rows.append((len(one.hops), len(whole), hashlib.sha256(whole).hexdigest()))
        figures["digests"] = rows
    return figures


async def carry_out(order: Order, go: Callable[[], Any]) -> dict[str, Any]:
    """Warm up, wait for `go`, run, and return the figures."""
    load = Load(order)
    await load.warm_up()
    print(json.dumps({"ready": True}), flush=True)
    await go()
    began = time.monotonic_ns()
    await load.run()
    took = time.monotonic_ns() - began
    print(json.dumps({"done": True}), flush=True)
    load.close()
    figures = streamed_figures(load.answers, digests=order.digests) if order.stream else plain_figures(load.answers)
    return figures | {"answers": len(load.answers), "failed": load.failed, "took_ns": took}


async def main() -> None:
    """Carry out orders until stdin ends. Garbage is collected between loads, never within."""
    gc.disable()
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        try:
            figures = await carry_out(Order(**json.loads(line)), reader.readline)
        except (OSError, RuntimeError, ValueError) as error:
            figures = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(figures), flush=True)
        gc.collect()


if __name__ == "__main__":
    asyncio.run(main())
