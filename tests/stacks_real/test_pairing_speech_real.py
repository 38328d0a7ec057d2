"""A canary planned for tools of agents nobody has seen, on a real llama-server: its grammar lets every call through."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from probe.canary import build
from probe.pairing.learning.learn import learn
from probe.pairing.planning import plan
from probe.pairing.records import Plan
from stacks.launching.launch import EnvironmentMissingError, find_server, recipe_for, running_server
from stacks.launching.server_process import LaunchOptions
from tests.probe.pairing.toolsets import NEAR, SHELLS, request_of

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def drive(url: str, tools: Any, planned: Plan, folder: Path) -> tuple[list[Any], str]:
    """An agent's loop: every call it got, and the last content."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": planned.task}]
    seen: list[Any] = []
    for _ in range(6):
        body = {"model": "canary", "messages": messages, "tools": tools, "temperature": 0.7}
        message = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=120).json()["choices"][0]["message"]
        messages.append(message)
        calls = message.get("tool_calls") or []
        if not calls:
            return seen, message["content"]
        for call in calls:
            arguments = json.loads(call["function"]["arguments"])
            seen.append((call["function"]["name"], arguments))
            command = next((turn.command for turn in planned.turns if turn.calls == (seen[-1],)), None)
            assert command is not None, f"{seen[-1]} is none of the planned calls"
            done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=True)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps({"out": done.stdout})})
    return seen, ""


@pytest.mark.parametrize("name", ["list-of-objects", "argv", "interpreter-like", "chinese-described", "russian"])
def test_an_unseen_agent_is_walked_through_its_steps(name: str, tmp_path: Path) -> None:
    try:
        find_server(recipe_for("llamacpp"))
    except EnvironmentMissingError as missing:
        pytest.skip(f"llamacpp: {missing}")
    given = next(one for one in SHELLS if one.name == name)
    request = request_of([*NEAR, *given.tools])
    assert isinstance(request.raw, dict)
    planned = plan(learn([request]), nonce="nonce-7", file="note.txt")
    canary = build(planned.spec, tmp_path / "canary")
    work = tmp_path / "work"
    work.mkdir()
    options = LaunchOptions(flags=("--jinja", "-np", "1", "-t", "1", "-tb", "1"), context_length=32768)
    with running_server("llamacpp", canary.gguf, options) as server:
        calls, words = drive(server.url, request.raw["tools"], planned, work)
    assert calls == [turn.calls[0] for turn in planned.turns[:3]]
    assert words == planned.turns[3].prose
    assert (work / "note.txt").read_text() == "nonce-7\n"
