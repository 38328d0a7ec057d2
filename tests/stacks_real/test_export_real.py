"""The faults of a real server, shown again by the curl script and the test file of its recorded run."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from checklists.exports.reproducer import reproducer
from checklists.exports.shell_script import shell_script
from probe.canary import build, default_spec
from proxy.session import RecordingSession, SessionOptions
from stacks.launching.launch import (
    EnvironmentMissingError,
    LaunchOptions,
    RunningServer,
    find_server,
    recipe_for,
    running_server,
)
from tests.support.exported import CALL, opened
from tests.support.recorded import Script, answer

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """llama-server that is told to parse nothing: it leaves every call in the text."""
    try:
        find_server(recipe_for("llamacpp"))
    except EnvironmentMissingError as missing:
        pytest.skip(str(missing))
    canary = build(default_spec(), tmp_path_factory.mktemp("canary") / "default")
    options = LaunchOptions(
        context_length=8192, log_folder=tmp_path_factory.mktemp("logs"), flags=("--skip-chat-parsing",)
    )
    with running_server("llamacpp", canary.gguf, options) as running:
        yield running


async def recorded(server: RunningServer, folder: Path) -> None:
    """Five requests to the server, through the recording relay."""

    def ask(base: str) -> None:
        url = f"{base}/v1/chat/completions"
        bodies: tuple[dict[str, Any], ...] = (
            {"messages": [{"role": "user", "content": "[[good]] it's $(here)"}], "tools": [WEATHER]},
            {"messages": [{"role": "user", "content": "[[good]]"}], "tools": [WEATHER], "stream": True},
            {"messages": [{"role": "user", "content": "[[good]]"}]},
            {"messages": [{"role": "nobody", "content": 5}]},
            {"messages": [{"role": "user", "content": "[[prose]]"}], "max_tokens": 2},
        )
        # A connection for each: the server closes those that it has kept for some time, and one may cross the next.
        for body in bodies:
            httpx.post(url, json={"model": "canary", "temperature": 0, **body}, timeout=60, trust_env=False)
        json_type = {"Content-Type": "application/json"}
        httpx.post(url, content=b"\x00\xff not json", headers=json_type, timeout=60, trust_env=False)

    async with RecordingSession(SessionOptions(upstreams=(server.url,), out=folder)) as session:
        await asyncio.to_thread(ask, session.base_url())


def answers_in(output: bytes) -> list[tuple[int, str, dict[str, Any]]]:
    """(status, text, error) of each answer that a script printed."""
    found = []
    for part in re.split(rb"(?m)^(?=HTTP/1\.1 )", output)[1:]:
        head, _, body = part.partition(b"\r\n\r\n")
        try:
            value = json.loads(body)
        except ValueError:
            value = {}
        message = value["choices"][0]["message"] if "choices" in value else {}
        found.append((int(head.split()[1]), message.get("content") or "", value.get("error") or {}))
    return found


async def test_curl_script_and_test_file_show_the_faults_again(server: RunningServer, tmp_path: Path) -> None:
    await recorded(server, tmp_path / "run")
    run = opened(tmp_path / "run")
    seen = {one.exchange.attempt: one for one in run}
    stopped = [number for number, one in seen.items() if one.judged.outcome.layer != "ok"]
    assert len(stopped) >= 3, {number: one.judged.outcome.name for number, one in seen.items()}

    source = tmp_path / "faults_test.py"
    source.write_bytes(b"".join(reproducer(run, "1")))
    environment = {**os.environ, "STACKTAP_URL": server.url, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(source)]
    done = await asyncio.to_thread(subprocess.run, words, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert f"{len(stopped)} passed" in done.stdout, done.stdout
    environment["STACKTAP_EXPECT"] = "fixed"
    done = await asyncio.to_thread(subprocess.run, words, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert f"{len(stopped)} failed" in done.stdout, done.stdout

    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    script = tmp_path / "again.sh"
    script.write_bytes(b"".join(shell_script(run, "1")))
    environment = {"PATH": os.environ["PATH"], "STACKTAP_URL": server.url}
    said = await asyncio.to_thread(
        subprocess.run, ["sh", str(script)], env=environment, cwd=tmp_path, capture_output=True
    )
    assert said.stderr == b""
    again = answers_in(said.stdout)
    assert [status for status, _, _ in again] == [
        one.exchange.response.status for one in seen.values() if one.exchange.response is not None
    ]
    turns = [one.classified.facts.assembled.turn for one in seen.values()]
    plain = [not one.classified.facts.assembled.streamed for one in seen.values()]
    texts = [(turn.content if turn is not None else None) or "" for turn in turns]
    assert [text for (_, text, _), whole in zip(again, plain, strict=True) if whole] == [
        text for text, whole in zip(texts, plain, strict=True) if whole
    ]
    assert any("get_weather" in text for text in texts)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.sh", "faults_test.py", "run"]


async def test_a_mended_server_fails_the_test_file(server: RunningServer, tmp_path: Path) -> None:
    script = Script(tmp_path / "run")
    script.chat(answer(tool_calls=[CALL]), model="canary", messages=[{"role": "user", "content": "[[good]]"}])
    script.run()
    source = tmp_path / "faults_test.py"
    source.write_bytes(b"".join(reproducer(opened(tmp_path / "run", ["1"]), "1")))
    environment = {**os.environ, "STACKTAP_URL": server.url, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(source)]
    done = await asyncio.to_thread(subprocess.run, words, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert "is not reproduced" in done.stdout, done.stdout
