"""Requests sent once more straight to the server: bounded, tagged, and never a reason to fail."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from aiohttp import web

from probe.pairing.gateway.direct_again import answered_again, ask_again
from probe.pairing.gateway.gateway_process import free_port
from probe.pairing.gateway.sides import compare_again
from proxy.session import RecordingSession, SessionOptions
from tests.support.between_relays import read_back, walked
from tests.support.simulated import http_server


async def test_a_server_that_is_gone_decides_nothing(tmp_path: Path) -> None:
    walk = await walked("drops_calls", tmp_path / "a", stream=False)
    options = SessionOptions(upstreams=(f"direct=http://127.0.0.1:{free_port()}",), out=tmp_path / "b" / "run")
    async with RecordingSession(options) as session:
        assert await ask_again(session, walk.on("front")) == 1
    (answer,) = read_back(tmp_path / "b")
    assert answer.tag("again") == str(walk.on("front")[0].attempt)
    assert compare_again([(walk.on("front")[0], answer)]) == []


async def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        await request.read()
        await asyncio.sleep(30)
        return web.Response()

    walk = await walked("none", tmp_path / "a", stream=True)
    begun = time.monotonic()
    async with http_server(silent) as server:
        options = SessionOptions(upstreams=(f"direct={server}",), out=tmp_path / "b" / "run")
        async with RecordingSession(options) as session:
            assert await ask_again(session, walk.on("front"), seconds=0.3) == 1
    assert time.monotonic() - begun < 10
    assert answered_again(read_back(tmp_path / "b")) == []
