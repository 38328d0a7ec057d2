"""The official `ollama` client and plain HTTP against the stand-in for Ollama, through the recording relay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from probe.known_answer import weather_request
from proxy.exchange_view import classify_run
from proxy.session import RecordingSession, SessionOptions
from results.reader import RunReader
from tests.support.replayed import MODES, VERSIONS, ReplayedOllama, replayed_ollama

ollama = pytest.importorskip("ollama")
TOOLS = weather_request("m", stream=False)["tools"]
Result = TypeVar("Result")


async def with_client(server: ReplayedOllama, folder: Path, work: Callable[[Any], Result]) -> Result:
    """Run `work(client)` in a thread: official client -> relay -> stand-in."""
    async with RecordingSession(SessionOptions(upstreams=(server.url,), out=folder)) as session:
        return await asyncio.to_thread(work, ollama.Client(host=session.base_url(), timeout=20))


def chat(client: Any, model: str, text: str = "What is the weather in Paris?", **more: Any) -> Any:
    options = {"num_predict": 64, "temperature": 0}
    messages = [{"role": "user", "content": text}]
    return client.chat(**{"model": model, "messages": messages, "tools": TOOLS, "options": options, **more})


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_same_call_fares_differently_in_the_four_ways_to_a_model(tmp_path: Path, version: str) -> None:
    def ask(mode: str) -> Callable[[Any], str]:
        def work(client: Any) -> str:
            try:
                message = chat(client, MODES[mode]).message
            except ollama.ResponseError as error:
                return f"{error.status_code} {error.error}"
            return message.tool_calls[0].function.name if message.tool_calls else f"text {message.content[:11]}"

        return work

    came = {}
    for mode in ("native", "gotoolsif", "gotools", "qwen3coder", "bare", "nogate"):
        async with replayed_ollama(version, mode) as server:
            came[mode] = await with_client(server, tmp_path / mode, ask(mode))
    refused = "400 registry.ollama.ai/library/canary-{}:latest does not support tools"
    assert came == {
        "native": "get_weather",
        "gotoolsif": "get_weather",
        "gotools": "text <tool_call>",
        "qwen3coder": "500 EOF",
        "bare": refused.format("bare"),
        "nogate": refused.format("nogate"),
    }


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_client_lists_shows_and_streams(tmp_path: Path, version: str) -> None:
    def work(client: Any) -> tuple[list[str], list[str], str, list[str]]:
        names = [model.model for model in client.list().models]
        shown = client.show("canary-gotoolsif")
        parts = list(chat(client, "canary-gotoolsif", stream=True))
        calls = [call.function.name for part in parts for call in part.message.tool_calls or []]
        return names, shown.capabilities, shown.template, [*calls, str(parts[-1].done_reason)]

    async with replayed_ollama(version) as server:
        names, capabilities, template, streamed = await with_client(server, tmp_path / "run", work)
    assert {"canary-native:latest", "smol:latest", "fmt-qwen3:latest"} <= set(names)
    assert sorted(capabilities) == ["completion", "tools"]
    assert "else if .ToolCalls" in template
    assert streamed == ["get_weather", "stop"]


async def test_a_stuck_runner_is_silent_until_it_is_unloaded(tmp_path: Path) -> None:
    async with (
        replayed_ollama("0.30.8", "qwen3coder") as server,
        httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=1.0) as client,
    ):

        async def ask(model: str, text: str) -> httpx.Response:
            body = {**weather_request(model, stream=False, trigger=text), "options": {"num_predict": 64}}
            return await client.post("/api/chat", json={**body, "stream": False})

        assert (await ask(server.model, "[[answer]]")).status_code == 200
        assert (await ask(server.model, "[[good]]")).json() == {"error": "EOF"}
        for model in (server.model, "canary-native"):
            with pytest.raises(httpx.ReadTimeout):
                await ask(model, "[[answer]]")
        assert (await client.get("/api/version")).json() == {"version": "0.30.8"}
        unloaded = await client.post("/api/chat", json={"model": server.model, "keep_alive": 0})
        assert unloaded.json()["done_reason"] == "unload"
        assert (await ask(server.model, "[[answer]]")).status_code == 200


async def test_what_no_capture_covers_is_refused_and_counted(tmp_path: Path) -> None:
    async with (
        replayed_ollama() as server,
        httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=5.0) as client,
    ):
        created = await client.post("/api/create", json={"model": "mine", "from": "canary-native"})
        assert created.status_code == 501
        assert created.headers["x-stacktap-error"] == "not_recorded"
        assert "no capture of Ollama 0.30.8 covers POST /api/create, model mine" in created.json()["error"]["message"]
        assert len(server.server.statistics.unseen) == 1


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_gate_refuses_on_all_four_routes_a_canary_that_writes_a_perfect_call(
    tmp_path: Path, version: str
) -> None:
    """The paper's finding: the refusal is Ollama's, from the model's files; the weights would have called."""
    tool = TOOLS[0]["function"]
    weather = {"role": "user", "content": "What is the weather in Paris?"}
    requests: dict[str, dict[str, Any]] = {
        "/api/chat": {"messages": [weather], "tools": TOOLS},
        "/v1/chat/completions": {"messages": [weather], "tools": TOOLS, "max_tokens": 24},
        "/v1/messages": {
            "messages": [weather],
            "max_tokens": 24,
            "tools": [{"name": tool["name"], "input_schema": tool["parameters"]}],
        },
        "/v1/responses": {"input": weather["content"], "tools": [{"type": "function", **tool}]},
    }
    folder = tmp_path / "run"
    async with (
        replayed_ollama(version, "bare") as server,
        RecordingSession(SessionOptions(upstreams=(server.url,), out=folder)) as session,
        httpx.AsyncClient(base_url=session.base_url(), trust_env=False, timeout=10.0) as client,
    ):
        for path, body in requests.items():
            for stream in (False, True):
                answer = await client.post(path, json={"model": server.model, "stream": stream, **body})
                assert answer.status_code == 400, path
                assert "does not support tools" in answer.text
        plain = {"model": server.model, "messages": [weather], "stream": False, "options": {"num_predict": 24}}
        free = await client.post("/api/chat", json=plain)
        # Without tools the same weights write the call: the model is able, and had no part in the refusals.
        assert free.json()["message"]["content"] == (
            '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
        )
    verdicts = [one.outcome for one in classify_run(RunReader(folder))]
    refusals = verdicts[:8]
    assert {(one.name, one.at_fault, one.model_ran, one.delivery) for one in refusals} == {
        ("gate.tools_unsupported", "config", "no", "refused")
    }
    assert all(one.remedy for one in refusals)
    assert verdicts[8].model_ran == "yes"
