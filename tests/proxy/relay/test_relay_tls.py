"""Encrypted upstreams: trusted, not trusted, not TLS at all."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from proxy.relay.server import Relay, RelayConfig
from proxy.relay.upstream import parse_upstream
from proxy.tap import RelayFault, SideClosed
from tests.proxy.relay.support import ListTap, Peer, Upstreams, dial, eventually, relay_to

TLS = Path(__file__).parents[2] / "data" / "tls"
CERTIFICATE = str(TLS / "localhost.pem")
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def encrypted(handler: Handler, names: list[str | None] | None = None) -> AsyncIterator[int]:
    """A TLS server with the self-signed certificate; `names` collects the SNI of its clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, TLS / "localhost.key")
    context.set_alpn_protocols(["h2", "http/1.1"])

    def note_name(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> None:
        if names is not None:
            names.append(name)

    context.sni_callback = note_name
    server = await asyncio.start_server(handler, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(head) + head)
    writer.close()


async def ask(port: int) -> bytes:
    client = await dial(port)
    await client.send(GET)
    head = await client.read_until(b"\r\n\r\n")
    body = await client.read_exactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
    client.close()
    return head + body


@pytest.mark.parametrize("trust", [{"cacert": CERTIFICATE}, {"insecure": True}])
async def test_a_trusted_upstream_is_relayed(trust: dict[str, Any]) -> None:
    names: list[str | None] = []
    async with encrypted(answer, names) as port:
        upstream = parse_upstream(f"one=https://localhost:{port}")
        async with relay_to(upstream, **trust) as (relay, tap):
            got = await ask(relay.ports["one"])
            assert got.endswith(b"Host: localhost:%d\r\n\r\n" % port)
            assert names == ["localhost"]
            await eventually(lambda: relay.stats.open == 0)
            assert [(e.side, e.how) for e in tap.of(SideClosed)] == [("client", "fin"), ("upstream", "closed")]


async def test_an_unknown_certificate_is_named_with_its_reason_and_the_remedy() -> None:
    async with encrypted(answer) as port:
        upstream = parse_upstream(f"one=https://127.0.0.1:{port}")
        async with relay_to(upstream) as (relay, tap):
            got = await ask(relay.ports["one"])
            assert got.startswith(b"HTTP/1.1 502 ")
            fault = tap.of(RelayFault)[0]
            assert fault.code == "tls_failed"
            assert "self-signed certificate" in fault.detail.replace("self signed", "self-signed")
            assert "--cacert" in fault.detail
            assert "--insecure" in fault.detail


async def test_a_wrong_name_is_not_trusted() -> None:
    async with encrypted(answer) as port:
        upstream = parse_upstream(f"one=https://127.0.0.2:{port}")
        async with relay_to(upstream, cacert=CERTIFICATE) as (relay, tap):
            assert (await ask(relay.ports["one"])).startswith(b"HTTP/1.1 502 ")
            assert tap.of(RelayFault)[0].code in ("tls_failed", "upstream_refused")


@pytest.mark.parametrize("says", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
async def test_a_plain_server_behind_https_is_said(says: bytes) -> None:
    async def plain(peer: Peer) -> None:
        await peer.read()
        if says:
            await peer.send(says)

    upstreams = Upstreams(plain)
    async with relay_to(parse_upstream(f"one=https://127.0.0.1:{upstreams.port}")) as (relay, tap):
        assert (await ask(relay.ports["one"])).startswith(b"HTTP/1.1 502 ")
        assert tap.faults() == ["tls_failed"]
    await upstreams.stop()


async def test_an_upstream_that_never_shakes_hands_is_504() -> None:
    async def silent(peer: Peer) -> None:
        await peer.read_all()

    upstreams = Upstreams(silent)
    config: dict[str, Any] = {"connect_timeout": 0.3}
    async with relay_to(parse_upstream(f"one=https://127.0.0.1:{upstreams.port}"), **config) as (relay, tap):
        assert (await ask(relay.ports["one"])).startswith(b"HTTP/1.1 504 ")
        assert tap.faults() == ["timeout_connect"]
    await upstreams.stop()


async def test_large_bodies_and_the_servers_end_pass() -> None:
    body = bytes(range(256)) * 20_000

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(len(body)) == body
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + body)
        writer.close()

    async with encrypted(serve) as port:
        upstream = parse_upstream(f"one=https://localhost:{port}")
        async with relay_to(upstream, cacert=CERTIFICATE) as (relay, tap):
            client = await dial(relay.ports["one"])
            head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
            await client.send(head + body)
            assert await client.read_all() == b"HTTP/1.0 200 OK\r\n\r\n" + body
            assert client.end == "fin"
            client.close()
            await eventually(lambda: relay.stats.open == 0)
            assert (tap.request_bytes(), tap.response_bytes()) == (head + body, b"HTTP/1.0 200 OK\r\n\r\n" + body)


async def test_a_certificate_file_that_is_none_is_said() -> None:
    upstream = parse_upstream("https://localhost:1")
    for bad in (str(TLS / "missing.pem"), str(TLS / "README.md")):
        with pytest.raises(ValueError, match="--cacert"):
            await Relay(RelayConfig((upstream,), cacert=bad), ListTap()).start()
