"""Faults as the record tells them, through the real relay on real sockets: each has its own end."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from proxy.relay.server import Relay, RelayConfig
from proxy.relay.upstream import Upstream, parse_upstream
from proxy.session import RecordingSession, SessionOptions
from results.exchange import Exchange
from results.reader import RunReader
from tests.proxy.relay.support import Handler, Peer, Upstreams, dial, eventually, free_port, hang_up

GET = b"GET /v1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
PART = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"


class Recording:
    """A relay with a recorder, in front of one upstream."""

    def __init__(self, folder: Path, upstream: Upstream, **config: Any) -> None:
        self.folder = folder
        self.recorder = Recorder(folder, "run", Redactor())
        self.relay = Relay(RelayConfig((upstream,), **config), self.recorder)
        self.exchanges: list[Exchange] = []

    async def client(self) -> Peer:
        return await dial(self.relay.ports["one"])

    async def settle(self) -> None:
        await eventually(lambda: self.relay.stats.open == 0)

    def only(self) -> Exchange:
        (exchange,) = self.exchanges
        return exchange


@contextlib.asynccontextmanager
async def recording(folder: Path, upstream: Upstream, **config: Any) -> AsyncIterator[Recording]:
    """Record until the block ends; `exchanges` is filled after it."""
    made = Recording(folder, upstream, **config)
    made.recorder.start()
    await made.relay.start()
    try:
        yield made
    finally:
        hang_up()
        await made.relay.stop()
        made.recorder.close()
    assert made.recorder.status()["failing"] == ""
    reader = RunReader(folder)
    made.exchanges = list(reader)
    assert not reader.problems, reader.problems.describe()
    assert not any(one.damaged for one in made.exchanges)


@contextlib.asynccontextmanager
async def served(folder: Path, handler: Handler, **config: Any) -> AsyncIterator[Recording]:
    """Record what passes to a scripted upstream."""
    upstreams = Upstreams(handler)
    try:
        async with recording(folder, parse_upstream(f"one=http://127.0.0.1:{upstreams.port}"), **config) as made:
            yield made
    finally:
        await upstreams.stop()


def scripted(*sends: bytes, end: str = "hold") -> Handler:
    """An upstream that reads a request, sends, and then holds, ends or resets."""

    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        for part in sends:
            await peer.send(part)
            await asyncio.sleep(0.02)
        if end == "rst":
            peer.rst()
        elif end == "hold":
            await peer.read_all()

    return handler


async def ask(made: Recording, request: bytes = GET) -> bytes:
    """Send a request and read to the end."""
    client = await made.client()
    await client.send(request)
    got = await client.read_all()
    client.close()
    await made.settle()
    return got


async def test_refused(tmp_path: Path) -> None:
    async with recording(tmp_path / "run", parse_upstream(f"one=http://127.0.0.1:{free_port()}")) as made:
        answer = await ask(made)
    one = made.only()
    assert (one.end, one.response, one.relay_answer) == ("upstream_refused", None, answer)
    assert "connection refused" in one.end_detail


async def test_a_large_request_to_a_refusing_upstream_is_recorded_whole(tmp_path: Path) -> None:
    body = random.Random(1).randbytes(3_000_000)
    async with recording(tmp_path / "run", parse_upstream(f"one=http://127.0.0.1:{free_port()}")) as made:
        await ask(made, b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n" + body)
    one = made.only()
    assert one.end == "upstream_refused"
    assert one.request is not None
    assert (one.request.body, one.request.complete) == (body, True)


async def test_name_not_resolved(tmp_path: Path) -> None:
    async with recording(tmp_path / "run", parse_upstream("one=http://no-such-host.invalid:80")) as made:
        await ask(made)
    assert made.only().end == "name_not_resolved"


async def test_connect_timeout(tmp_path: Path) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(3)]
        try:
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(full.getsockname())
            upstream = parse_upstream(f"one=http://127.0.0.1:{full.getsockname()[1]}")
            async with recording(tmp_path / "run", upstream, connect_timeout=0.3) as made:
                await ask(made)
        finally:
            for filler in fillers:
                filler.close()
    assert made.only().end == "timeout_connect"


@pytest.mark.parametrize(
    ("sends", "end", "wanted", "detail"),
    [
        ((), "rst", "upstream_reset", "before the answer"),
        ((b"HTTP/1.1 2",), "rst", "upstream_reset", "in the head of the answer"),
        ((PART,), "rst", "upstream_reset", "during the answer"),
        ((), "fin", "upstream_closed", "before the answer"),
        ((PART,), "fin", "upstream_closed", "during the answer"),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",), "fin", "upstream_closed", "during the answer"),
        ((b"HTTP/1.1 200 OK\r\n\r\nto the end",), "fin", "complete", ""),
        ((OK,), "fin", "complete", ""),
        ((b"SSH-2.0-OpenSSH_9.2\r\n",), "fin", "not_http", "not HTTP"),
    ],
)
async def test_upstream_ends(tmp_path: Path, sends: tuple[bytes, ...], end: str, wanted: str, detail: str) -> None:
    async with served(tmp_path / "run", scripted(*sends, end=end)) as made:
        await ask(made)
    one = made.only()
    assert (one.end, one.wire("response")) == (wanted, b"".join(sends))
    assert detail in one.end_detail
    assert one.relay_answer == b""


@pytest.mark.parametrize("sends", [(), (PART,)])
async def test_stall_past_the_timeout(tmp_path: Path, sends: tuple[bytes, ...]) -> None:
    async with served(tmp_path / "run", scripted(*sends), read_timeout=0.2) as made:
        got = await ask(made)
    one = made.only()
    assert one.end == "timeout_read"
    assert one.wire("response") == b"".join(sends)
    assert one.relay_answer == (b"" if sends else got)


@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("sends", [(), (PART,)])
async def test_client_leaves(tmp_path: Path, how: str, sends: tuple[bytes, ...]) -> None:
    async with served(tmp_path / "run", scripted(*sends)) as made:
        client = await made.client()
        await client.send(GET)
        if sends:
            await client.read_exactly(len(PART))
        else:
            await eventually(lambda: made.recorder.status()["attempts"] == 1)
        client.close() if how == "fin" else client.rst()
        await made.settle()
    one = made.only()
    moment = "during" if sends else "before"
    assert one.end == "client_gone"
    assert one.end_detail.startswith(f"{how} {moment} the answer: the client stopped listening after ")
    assert one.wire("response") == b"".join(sends)


@pytest.mark.parametrize("leaves", [True, False])
async def test_an_answer_that_comes_after_the_clients_fin(tmp_path: Path, leaves: bool) -> None:
    """A client that gave up does not take a late answer; one that only had nothing more to ask does."""
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    loop = asyncio.get_running_loop()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.15)
        writer.write(whole)
        writer.close()

    server = await asyncio.start_server(slow, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, RecordingSession(SessionOptions(upstreams=(url,), out=tmp_path / "run")) as session:
        raw = socket.create_connection(("127.0.0.1", session.relay.ports["upstream"]))
        await loop.run_in_executor(None, raw.sendall, b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        if leaves:
            await asyncio.sleep(0.05)
            raw.close()
            await asyncio.sleep(0.3)
        else:
            raw.shutdown(socket.SHUT_WR)
            got = await loop.run_in_executor(None, lambda: b"".join(iter(lambda: raw.recv(4096), b"")))
            assert got == whole
            raw.close()
    (one,) = RunReader(tmp_path / "run")
    assert one.wire("response") == whole
    if leaves:
        assert one.end == "client_gone"
        assert "did not take the answer" in one.end_detail
    else:
        assert (one.end, one.end_detail) == ("complete", "")


@pytest.mark.parametrize(
    ("late", "end"),
    [
        (b"0\r\n\r\n", "complete"),
        (b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n", "complete"),
        (b"d\r\ndata: {'x':1}\r\n0\r\n\r\n", "client_gone"),
    ],
)
async def test_a_client_that_knows_the_end_mark_does_not_wait_for_what_follows(
    tmp_path: Path, late: bytes, end: str
) -> None:
    """The openai library closes its connection at `[DONE]`; the last chunk comes to a closed socket."""
    first = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\ndata: {'x':1}\r\n"

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(first)
        await asyncio.sleep(0.3)
        writer.write(late)
        writer.close()

    server = await asyncio.start_server(slow, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    loop = asyncio.get_running_loop()
    async with server, RecordingSession(SessionOptions(upstreams=(url,), out=tmp_path / "run")) as session:
        raw = socket.create_connection(("127.0.0.1", session.relay.ports["upstream"]))
        await loop.run_in_executor(None, raw.sendall, b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await loop.run_in_executor(None, raw.recv, 4096)
        raw.close()
        assert await session.settled(10)
    (one,) = RunReader(tmp_path / "run")
    assert one.wire("response") == first + late
    assert one.end == end


async def test_refused_by_the_relay(tmp_path: Path) -> None:
    async with served(tmp_path / "run", scripted(OK)) as made:
        answer = await ask(made, b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
    one = made.only()
    assert answer.startswith(b"HTTP/1.1 403")
    assert (one.end, one.relay_answer, one.response) == ("refused_by_relay", answer, None)
    assert one.end_detail.startswith("host_not_allowed")


async def test_opaque(tmp_path: Path) -> None:
    async def handler(peer: Peer) -> None:
        await peer.read_exactly(5)
        await peer.send(b"\x15\x03\x03")

    async with served(tmp_path / "run", handler) as made:
        await ask(made, b"\x16\x03\x01\x00\x05")
    one = made.only()
    assert (one.end, one.request, one.response) == ("opaque", None, None)
    assert (one.opaque("request"), one.opaque("response")) == (b"\x16\x03\x01\x00\x05", b"\x15\x03\x03")


async def test_upgrade(tmp_path: Path) -> None:
    granted = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"

    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(granted + b"\x81\x01a")
        await peer.read_exactly(7)
        await peer.send(b"\x81\x01b")

    async with served(tmp_path / "run", handler) as made:
        head = b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        client = await made.client()
        await client.send(head)
        await client.read_until(b"\x81\x01a")
        await client.send(b"\x81\x81maskx")
        await client.read_all()
        client.close()
        await made.settle()
    one = made.only()
    assert one.end == "opaque"
    assert one.response is not None
    assert (one.response.status, one.opaque("response")) == (101, b"\x81\x01a\x81\x01b")
    assert one.opaque("request") == b"\x81\x81maskx"


async def test_stopped_in_the_middle(tmp_path: Path) -> None:
    async with served(tmp_path / "run", scripted(PART)) as made:
        client = await made.client()
        await client.send(GET)
        await client.read_exactly(len(PART))
    assert made.only().end == "relay_stopped"


async def test_strict_refuses_while_the_record_cannot_be_written(tmp_path: Path) -> None:
    async with served(tmp_path / "run", scripted(OK, end="fin")) as made:
        made.recorder.refusing = True
        answer = await ask(made)
        made.recorder.refusing = False
        assert (await ask(made)) == OK
    refused, served_one = made.exchanges
    assert answer.startswith(b"HTTP/1.1 503")
    assert (refused.end, served_one.end) == ("refused_by_relay", "complete")


async def test_keep_alive_pipelining_and_many_connections_in_one_journal(tmp_path: Path) -> None:
    async def handler(peer: Peer) -> None:
        for _ in range(3):
            head = await peer.read_until(b"\r\n\r\n")
            name = head.split(b" ")[1]
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(name) + name)
        await peer.read_all()

    async with served(tmp_path / "run", handler) as made:

        async def one(number: int) -> None:
            client = await made.client()
            requests = b"".join(b"GET /%d-%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % (number, n) for n in range(3))
            await client.send(requests)
            await client.read_until(b"/%d-2" % number)
            client.close()

        for batch in range(0, 1000, 250):
            await asyncio.gather(*(one(number) for number in range(batch, batch + 250)))
        await made.settle()
    assert len(made.exchanges) == 3000
    for exchange in made.exchanges:
        assert exchange.end == "complete"
        assert exchange.request is not None
        assert exchange.response is not None
        assert exchange.response.body.decode() == exchange.request.target
        assert exchange.request.target.endswith(f"-{exchange.exchange - 1}")
