"""Real sockets for the relay's tests: scripted upstreams, a tap in memory, raw clients."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from proxy.relay.server import Relay, RelayConfig
from proxy.relay.upstream import Upstream, parse_upstream
from proxy.tap import (
    ConnectionClosed,
    Event,
    OpaqueData,
    RelayFault,
    RequestData,
    RequestStarted,
    ResponseData,
    SideClosed,
)

E = TypeVar("E", bound=Event)
Handler = Callable[["Peer"], Awaitable[None]]
_DIALLED: list[Peer] = []


class ListTap:
    """Keeps every event in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.full = False
        self.refusing = False
        self.room = asyncio.Event()

    def put(self, event: Event) -> None:
        self.events.append(event)

    async def wait_drained(self) -> None:
        await self.room.wait()
        self.full = False

    def of(self, kind: type[E], connection: int | None = None) -> list[E]:
        """The events of one kind, in order."""
        return [e for e in self.events if isinstance(e, kind) and connection in (None, e.connection)]

    def request_bytes(self, connection: int = 1) -> bytes:
        """What the client sent as HTTP, from the events."""
        parts = []
        for event in self.events:
            if event.connection == connection:
                if isinstance(event, RequestStarted):
                    parts.append(event.head + event.body)
                elif isinstance(event, RequestData) or (isinstance(event, OpaqueData) and event.side == "client"):
                    parts.append(event.data)
        return b"".join(parts)

    def response_bytes(self, connection: int = 1) -> bytes:
        """What the upstream sent, from the events."""
        return b"".join(
            event.data
            for event in self.events
            if event.connection == connection
            and (isinstance(event, ResponseData) or (isinstance(event, OpaqueData) and event.side == "upstream"))
        )

    def closes(self, connection: int = 1) -> list[tuple[str, str]]:
        """How the sides closed."""
        return [(e.side, e.how) for e in self.of(SideClosed, connection)]

    def faults(self) -> list[str]:
        """The codes of the relay's faults."""
        return [e.code for e in self.of(RelayFault)]


@dataclass
class Peer:
    """The upstream's end of a connection, as a raw socket with async reads and writes."""

    sock: socket.socket
    got: bytearray = field(default_factory=bytearray)
    ended_at: float | None = None
    end: str = ""

    async def read(self, limit: int = 1 << 16) -> bytes:
        """One read; empty at the end of the stream; remembers how and when it ended."""
        loop = asyncio.get_running_loop()
        try:
            data = await loop.sock_recv(self.sock, limit)
        except ConnectionResetError:
            self.ended_at, self.end = time.monotonic(), "rst"
            return b""
        if not data:
            self.ended_at, self.end = time.monotonic(), "fin"
        self.got += data
        return data

    async def read_until(self, mark: bytes) -> bytes:
        """Read until `mark` has come; returns everything up to it."""
        while mark not in self.got:
            if not await self.read():
                raise EOFError(f"ended before {mark!r}: {bytes(self.got)[:200]!r}")
        at = self.got.index(mark) + len(mark)
        taken = bytes(self.got[:at])
        del self.got[:at]
        return taken

    async def read_exactly(self, count: int) -> bytes:
        """Read this many bytes."""
        while len(self.got) < count:
            if not await self.read(1 << 18):
                raise EOFError(f"ended after {len(self.got)} of {count} bytes")
        taken = bytes(self.got[:count])
        del self.got[:count]
        return taken

    async def read_all(self) -> bytes:
        """Read to the end of the stream."""
        while await self.read(1 << 18):
            pass
        return bytes(self.got)

    async def send(self, data: bytes) -> None:
        """Send everything."""
        await asyncio.get_running_loop().sock_sendall(self.sock, data)

    def fin(self) -> None:
        """End our stream, keep reading."""
        self.sock.shutdown(socket.SHUT_WR)

    def rst(self) -> None:
        """Reset the connection."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()


class Upstreams:
    """A listening socket whose connections run `handler`."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.sock = socket.socket()
        self.sock.setblocking(False)
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen(2048)
        self.port: int = self.sock.getsockname()[1]
        self.peers: list[Peer] = []
        self.errors: list[BaseException] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.accepting = asyncio.get_running_loop().create_task(self._accept())

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            sock, _ = await loop.sock_accept(self.sock)
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = Peer(sock)
            self.peers.append(peer)
            task = loop.create_task(self._run(peer))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _run(self, peer: Peer) -> None:
        try:
            await self.handler(peer)
        except (EOFError, ConnectionError) as error:
            self.errors.append(error)
        finally:
            peer.close()

    async def stop(self) -> None:
        """Close everything."""
        self.accepting.cancel()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(self.accepting, *self.tasks, return_exceptions=True)
        self.sock.close()
        for peer in self.peers:
            peer.close()


@dataclass
class Bench:
    """A relay between a scripted upstream and raw clients."""

    relay: Relay
    tap: ListTap
    upstreams: Upstreams
    port: int

    async def client(self, port: int | None = None) -> Peer:
        """A raw client connection to the relay."""
        return await dial(self.port if port is None else port)

    async def settle(self, seconds: float = 5.0) -> None:
        """Wait until no connection is open in the relay."""
        await eventually(lambda: self.relay.stats.open == 0, seconds)


async def dial(port: int) -> Peer:
    """A raw client connection."""
    sock = socket.socket()
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer = Peer(sock)
    _DIALLED.append(peer)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    return peer


def hang_up() -> None:
    """Close every client socket that a test left open."""
    while _DIALLED:
        _DIALLED.pop().close()


@contextlib.asynccontextmanager
async def relayed(handler: Handler, *, prefix: str = "", **config: Any) -> AsyncIterator[Bench]:
    """A relay in front of one scripted upstream."""
    upstreams = Upstreams(handler)
    upstream = parse_upstream(f"one=http://127.0.0.1:{upstreams.port}{prefix}")
    tap = ListTap()
    relay = Relay(RelayConfig((upstream,), **config), tap)
    await relay.start()
    try:
        yield Bench(relay, tap, upstreams, relay.ports["one"])
    finally:
        hang_up()
        await relay.stop()
        await upstreams.stop()


@contextlib.asynccontextmanager
async def relay_to(*upstreams: Upstream, **config: Any) -> AsyncIterator[tuple[Relay, ListTap]]:
    """A relay in front of given upstreams."""
    tap = ListTap()
    relay = Relay(RelayConfig(upstreams, **config), tap)
    await relay.start()
    try:
        yield relay, tap
    finally:
        hang_up()
        await relay.stop()


async def eventually(condition: Callable[[], object], seconds: float = 5.0) -> None:
    """Wait until the condition holds; fails after a generous time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come about"
        await asyncio.sleep(0.005)


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def host_of(bench: Bench) -> bytes:
    """The Host value that the upstream is to see."""
    return f"127.0.0.1:{bench.upstreams.port}".encode()


def closed(tap: ListTap) -> list[int]:
    """Connections whose end was told."""
    return [e.connection for e in tap.of(ConnectionClosed)]


def busy() -> bool:
    """Whether the machine is too loaded for timing to mean much."""
    return os.getloadavg()[0] > (os.cpu_count() or 1)
