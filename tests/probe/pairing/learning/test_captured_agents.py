"""The first requests of real agents, as they were recorded (texts of more than 48 bytes blanked, schemas true)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from probe.pairing.learning.learn import NotLearntError, learn
from probe.pairing.planning import plan
from stacks.dialects import read_request
from stacks.turn import CanonicalRequest
from tests.support.corpus import carried

LEARNED = {
    "opencode": ("bash", "command", {}, ""),
    "codex-cli": ("exec_command", "cmd", {}, ""),
    "qwen-code": ("run_shell_command", "command", {}, ""),
    "mini-swe-agent": ("bash", "command", {}, ""),
}


def requests_of(agent: str) -> list[CanonicalRequest]:
    lines = [json.loads(line) for line in carried("pairing/first_requests.jsonl.zst")]
    found = [line for line in lines if line["agent"] == agent]
    return [read_request(one["method"], one["target"], json.dumps(one["body"]).encode()) for one in found]


@pytest.mark.parametrize("agent", LEARNED)
def test_a_real_agent_is_learned(agent: str) -> None:
    requests = requests_of(agent)
    assert requests
    speech = learn(requests)
    found: tuple[str, str, Any, str] = (speech.tool, speech.argument, speech.extra, speech.finish_tool)
    assert found == LEARNED[agent], speech.why
    assert speech.kind == "call.shell"
    assert [turn.step for turn in plan(speech).turns] == ["look", "write", "read", "finish"]


def test_the_tool_of_qwen_code_that_looks_most_alike_is_named() -> None:
    assert "run_shell_command" in learn(requests_of("qwen-code")).why
    assert "monitor" not in learn(requests_of("qwen-code")).why.split("before")[0]


def test_a_blanked_prompt_without_tools_teaches_nothing() -> None:
    with pytest.raises(NotLearntError, match="no tools"):
        learn(requests_of("aider"))
