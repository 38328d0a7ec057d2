"""No buffering, back-pressure in both directions, a full record, many connections at once."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import time

from proxy.relay.listen import raise_file_limit
from proxy.relay.upstream import parse_upstream
from proxy.tap import RelayFault, RequestStarted, ResponseData
from tests.proxy.relay.support import Bench, Peer, busy, closed, dial, eventually, relay_to, relayed

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def resident() -> int:
    """Bytes of memory in use by this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


async def test_each_write_arrives_by_itself_and_when_it_was_made() -> None:
    sent: list[float] = []

    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        for number in range(50):
            await asyncio.sleep(0.02)
            sent.append(time.monotonic())
            await peer.send(b"data: %03d\n\n" % number)

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET)
        await client.read_until(b"\r\n\r\n")
        arrived: list[float] = []
        reads: list[bytes] = []
        while data := await client.read():
            arrived.append(time.monotonic())
            reads.append(data)
        assert b"".join(reads) == b"".join(b"data: %03d\n\n" % number for number in range(50))
        alone = len([data for data in reads if len(data) == 11])
        assert alone >= (35 if busy() else 49)
        assert arrived[-1] - arrived[0] >= (0.8 if busy() else 0.95) * (sent[-1] - sent[0])
        told = [event.data for event in bench.tap.of(ResponseData)][1:]
        assert len(told) >= alone


async def test_a_client_that_stops_reading_slows_the_upstream() -> None:
    sent = 0
    piece = os.urandom(1 << 16)

    async def handler(peer: Peer) -> None:
        nonlocal sent
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        await peer.read_until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await peer.send(piece)
            sent += len(piece)

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET)
        await client.read_until(b"\r\n\r\n")
        before = resident()
        held = await stops_growing(lambda: sent)
        assert held < 40_000_000
        assert bench.relay.stats.bytes_down <= held + 4_000_000
        assert resident() - before < bench.relay.stats.bytes_down + 20_000_000
        await asyncio.sleep(0.2)
        assert sent == held
        await client.read_exactly(held)
        await eventually(lambda: sent > held)
        client.close()
        await bench.settle()


async def stops_growing(count: object) -> int:
    """Wait until a counter stands still; returns it."""
    assert callable(count)
    last, since = -1, time.monotonic()
    while time.monotonic() - since < 0.4:
        if count() != last:
            last, since = count(), time.monotonic()
        await asyncio.sleep(0.02)
    return last


async def test_an_upstream_that_stops_reading_slows_the_client() -> None:
    go = asyncio.Event()
    body = os.urandom(1 << 20) * 40

    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await go.wait()
        assert await peer.read_exactly(len(body)) == body
        await peer.send(OK)
        await peer.read_all()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body))
        sending = asyncio.ensure_future(client.send(body))
        held = await stops_growing(lambda: bench.relay.stats.bytes_up)
        assert held < len(body) - 1_000_000
        go.set()
        await sending
        assert await client.read_exactly(len(OK)) == OK
        client.close()


async def test_a_client_that_sends_before_the_upstream_is_there_is_slowed() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())

        upstream = parse_upstream(f"one=http://127.0.0.1:{full.getsockname()[1]}")
        async with relay_to(upstream, connect_timeout=1.0) as (relay, tap):
            client = await dial(relay.ports["one"])
            head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000000\r\n\r\n"
            sending = asyncio.ensure_future(client.send(head + b"x" * 30_000_000))
            await asyncio.sleep(0.5)
            assert relay.stats.bytes_up < 3_000_000
            assert b"timeout_connect" in await client.read_until(b"\r\n\r\n")
            await eventually(lambda: tap.of(RelayFault))
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        for filler in fillers:
            filler.close()


async def test_a_full_record_slows_every_connection_and_loses_nothing() -> None:
    sent = 0

    async def handler(peer: Peer) -> None:
        nonlocal sent
        await peer.read_until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while sent < 60_000_000:
            await peer.send(b"y" * 65536)
            sent += 65536

    async with relayed(handler) as bench:
        clients = [await bench.client() for _ in range(3)]
        for client in clients:
            await client.send(GET)
            await client.read_until(b"\r\n\r\n")
        reading = [asyncio.ensure_future(client.read_all()) for client in clients]
        await eventually(lambda: sent > 2_000_000)
        bench.tap.full = True
        await eventually(lambda: bench.relay.stalled)
        standing = await stops_growing(lambda: len(bench.tap.events))
        late = await bench.client()
        await late.send(GET)
        await asyncio.sleep(0.1)
        await late.send(GET)
        await asyncio.sleep(0.1)
        assert len(bench.tap.of(RequestStarted)) <= 4
        assert not bench.tap.of(ResponseData, 4)
        assert len(bench.tap.events) <= standing + 3
        bench.tap.room.set()
        got = await asyncio.gather(*reading)
        assert sum(len(bench.tap.response_bytes(number)) for number in (1, 2, 3)) == sum(map(len, got)) + 3 * 19
        await eventually(lambda: len(bench.tap.of(RequestStarted)) == 5)
        assert bench.relay.stats.stalls == 1
        assert bench.relay.stats.stalled_seconds > 0.1
        assert not bench.relay.stalled


async def test_a_record_that_refuses_refuses_new_requests() -> None:
    async def handler(peer: Peer) -> None:
        while True:
            await peer.read_until(b"\r\n\r\n")
            await peer.send(OK)

    async with relayed(handler) as bench:
        kept = await bench.client()
        await kept.send(GET)
        await kept.read_exactly(len(OK))
        bench.tap.refusing = True
        for client in (kept, await bench.client()):
            await client.send(GET)
            answer = await client.read_all()
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"x-stacktap-error: journal_failed" in answer
            client.close()
        await bench.settle()
        assert bench.tap.faults() == ["journal_failed"] * 2


async def test_an_answer_of_ours_never_lands_inside_one_of_the_upstreams() -> None:
    go = asyncio.Event()

    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(OK[:-1])
        await peer.read_all()
        await peer.send(OK[-1:])
        go.set()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET + GET.replace(b"localhost", b"evil.example"))
        got = await client.read_all()
        assert got.startswith(OK + b"HTTP/1.1 403 ")
        assert go.is_set()


async def test_a_thousand_connections_at_once() -> None:
    raise_file_limit()
    streams, chunks = 1000, 3

    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        for number in range(chunks):
            await asyncio.sleep(0.05)
            await peer.send(b"data: %d\n\n" % number)

    async with relayed(handler) as bench:

        async def one(number: int) -> bytes:
            client = await bench.client()
            await client.send(b"GET /%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % number)
            got = await client.read_all()
            client.close()
            return got

        got = await asyncio.gather(*(one(number) for number in range(streams)))
        whole = b"HTTP/1.1 200 OK\r\n\r\n" + b"".join(b"data: %d\n\n" % number for number in range(chunks))
        assert set(got) == {whole}
        await bench.settle(20)
        check_all_recorded(bench, streams, whole)


def check_all_recorded(bench: Bench, streams: int, whole: bytes) -> None:
    data: dict[int, bytes] = {}
    for event in bench.tap.of(ResponseData):
        data[event.connection] = data.get(event.connection, b"") + event.data
    assert len(data) == streams
    assert set(data.values()) == {whole}
    assert {event.target for event in bench.tap.of(RequestStarted)} == {b"/%d" % n for n in range(streams)}
    assert sorted(closed(bench.tap)) == list(range(1, streams + 1))
