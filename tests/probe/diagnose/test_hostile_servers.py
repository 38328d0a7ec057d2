"""Servers and gateways that are wrong in ways a forgiving reader does not mind, and whom a diagnosis then blames."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from probe.diagnose import Options, diagnose
from stacks.serving.ollama import Ollama
from tests.probe.diagnose.test_triage import calling, examined
from tests.support.replayed import replayed_ollama
from tests.support.simulated import (
    _chunks,
    completion,
    error,
    http_server,
    json_answer,
    raw_server,
)

Body = dict[str, Any]
Answered = dict[str, Any] | web.StreamResponse


def page(status: int, title: str) -> web.Response:
    text = f"<html><head><title>{status} {title}</title></head><body><hr><center>nginx/1.24.0</center></body></html>"
    return web.Response(status=status, text=text, content_type="text/html")


def streaming(
    change: Callable[[dict[str, Any]], web.StreamResponse], *, tools: bool = True
) -> Callable[[Body], Answered]:
    """A good server whose streams are changed (`tools`: only those that offer tools)."""

    def answer(body: Body) -> Answered:
        if body.get("stream") and (body.get("tools") or not tools):
            return change(calling(body))
        return calling(body)

    return answer


def plain(change: Callable[[dict[str, Any]], Any]) -> Callable[[Body], Answered]:
    """A good server whose plain answers with calls are changed."""

    def answer(body: Body) -> Answered:
        whole = calling(body)
        if body.get("stream") or not whole["choices"][0]["message"].get("tool_calls"):
            return whole
        changed = change(whole)
        return whole if changed is None else changed

    return answer


def events(data: bytes, kind: str = "text/event-stream") -> web.Response:
    return web.Response(body=data, content_type=kind)


def former(whole: dict[str, Any]) -> None:
    message = whole["choices"][0]["message"]
    message["function_call"] = message.pop("tool_calls")[0]["function"]
    whole["choices"][0]["finish_reason"] = "function_call"


NATIVE = {
    "model": "m",
    "created_at": "2026-01-01T00:00:00Z",
    "message": {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}],
    },
    "done": True,
    "done_reason": "stop",
}
LIE = {"content-encoding": "gzip", "content-type": "application/json"}


def redirected(where: str, status: int = 307) -> Callable[[Body], Answered]:
    return lambda body: web.Response(status=status, headers={"Location": where})


def null_refused(body: Body) -> Answered:
    if any(message.get("content", "") is None for message in body["messages"]):
        return error("messages.2.content: Input should be a valid string", 422)
    return calling(body)


SERVERS: dict[str, tuple[Callable[[Body], Answered], str, str, str]] = {
    "events without blank lines": (
        streaming(lambda whole: events(_chunks(whole).replace(b"\n\n", b"\n"))),
        "protocol.malformed_answer",
        "undetermined",
        "--direct",
    ),
    "a plain body for a stream": (streaming(json_answer), "protocol.malformed_answer", "undetermined", "--direct"),
    "Ollama's dialect on OpenAI's route": (
        plain(lambda whole: json_answer(NATIVE)),
        "protocol.malformed_answer",
        "undetermined",
        "--direct",
    ),
    "a coding that is none": (
        plain(lambda whole: web.Response(body=json.dumps(whole).encode(), headers=LIE)),
        "transport.not_http",
        "undetermined",
        "--direct",
    ),
    "the former function_call": (plain(former), "protocol.malformed_answer", "undetermined", "--direct"),
    "a redirect": (redirected("/api2/v1/chat/completions", 301), "transport.wrong_route", "client", "/api2/v1/chat"),
    "a redirect to a login": (redirected("https://sso.example.com/login"), "transport.auth", "client", "log in"),
    "a refused host": (
        lambda body: web.Response(status=403, text="Invalid Host header"),
        "transport.host_refused",
        "config",
        "Host",
    ),
    "a limit on bodies": (
        lambda body: page(413, "Request Entity Too Large"),
        "transport.gateway",
        "network",
        "client_max_body_size",
    ),
    "no model loaded": (
        lambda body: error("No models loaded. Please load a model in the developer page.", 404),
        "gate.model_not_found",
        "client",
        "load a model",
    ),
    "an embedding server": (
        lambda body: error("This server does not support completions. Start it without `--embeddings`", 501),
        "gate.capability_unsupported",
        "config",
        "launch flags",
    ),
    "no streams with tools": (
        streaming(lambda whole: error("Streaming is not supported with tools")),
        "gate.capability_unsupported",
        "config",
        "leave the feature out",
    ),
    "null beside a call": (null_refused, "request.bad_history", "stack", '"content": ""'),
    "stream_options unknown": (
        lambda body: (
            error("Unrecognized request argument: stream_options") if "stream_options" in body else calling(body)
        ),
        "request.invalid_param",
        "stack",
        "stream_options",
    ),
    "tools left out of streams": (
        streaming(lambda whole: events(_chunks(completion("I have no tools.", prompt=20)))),
        "template.tools_absent",
        "undetermined",
        "--direct",
    ),
    "an endless thought": (
        lambda body: completion(
            "",
            finish="length",
            spent=body.get("max_tokens") or 4096,
            prompt=120 if body.get("tools") else 20,
            reasoning_content="hmm " * (body.get("max_tokens") or 4096),
        ),
        "truncation.output_budget",
        "undetermined",
        "thinking off",
    ),
}


@pytest.mark.parametrize("name", SERVERS)
async def test_what_no_client_can_use_is_a_fault_and_nobody_is_blamed_for_it_without_evidence(
    tmp_path: Path, name: str
) -> None:
    answer, wanted, fault, says = SERVERS[name]
    found = await examined(tmp_path, answer)
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.at_fault) == (wanted, fault)
    assert says in found.remedy
    assert found.outcome.evidence
    if fault == "undetermined":
        assert found.decide_by


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (streaming(lambda whole: events(_chunks(whole).replace(b"data: [DONE]\n\n", b"")), tools=False), "[DONE]"),
        (streaming(lambda whole: events(_chunks(whole), "application/json")), "announced"),
        (plain(lambda whole: web.Response(body=b"\xef\xbb\xbf" + json.dumps(whole).encode())), "byte order mark"),
        (lambda body: calling(body) | {"model": "other-7b"}, "other-7b"),
    ],
    ids=["no end mark", "wrong content type", "byte order mark", "another model"],
)
async def test_what_clients_forgive_is_healthy_and_said(
    tmp_path: Path, answer: Callable[[Body], Answered], said: str
) -> None:
    found = await examined(tmp_path, answer)
    assert found.healthy
    assert any(said in note for note in found.notes)


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "thinking"])
async def test_reasoning_in_any_field_beside_a_call_is_healthy_without_a_note(tmp_path: Path, field: str) -> None:
    def answer(body: Body) -> Answered:
        whole = calling(body)
        whole["choices"][0]["message"][field] = "Paris, so the weather tool."
        return whole

    found = await examined(tmp_path, answer)
    assert found.healthy
    assert found.notes == []


async def test_a_fault_that_is_over_with_the_next_request_is_no_verdict_on_tools(tmp_path: Path) -> None:
    seen: list[Body] = []

    def cold(body: Body) -> Answered:
        seen.append(body)
        return error("Internal Server Error", 500) if len(seen) == 1 else calling(body)

    found = await examined(tmp_path, cold)
    assert found.healthy
    assert any("comes and goes" in note for note in found.notes)


async def test_one_that_stays_is_judged_as_before(tmp_path: Path) -> None:
    found = await examined(tmp_path, lambda body: error("CUDA error: out of memory", 500))
    assert found.outcome is not None
    assert found.outcome.layer == "engine"
    assert "Without tools it is the same." in found.explained


async def test_a_server_that_calls_by_chance_is_not_called_a_fault_of_its_stream(tmp_path: Path) -> None:
    seen: list[Body] = []

    def chance(body: Body) -> Answered:
        seen.append(body)
        return calling(body) if len(seen) == 1 else completion("Not today.", prompt=120)

    found = await examined(tmp_path, chance)
    assert found.outcome is not None
    assert found.outcome.at_fault == "undetermined"
    assert "differently each time" in found.outcome.detail
    assert found.remedy == ""


@pytest.mark.parametrize("counted", [0, 120], ids=["counts nothing", "a constant"])
async def test_a_canned_answer_is_not_laid_on_the_model(tmp_path: Path, counted: int) -> None:
    found = await examined(tmp_path, lambda body: completion("Hello! How can I help?", prompt=counted))
    assert found.outcome is not None
    assert found.outcome.at_fault != "model"
    assert found.outcome.confidence != "high"
    assert "own doing" not in found.headline


async def test_a_name_that_is_not_served_is_set_right_with_the_names_that_are(tmp_path: Path) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        if request.path == "/v1/models":
            return json_answer({"object": "list", "data": [{"id": "org/Model-7B", "object": "model"}]})
        if request.path != "/v1/chat/completions":
            return error("Not Found", 404)
        return error("The model `model-7b` does not exist.", 404)

    async with http_server(handle) as url:
        found = await diagnose(url, Options(model="model-7b", out=tmp_path / "run"))
    assert found.outcome is not None
    assert found.outcome.name == "gate.model_not_found"
    assert "org/Model-7B" in found.remedy


async def test_a_silent_server_is_not_a_client_that_left(tmp_path: Path) -> None:
    async def silent(reader: Any, writer: Any) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if head.startswith("GET"):
            body = b'{"object": "list", "data": [{"id": "m", "object": "model"}]}'
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body))
            writer.write(body)
            await writer.drain()
        await reader.read()

    async with raw_server(silent) as url:
        found = await diagnose(url, Options(out=tmp_path / "run", seconds=2))
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.at_fault) == ("transport.timeout_read", "undetermined")
    assert found.decide_by


def unframed(change: Callable[[bytes], tuple[bytes, int]]) -> Any:
    """A server that frames chat answers as `change` says: from the body to what is sent, and its content-length."""

    async def handle(reader: Any, writer: Any) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = head.partition("content-length: ")[2].partition("\r")[0]
        body = await reader.readexactly(int(length or 0))
        kind = "application/json"
        if head.startswith("get /v1/models "):
            sent, said = json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}).encode(), 0
            said = len(sent)
        elif head.startswith("post /v1/chat/completions "):
            asked_for = json.loads(body)
            whole = calling(asked_for)
            kind = "text/event-stream" if asked_for["stream"] else kind
            sent, said = change(_chunks(whole) if asked_for["stream"] else json.dumps(whole).encode())
        else:
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            return
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {said}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + sent)
        await writer.drain()
        if said > 1_000_000:
            await reader.read()

    return handle


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda body: (body, len(body)), ""),
        (lambda body: (body, len(body) - 7), "protocol.malformed_answer"),
        (lambda body: (body, len(body) + 40), "transport.stream_truncated"),
        (lambda body: (body.replace(b"data: [DONE]\n\n", b""), 2_000_000), "transport.timeout_read"),
        (lambda body: (body, 2_000_000 if b"data: " in body else len(body)), ""),
    ],
    ids=["right", "too short", "too long", "never ended", "never ended after the end mark"],
)
async def test_an_answer_whose_frame_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, wanted: str
) -> None:
    monkeypatch.setattr("probe.asking.ANSWER_SECONDS", 0.6)
    async with raw_server(unframed(change)) as url:
        found = await diagnose(url, Options(out=tmp_path / "run", seconds=20))
    assert (found.outcome.name if found.outcome is not None else "") == wanted
    assert found.outcome is None or found.outcome.at_fault == "undetermined"


async def test_a_server_that_is_slow_is_told_from_one_that_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probe.asking.ANSWER_SECONDS", 0.5)

    async def slow(request: web.Request) -> web.StreamResponse:
        if request.path == "/v1/models":
            return json_answer({"object": "list", "data": [{"id": "m", "object": "model"}]})
        if request.path != "/v1/chat/completions":
            return error("Not Found", 404)
        body = json.loads(await request.read())
        if body["stream"]:
            return events(_chunks(calling(body)))
        await asyncio.sleep(30)
        return json_answer(calling(body))

    async with http_server(slow) as url:
        found = await diagnose(url, Options(out=tmp_path / "run", seconds=20))
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.at_fault) == ("transport.timeout_read", "client")
    assert "slow, not silent" in found.remedy


async def test_the_base_that_is_in_use_is_no_remedy(tmp_path: Path) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        if request.path == "/v1/models":
            return json_answer({"object": "list", "data": [{"id": "m", "object": "model"}]})
        return web.Response(status=404, text="404 page not found")

    async with http_server(handle) as url:
        found = await diagnose(f"{url}/v1", Options(out=tmp_path / "run"))
    assert found.outcome is not None
    assert found.outcome.name == "transport.wrong_route"
    assert url not in found.remedy


async def test_a_stuck_runner_gets_no_further_generation(tmp_path: Path) -> None:
    async with replayed_ollama("0.30.8", "qwen3coder") as at:
        found = await diagnose(at.url, Options(model=at.model, out=tmp_path / "run", seconds=20))
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.at_fault) == ("parser.server_error", "config")
    assert "PARSER" in found.remedy
    assert found.generations == 1
    assert any("stuck" in note and "keep_alive" in note for note in found.notes)


async def test_a_version_that_recovers_is_asked_on(tmp_path: Path) -> None:
    async with replayed_ollama("0.32.15", "qwen3coder") as at:
        found = await diagnose(at.url, Options(model=at.model, out=tmp_path / "run", seconds=20))
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.at_fault) == ("parser.server_error", "config")
    assert found.generations > 1
    assert not any("stuck" in note for note in found.notes)


@pytest.mark.parametrize(
    ("version", "parser", "stuck"),
    [
        ("0.30.8", "qwen3-coder (PARSER)", True),
        ("", "qwen3-coder (PARSER)", True),
        ("0.32.15", "qwen3-coder (PARSER)", False),
        ("0.30.8", "llama.cpp's, made from the jinja template of the GGUF", False),
    ],
)
def test_when_a_runner_is_stuck(version: str, parser: str, stuck: bool) -> None:
    assert bool(Ollama().stuck_after("parser.server_error", version, parser)) is stuck
    assert not Ollama().stuck_after("parser.left_as_text", version, parser)
