"""The upstream of the benchmark: a lean HTTP/1.1 server that answers at once, or streams stamped chunks at a pace.

Run as a process of its own; it prints its port, then reads one JSON command a line on stdin:
`{"plan": {"chunks": 100, "interval_ms": 20}}` sets what the next streams do (interval 0: as fast as the socket takes
them), `{"collect": true}` answers with what was written since, a row for each stream.

The loop is asyncio's own: its transports send within `write`, where uvloop's send at the end of the loop's turn and
join what was written in it.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import sys
import time
from typing import Any, cast

from tests.bench import wire

GOLDEN = 0.6180339887498949
"""Streams start at multiples of this share of the interval, so that any number of them is spread evenly over it."""


class Plan:
    """What streams do, and what they did."""

    def __init__(self) -> None:
        self.chunks = 10
        self.interval = 0.02
        self.streams = 0
        self.written: list[tuple[int, int, int, str]] = []

    def command(self, order: dict[str, Any]) -> dict[str, Any]:
        """Carry out one command and return its answer."""
        if "plan" in order:
            self.chunks = int(order["plan"]["chunks"])
            self.interval = order["plan"]["interval_ms"] / 1000
            self.written.clear()
            return {"ok": True}
        return {"streams": self.written}


class Stream:
    """One streamed answer: writes its chunks when they are due, and adds up what it wrote."""

    def __init__(self, connection: Connection, plan: Plan) -> None:
        plan.streams += 1
        self.number = plan.streams
        self.connection = connection
        self.plan = plan
        self.chunks, self.interval = plan.chunks, plan.interval
        self.sequence = 0
        self.size = 0
        self.digest = hashlib.sha256()
        self.loop = asyncio.get_running_loop()
        self._write(wire.STREAM_HEAD)
        if self.interval:
            self.due = self.loop.time() + (self.number * GOLDEN % 1) * self.interval
            self.timer = self.loop.call_at(self.due, self.tick)
        else:
            self.burst()

    def _write(self, data: bytes) -> None:
        self.size += len(data)
        self.digest.update(data)
        self.connection.transport.write(data)

    def _chunk(self) -> None:
        self._write(wire.chunk(self.number, self.sequence, time.monotonic_ns()))
        self.sequence += 1

    def tick(self) -> None:
        """Write the chunk that is due. A slow reader does not hold it back: its delay must show."""
        if self.connection.transport.is_closing():
            return
        self._chunk()
        if self.sequence == self.chunks:
            self._finish()
            return
        self.due += self.interval
        self.timer = self.loop.call_at(self.due, self.tick)

    def burst(self) -> None:
        """Write until all is written or the socket takes no more; goes on when it does."""
        while self.sequence < self.chunks and not self.connection.paused:
            self._chunk()
        if self.sequence == self.chunks:
            self._finish()

    def _finish(self) -> None:
        self._write(wire.STREAM_END)
        self.connection.stream = None
        self.plan.written.append((self.number, self.sequence, self.size, self.digest.hexdigest()))


class Connection(asyncio.Protocol):
    """One connection: waits for a whole request, answers it, waits for the next."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.buffer = b""
        self.paused = False
        self.stream: Stream | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head_end = self.buffer.find(b"\r\n\r\n") + 4
        if head_end < 4:
            return
        length = wire.body_length(self.buffer[:head_end])
        if length is None:
            if not self.buffer.endswith(b"0\r\n\r\n"):
                return
        elif len(self.buffer) < head_end + length:
            return
        body, self.buffer = self.buffer[head_end:], b""
        if wire.asks_for_stream(body):
            self.stream = Stream(self, self.plan)
        else:
            self.transport.write(wire.ANSWER)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        if self.stream and not self.stream.interval:
            self.stream.burst()


async def main() -> None:
    """Serve until stdin ends."""
    gc.disable()
    loop = asyncio.get_running_loop()
    plan = Plan()
    server = await loop.create_server(lambda: Connection(plan), "127.0.0.1", 0, backlog=4096)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        print(json.dumps(plan.command(json.loads(line))), flush=True)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
