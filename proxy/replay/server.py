"""Serve recorded answers as the server they came from: bytes as they were, pieces as they were, on loopback.

What was never recorded is answered 404 (501 by the stand-in for Ollama) with `x-stacktap-error: not_recorded` and a
message naming the nearest request; it is counted, so that a strict caller can fail on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import sys
from dataclasses import dataclass, field
from typing import Protocol, cast

from proxy.relay.answers import answer
from proxy.relay.hosts import HostRule
from proxy.relay.identifying import is_identifying
from proxy.relay.rewrite import parse_tags, parse_target
from proxy.replay.recordings import RecordedAnswer, Tags
from results.body import decode_body
from results.http1 import Framer, Head, Kind

with contextlib.suppress(ImportError):
    import fcntl

_LONGEST_WAIT_SECONDS = 600.0
_MOMENT, _MOMENTS = 0.005, 1000
_OUTQ: int | None = 0x5411 if sys.platform == "linux" else None
"""`SIOCOUTQ` (tcp(7)): bytes that the other side has not acknowledged."""
_LOOPBACK = HostRule()


class Answers(Protocol):
    """Where a replay server has its answers from."""

    unseen_status: tuple[int, str]
    """Status and reason for what was never recorded."""

    upstreams: frozenset[str]
    """Names of servers that may lead a path."""

    def find(
        self, method: str, path: str, body: bytes, *, upstream: str | None = None, tags: Tags = ()
    ) -> tuple[RecordedAnswer, str] | None:
        """The answer to serve and how it was found; None where there is none."""
        ...

    def nearest(self, method: str, path: str, body: bytes) -> str:
        """For the error message: what was recorded that is closest."""
        ...


@dataclass(slots=True)
class ReplayStatistics:
    """What was asked of a replay server."""

    served: int = 0
    unseen: list[str] = field(default_factory=list)
    identifying: int = 0
    """Requests of stacktap itself, to find out what the server is, to which the recording has no answer."""
    by_match: dict[str, int] = field(default_factory=dict)


class ReplayServer:
    """Serves `recordings` on 127.0.0.1; `original_timing` keeps the recorded pauses, else pieces follow at once."""

    def __init__(self, recordings: Answers, *, original_timing: bool = False) -> None:
        self._recordings = recordings
        self._original_timing = original_timing
        self._server: asyncio.Server | None = None
        self.connections: set[_Connection] = set()
        self.statistics = ReplayStatistics()

    async def start(self, port: int = 0) -> str:
        """Listen; returns the URL. Raises OSError where the port is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Stop listening and close what is open."""
        if self._server is not None:
            self._server.close()
            for connection in list(self.connections):
                connection.abort()
            await self._server.wait_closed()

    def answer(self, method: str, target: bytes, body: bytes, tags: Tags = (), user_agent: str = "") -> RecordedAnswer:
        """The recorded answer, or an error that says what is nearest. Clients may keep the base URL that the recording
        was made with: the name of the server and tags at the head of the target are taken off."""
        plain = parse_target(target, frozenset())
        path = (plain.rest or target).decode("latin-1")
        led = parse_target(target, self._recordings.upstreams)
        found = None
        if led.upstream is not None:
            rest = led.rest.decode("latin-1")
            found = self._recordings.find(method, rest, body, upstream=led.upstream, tags=led.tags + tags)
        found = found or self._recordings.find(method, path, body, tags=plain.tags + tags)
        if found is None:
            path = led.rest.decode("latin-1") if led.upstream is not None else path
            message = self._recordings.nearest(method, path, body)
            if is_identifying(user_agent):
                self.statistics.identifying += 1
            else:
                self.statistics.unseen.append(f"{method} {path}: {message}")
            return _not_recorded(method, path, message, self._recordings.unseen_status)
        self.statistics.served += 1
        self.statistics.by_match[found[1]] = self.statistics.by_match.get(found[1], 0) + 1
        return found[0]

    async def send(self, transport: asyncio.Transport, answer: RecordedAnswer) -> None:
        """Write an answer's pieces and end as the recording did."""
        started = asyncio.get_running_loop().time()
        for at_us, data in answer.pieces:
            wait = started + at_us / 1e6 - asyncio.get_running_loop().time()
            if self._original_timing and wait > 0:
                await asyncio.sleep(wait)
            elif at_us:
                await asyncio.sleep(0)
            if transport.is_closing():
                return
            transport.write(data)
        if answer.ended == "hang":
            await asyncio.sleep(_LONGEST_WAIT_SECONDS)
        if answer.ended == "reset":
            await _delivered(transport)
            _reset(transport)
        elif answer.ended != "keep":
            transport.close()


class _Connection(asyncio.Protocol):
    """One client: requests are read whole and answered one after the other."""

    def __init__(self, server: ReplayServer) -> None:
        self.server = server
        self._transport: asyncio.Transport | None = None
        self._framer = Framer()
        self._head: Head | None = None
        self._body: list[bytes] = []
        self._queue: asyncio.Queue[tuple[Head, bytes]] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes, only alike.
        self._transport = cast(asyncio.Transport, transport)
        self.server.connections.add(self)
        self._worker = asyncio.get_running_loop().create_task(self._serve(self._transport))

    def data_received(self, data: bytes) -> None:
        for piece in self._framer.feed(data):
            if piece.kind == Kind.HEAD and piece.head is not None:
                self._head, self._body = piece.head, []
                if b"100-continue" in piece.head.raw.lower() and self._transport is not None:
                    self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            elif piece.kind == Kind.BODY:
                self._body.append(piece.data)
            elif piece.kind == Kind.END and self._head is not None:
                self._queue.put_nowait((self._head, b"".join(self._body)))
            elif piece.kind == Kind.OPAQUE:
                self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.connections.discard(self)
        if self._worker is not None:
            self._worker.cancel()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    async def _serve(self, transport: asyncio.Transport) -> None:
        while True:
            head, wire_body = await self._queue.get()
            fields = dict(head.headers())
            hosts = [value for name, value in head.headers() if name.lower() == "host"]
            if not all(_LOOPBACK.allows(host) for host in hosts):
                transport.write(answer("host_not_allowed", f"Host {hosts[0]!r} is not this machine's loopback"))
                transport.close()
                return
            coding = next((value for name, value in fields.items() if name.lower() == "content-encoding"), "")
            body = decode_body(wire_body, 0, chunked=head.chunked, content_encoding=coding).data
            tagged = [value for name, value in head.headers() if name.lower() == "x-stacktap-tag"]
            tags = tuple(tag for value in tagged for tag in parse_tags(value.encode("latin-1")) or ())
            method = head.method.decode("latin-1")
            agent = next((value for name, value in head.headers() if name.lower() == "user-agent"), "")
            await self.server.send(transport, self.server.answer(method, head.target, body, tags, agent))


def _not_recorded(method: str, path: str, message: str, status: tuple[int, str]) -> RecordedAnswer:
    error = {"error": {"message": f"stacktap replay: {message}", "type": "not_recorded", "code": "not_recorded"}}
    body = json.dumps(error).encode()
    head = (
        b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nx-stacktap-error: not_recorded\r\n"
        b"Content-Length: %d\r\nConnection: close\r\n\r\n" % (status[0], status[1].encode(), len(body))
    )
    return RecordedAnswer(method, path, b"", ((0, head if method == "HEAD" else head + body),), "close", "replay")


async def _delivered(transport: asyncio.Transport) -> None:
    """Wait until the client's system has taken what was written: a reset throws away what is still on its way."""
    raw = transport.get_extra_info("socket")
    for _ in range(_MOMENTS):
        waiting = transport.get_write_buffer_size()
        if not waiting and raw is not None and _OUTQ is not None:
            try:
                waiting = struct.unpack("i", fcntl.ioctl(raw.fileno(), _OUTQ, b"\0\0\0\0"))[0]
            except OSError:
                return
        if not waiting or transport.is_closing():
            break
        await asyncio.sleep(_MOMENT)
    await asyncio.sleep(_MOMENT)


def _reset(transport: asyncio.Transport) -> None:
    raw = transport.get_extra_info("socket")
    if raw is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
