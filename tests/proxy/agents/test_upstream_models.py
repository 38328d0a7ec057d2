"""Model names of a server, for generated agent configurations."""

from __future__ import annotations

import asyncio

import pytest

from proxy.agents.upstream_models import model_names
from proxy.relay.server import RelayConfig
from proxy.relay.upstream import parse_upstream
from tests.support.servers import chat_server

CONFIG = RelayConfig(upstreams=())


async def names(url: str) -> tuple[str, ...]:
    return await model_names(parse_upstream(url), CONFIG)


async def test_a_server_that_lists_models_is_read() -> None:
    with chat_server() as url:
        assert await names(url) == ("m",)


async def test_a_server_that_is_not_there_has_none() -> None:
    assert await names("http://127.0.0.1:9") == ()


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull",
        b'HTTP/1.0 200 OK\r\n\r\n{"data": [1, {"id": 2}]}',
        b"not http at all",
        b"",
    ],
)
async def test_any_other_answer_has_none(reply: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        assert await names(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") == ()


async def test_chunked_lists_are_read() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"data": [{"id": "a"}]}'
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        assert await names(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") == ("a",)
