"""Calls and their results are found and go together, in the form of each dialect."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.call_pairs import Pair, linked_messages, linked_pairs, without_pairs
from probe.shrinking import shrinking
from tests.probe.test_minimise import driven
from tests.support.failing_requests import long_request

USER = {"role": "user", "content": "x"}


def call(name: str | None = None) -> dict[str, Any]:
    function = {"name": "f", "arguments": "{}"}
    return {"function": function} if name is None else {"id": name, "type": "function", "function": function}


def said(*names: str | None, content: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": [call(name) for name in names]}


def result(name: str | None = None) -> dict[str, Any]:
    return {"role": "tool", "content": "r"} if name is None else {"role": "tool", "tool_call_id": name, "content": "r"}


CHAT = [USER, said("a", "b"), result("b"), result("a"), USER]
SAME_IDS = [said("0"), result("0"), said("0"), result("0"), USER]
NO_IDS = [USER, said(None, None), result(), result(), said(None), result()]
ANTHROPIC = [
    USER,
    {"role": "assistant", "content": [{"type": "text", "text": "t"}, {"type": "tool_use", "id": "u", "name": "f"}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "u", "content": "r"}]},
]
RESPONSES = [
    USER,
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "reasoning", "summary": []},
    {"type": "function_call_output", "call_id": "c", "output": "r"},
]
ODD = [result("nobody"), 7, None, {"role": "tool"}, {"role": "assistant", "tool_calls": "x", "content": 3}, said("z")]


@pytest.mark.parametrize(
    ("messages", "units"),
    [
        (CHAT, [(0,), (1, 2, 3), (4,)]),
        (SAME_IDS, [(0, 1), (2, 3), (4,)]),
        (NO_IDS, [(0,), (1, 2, 3), (4, 5)]),
        (ANTHROPIC, [(0,), (1, 2)]),
        (RESPONSES, [(0,), (1, 3), (2,)]),
        (ODD, [(0,), (1,), (2,), (3,), (4,), (5,)]),
        ([], []),
    ],
)
def test_what_belongs_together(messages: list[Any], units: list[tuple[int, ...]]) -> None:
    assert linked_messages(messages) == units


def test_one_of_two_calls_goes_with_its_result() -> None:
    first, second = linked_pairs(CHAT)
    assert first == Pair((1, "tool_calls", 0), ((3,),))
    left = without_pairs({"messages": CHAT}, "messages", [first])
    assert left == {"messages": [USER, said("b"), result("b"), USER]}
    both = without_pairs({"messages": CHAT}, "messages", [first, second])
    assert both == {"messages": [USER, USER]}
    assert CHAT[1] == said("a", "b")


def test_words_beside_a_call_stay() -> None:
    messages = [said("a", content="I look."), result("a"), *ANTHROPIC]
    left = without_pairs({"messages": messages}, "messages", linked_pairs(messages))
    assert left is not None
    assert left["messages"] == [
        {"role": "assistant", "content": "I look."},
        USER,
        {"role": "assistant", "content": [{"type": "text", "text": "t"}]},
    ]
    assert without_pairs({"messages": [said("a")]}, "messages", linked_pairs([said("a")])) is None


@given(st.integers(0, 29), st.integers(0, 19))
def test_every_candidate_is_a_request_that_a_client_could_have_sent(tool: int, message: int) -> None:
    request = long_request()
    wanted = request["tools"][tool]["function"]["name"]
    role = request["messages"][message]["role"]

    def fails(candidate: dict[str, Any]) -> bool:
        names = [each["function"]["name"] for each in candidate.get("tools", [])]
        return wanted in names and role in [each["role"] for each in candidate["messages"]]

    result, tried = driven(shrinking(request), fails)
    for candidate in [*tried, result]:
        assert candidate["messages"]
        assert {"model", "max_tokens", "temperature"} <= candidate.keys()
        assert candidate.get("tools") != []
        asked = [each["id"] for one in candidate["messages"] for each in one.get("tool_calls", [])]
        answered = [one["tool_call_id"] for one in candidate["messages"] if one["role"] == "tool"]
        assert asked == answered
    assert len(tried) <= 80
    assert len(result["tools"]) == 1
