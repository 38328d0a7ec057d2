"""Real servers with a real canary model: readiness, versions, failures, stopping.

Environments are found as a user's are (``make stack-NAME``, ``STACKTAP_ENV_<STACK>``, PATH); a stack without one is
skipped by name.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import openai
import pytest

from probe.canary import BuiltCanary, build, default_spec
from stacks.launching.launch import (
    RECIPES,
    EnvironmentMissingError,
    LaunchError,
    LaunchOptions,
    RunningServer,
    ServerDiedError,
    ServerNotReadyError,
    find_server,
    recipe_for,
    running_server,
    running_server_async,
    start_server,
)

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

# vLLM and SGLang take half a minute for each start: test_heavy_servers_real.py has few of them.
STACKS = [recipe.name for recipe in RECIPES if recipe.name not in {"vllm", "sglang"}]
PROSE = default_spec().script("prose").text
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CONTEXT = {"llamacpp": 8192, "llamacpp_python": 8192, "mlx_server": None}


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    return build(default_spec(), tmp_path_factory.mktemp("canary") / "default")


def require(stack: str) -> None:
    try:
        find_server(recipe_for(stack))
    except EnvironmentMissingError as error:
        pytest.skip(str(error))


def model_for(stack: str, canary: BuiltCanary) -> Path:
    return canary.folder if stack == "mlx_server" else canary.gguf


@pytest.fixture(scope="module", params=STACKS)
def server(
    request: pytest.FixtureRequest, canary: BuiltCanary, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    require(request.param)
    options = LaunchOptions(context_length=CONTEXT[request.param], log_folder=tmp_path_factory.mktemp("logs"))
    with running_server(request.param, model_for(request.param, canary), options) as running:
        yield running


def test_the_record_of_a_running_server_is_true(server: RunningServer) -> None:
    assert Path(f"/proc/{server.pid}/cmdline").read_bytes().split(b"\0")[-2].decode() == server.command[-1]
    assert not server.version.startswith("unknown")
    assert server.log_path.stat().st_size > 0
    assert httpx.get(f"{server.url}/v1/models", timeout=10).json()["data"]


def test_the_server_sees_the_whole_model(server: RunningServer) -> None:
    body = {"messages": [{"role": "user", "content": "Please. [[prose]]"}], "max_tokens": 200, "temperature": 0}
    if server.stack == "mlx_server":
        return  # it parses calls out of every text; what it does to this one is tested with the dialects
    reply = httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=60).json()
    assert reply["choices"][0]["message"]["content"] == PROSE


def test_openai_client_plain_and_streaming(server: RunningServer) -> None:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=60) as client:
        messages = [{"role": "user", "content": "Weather in Paris?"}]
        whole = client.chat.completions.create(
            model="default_model", messages=messages, tools=[WEATHER], max_tokens=100
        )
        chunks = list(
            client.chat.completions.create(
                model="default_model", messages=messages, tools=[WEATHER], max_tokens=100, stream=True
            )
        )
    message = whole.choices[0].message
    if server.stack == "llamacpp_python":  # its default chat format never parses calls
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        assert text == message.content == default_spec().script(default_spec().default_script).text
        return
    (call,) = message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Paris"})
    streamed = [c for chunk in chunks if chunk.choices for c in chunk.choices[0].delta.tool_calls or ()]
    assert json.loads("".join(c.function.arguments or "" for c in streamed)) == {"city": "Paris"}


@pytest.mark.parametrize("stack", STACKS)
def test_a_torn_model_is_told_at_once_with_the_log(stack: str, canary: BuiltCanary, tmp_path: Path) -> None:
    require(stack)
    if stack == "mlx_server":
        torn = tmp_path / "torn"
        shutil.copytree(canary.folder, torn)
        weights = next(torn.glob("*.safetensors"))
    else:
        torn = weights = tmp_path / "torn.gguf"
        shutil.copy(canary.gguf, torn)
    os.truncate(weights, weights.stat().st_size // 2)
    started = time.monotonic()
    with pytest.raises((ServerDiedError, ServerNotReadyError)) as caught:
        start_server(stack, torn, LaunchOptions(log_folder=tmp_path / "logs"))
    assert time.monotonic() - started < 60
    assert "  | " in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize("stack", STACKS)
def test_an_unknown_flag_is_told_with_the_log(stack: str, canary: BuiltCanary, tmp_path: Path) -> None:
    require(stack)
    options = LaunchOptions(flags=("--no-such-flag",), log_folder=tmp_path)
    with pytest.raises(ServerDiedError, match="no-such-flag") as caught:
        start_server(stack, model_for(stack, canary), options)
    assert "does not know that flag" in caught.value.remedy


@pytest.mark.parametrize("stack", STACKS)
async def test_stopping_ends_every_process_in_the_middle_of_an_answer(
    stack: str, canary: BuiltCanary, tmp_path: Path
) -> None:
    require(stack)
    options = LaunchOptions(context_length=CONTEXT[stack], log_folder=tmp_path)
    async with running_server_async(stack, model_for(stack, canary), options) as running, httpx.AsyncClient() as client:
        body = {"messages": [{"role": "user", "content": "[[loop]]"}], "max_tokens": 100000, "stream": True}
        async with client.stream("POST", f"{running.url}/v1/chat/completions", json=body, timeout=60) as reply:
            async for _ in reply.aiter_raw():
                break
            group = running.pid
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)


def test_two_servers_of_one_stack_live_side_by_side(canary: BuiltCanary, tmp_path: Path) -> None:
    require("llamacpp")
    options = LaunchOptions(context_length=4096, log_folder=tmp_path)
    with (
        running_server("llamacpp", canary.gguf, options) as one,
        running_server("llamacpp", canary.gguf, replace(options, flags=("--alias", "second"))) as two,
    ):
        assert one.url != two.url
        assert httpx.get(f"{two.url}/v1/models").json()["data"][0]["id"] == "second"
        assert httpx.get(f"{one.url}/v1/models").json()["data"][0]["id"] != "second"


def test_the_api_key_is_not_shown_in_an_error(canary: BuiltCanary, tmp_path: Path) -> None:
    require("llamacpp")
    flags = ("--api-key", "canary-secret-1", "--no-such-flag")
    with pytest.raises(LaunchError) as caught:
        start_server("llamacpp", canary.gguf, LaunchOptions(flags=flags, log_folder=tmp_path))
    assert "canary-secret-1" not in str(caught.value)
