"""Faults told apart, on real sockets: what the client sees, what the upstream sees, what the tap is told."""

from __future__ import annotations

import asyncio
import json
import socket
import time

import pytest

from proxy.relay.upstream import Upstream, parse_upstream
from proxy.tap import ConnectionClosed, RelayFault, RequestData, RequestStarted, ResponseData, SideClosed
from tests.proxy.relay.support import Peer, busy, closed, dial, eventually, free_port, relay_to, relayed

GET = b"GET /v1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD = b"HEAD /v1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def check_answer(raw: bytes, status: int, code: str) -> dict[str, str]:
    """The relay's own answer; returns its error object."""
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0].startswith(f"HTTP/1.1 {status} ")
    fields = dict(line.split(": ", 1) for line in lines[1:])
    assert fields["x-stacktap-error"] == code
    assert fields["connection"] == "close"
    assert int(fields["content-length"]) == len(body)
    error: dict[str, str] = json.loads(body)["error"]
    assert error["code"] == code
    return error


def refused() -> Upstream:
    return parse_upstream(f"one=http://user:secret@127.0.0.1:{free_port()}")


async def test_refused_is_502_for_every_request_kind() -> None:
    async with relay_to(refused()) as (relay, tap):
        for request in (GET, b"GET / HTTP/1.0\r\n\r\n", GET + GET):
            client = await dial(relay.ports["one"])
            await client.send(request)
            error = check_answer(await client.read_all(), 502, "upstream_refused")
            assert "connection refused" in error["message"]
            assert "secret" not in error["message"]
            assert client.end == "fin"
            client.close()
        client = await dial(relay.ports["one"])
        await client.send(HEAD)
        assert (await client.read_all()).endswith(b"\r\n\r\n")
        client.close()
        await eventually(lambda: relay.stats.open == 0)
        assert tap.faults() == ["upstream_refused"] * 4
        assert all(event.answer.startswith(b"HTTP/1.1 502") for event in tap.of(RelayFault))
        assert relay.stats.faults == {"upstream_refused": 4}
        order = [type(event) for event in tap.events if event.connection == 1]
        assert order.index(RequestStarted) < order.index(RelayFault) < order.index(ConnectionClosed)


async def test_a_large_request_to_a_refusing_upstream_is_recorded_and_sees_the_answer() -> None:
    body = b"x" * 3_000_000
    async with relay_to(refused()) as (relay, tap):
        client = await dial(relay.ports["one"])
        await client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        check_answer(await client.read_all(), 502, "upstream_refused")
        client.close()
        await eventually(lambda: relay.stats.open == 0)
        assert tap.request_bytes().endswith(body)
        assert tap.of(RequestData)[-1].complete


async def test_the_answer_waits_for_the_request() -> None:
    async with relay_to(refused()) as (relay, tap):
        client = await dial(relay.ports["one"])
        await asyncio.sleep(0.1)
        assert tap.faults() == []
        await client.send(GET[:20])
        await asyncio.sleep(0.05)
        assert tap.faults() == []
        await client.send(GET[20:])
        check_answer(await client.read_all(), 502, "upstream_refused")


async def test_an_upstream_started_after_the_client_connected_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.relay.connection.STALE_NS", 0)
    port = free_port()
    async with relay_to(parse_upstream(f"one=http://127.0.0.1:{port}")) as (relay, _):
        client = await dial(relay.ports["one"])
        await asyncio.sleep(0.1)
        with socket.create_server(("127.0.0.1", port)) as server:
            server.setblocking(False)
            await client.send(GET)
            sock, _ = await asyncio.get_running_loop().sock_accept(server)
            with sock:
                sock.setblocking(False)
                await Peer(sock).send(OK)
                assert await client.read_exactly(len(OK)) == OK


async def test_a_name_without_an_address_is_said() -> None:
    async with relay_to(parse_upstream("one=http://no-such-host.invalid:80")) as (relay, tap):
        client = await dial(relay.ports["one"])
        await client.send(GET)
        error = check_answer(await client.read_all(), 502, "name_not_resolved")
        assert "no-such-host.invalid" in error["message"]
        assert tap.faults() == ["name_not_resolved"]


async def test_an_upstream_that_does_not_accept_is_504() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(3)]
        try:
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(full.getsockname())
            upstream = parse_upstream(f"one=http://127.0.0.1:{full.getsockname()[1]}")
            async with relay_to(upstream, connect_timeout=0.3) as (relay, tap):
                client = await dial(relay.ports["one"])
                await client.send(GET)
                error = check_answer(await client.read_all(), 504, "timeout_connect")
                assert "0.3 s" in error["message"]
                assert tap.faults() == ["timeout_connect"]
        finally:
            for filler in fillers:
                filler.close()


async def test_a_reset_before_the_head_is_a_reset() -> None:
    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        peer.rst()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET)
        assert await client.read_all() == b""
        assert client.end == "rst"
        await bench.settle()
        assert bench.tap.closes() == [("upstream", "rst")]
        assert not bench.tap.faults()


async def test_an_end_without_the_last_chunk_is_an_end() -> None:
    part = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"

    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(part)

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET)
        assert await client.read_all() == part
        assert client.end == "fin"
        client.close()
        await bench.settle()
        assert bench.tap.closes()[0] == ("upstream", "fin")


async def test_a_reset_reaches_a_slow_client_after_the_bytes_before_it() -> None:
    body = b"z" * 6_000_000

    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + body)
        await peer.read()
        peer.rst()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET)
        await client.read_until(b"\r\n\r\n")
        assert await client.read_exactly(len(body) - 10) == body[10:]
        await client.send(GET)
        await client.read_all()
        assert client.end == "rst"


async def test_a_stalled_head_request_gets_no_body() -> None:
    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(OK)
        await peer.read_all()

    async with relayed(handler, read_timeout=0.2) as bench:
        client = await bench.client()
        await client.send(GET)
        await client.read_exactly(len(OK))
        await client.send(HEAD)
        got = await client.read_all()
        assert b"timeout_read" in got
        assert got.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("part", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", b"HTTP/1.1"])
async def test_a_stall_past_the_timeout(part: bytes) -> None:
    peers: list[Peer] = []

    async def handler(peer: Peer) -> None:
        peers.append(peer)
        await peer.read_until(b"\r\n\r\n")
        if part:
            await peer.send(part)
        await peer.read_all()

    async with relayed(handler, read_timeout=0.2) as bench:
        client = await bench.client()
        await client.send(GET)
        got = await client.read_all()
        if part:
            assert (got, client.end) == (part, "rst")
            assert bench.tap.of(RelayFault)[0].answer == b""
        else:
            check_answer(got, 504, "timeout_read")
            assert client.end == "fin"
            client.close()
        await bench.settle()
        assert bench.tap.faults() == ["timeout_read"]
        assert peers[0].end == "rst"


async def test_the_timeout_counts_only_while_an_answer_is_due() -> None:
    async def handler(peer: Peer) -> None:
        for _ in range(2):
            await peer.read_until(b"\r\n\r\n")
            for byte in OK:
                await peer.send(bytes([byte]))
                await asyncio.sleep(0.01)
        await peer.read_all()

    async with relayed(handler, read_timeout=0.25) as bench:
        client = await bench.client()
        for _ in range(2):
            await client.send(GET)
            assert await client.read_exactly(len(OK)) == OK
            await asyncio.sleep(0.4)
        assert not bench.tap.faults()
        client.close()


async def test_without_a_timeout_silence_is_endured() -> None:
    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await asyncio.sleep(0.5)
        await peer.send(OK)
        await peer.read_all()

    async with relayed(handler, connect_timeout=0.1) as bench:
        client = await bench.client()
        await client.send(GET)
        assert await client.read_exactly(len(OK)) == OK
        client.close()


@pytest.mark.parametrize("how", ["fin", "rst"])
@pytest.mark.parametrize("when", ["before", "during"])
async def test_the_upstream_sees_a_leaving_client_at_once(how: str, when: str) -> None:
    peers: list[Peer] = []

    async def handler(peer: Peer) -> None:
        peers.append(peer)
        await peer.read_until(b"\r\n\r\n")
        if when == "during":
            await peer.send(b"HTTP/1.1 200 OK\r\n\r\ndata: a\n\n")
        await peer.read_all()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET)
        await (client.read_until(b"\n\n") if when == "during" else eventually(lambda: peers))
        await eventually(lambda: bench.tap.of(RequestStarted))
        left = time.monotonic()
        client.close() if how == "fin" else client.rst()
        await eventually(lambda: peers[0].ended_at)
        assert peers[0].ended_at is not None
        assert peers[0].ended_at - left < (1.0 if busy() else 0.1)
        assert peers[0].end == how
        await bench.settle()
        assert bench.tap.closes()[0] == ("client", how)


async def test_a_client_that_leaves_while_the_server_goes_on_sending_cuts_it_off() -> None:
    ended = asyncio.Event()

    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                await peer.send(b"data: x\n\n")
                await asyncio.sleep(0.005)
        except (ConnectionResetError, BrokenPipeError):
            ended.set()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET)
        await client.read_until(b"\n\n")
        client.close()
        async with asyncio.timeout(5):
            await ended.wait()
        await bench.settle()


async def test_an_idle_keep_alive_end_reaches_the_client() -> None:
    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(OK)

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET)
        assert await client.read_all() == OK
        assert client.end == "fin"
        client.close()
        await bench.settle()
        assert bench.tap.closes() == [("upstream", "fin"), ("client", "fin")]


async def test_a_client_that_ignores_the_end_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.relay.ends.LINGER_SECONDS", 0.1)

    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(OK)

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET)
        await client.read_exactly(len(OK))
        await bench.settle()


async def test_no_half_open_connection_is_left() -> None:
    async def handler(peer: Peer) -> None:
        data = await peer.read()
        if b"GET /0" in data:
            return
        if b"GET /1" in data:
            peer.rst()
            return
        await peer.send(OK)
        if b"GET /2" in data:
            peer.fin()
        await peer.read_all()

    async with relayed(handler) as bench:

        async def one(number: int) -> None:
            client = await bench.client()
            kind = number % 8
            if kind < 7:
                await client.send(b"GET /%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % kind)
            if kind in (0, 1, 2):
                await client.read_all()
            elif kind in (3, 4):
                await client.read_exactly(len(OK))
            if kind in (3, 5):
                client.rst()
            else:
                client.close()

        await asyncio.gather(*(one(number) for number in range(400)))
        await bench.settle(20)
        assert sorted(closed(bench.tap)) == list(range(1, 401))
        await eventually(lambda: not bench.upstreams.tasks)


async def test_an_upstream_that_speaks_something_else_flows_through() -> None:
    banner = b"SSH-2.0-OpenSSH_9.2\r\n"

    async def handler(peer: Peer) -> None:
        await peer.send(banner)
        await peer.read_until(b"\r\n\r\n")

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET)
        assert await client.read_all() == banner
        assert bench.tap.of(ResponseData)[0].data == banner


async def test_opaque_bytes_to_a_refusing_upstream_are_reset() -> None:
    async with relay_to(refused()) as (relay, tap):
        client = await dial(relay.ports["one"])
        await client.send(b"\x16\x03\x01")
        assert await client.read_all() == b""
        assert client.end == "rst"
        await eventually(lambda: relay.stats.open == 0)
        assert [(e.code, e.answer) for e in tap.of(RelayFault)] == [("upstream_refused", b"")]


async def test_stop_cuts_what_is_under_way_on_record() -> None:
    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\npart")
        await peer.read_all()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET)
        await client.read_until(b"part")
        idle = await bench.client()
        await eventually(lambda: bench.relay.stats.open == 2)
        began = time.monotonic()
        await bench.relay.stop(grace=0.2)
        assert 0.15 < time.monotonic() - began < 2
        assert bench.relay.stats.open == 0
        assert [(e.connection, e.code) for e in bench.tap.of(RelayFault)] == [(1, "relay_stopped")]
        assert sorted(closed(bench.tap)) == [1, 2]
        assert ("client", "closed") in bench.tap.closes()
        await client.read_all()
        assert client.end == "rst"
        await idle.read_all()


async def test_stop_lets_an_answer_end_within_the_grace() -> None:
    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await asyncio.sleep(0.2)
        await peer.send(OK)

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET)
        await eventually(lambda: bench.tap.of(RequestStarted))

        async def read() -> bytes:
            got = await client.read_all()
            client.close()
            return got

        reading = asyncio.ensure_future(read())
        await bench.relay.stop(grace=5)
        assert await reading == OK
        assert not bench.tap.of(RelayFault)
        assert bench.tap.of(SideClosed)
