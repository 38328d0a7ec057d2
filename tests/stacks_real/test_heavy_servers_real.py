"""vLLM and SGLang as ``stacktap up`` starts them on a processor, with a real canary: calls, refusals, failures, ends.

Each start takes half a minute or more on two cores; they run one after the other. A stack without its environment
(``make stack-vllm``, ``make stack-sglang``) is skipped by name.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from probe.canary import BuiltCanary, build, default_spec
from proxy.event_loop import run
from proxy.exchange_view import classify_run
from proxy.session import RecordingSession, SessionOptions
from results.reader import RunReader
from stacks.launching.launch import (
    EnvironmentMissingError,
    LaunchError,
    LaunchOptions,
    RunningServer,
    ServerDiedError,
    find_server,
    recipe_for,
    running_server,
    start_server,
)
from tests.support.processes import is_loopback, listening_addresses, session_members
from tests.support.servers import ROOT, command_line

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

STACKS = ("vllm", "sglang")
WITH_PARSER = {
    "vllm": ("--enable-auto-tool-choice", "--tool-call-parser", "hermes"),
    "sglang": ("--tool-call-parser", "hermes"),
}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
QUESTION = [{"role": "user", "content": "What is the weather in Paris?"}]


def require(stack: str) -> None:
    try:
        find_server(recipe_for(stack))
    except EnvironmentMissingError as missing:
        pytest.skip(f"{stack}: environment not ready: {missing}")


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    return build(default_spec(), tmp_path_factory.mktemp("model") / "canary-hermes")


@pytest.fixture(scope="class", params=STACKS)
def server(
    request: pytest.FixtureRequest, canary: BuiltCanary, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    require(request.param)
    options = LaunchOptions(flags=WITH_PARSER[request.param], log_folder=tmp_path_factory.mktemp("logs"))
    with running_server(request.param, canary.folder, options) as running:
        yield running
    assert session_members(running.pid) == []


def through_the_relay(url: str, folder: Path, work: Callable[[str], Any]) -> tuple[Any, list[str]]:
    """Run `work(base URL)` against relay -> server; its result and the names of the outcomes of the record."""

    async def session() -> Any:
        async with RecordingSession(SessionOptions(upstreams=(url,), out=folder)) as recording:
            return await asyncio.to_thread(work, recording.base_url())

    result = run(session())
    return result, [judged.outcome.name for judged in classify_run(RunReader(folder))]


class TestWithItsParser:
    """One start for all of them; the server is gone before the next one starts."""

    def test_it_serves_the_model_under_its_folder_s_name(self, server: RunningServer) -> None:
        (model,) = httpx.get(f"{server.url}/v1/models", timeout=10).json()["data"]
        assert (model["id"], model["owned_by"]) == ("canary-hermes", server.stack)
        assert model["max_model_len"] >= 16384
        path = "/version" if server.stack == "vllm" else "/server_info"
        assert httpx.get(server.url + path, timeout=10).json()["version"] == server.version

    def test_none_of_its_processes_listens_beyond_loopback(self, server: RunningServer) -> None:
        listening = listening_addresses(server.pid)
        assert int(server.url.rpartition(":")[2]) in {port for _, port in listening}
        assert len(session_members(server.pid)) > 1
        assert [pair for pair in listening if not is_loopback(pair[0])] == []

    def test_a_native_call_plain_and_streaming_through_the_relay(self, server: RunningServer, tmp_path: Path) -> None:
        def work(base: str) -> list[tuple[str, Any]]:
            asked: dict[str, Any] = {
                "model": "canary-hermes",
                "messages": QUESTION,
                "tools": [WEATHER],
                "max_tokens": 64,
            }
            with openai.OpenAI(base_url=f"{base}/v1", api_key="unused-key-000", max_retries=0, timeout=120) as client:
                plain = client.chat.completions.create(**asked).choices[0].message.tool_calls[0].function
                name, arguments = "", ""
                for chunk in client.chat.completions.create(**asked, stream=True):
                    for call in (chunk.choices[0].delta.tool_calls or []) if chunk.choices else []:
                        name += call.function.name or ""
                        arguments += call.function.arguments or ""
            return [(plain.name, json.loads(plain.arguments)), (name, json.loads(arguments))]

        result, outcomes = through_the_relay(server.url, tmp_path / "run", work)
        assert result == [("get_weather", {"city": "Paris"})] * 2
        assert outcomes == ["ok.native_call", "ok.native_call"]


@pytest.mark.parametrize("stack", STACKS)
def test_without_flags_it_refuses_in_its_own_way_and_ends_with_stacktap(
    stack: str, canary: BuiltCanary, tmp_path: Path
) -> None:
    require(stack)
    command = command_line("up", stack, "--model", str(canary.folder), "--json")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path / "state")}
    up = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert up.stdout is not None
    try:
        facts = json.loads(up.stdout.readline())
        assert "--tool-call-parser" not in facts["command"]
        body = {"messages": QUESTION, "tools": [WEATHER], "max_tokens": 64, "temperature": 0}
        reply, outcomes = through_the_relay(
            facts["url"],
            tmp_path / "run",
            lambda base: httpx.post(f"{base}/v1/chat/completions", json=body, timeout=120, trust_env=False),
        )
        if stack == "vllm":
            assert reply.status_code == 400
            assert '"auto" tool choice requires' in reply.json()["error"]["message"]
            assert outcomes == ["gate.parser_not_configured"]
        else:  # it renders the tools, and hands the call on as text
            assert reply.json()["choices"][0]["message"]["content"].startswith("<tool_call>")
            assert httpx.get(f"{facts['url']}/model_info", timeout=10).json()["tool_call_parser"] is None
            assert outcomes[0].startswith("parser.")
        with httpx.Client(timeout=60) as client:
            loop = {"messages": [{"role": "user", "content": "[[loop]]"}], "max_tokens": 8000, "stream": True}
            with client.stream("POST", f"{facts['url']}/v1/chat/completions", json=loop) as answer:
                assert next(answer.iter_lines()).startswith("data:")
                up.send_signal(signal.SIGTERM)
                up.wait(40)
        assert session_members(facts["pid"]) == []
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{facts['url']}/health", timeout=5)
    finally:
        up.kill()
        up.wait()
        up.stdout.close()


@pytest.mark.parametrize("stack", STACKS)
def test_an_interrupt_while_it_starts_leaves_nothing(stack: str, canary: BuiltCanary, tmp_path: Path) -> None:
    require(stack)
    pids: list[int] = []

    def interrupt(waited: float) -> None:
        leader = next((pid for pid in children_of(os.getpid()) if str(tmp_path / "model") in command_of(pid)), None)
        if leader is not None and len(session_members(leader)) > 1:
            pids.append(leader)
            raise KeyboardInterrupt

    (tmp_path / "model").symlink_to(canary.folder)
    with pytest.raises(KeyboardInterrupt):
        start_server(stack, tmp_path / "model", LaunchOptions(log_folder=tmp_path / "logs"), interrupt)
    assert session_members(pids[0]) == []


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(
    ("unknown", "advice"),
    [("--no-such-flag", "does not know that flag"), ("no-such-parser", "no such tool call parser")],
    ids=["flag", "parser"],
)
def test_what_it_does_not_know_is_told_with_the_log(
    stack: str, unknown: str, advice: str, canary: BuiltCanary, tmp_path: Path
) -> None:
    require(stack)
    flags = (unknown,) if unknown.startswith("--") else (*WITH_PARSER[stack][:-1], unknown)
    with pytest.raises(ServerDiedError, match=unknown) as caught:
        start_server(stack, canary.folder, LaunchOptions(flags=flags, log_folder=tmp_path))
    assert advice in caught.value.remedy


@pytest.mark.parametrize("stack", STACKS)
def test_a_torn_model_is_told_with_the_log(stack: str, canary: BuiltCanary, tmp_path: Path) -> None:
    require(stack)
    torn = tmp_path / "torn"
    shutil.copytree(canary.folder, torn)
    weights = torn / "model.safetensors"
    os.truncate(weights, weights.stat().st_size // 2)
    started = time.monotonic()
    with pytest.raises(LaunchError) as caught:
        start_server(stack, torn, LaunchOptions(log_folder=tmp_path / "logs"))
    assert time.monotonic() - started < recipe_for(stack).start_timeout
    assert "  | " in str(caught.value)
    assert "the weights" in caught.value.remedy


def children_of(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
