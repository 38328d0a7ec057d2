"""Real clients and a real agent, unchanged, through the recording relay to real servers with a canary."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from probe.canary import BuiltCanary, build, default_spec, note_steps, selfdriving
from proxy.event_loop import run
from proxy.exchange_view import classify_run
from proxy.session import RecordingSession, SessionOptions
from results.outcomes import Judged
from results.reader import RunReader
from stacks.launching.launch import EnvironmentMissingError, LaunchOptions, find_server, recipe_for, running_server
from tests.support.servers import stacktap

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
QUESTION = [{"role": "user", "content": "What is the weather in Paris?"}]
NONCE = "note-8205"


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    return build(default_spec(), tmp_path_factory.mktemp("canary") / "hermes")


def server(stack: str, model: Path, **options: Any) -> Iterator[str]:
    try:
        find_server(recipe_for(stack))
    except EnvironmentMissingError as missing:
        pytest.skip(f"{stack}: {missing}")
    with running_server(stack, model, LaunchOptions(**options)) as found:
        yield found.url


@pytest.fixture(scope="module")
def mlx(canary: BuiltCanary) -> Iterator[str]:
    yield from server("mlx", canary.folder)


@pytest.fixture(scope="module")
def llamacpp(canary: BuiltCanary) -> Iterator[str]:
    yield from server("llamacpp", canary.gguf, context_length=8192)


def through_the_relay(url: str, folder: Path, work: Callable[[str], Any]) -> tuple[Any, list[Judged]]:
    """Run `work(base URL)` against relay -> server; its result and the verdicts of the record."""

    async def session() -> Any:
        async with RecordingSession(SessionOptions(upstreams=(url,), out=folder)) as recording:
            return await asyncio.to_thread(work, recording.base_url())

    result = run(session())
    return result, list(classify_run(RunReader(folder)))


def names(judged: list[Judged]) -> list[str]:
    return [one.outcome.name for one in judged]


@pytest.mark.parametrize("stack", ["mlx", "llamacpp"])
def test_the_openai_client_gets_its_call(stack: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    def work(base: str) -> tuple[Any, Any]:
        with openai.OpenAI(base_url=f"{base}/v1", api_key="unused-key-000", max_retries=0) as client:
            asked: dict[str, Any] = {
                "model": "default_model",
                "messages": QUESTION,
                "tools": [WEATHER],
                "max_tokens": 64,
            }
            plain = client.chat.completions.create(**asked).choices[0].message.tool_calls[0].function
            name, arguments = "", ""
            for chunk in client.chat.completions.create(**asked, stream=True):
                for call in (chunk.choices[0].delta.tool_calls or []) if chunk.choices else []:
                    name += call.function.name or ""
                    arguments += call.function.arguments or ""
            return (plain.name, json.loads(plain.arguments)), (name, json.loads(arguments))

    result, judged = through_the_relay(request.getfixturevalue(stack), tmp_path / "run", work)
    assert result == (("get_weather", {"city": "Paris"}),) * 2
    assert names(judged) == ["ok.native_call", "ok.native_call"]


def test_httpx_gets_the_same_answer_as_without_the_relay(mlx: str, tmp_path: Path) -> None:
    body = {"model": "default_model", "messages": QUESTION, "tools": [WEATHER], "max_tokens": 64, "temperature": 0}

    def work(base: str) -> tuple[Any, int]:
        with httpx.Client(trust_env=False, timeout=60) as client:
            plain = client.post(f"{base}/v1/chat/completions", json=body).json()
            for call in plain["choices"][0]["message"]["tool_calls"]:
                call.pop("id")  # drawn anew for each answer
            with client.stream("POST", f"{base}/v1/chat/completions", json={**body, "stream": True}) as stream:
                return plain["choices"], sum(1 for line in stream.iter_lines() if line.startswith("data:"))

    (choices, events), judged = through_the_relay(mlx, tmp_path / "run", work)
    direct, direct_events = work(mlx)
    assert choices == direct
    assert events == direct_events > 1
    assert names(judged) == ["ok.native_call", "ok.native_call"]


def test_the_anthropic_client_gets_its_call(llamacpp: str, tmp_path: Path) -> None:
    tool = {"name": "get_weather", "input_schema": WEATHER["function"]["parameters"]}

    def work(base: str) -> list[Any]:
        asked: Any = {"model": "canary", "messages": QUESTION, "tools": [tool], "max_tokens": 64}
        with anthropic.Anthropic(base_url=base, api_key="unused-key-000", max_retries=0) as client:
            plain = client.messages.create(**asked)
            with client.messages.stream(**asked) as stream:
                streamed = stream.get_final_message()
        return [
            [(block.name, block.input) for block in message.content if block.type == "tool_use"]
            for message in (plain, streamed)
        ]

    result, judged = through_the_relay(llamacpp, tmp_path / "run", work)
    assert result == [[("get_weather", {"city": "Paris"})]] * 2
    assert names(judged) == ["ok.native_call", "ok.native_call"]
    assert {one.dialect for one in judged} == {"anthropic_messages"}


def test_a_foreign_host_is_refused_and_a_foreign_origin_is_the_servers_to_judge(llamacpp: str, tmp_path: Path) -> None:
    def work(base: str) -> tuple[int, str | None, int]:
        with httpx.Client(trust_env=False) as client:
            refused = client.get(f"{base}/v1/models", headers={"Host": "evil.example"})
            other = client.get(f"{base}/v1/models", headers={"Origin": "http://evil.example"})
            return refused.status_code, refused.headers.get("x-stacktap-error"), other.status_code

    result, _ = through_the_relay(llamacpp, tmp_path / "run", work)
    assert result == (403, "host_not_allowed", 200)
    ends = {exchange.attempt: exchange.end for exchange in RunReader(tmp_path / "run")}
    assert sorted(ends.values()) == ["complete", "refused_by_relay"]


def agent_program(variable: str, name: str, folder: str) -> str:
    """An agent's executable: from the environment variable, from where `make agents` puts it, or from PATH."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    made = Path(data) / "stacktap" / "agents" / folder / "bin" / name
    found = os.environ.get(variable) or (str(made) if made.exists() else shutil.which(name))
    if not found:
        pytest.skip(f"{name} is not installed: run `make agents`, or set {variable}")
    return found


@pytest.fixture(scope="module")
def selfdriven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    finish = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
    steps = note_steps(NONCE, finish_command=finish)
    built = build(selfdriving("bash", "command", steps), tmp_path_factory.mktemp("canary") / "bash")
    yield from server("llamacpp", built.gguf, context_length=32768, flags=("--parallel", "1"))


@pytest.mark.parametrize("way", ["wrap", "url"])
def test_mini_swe_agent_unchanged_finishes_its_four_steps(way: str, selfdriven: str, tmp_path: Path) -> None:
    mini = agent_program("STACKTAP_AGENT_MINI", "mini", "mini-swe-agent")
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    variables = {
        "HOME": str(home),
        "MSWEA_GLOBAL_CONFIG_DIR": str(home),
        "MSWEA_CONFIGURED": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "MSWEA_SILENT_STARTUP": "1",
    }
    agent = [mini, "-m", "openai/canary", "-t", "Leave a note.", "-y", "--exit-immediately", "-o", str(home / "t.json")]
    if way == "wrap":
        folder = work / "run"
        wrapped = ["wrap", "--upstream", selfdriven, "--out", "run", "--", *agent]
        done = stacktap(work, *wrapped, variables=variables)
        assert done.returncode == 0, done.stdout + done.stderr
        judged = list(classify_run(RunReader(folder)))
    else:

        def run_agent(base: str) -> subprocess.CompletedProcess[str]:
            url = ["-c", "mini.yaml", "-c", f"model.model_kwargs.api_base={base}/v1"]
            environment = {**os.environ, **variables, "OPENAI_API_KEY": "unused-key-000"}
            return subprocess.run(
                [*agent, *url], env=environment, cwd=work, capture_output=True, text=True, timeout=120, check=False
            )

        done, judged = through_the_relay(selfdriven, tmp_path / "run", run_agent)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (work / "canary_note.txt").read_text().strip() == NONCE
    assert names(judged) == ["ok.native_call"] * 4
