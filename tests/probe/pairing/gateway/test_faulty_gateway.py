"""Our faulty gateway without a fault changes nothing, and passes pieces on as they come."""

from __future__ import annotations

import asyncio
import time

import httpx
import pytest
from aiohttp import web

from tests.support.faulty_gateway.gateway import faulty_gateway
from tests.support.simulated import http_server

ODD = b'data: {"choices": [ {"delta": {"content" : "\\u00e9"}}]}\r\n\r\n: c\n\ndata: not json\n\ndata: [DONE]\n\n'


async def _odd(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Kept": "1"})
    await response.prepare(request)
    for start in range(0, len(ODD), 11):
        await response.write(ODD[start : start + 11])
    await response.write_eof()
    return response


@pytest.mark.parametrize("fault", ["none", "buffers", "drops_usage", "closes_in_arguments"])
async def test_what_a_fault_does_not_touch_is_byte_equal(fault: str) -> None:
    async with http_server(_odd) as server, httpx.AsyncClient(trust_env=False) as client:
        with faulty_gateway(server, fault) as url:
            answer = await client.post(f"{url}/v1/chat/completions", json={"stream": True})
    assert answer.content == ODD
    assert answer.headers["x-kept"] == "1"


async def test_without_a_fault_each_piece_goes_on_at_once() -> None:
    async def slow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: {}\n\n")
        await asyncio.sleep(0.5)
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    times: dict[str, list[float]] = {}
    async with http_server(slow) as server, httpx.AsyncClient(trust_env=False) as client:
        for fault in ("none", "crlf_lines", "buffers"):
            with faulty_gateway(server, fault) as url:
                begun = time.monotonic()
                async with client.stream("POST", f"{url}/v1/chat/completions", json={"stream": True}) as answer:
                    times[fault] = [time.monotonic() - begun async for _ in answer.aiter_raw()]
    assert times["none"][0] < 0.4
    assert times["crlf_lines"][0] < 0.4
    assert times["buffers"][0] >= 0.5
