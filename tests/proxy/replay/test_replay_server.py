"""The replay server: servers by their prefix, tags, timing, resets that lose nothing, and the official clients."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import anthropic
import httpx
import openai
import pytest

from proxy.replay.recordings import RecordedAnswer, Recordings
from proxy.replay.server import ReplayServer
from proxy.replay.sources import answers_of_captures, answers_of_run
from proxy.session import RecordingSession, SessionOptions
from results.reader import RunReader
from tests.support.corpus import carried
from tests.support.servers import chat_server

Result = TypeVar("Result")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"


def answered(text: bytes, **more: Any) -> RecordedAnswer:
    facts: dict[str, Any] = {"pieces": ((0, OK % (len(text), text)),), "ended": "keep", "source": "s", **more}
    return RecordedAnswer("POST", "/v1/x", b"{}", **facts)


async def served(
    answers: list[RecordedAnswer], work: Callable[[str], Result], *, original_timing: bool = False
) -> tuple[Result, ReplayServer]:
    """What `work(url)` gives in a thread, against a replay."""
    server = ReplayServer(Recordings(answers), original_timing=original_timing)
    url = await server.start()
    try:
        return await asyncio.to_thread(work, url), server
    finally:
        await server.stop()


def posted(url: str, **more: Any) -> str:
    return httpx.post(url, content=b"{}", trust_env=False, timeout=20, **more).text


async def test_a_path_led_by_a_servers_name_is_of_that_server() -> None:
    answers = [answered(b"a", upstream="a"), answered(b"b", upstream="b")]

    def work(url: str) -> list[str]:
        tagged = f"{url}/a/t/episode=e,seed=3/v1/x"
        return [posted(f"{url}/b/v1/x"), posted(tagged), posted(f"{url}/b/v1/x"), posted(f"{url}/c/v1/x")[:10]]

    found, server = await served(answers, work)
    assert found == ["b", "a", "b", '{"error": ']
    assert server.statistics.served == 3
    assert "nothing was recorded for POST /c/v1/x" in server.statistics.unseen[0]


async def test_a_path_that_only_looks_like_a_servers_name_is_found() -> None:
    found, _ = await served([answered(b"a", upstream="v1")], lambda url: posted(f"{url}/v1/x"))
    assert found == "a"


@pytest.mark.parametrize("where", ["path", "header"])
async def test_tags_choose_among_equal_requests(where: str) -> None:
    answers = [answered(name.encode(), tags=(("e", name),)) for name in ("1", "2", "3")]

    def work(url: str) -> list[str]:
        if where == "path":
            return [posted(f"{url}/t/e={name}/v1/x") for name in ("3", "1", "2")]
        return [posted(f"{url}/v1/x", headers={"x-stacktap-tag": f"e={name}"}) for name in ("3", "1", "2")]

    found, _ = await served(answers, work)
    assert found == ["3", "1", "2"]


@pytest.mark.parametrize("original", [True, False])
async def test_pauses_are_kept_or_not(original: bool) -> None:
    pieces = ((100_000, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na"), (400_000, b"b"))

    def work(url: str) -> float:
        begun = time.monotonic()
        assert posted(f"{url}/v1/x") == "ab"
        return time.monotonic() - begun

    seconds, _ = await served([answered(b"", pieces=pieces)], work, original_timing=original)
    assert (seconds >= 0.4) == original


@pytest.mark.parametrize("size", [10, 3_000_000])
async def test_a_reset_comes_after_every_byte(size: int) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"
    server = ReplayServer(Recordings([answered(b"", pieces=((0, head + b"x" * size),), ended="reset")]))
    url = await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(b"POST /v1/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
    received = 0
    with pytest.raises(ConnectionResetError):  # noqa: PT012
        while data := await asyncio.wait_for(reader.read(65536), 10):
            received += len(data)
    assert received == len(head) + size
    writer.close()
    await server.stop()


async def test_what_went_silent_stays_silent_after_its_bytes() -> None:
    server = ReplayServer(Recordings([answered(b"", pieces=((0, b"HTTP/1.1 200 OK\r\n"),), ended="hang")]))
    url = await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(b"POST /v1/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
    assert await asyncio.wait_for(reader.readexactly(17), 5) == b"HTTP/1.1 200 OK\r\n"
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(1), 0.2)
    writer.close()
    await server.stop()


async def test_a_recorded_base_url_may_be_kept(tmp_path: Path) -> None:
    with chat_server() as first, chat_server() as second:
        options = SessionOptions(upstreams=(f"one={first}/v9", f"two={second}"), out=tmp_path / "run", by_prefix=True)
        async with RecordingSession(options) as session:
            base = session.base_url("one")
            body = {"model": "m", "messages": []}
            await asyncio.to_thread(lambda: httpx.post(f"{base}/chat/completions", json=body, trust_env=False))
    answers = list(answers_of_run(RunReader(tmp_path / "run")))
    path = httpx.URL(base).path

    def work(url: str) -> list[int]:
        targets = (f"{url}{path}/chat/completions", f"{url}/chat/completions", f"{url}/v9/chat/completions")
        return [httpx.post(target, json=body, trust_env=False).status_code for target in targets]

    found, _ = await served(answers, work)
    assert found == [200, 200, 200]


def captured(path: str, *, stream: bool, holding: bytes = b"") -> tuple[dict[str, Any], RecordedAnswer]:
    """A capture of a real server: its request, and its answer, of status 200 and with these bytes in it."""
    lines = [line.decode() for line in carried("captures.jsonl.zst") if path.encode() in line]
    for answer in answers_of_captures([line for line in lines if '"request"' in line], "captures"):
        raw = b"".join(data for _, data in answer.pieces)
        if answer.path == path and raw.startswith(b"HTTP/1.1 200") and holding in raw and b'"error"' not in raw:
            asked: dict[str, Any] = json.loads(answer.body)
            if bool(asked.get("stream")) == stream:
                return asked, answer
    raise AssertionError(f"no capture on {path} holds {holding!r}")


async def test_the_official_openai_client() -> None:
    plain, first = captured("/v1/chat/completions", stream=False, holding=b'"tool_calls"')
    streamed, second = captured("/v1/chat/completions", stream=True, holding=b'"tool_calls"')

    def work(url: str) -> tuple[Any, list[Any]]:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client:
            whole = client.chat.completions.create(**plain)
            return whole.choices[0], list(client.chat.completions.create(**streamed))

    (choice, pieces), server = await served([first, second], work)
    assert choice.message.tool_calls
    called = [call for piece in pieces for choice in piece.choices for call in choice.delta.tool_calls or []]
    assert any(call.function.name for call in called)
    assert server.statistics.unseen == []


@pytest.mark.parametrize("stream", [False, True])
async def test_the_official_anthropic_client(stream: bool) -> None:
    asked, first = captured("/v1/messages", stream=stream)

    def work(url: str) -> list[str]:
        with anthropic.Anthropic(base_url=url, api_key="x", max_retries=0) as client:
            if not stream:
                return [client.messages.create(**asked).type]
            return [event.type for event in client.messages.create(**asked)]

    kinds, server = await served([first], work)
    assert kinds[0] == ("message_start" if stream else "message")
    assert server.statistics.unseen == []
