from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.conditions import (
    Called,
    Condition,
    Endpoint,
    Sampling,
    call_schema,
    endpoint_for,
    history_after,
    request_body,
)
from harness.file_world import FILE_TOOLS
from harness.tasks.single_step import SingleStep
from stacks.dialects.assemble import read_request
from stacks.formats.check import check_arguments

GOLDEN = Path(__file__).parent / "request_bodies.json"
CONDITIONS = [
    Condition("native"),
    Condition("native+hint"),
    Condition("native+hint", "no-names"),
    Condition("text-tools"),
    Condition("text-tools", "no-names"),
    Condition("constrained"),
]
STACKS = ["llamacpp", "llamacpp_python", "ollama"]
TASK = SingleStep().task(0)


def _body(stack: str, condition: Condition) -> dict[str, Any]:
    endpoint = endpoint_for(stack, "m", native_ollama=stack == "ollama")
    messages = [{"role": "user", "content": condition.prompt(TASK.prompt, TASK.tools)}]
    return request_body(endpoint, condition, messages, TASK.tools, Sampling(seed=7))


def test_request_bodies_are_the_golden_ones() -> None:
    """A changed word is another condition: change `TEXTS_VERSION` with it, and write the file anew on purpose."""
    made = {stack: {condition.label: _body(stack, condition) for condition in CONDITIONS} for stack in STACKS}
    assert made == json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("stack", STACKS)
def test_conditions_differ_only_as_stated(stack: str) -> None:
    """Tools where tools are sent, the text where there is a hint, the schema where it is constrained; nothing else."""
    native = _body(stack, CONDITIONS[0])
    for condition in CONDITIONS:
        body = _body(stack, condition)
        text = body["messages"][0]["content"]
        own = {"tools", "messages", "response_format", "format"}
        assert {k: v for k, v in body.items() if k not in own} == {k: v for k, v in native.items() if k not in own}
        assert (body.get("tools") == native["tools"]) is condition.sends_tools
        assert ("tools" in body) is condition.sends_tools
        assert bool(body.get("response_format") or body.get("format")) is (condition.name == "constrained")
        assert text.startswith(TASK.prompt)
        assert (text == TASK.prompt) is (condition.name == "native")
        assert ("must be one of" in text) is (condition.name != "native" and condition.hint == "full")


def test_every_label_and_digest_is_another() -> None:
    assert len({condition.label for condition in CONDITIONS}) == len(CONDITIONS)
    assert len({condition.digest for condition in CONDITIONS}) == len(CONDITIONS)
    assert Condition("native", "no-names").label == "native"


def test_the_text_names_every_tool_and_argument() -> None:
    text = Condition("text-tools").prompt("TASK", FILE_TOOLS)
    for tool in FILE_TOOLS:
        assert f"- {tool.name}: {tool.description}" in text
        for name in tool.parameters["properties"]:
            need = "required" if name in tool.parameters.get("required", ()) else "optional"
            assert f"    {name} (string, {need})" in text
    assert "(no arguments)" in text


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({"name": "list_dir", "arguments": {"path": "."}}, True),
        ({"name": "list_dir", "arguments": {}}, True),
        ({"name": "other", "arguments": {}}, False),
        ({"name": "list_dir"}, False),
        ({"name": "list_dir", "arguments": "x"}, False),
        ({"name": "list_dir", "arguments": {}, "more": 1}, False),
    ],
)
def test_the_schema_admits_one_call_to_an_offered_tool(value: dict[str, Any], fits: bool) -> None:
    assert check_arguments(value, call_schema(FILE_TOOLS)).ok is fits


@pytest.mark.parametrize("endpoint", [Endpoint("m"), Endpoint("m", "ollama", "format")], ids=["openai", "ollama"])
def test_a_call_and_its_result_are_read_back_as_such_by_the_dialect(endpoint: Endpoint) -> None:
    condition = Condition("native")
    calls = [Called("c1", "read_file", '{"path": "a"}', "text of a"), Called("c2", "done", "{}", "finished")]
    messages = [
        {"role": "user", "content": "go"},
        *history_after(endpoint, condition, "I read.", calls, as_text=False),
    ]
    body = request_body(endpoint, condition, messages, FILE_TOOLS, Sampling())
    read = read_request("POST", endpoint.path, json.dumps(body).encode())
    assert read.body_error is None
    assert [message.role for message in read.messages] == ["user", "assistant", "tool", "tool"]
    assert [call.name for call in read.messages[1].tool_calls] == ["read_file", "done"]
    assert read.messages[1].tool_calls[0].arguments == {"path": "a"}
    assert [message.content for message in read.messages[2:]] == ["text of a", "finished"]
    assert read.max_tokens == Sampling().max_tokens
    assert read.tool_names == tuple(tool.name for tool in FILE_TOOLS)


@pytest.mark.parametrize("condition", [Condition("text-tools"), Condition("constrained"), Condition("native")])
def test_calls_read_from_text_go_back_as_text(condition: Condition) -> None:
    calls = [Called("", "read_file", "{}", "text of a")]
    history = history_after(Endpoint("m"), condition, '{"name": "read_file"}', calls, as_text=True)
    assert [message["role"] for message in history] == ["assistant", "user"]
    assert "text of a" in history[1]["content"]
    assert not any("tool_calls" in message for message in history)
