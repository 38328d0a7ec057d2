"""Broken turns of a replayed history: which kind, in which turn and message, at which place of the request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.classify.facts import Facts
from proxy.classify.history import BrokenTurn, broken_turns
from tests.proxy.classify.exchanges import chat

USER = {"role": "user", "content": "Hi"}


def call(arguments: Any = '{"city": "Lyon"}', name: Any = "get_weather", call_id: str = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(*calls: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "x", **({"tool_calls": list(calls)} if calls else {}), **more}


def result(call_id: str = "c1", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "22", **more}


def broken(*messages: Any, path: str = "/v1/chat/completions") -> list[BrokenTurn]:
    return broken_turns(Facts(chat({}, path=path, messages=list(messages))).request)


def without(message: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name != key}


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [USER, assistant(call()), result()],
        [USER, assistant(call(call_id="c1"), call(call_id="c2")), result("c1"), result("c2"), USER],
        [{"role": "system", "content": "x"}, {"role": "developer", "content": "x"}, USER],
        [USER, assistant(), {"role": "function", "name": "f", "content": "x"}],
        [USER, {"role": "User", "content": "x"}],
        [USER, result("unknown")],
        [USER, assistant(call()), {"role": "tool", "content": "22"}],
        [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    ],
)
def test_sound_histories(messages: list[Any]) -> None:
    assert broken(*messages) == []


@pytest.mark.parametrize(
    ("messages", "kind", "message", "turn", "path"),
    [
        ([USER, assistant(call("{"))], "arguments_not_json", 1, 1, ("messages", 1, "tool_calls", 0, "function",
                                                                    "arguments")),
        ([USER, assistant(call("{}{}"))], "arguments_glued", 1, 1, ("messages", 1, "tool_calls", 0, "function",
                                                                    "arguments")),
        ([USER, assistant(call("[1]"))], "arguments_not_object", 1, 1, ("messages", 1, "tool_calls", 0, "function",
                                                                        "arguments")),
        ([USER, assistant(call({"a": 1}))], "arguments_type", 1, 1, ("messages", 1, "tool_calls", 0, "function",
                                                                     "arguments")),
        ([USER, assistant(call(), call("{"))], "arguments_not_json", 1, 1, ("messages", 1, "tool_calls", 1,
                                                                            "function", "arguments")),
        ([USER, assistant(), USER, assistant(call("{"))], "arguments_not_json", 3, 2,
         ("messages", 3, "tool_calls", 0, "function", "arguments")),
        ([{"content": "Hi"}, USER], "role_missing", 0, 1, ("messages", 0)),
        ([USER, {"role": "robot", "content": "x"}], "role_unknown", 1, 1, ("messages", 1)),
        ([USER, {"role": "assistant"}], "content_missing", 1, 1, ("messages", 1)),
        ([USER, {"role": "assistant", "content": None}], "content_null", 1, 1, ("messages", 1, "content")),
        ([USER, {"role": "assistant", "content": 5}], "content_type", 1, 1, ("messages", 1, "content")),
        ([USER, {"role": "assistant", "content": {"a": 1}}], "content_type", 1, 1, ("messages", 1, "content")),
        ([USER, {"role": "assistant", "content": True}], "content_type", 1, 1, ("messages", 1, "content")),
        ([USER, assistant(tool_calls=[])], "empty_tool_calls", 1, 1, ("messages", 1, "tool_calls")),
        ([USER, assistant(call()), result("c2")], "result_orphan", 2, 1, ("messages", 2, "tool_call_id")),
        ([USER, assistant(), assistant(call()), result("c2")], "result_orphan", 3, 2,
         ("messages", 3, "tool_call_id")),
    ],
)  # fmt: skip
def test_broken_turns(messages: list[Any], kind: str, message: int, turn: int, path: tuple[str | int, ...]) -> None:
    found = broken(*messages)
    assert [(each.kind, each.message, each.turn, each.path) for each in found] == [(kind, message, turn, path)]
    assert found[0].text


@pytest.mark.parametrize("name", ["", None])
def test_a_call_without_a_name(name: Any) -> None:
    found = broken(USER, assistant(call(name=name)))
    assert [(each.kind, each.message) for each in found] == [("call_name_missing", 1)]


def test_ollama_and_anthropic_want_objects() -> None:
    asked = {"function": {"name": "get_weather", "arguments": {"city": "Lyon"}}}
    assert broken(USER, assistant(asked), path="/api/chat") == []
    text = {"function": {"name": "get_weather", "arguments": '{"city": "Lyon"}'}}
    assert [each.kind for each in broken(USER, assistant(text), path="/api/chat")] == ["arguments_type"]
    use = {"type": "tool_use", "id": "c1", "name": "get_weather", "input": {"city": "Lyon"}}
    assert broken(USER, {"role": "assistant", "content": [use]}, path="/v1/messages") == []
    use = use | {"input": "x"}
    kinds = [each.kind for each in broken(USER, {"role": "assistant", "content": [use]}, path="/v1/messages")]
    assert kinds == ["arguments_not_json"]


def test_arguments_that_are_null() -> None:
    assert [each.kind for each in broken(USER, assistant(call(None)))] == ["arguments_type"]


def test_the_worst_comes_first_and_then_the_earliest() -> None:
    found = broken(
        {"role": "robot", "content": None},
        assistant(call("[1]")),
        assistant(call("{"), call("{}{}")),
        assistant(call({"a": 1})),
        {"content": 5},
        assistant(tool_calls=[]),
        result("nowhere"),
    )
    assert [(each.kind, each.message) for each in found] == [
        ("arguments_glued", 2),
        ("arguments_not_json", 2),
        ("arguments_type", 3),
        ("arguments_not_object", 1),
        ("role_missing", 4),
        ("content_type", 4),
        ("content_null", 0),
        ("empty_tool_calls", 5),
        ("result_orphan", 6),
        ("role_unknown", 0),
    ]


def test_the_place_reads_again() -> None:
    body = {"model": "m", "messages": [USER, assistant(call('{"a"'))]}
    view = chat({}, messages=body["messages"], tools=None)
    found = broken_turns(Facts(view).request)
    cited = Facts(view).cite_request(found[0].path)
    assert cited.quote == json.dumps('{"a"')


def test_only_some_dialects_want_content_in_every_message() -> None:
    body = {"model": "m", "input": [{"type": "message", "role": "user"}]}
    view = chat({}, path="/v1/responses", messages=None, tools=None, **body)
    assert [each.kind for each in broken_turns(Facts(view).request)] == []
    assert [each.kind for each in broken({"role": "user"}, path="/api/chat")] == ["content_missing"]
