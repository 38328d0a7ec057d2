"""The asker: budget, limits in time and size, failures told apart, and evidence that reads back from the journal."""

from __future__ import annotations

import asyncio
import json
import socket
import time
import zlib
from pathlib import Path

import pytest
from aiohttp import web

from probe.asking import MAX_ANSWER_BYTES, Asker, Budget, BudgetSpentError, NotAllowedError
from results.reader import RunReader
from stacks.serving.base import Answer, Ask, Steps
from tests.support.reading_back import reads_back
from tests.support.simulated import asking, http_server, json_answer, raw_server

CHAT = Ask(
    "POST",
    "/v1/chat/completions",
    {
        "model": "m",
        "messages": [{"role": "user", "content": "Weather?"}],
        "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}],
    },
    generates=True,
)


async def refusing(request: web.Request) -> web.Response:
    if request.method == "GET":
        return json_answer({"data": [{"id": "m"}]})
    return json_answer({"error": {"message": "m does not support tools", "type": "invalid_request_error"}}, 400)


async def test_an_answer_is_read_recorded_and_judged_with_evidence_that_reads_back(tmp_path: Path) -> None:
    async with http_server(refusing) as url, asking(url, tmp_path) as asker:
        listed = await asker.ask(Ask("GET", "/v1/models"))
        answer = await asker.ask(CHAT, probe="gate.tools", odd="a/b, c=d")
        assert listed.ok
        assert (answer.status, answer.failure, answer.number) == (400, "", 2)
        assert answer.get("error", "message") == "m does not support tools"
        judged = await asker.judged(answer)
        exchange = await asker.exchange(answer)
        assert judged is not None
        assert exchange is not None
        assert judged.outcome.name == "gate.tools_unsupported"
        assert dict(exchange.tags) == {"ask": "2", "probe": "gate.tools", "odd": "a/b, c=d"}
        cited = judged.outcome.evidence[0]
        assert all(reads_back(one, exchange.wire(one.direction)) for one in judged.outcome.evidence)
        assert b"does not support tools" in exchange.wire("response")[cited.start : cited.end]
    recorded = {exchange.attempt: exchange for exchange in RunReader(tmp_path / "run")}
    assert all(reads_back(one, recorded[one.attempt].wire(one.direction)) for one in judged.outcome.evidence)


async def test_what_is_forgotten_is_no_longer_held_and_the_rest_is(tmp_path: Path) -> None:
    async with http_server(refusing) as url, asking(url, tmp_path) as asker:
        first, second = await asker.ask(CHAT), await asker.ask(CHAT)
        for answer in (first, second):
            assert await asker.judged(answer) is not None
        asker.forget(first)
        asker.forget(first)
        assert set(asker._exchanges) == set(asker._judged) == {second.number}
        assert await asker.exchange(second) is not None


async def test_the_budget_ends_requests_and_counts_generations(tmp_path: Path) -> None:
    budget = Budget(requests=3)
    async with http_server(refusing) as url, asking(url, tmp_path, budget) as asker:
        await asker.ask(Ask("GET", "/v1/models"))
        await asker.ask(CHAT)
        await asker.ask(CHAT)
        with pytest.raises(BudgetSpentError, match="3 requests"):
            await asker.ask(CHAT)
    assert (budget.spent, budget.generations) == (3, 2)
    assert len(list(RunReader(tmp_path / "run"))) == 3


async def test_nothing_is_sent_after_the_time_limit(tmp_path: Path) -> None:
    budget = Budget(seconds=0.05)
    async with http_server(refusing) as url, asking(url, tmp_path, budget) as asker:
        await asyncio.sleep(0.06)
        with pytest.raises(BudgetSpentError, match="time limit"):
            await asker.ask(CHAT)
    assert budget.spent == 0


async def test_what_changes_the_server_is_refused_unless_allowed(tmp_path: Path) -> None:
    unload = Ask("POST", "/api/generate", {"model": "m", "keep_alive": 0}, purpose="unload m", changes=True)
    async with http_server(refusing) as url:
        async with asking(url, tmp_path / "no") as asker:
            with pytest.raises(NotAllowedError, match="unload m"):
                await asker.ask(unload)
            assert asker.budget.spent == 0
        async with asking(url, tmp_path / "yes", Budget(disruptive=True)) as asker:
            assert (await asker.ask(unload)).status == 400


async def test_follow_drives_a_dialogue_to_its_result(tmp_path: Path) -> None:
    def dialogue() -> Steps[list[int | None]]:
        first = yield Ask("GET", "/v1/models")
        second = yield Ask("POST", "/v1/chat/completions", {"model": first.get("data", 0, "id")})
        return [first.status, second.status]

    def silent() -> Steps[str]:
        yield from ()
        return "nothing asked"

    async with http_server(refusing) as url, asking(url, tmp_path) as asker:
        assert await asker.follow(dialogue()) == [200, 400]
        assert await asker.follow(silent()) == "nothing asked"


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    while True:
        await response.write(b'data: {"choices":[{"index":0,"delta":{"content":"la "}}]}\n\n')
        await asyncio.sleep(0.02)


async def test_a_stream_that_never_ends_is_cut_off_in_time_and_still_judged(tmp_path: Path) -> None:
    async with http_server(endless) as url, asking(url, tmp_path) as asker:
        began = time.monotonic()
        answer = await asker.ask(Ask("POST", "/v1/chat/completions", {**CHAT.body, "stream": True}, seconds=0.4))
        assert time.monotonic() - began < 3
        assert (answer.status, answer.failure, answer.ok) == (200, "timeout", False)
        assert b"la " in answer.body
        judged = await asker.judged(answer)
        assert judged is not None
        assert judged.facts.text.startswith("la ")


async def gigabyte(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "application/json"})
    await response.prepare(request)
    for _ in range(1 << 14):
        await response.write(b" " * (1 << 16))
    return response


async def test_a_gigabyte_is_not_read_to_its_end(tmp_path: Path) -> None:
    async with http_server(gigabyte) as url, asking(url, tmp_path) as asker:
        answer = await asker.ask(CHAT)
        assert (answer.failure, len(answer.body)) == ("too_long", MAX_ANSWER_BYTES)
        exchange = await asker.exchange(answer)
        assert exchange is not None
        assert len(exchange.wire("response")) < 16 * MAX_ANSWER_BYTES


async def test_a_small_compressed_body_does_not_unpack_to_gigabytes(tmp_path: Path) -> None:
    packer = zlib.compressobj(wbits=31)
    packed = b"".join(packer.compress(b"\0" * (1 << 20)) for _ in range(32)) + packer.flush()

    async def bomb(request: web.Request) -> web.Response:
        return web.Response(body=packed, headers={"content-encoding": "gzip"})

    async with http_server(bomb) as url, asking(url, tmp_path) as asker:
        answer = await asker.ask(CHAT)
    assert (answer.failure, len(answer.body)) == ("too_long", MAX_ANSWER_BYTES)


async def test_a_compressed_answer_is_read_and_a_lying_coding_is_broken(tmp_path: Path) -> None:
    async def coded(request: web.Request) -> web.Response:
        body = zlib.compress(b'{"data": []}') if request.method == "GET" else b'{"data": []}'
        return web.Response(body=body, headers={"content-encoding": "deflate"})

    async with http_server(coded) as url, asking(url, tmp_path) as asker:
        assert (await asker.ask(Ask("GET", "/"))).value == {"data": []}
        assert (await asker.ask(Ask("POST", "/", {}))).failure == "broken"


async def resets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.abort()


async def stops_short(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"choices"')
    await writer.drain()


async def no_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"220 mail.example ESMTP\r\n")
    await writer.drain()


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@pytest.mark.parametrize(
    ("handler", "failure", "status", "layer"),
    [
        (resets, "broken", None, "transport"),
        (stops_short, "broken", 200, "transport"),
        (no_http, "broken", None, "transport"),
        (silent, "timeout", None, "transport"),
    ],
)
async def test_answers_that_do_not_come_are_told_apart(
    tmp_path: Path, handler: object, failure: str, status: int | None, layer: str
) -> None:
    async with raw_server(handler) as url, asking(url, tmp_path) as asker:  # type: ignore[arg-type]
        answer = await asker.ask(Ask("POST", CHAT.path, CHAT.body, seconds=0.5))
        assert (answer.failure, answer.status, answer.ok) == (failure, status, False)
        judged = await asker.judged(answer)
        assert judged is not None
        assert judged.outcome.layer == layer


async def test_a_server_that_closes_after_an_error_does_not_spoil_the_next_answer(tmp_path: Path) -> None:
    async def closes_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        await reader.read(1)  # the next request, if it comes on this connection, is met with a close

    async with raw_server(closes_late) as url, asking(url, tmp_path) as asker:
        statuses = [(await asker.ask(Ask("GET", "/"))).status for _ in range(3)]
    assert statuses == [500, 500, 500]


async def test_a_dead_port_is_no_answer_and_not_the_relays(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with asking(f"http://127.0.0.1:{port}", tmp_path) as asker:
        answer = await asker.ask(CHAT)
        assert (answer.failure, answer.status) == ("connect", None)
        judged = await asker.judged(answer)
        assert judged is not None
        assert judged.outcome.name == "transport.connect"


async def test_tls_to_a_plain_port_is_no_answer(tmp_path: Path) -> None:
    async with http_server(refusing) as url, asking(url.replace("http:", "https:"), tmp_path) as asker:
        answer = await asker.ask(CHAT)
    assert (answer.failure, answer.status) == ("connect", None)


async def test_bodies_that_utf8_cannot_hold_are_sent_as_escapes(tmp_path: Path) -> None:
    seen: list[bytes] = []

    async def keep(request: web.Request) -> web.Response:
        seen.append(await request.read())
        return json_answer({})

    async with http_server(keep) as url, asking(url, tmp_path) as asker:
        await asker.ask(Ask("POST", "/", {"a": "x\ud800", "b": "é"}))
        await asker.ask(Ask("POST", "/", raw=b"{not json"))
        await asker.ask(Ask("GET", "/"))
    assert json.loads(seen[0]) == {"a": "x\ud800", "b": "é"}
    assert seen[1:] == [b"{not json", b""]


async def test_the_users_headers_go_along_and_stay_off_the_record(tmp_path: Path) -> None:
    seen: list[str | None] = []

    async def keep(request: web.Request) -> web.Response:
        seen.append(request.headers.get("authorization"))
        return json_answer({})

    headers = {"authorization": "Bearer sk-canary-9a8b7c6d5e"}
    async with http_server(keep) as url, asking(url, tmp_path, headers=headers) as asker:
        await asker.ask(Ask("GET", "/"))
    assert seen == ["Bearer sk-canary-9a8b7c6d5e"]
    assert all(b"sk-canary-9a8b7c6d5e" not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


async def test_an_answer_that_was_never_sent_has_no_record(tmp_path: Path) -> None:
    async with http_server(refusing) as url, asking(url, tmp_path) as asker:
        never = Answer(CHAT)
        assert await asker.exchange(never) is None
        assert await asker.judged(never) is None


async def test_answers_are_judged_as_the_identified_stacks(tmp_path: Path) -> None:
    async with http_server(refusing) as url, asking(url, tmp_path) as asker:
        asker.identify("ollama", "0.30.8")
        judged = await asker.judged(await asker.ask(CHAT))
    assert judged is not None
    assert judged.facts.stack == "ollama"


async def test_many_askings_at_once_keep_their_numbers(tmp_path: Path) -> None:
    async def echo(request: web.Request) -> web.Response:
        return json_answer({"path": request.path})

    async def one(asker: Asker, number: int) -> bool:
        answer = await asker.ask(Ask("GET", f"/p{number}"))
        exchange = await asker.exchange(answer)
        return exchange is not None and exchange.request is not None and exchange.request.path == answer.get("path")

    async with http_server(echo) as url, asking(url, tmp_path) as asker:
        assert all(await asyncio.gather(*(one(asker, number) for number in range(20))))
