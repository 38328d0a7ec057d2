"""Live: an exchange of a real recording is shown within a second; the same turn on two servers; runs that grow."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import httpx
from aiohttp import web

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from proxy.relay.server import RelayConfig
from proxy.session import RecordingSession, SessionOptions
from tests.support.journalled import Raw, events, record
from tests.support.recorded import answer, chat_request
from tests.support.viewing import viewing


async def little_server(content: str) -> tuple[web.AppRunner, str]:
    """An OpenAI-like server that always says the same."""

    async def chat(request: web.Request) -> web.Response:
        message = {"role": "assistant", "content": content}
        return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


async def test_an_exchange_is_shown_within_a_second(tmp_path: Path) -> None:
    first, first_url = await little_server("one")
    second, second_url = await little_server("two")
    options = SessionOptions(
        upstreams=(f"a={first_url}", f"b={second_url}"), out=tmp_path / "runs" / "live", relay=RelayConfig(upstreams=())
    )
    body = {"model": "m", "messages": [{"role": "user", "content": "the very same question"}]}
    delays = []
    async with RecordingSession(options) as session, viewing(tmp_path / "runs", cache=tmp_path / "cache") as viewer:
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.post(session.base_url("a") + "/v1/chat/completions", json=body)
            state = await viewer.until("live", lambda seen: seen["judged"] == 1)
            assert state["live"]
            for number in range(2, 5):
                upstream = "b" if number % 2 == 0 else "a"
                await client.post(session.base_url(upstream) + "/v1/chat/completions", json=body)
                began = time.monotonic()
                await viewer.until("live", lambda seen, wanted=number: seen["total"] >= wanted)  # type: ignore[misc]
                delays.append(time.monotonic() - began)
        await viewer.until("live", lambda seen: seen["judged"] == 4)
        assert min(delays) < 1.0
        assert await viewer.keys("live", "upstream:b") == ["2", "4"]
        found = await viewer.get("/api/runs/live/exchanges/1")
        assert [(row["key"], row["why"]) for row in found["beside"]] == [
            ("2", "the same question"),
            ("4", "the same question"),
        ]
    await first.cleanup()
    await second.cleanup()


async def test_an_exchange_that_goes_on_is_open_and_then_ends(tmp_path: Path) -> None:
    head, body = chat_request()
    recorder = Recorder(tmp_path / "run", "run", Redactor())
    recorder.start()
    said = events(Raw(head + body, answer(content="x")), 1, random.Random(1))
    async with viewing(tmp_path) as viewer:
        for event in said[:4]:
            recorder.put(event)
        await viewer.until("run", lambda seen: seen["total"] == 1)
        assert (await viewer.get("/api/runs/run/exchanges"))["rows"][0]["end"] == "open"
        found = await viewer.get("/api/runs/run/exchanges/1")
        assert found["row"]["end"] == "open"
        assert found["outcome"] is None
        for event in said[4:]:
            recorder.put(event)
        await viewer.until("run", lambda seen: seen["judged"] == 1)
        found = await viewer.get("/api/runs/run/exchanges/1")
        assert found["row"]["end"] == "complete"
        assert found["outcome"]["name"] == found["row"]["outcome"]
        recorder.close()
        state = await viewer.whole("run")
        assert state["total"] == 1


async def test_a_recording_added_to_a_grid_later_is_shown(tmp_path: Path) -> None:
    grid = tmp_path / "grid"
    head, body = chat_request()
    record(grid / "recordings" / "001", [Raw(head + body, answer(content="x"))])
    (grid / "episodes.jsonl").write_text('{"event":"header"}\n')
    async with viewing(tmp_path, cache=tmp_path / "cache") as viewer:
        assert (await viewer.whole("grid"))["total"] == 1
        await asyncio.to_thread(record, grid / "recordings" / "002", [Raw(head + body, answer(content="y"))] * 2)
        deadline = time.monotonic() + 20
        while (await viewer.get("/api/runs/grid"))["total"] < 3:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.2)
        await viewer.whole("grid")
        assert await viewer.keys("grid") == ["001.1", "002.1", "002.2"]
