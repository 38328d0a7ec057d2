"""One upstream, whole exchanges: what passes, and what the tap is told."""

from __future__ import annotations

from proxy.tap import ConnectionOpened, RequestStarted, UpstreamConnected
from tests.proxy.relay.support import Peer, closed, host_of, relayed

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


async def answer_all(peer: Peer) -> None:
    while True:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(ANSWER)


async def test_keep_alive_requests_pass_and_are_told_in_order() -> None:
    seen: list[bytes] = []

    async def handler(peer: Peer) -> None:
        while True:
            seen.append(await peer.read_until(b"\r\n\r\n"))
            await peer.send(ANSWER)

    async with relayed(handler) as bench:
        client = await bench.client()
        for number in range(3):
            head = f"GET /v1/models?n={number} HTTP/1.1\r\nhOsT:  localhost:1 \r\nX-a: 1\r\nx-A: 2\r\n\r\n".encode()
            await client.send(head)
            assert await client.read_exactly(len(ANSWER)) == ANSWER
            assert seen[-1] == head.replace(b"localhost:1", host_of(bench))
        client.close()
        await bench.settle()
        kinds = [type(event).__name__ for event in bench.tap.events]
        assert sorted(kinds[:3]) == ["ConnectionOpened", "RequestStarted", "UpstreamConnected"]
        assert " ".join(kinds[3:]) == (
            "ResponseData RequestStarted ResponseData RequestStarted ResponseData"
            " SideClosed SideClosed ConnectionClosed"
        )
        assert bench.tap.closes() == [("client", "fin"), ("upstream", "fin")]
        assert closed(bench.tap) == [1]
        started = bench.tap.of(RequestStarted)
        assert [event.target for event in started] == [b"/v1/models?n=%d" % n for n in range(3)]
        assert all(event.complete and event.upstream == "one" and b"localhost:1" in event.head for event in started)
        assert bench.tap.of(ConnectionOpened)[0].client.startswith("127.0.0.1:")
        assert bench.tap.of(UpstreamConnected)[0].address == host_of(bench).decode()
        times = [event.at_ns for event in bench.tap.events]
        assert times == sorted(times)


async def test_head_and_body_of_one_read_go_on_in_one_write() -> None:
    reads: list[bytes] = []

    async def handler(peer: Peer) -> None:
        reads.append(await peer.read())
        await peer.send(ANSWER)
        await peer.read()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello")
        await client.read_exactly(len(ANSWER))
        assert reads[0].endswith(b"\r\n\r\nhello")
        assert bench.tap.of(RequestStarted)[0].body == b"hello"
        client.close()


async def test_tags_are_stripped_and_told() -> None:
    seen: list[bytes] = []

    async def handler(peer: Peer) -> None:
        seen.append(await peer.read_until(b"\r\n\r\n"))
        await peer.send(ANSWER)
        await peer.read()

    async with relayed(handler, prefix="/api") as bench:
        client = await bench.client()
        sent = (
            b"GET /t/task=a%20b,seed=3/v1/models HTTP/1.1\r\nHost: localhost\r\nX-Stacktap-Tag: arm=2\r\nA: b\r\n\r\n"
        )
        await client.send(sent)
        await client.read_exactly(len(ANSWER))
        assert seen == [b"GET /api/v1/models HTTP/1.1\r\nHost: " + host_of(bench) + b"\r\nA: b\r\n\r\n"]
        event = bench.tap.of(RequestStarted)[0]
        assert event.tags == (("task", "a b"), ("seed", "3"), ("arm", "2"))
        assert (event.head, event.target) == (sent, b"/api/v1/models")
        client.close()


async def test_ends_go_on_as_what_they_are() -> None:
    peers: list[Peer] = []

    async def handler(peer: Peer) -> None:
        peers.append(peer)
        await peer.read_until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\npart")
        await peer.read_all()

    async with relayed(handler) as bench:
        for how in ("fin", "rst"):
            client = await bench.client()
            await client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await client.read_until(b"part")
            client.close() if how == "fin" else client.rst()
            await bench.settle()
            assert peers[-1].end == how
        assert bench.tap.closes(1)[0] == ("client", "fin")
        assert bench.tap.closes(2)[0] == ("client", "rst")


async def test_an_upstream_that_resets_resets_the_client() -> None:
    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
        peer.rst()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        got = await client.read_all()
        assert got.endswith(b"part")
        assert client.end == "rst"
        await bench.settle()
        assert bench.tap.closes()[0] == ("upstream", "rst")
