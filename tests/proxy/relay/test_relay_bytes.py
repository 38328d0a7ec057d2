"""Byte equality in both directions, on real sockets, apart from stripped tags and the value of Host."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import os
import zlib

import brotli
import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy.tap import OpaqueData, RequestData, RequestStarted, ResponseData
from tests.proxy.relay.support import Bench, Peer, eventually, host_of, relayed

GET = b"GET /v1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def arrived(sent: bytes, bench: Bench) -> bytes:
    """What the upstream is to see of bytes that name localhost as Host."""
    return sent.replace(b"localhost", host_of(bench))


async def exchange(request: bytes, response: bytes, *, ends: bool = False) -> None:
    """One exchange whose every byte is compared, in sockets and in events."""

    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(response)
        if ends:
            peer.fin()
        await peer.read_all()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(request)
        got = await (client.read_all() if ends else client.read_exactly(len(response)))
        assert got == response
        client.close()
        await bench.settle()
        assert bench.tap.response_bytes() == response
        assert bench.tap.request_bytes() == request


SSE = {
    "crlf": b"data: {}\r\n\r\ndata: [DONE]\r\n\r\n",
    "lf": b'data: {"a":1}\n\ndata: [DONE]\n\n',
    "multi_line": b"event: x\ndata: a\ndata: b\nid: 1\n\n",
    "comments": b": ping\n\n:\n\ndata: a\n\n",
    "no_final_blank_line": b"data: a\n\ndata: b",
    "cr_only": b"data: a\r\rdata: b\r\r",
    "utf8": 'data: {"content":"café 漢字 🎉"}\n\n'.encode(),
    "not_utf8": b"data: \xff\xfe\n\n",
}


@pytest.mark.parametrize("body", SSE.values(), ids=SSE.keys())
async def test_event_streams(body: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    chunks = b"".join(b"%x\r\n%b\r\n" % (1, body[at : at + 1]) for at in range(len(body)))
    await exchange(GET, head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
    await exchange(GET, head + b"Connection: close\r\n\r\n" + body, ends=True)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
async def test_compressed_bodies(coding: str) -> None:
    plain = b"data: " + os.urandom(2000).hex().encode() + b"\n\n"
    body = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress}[coding](plain)
    await exchange(
        GET,
        b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (coding.encode(), len(body)) + body,
    )


RESPONSES = {
    "chunk_extensions": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b;c\r\nabc\r\n0;last\r\n\r\n",
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: 1\r\nx: 2\r\n\r\n",
    "case_and_duplicates": b"HTTP/1.1 200 \r\nA: a\r\na: b\r\nA: a\r\ncontent-length:0\r\n\r\n",
    "interim": b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "no_content": b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n",
    "not_modified": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\nETag: x\r\n\r\n",
    "bare_lf_head": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
    "not_http": b"SSH-2.0-OpenSSH_9\r\n\x00\xff",
    "binary": b"HTTP/1.1 200 OK\r\nContent-Length: 256\r\n\r\n" + bytes(range(256)),
}


@pytest.mark.parametrize("response", RESPONSES.values(), ids=RESPONSES.keys())
async def test_responses_of_every_shape(response: bytes) -> None:
    await exchange(GET, response)


async def test_http_1_0_and_head() -> None:
    await exchange(b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\nabc", ends=True)
    await exchange(b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")


async def test_request_heads_keep_order_case_duplicates_and_line_ends() -> None:
    heads = [
        b"GET /a%2Fb?x=%20&y HTTP/1.1\r\nx-B:1\r\nX-b:  2 \r\nHOST:localhost\r\nA: \xe9\r\nx-B:1\r\n\r\n",
        b"GET / HTTP/1.1\nHost: localhost\nA: b\n\n",
        b"GET / HTTP/1.1\r\nHost: localhost\nA: b\n\r\n",
        b"\r\nGET / HTTP/1.1\r\nAccept:\r\nHost:\tlocalhost\t\r\nFold: a\r\n b\r\n\r\n",
        b"GET //v1//models/../x HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n\r\n",
    ]
    seen: list[bytes] = []

    async def handler(peer: Peer) -> None:
        seen.append(await peer.read())
        await peer.send(OK)
        await peer.read_all()

    async with relayed(handler) as bench:
        for head in heads:
            client = await bench.client()
            await client.send(head)
            await client.read_exactly(len(OK))
            client.close()
            assert seen[-1] == arrived(head, bench)


async def test_pipelined_requests_go_on_together_and_are_told_one_by_one() -> None:
    wire = GET + b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc" + GET

    async def handler(peer: Peer) -> None:
        await peer.read_exactly(len(wire) + 3 * (len(host) - len(b"localhost")))
        await peer.send(OK * 3)
        await peer.read_all()

    async with relayed(handler) as bench:
        host = host_of(bench)
        client = await bench.client()
        await client.send(wire)
        assert await client.read_exactly(3 * len(OK)) == OK * 3
        assert [(e.target, e.body, e.complete) for e in bench.tap.of(RequestStarted)] == [
            (b"/v1", b"", True),
            (b"/x", b"abc", True),
            (b"/v1", b"", True),
        ]
        assert bench.tap.request_bytes() == wire
        client.close()


async def test_expect_100_continue_flows() -> None:
    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert await peer.read_exactly(5) == b"hello"
        await peer.send(OK)
        await peer.read_all()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        assert await client.read_until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(b"hello")
        assert await client.read_exactly(len(OK)) == OK
        assert [(e.data, e.complete) for e in bench.tap.of(RequestData)] == [(b"hello", True)]
        client.close()


async def test_an_early_response_arrives_while_the_request_is_being_sent() -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"

    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.read_exactly(1000)
        await peer.send(refusal)
        assert await peer.read_exactly(1000) == b"y" * 1000
        await peer.send(OK)
        await peer.read_all()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000\r\n\r\n" + b"x" * 1000)
        assert await client.read_exactly(len(refusal)) == refusal
        await client.send(b"y" * 1000)
        assert await client.read_exactly(len(OK)) == OK
        client.close()


async def test_twenty_megabytes_each_way() -> None:
    body = os.urandom(1 << 20) * 20

    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        assert await peer.read_exactly(len(body)) == body
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        await peer.send(body)
        await peer.read_all()

    async with relayed(handler) as bench:
        client = await bench.client()
        request = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        await client.send(request)
        await client.read_until(b"\r\n\r\n")
        assert await client.read_exactly(len(body)) == body
        assert bench.tap.request_bytes() == request
        assert bench.tap.response_bytes().endswith(body)
        client.close()


HANDSHAKE = b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"


@pytest.mark.parametrize("early", [b"", b"GET looks like HTTP", b"\x81\x85abc"])
async def test_a_web_socket_is_passed_through_opaquely(early: bytes) -> None:
    frames = b"\x82\x7e\x01\x00" + bytes(range(256)) + b"GET / HTTP/1.1\r\n\r\n"

    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(SWITCH + b"\x81\x02hi")
        assert await peer.read_exactly(len(early + frames)) == early + frames
        await peer.send(frames)
        peer.fin()
        await peer.read_all()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(HANDSHAKE + early)
        await client.read_exactly(len(SWITCH) + 4)
        await client.send(frames)
        assert await client.read_all() == frames
        client.close()
        await bench.settle()
        assert bench.upstreams.errors == []
        assert bench.tap.of(ResponseData)[0].data == SWITCH
        opaque = bench.tap.of(OpaqueData)
        assert b"".join(e.data for e in opaque if e.side == "client") == early + frames
        assert b"".join(e.data for e in opaque if e.side == "upstream") == b"\x81\x02hi" + frames
        assert bench.relay.stats.opaque == 1


async def test_a_refused_upgrade_stays_http() -> None:
    async def handler(peer: Peer) -> None:
        for _ in range(3):
            await peer.read_until(b"\r\n\r\n")
            await peer.send(OK)
        await peer.read_all()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(HANDSHAKE + GET)
        assert await client.read_exactly(2 * len(OK)) == OK * 2
        await client.send(GET)
        assert await client.read_exactly(len(OK)) == OK
        assert [e.target for e in bench.tap.of(RequestStarted)] == [b"/ws", b"/v1", b"/v1"]
        assert not bench.tap.of(OpaqueData)
        client.close()


async def test_connect_is_the_upstreams_to_grant() -> None:
    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 200 Fine\r\n\r\n")
        assert await peer.read_exactly(4) == b"\x16\x03GE"
        await peer.send(b"\x00\x01")
        await peer.read_all()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n\x16\x03GE")
        assert (await client.read_exactly(len(b"HTTP/1.1 200 Fine\r\n\r\n") + 2)).endswith(b"\x00\x01")
        assert b"".join(e.data for e in bench.tap.of(OpaqueData)) == b"\x16\x03GE\x00\x01"
        client.close()


@pytest.mark.parametrize("garbage", [b"SSH-2.0-x\r\n", b"\x16\x03\x01\x00\x05hello", b"PING\r\n", b"\x00" * 70000])
async def test_bytes_that_are_not_http_pass_both_ways(garbage: bytes) -> None:
    async def handler(peer: Peer) -> None:
        assert await peer.read_exactly(len(garbage)) == garbage
        await peer.send(garbage[::-1])
        await peer.read_all()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(garbage)
        assert await client.read_exactly(len(garbage)) == garbage[::-1]
        assert bench.tap.request_bytes() == garbage
        assert bench.tap.response_bytes() == garbage[::-1]
        assert {e.side for e in bench.tap.of(OpaqueData)} == {"client", "upstream"}
        client.close()


async def test_a_server_that_speaks_first_is_heard() -> None:
    async def handler(peer: Peer) -> None:
        await peer.send(b"220 ready\r\n")
        assert await peer.read_until(b"\r\n") == b"EHLO x\r\n"
        await peer.send(b"250 ok\r\n")
        await peer.read_all()

    async with relayed(handler) as bench:
        client = await bench.client()
        assert await client.read_until(b"\r\n") == b"220 ready\r\n"
        await client.send(b"EHLO x\r\n")
        assert await client.read_until(b"\r\n") == b"250 ok\r\n"
        client.close()


async def test_a_line_that_never_ends_is_passed_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.relay.connection.HEAD_SECONDS", 0.1)

    async def handler(peer: Peer) -> None:
        await peer.read_exactly(4)
        await peer.send(b"ok")
        await peer.read_all()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(b"PING")
        assert await client.read_exactly(2) == b"ok"
        client.close()


async def test_a_slow_head_and_a_stray_blank_line_stay_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.relay.connection.HEAD_SECONDS", 0.1)

    async def handler(peer: Peer) -> None:
        for _ in range(2):
            await peer.read_until(b"\r\n\r\n")
            await peer.send(OK)
        await peer.read_all()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET[:25])
        await asyncio.sleep(0.2)
        await client.send(GET[25:] + b"\r\n")
        await client.read_exactly(len(OK))
        await asyncio.sleep(0.2)
        await client.send(GET)
        await client.read_exactly(len(OK))
        assert len(bench.tap.of(RequestStarted)) == 2
        assert not bench.tap.of(OpaqueData)
        client.close()


async def test_bad_framing_mid_connection_passes_on() -> None:
    bad = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nnonsense"

    async def handler(peer: Peer) -> None:
        await peer.read_until(b"nonsense")
        await peer.send(OK)
        await peer.read_all()

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(bad)
        assert await client.read_exactly(len(OK)) == OK
        assert bench.tap.request_bytes() == bad
        assert bench.tap.response_bytes() == OK
        client.close()


async def test_a_half_closed_client_still_gets_its_answer() -> None:
    async def handler(peer: Peer) -> None:
        await peer.read_all()
        await peer.send(OK)

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET)
        client.fin()
        assert await client.read_all() == OK
        await bench.settle()


async def test_an_incomplete_head_is_passed_on_when_the_client_ends() -> None:
    async def handler(peer: Peer) -> None:
        assert await peer.read_all() == GET[:-2]
        await peer.send(b"HTTP/1.1 400 Bad\r\n\r\n")

    async with relayed(handler) as bench:
        client = await bench.client()
        await client.send(GET[:-2])
        client.fin()
        assert await client.read_all() == b"HTTP/1.1 400 Bad\r\n\r\n"
        await bench.settle()


# Random conversations.

bodies = st.binary(max_size=200) | st.sampled_from([b"data: x\n\n" * 20, b"GET / HTTP/1.1\r\n\r\n", b"\r\n"])
names = st.sampled_from([b"Accept", b"x-y", b"X-Y", b"Authorization", b"content-type"])


@st.composite
def framed(draw: st.DrawFn, start: bytes, fields: list[bytes]) -> bytes:
    fields = fields + [b"%b: %d" % (name, at) for at, name in enumerate(draw(st.lists(names, max_size=3)))]
    body = draw(bodies)
    if draw(st.booleans()):
        fields.append(b"Transfer-Encoding: chunked")
        step = draw(st.integers(1, 100))
        parts = [body[at : at + step] for at in range(0, len(body), step)]
        body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    else:
        fields.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([start, *draw(st.permutations(fields))]) + b"\r\n\r\n" + body


@st.composite
def conversations(draw: st.DrawFn) -> list[tuple[bytes, bytes, bytes]]:
    """Request as sent, request as it is to arrive (HOST for the upstream's), response."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        tag, told = draw(st.sampled_from([(b"", b""), (b"/t/a=1", b""), (b"/k/x/t/a=1,b=%20", b"")]))
        rest = draw(st.sampled_from([b"/", b"/v1/x?y=/t/a=1/", b"/t/", b"/k", b"/%2Ft/a=1/b"]))
        request = draw(framed(b"POST %b HTTP/1.1", [b"hOST:  localhost "]))
        start, arrives = request.replace(b"%b", tag + rest, 1), request.replace(b"%b", told + rest, 1)
        response = draw(framed(b"HTTP/1.1 200 OK", [b"Server: x"]))
        found.append((start, arrives.replace(b"localhost", b"HOST", 1), response))
    return found


async def send_split(peer: Peer, data: bytes, splits: list[int]) -> None:
    edges = [0, *sorted({at % (len(data) + 1) for at in splits}), len(data)]
    for begin, end in itertools.pairwise(edges):
        if end > begin:
            await peer.send(data[begin:end])
            await asyncio.sleep(0)


splits = st.lists(st.integers(0, 5000), max_size=6)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conversations(), splits, splits, st.booleans(), st.booleans())
def test_random_conversations_pass_unchanged(
    conversation: list[tuple[bytes, bytes, bytes]], up: list[int], down: list[int], pipelined: bool, fast: bool
) -> None:
    (uvloop if fast else asyncio).run(_converse(conversation, up, down, pipelined))


async def _converse(
    conversation: list[tuple[bytes, bytes, bytes]], up: list[int], down: list[int], pipelined: bool
) -> None:
    wrong: list[tuple[bytes, bytes]] = []

    async def handler(peer: Peer) -> None:
        for _, arrives, response in conversation:
            expected = arrives.replace(b"HOST", host)
            got = await peer.read_exactly(len(expected))
            if got != expected:
                wrong.append((got, expected))
            await send_split(peer, response, down)
        await peer.read_all()

    async with relayed(handler) as bench:
        host = host_of(bench)
        client = await bench.client()
        if pipelined:
            conversation_bytes = b"".join(request for request, _, _ in conversation)
            await send_split(client, conversation_bytes, up)
        for request, _, response in conversation:
            if not pipelined:
                await send_split(client, request, up)
            async with asyncio.timeout(20):
                assert await client.read_exactly(len(response)) == response
        assert not wrong
        client.close()
        await eventually(lambda: bench.relay.stats.open == 0)
        assert len(bench.tap.of(RequestStarted)) == len(conversation)
        assert bench.tap.response_bytes() == b"".join(response for _, _, response in conversation)
        sent = b"".join(request for request, _, _ in conversation)
        assert bench.tap.request_bytes() == sent.replace(b"/k/x/", b"/k/*/")
