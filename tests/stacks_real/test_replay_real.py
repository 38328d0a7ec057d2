"""Runs recorded on a real server, served again once it is gone: the same answers to the official clients, the same
outcomes when recorded and judged again, the same diagnosis."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from probe.canary import build, default_spec
from proxy.exchange_view import classify_run
from proxy.replay.recordings import Recordings
from proxy.replay.server import ReplayServer
from proxy.replay.sources import answers_of_run
from proxy.session import RecordingSession, SessionOptions
from results.reader import RunReader
from stacks.launching.launch import EnvironmentMissingError, LaunchOptions, find_server, recipe_for, running_server
from tests.support.resent import replayed_run
from tests.support.servers import running, stacktap

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
OPENAI_TOOL: Any = {"type": "function", "function": WEATHER}
ANTHROPIC_TOOL: Any = {"name": "get_weather", "input_schema": WEATHER["parameters"]}


def work(url: str) -> list[Any]:
    """What the official clients, and some wrong requests, get from a server: all but times and ids of connections."""
    got: list[Any] = []
    ask: Any = [{"role": "user", "content": "[[good]]"}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client:
        chat = client.chat.completions
        got.append(chat.create(model="canary", messages=ask, tools=[OPENAI_TOOL], temperature=0).model_dump())
        got.append(
            [one.model_dump() for one in chat.create(model="canary", messages=ask, tools=[OPENAI_TOOL], stream=True)]
        )
        got.append([one.model_dump() for one in chat.create(model="canary", messages=ask, stream=True, max_tokens=2)])
        got.append([one.id for one in client.models.list()])
        with pytest.raises(openai.BadRequestError) as refused:
            chat.create(model="canary", messages=ask, tools=[OPENAI_TOOL], tool_choice="nonsense")  # type: ignore[call-overload]
        got.append(refused.value.body)
    with anthropic.Anthropic(base_url=url, api_key="x", max_retries=0) as other:
        asked = {"model": "canary", "max_tokens": 200, "messages": ask, "tools": [ANTHROPIC_TOOL]}
        got.append(other.messages.create(**asked).model_dump())
        got.append([event.model_dump() for event in other.messages.create(**asked, stream=True)])
    with httpx.Client(trust_env=False, timeout=60) as plain:
        for body in (b"\x00\xff", b'{"messages": 5}', b'{"messages": [{"role": "user", "content": "[[empty]]"}]}'):
            answered = plain.post(f"{url}/v1/chat/completions", content=body)
            got.append((answered.status_code, answered.content))
        got.append(plain.get(f"{url}/no/such/route").status_code)
    return got


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[Any], dict[str, Any]]:
    """A run of clients, a run of `diagnose`, what each got; the server is gone after that."""
    try:
        find_server(recipe_for("llamacpp"))
    except EnvironmentMissingError as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp("recorded")
    canary = build(default_spec(), folder / "canary")
    options = LaunchOptions(context_length=8192, log_folder=folder, flags=("--skip-chat-parsing",))

    async def through_relay(url: str) -> list[Any]:
        async with RecordingSession(SessionOptions(upstreams=(url,), out=folder / "clients")) as session:
            return await asyncio.to_thread(work, session.base_url())

    with running_server("llamacpp", canary.gguf, options) as server:
        got = asyncio.run(through_relay(server.url))
        told = stacktap(folder, "diagnose", server.url, "--json", "--out", str(folder / "diagnosed"))
    return folder / "clients", folder / "diagnosed", got, json.loads(told.stdout)


async def test_the_official_clients_get_the_same(recorded: tuple[Path, Path, list[Any], dict[str, Any]]) -> None:
    clients, _, got, _ = recorded
    server = ReplayServer(Recordings(answers_of_run(RunReader(clients))))
    url = await server.start()
    try:
        again = await asyncio.to_thread(work, url)
    finally:
        await server.stop()
    assert again == got
    assert server.statistics.unseen == []


@pytest.mark.parametrize("which", [0, 1])
async def test_the_outcomes_are_the_same(
    which: int, recorded: tuple[Path, Path, list[Any], dict[str, Any]], tmp_path: Path
) -> None:
    folder = recorded[which]
    originals = {one.attempt: one for one in classify_run(RunReader(folder))}
    again = await replayed_run(sorted(RunReader(folder), key=lambda one: one.attempt), tmp_path / "again")
    assert len(again) == len(originals) >= 10
    for attempt, judged in again.items():
        assert (judged.outcome.name, judged.outcome.at_fault, judged.outcome.flags, judged.outcome.remedy) == (
            originals[attempt].outcome.name,
            originals[attempt].outcome.at_fault,
            originals[attempt].outcome.flags,
            originals[attempt].outcome.remedy,
        )
    assert len({one.outcome.name for one in originals.values()}) >= 3


def test_diagnose_says_the_same_of_the_replay(
    recorded: tuple[Path, Path, list[Any], dict[str, Any]], tmp_path: Path
) -> None:
    _, diagnosed, _, told = recorded
    with running(tmp_path, "replay", str(diagnosed), "--json", "--strict") as (process, ready):
        done = stacktap(tmp_path, "diagnose", ready["url"], "--json", "--out", str(tmp_path / "run"))
        process.terminate()
        out, _ = process.communicate(timeout=10)
    again = json.loads(done.stdout)
    names = ("layer", "code", "at_fault", "model_ran", "grade", "delivery", "wrote")
    assert [again["outcome"][name] for name in names] == [told["outcome"][name] for name in names]
    assert again["headline"] == told["headline"]
    # Flags of the process are seen only where it runs: what to change may be said in other words.
    assert told["remedy"] == "start llama-server without `--skip-chat-parsing`"
    assert "--skip-chat-parsing" in again["remedy"]
    assert json.loads(out)["unseen"] == []
    assert process.returncode == 0
