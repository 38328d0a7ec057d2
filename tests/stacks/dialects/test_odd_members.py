"""What servers add, repeat and leave out in answers and calls: it is kept, and named where it is irregular."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.dialects import Assembled, assemble
from stacks.turn import Turn
from tests.support.wire import exchange, ndjson, sse


def chunk(delta: Any, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def chat_stream(*deltas: Any) -> Assembled:
    return assemble(exchange("openai_chat", sse(*(chunk(delta) for delta in deltas), chunk({}, "stop"))))


def turn_of(found: Assembled) -> Turn:
    assert found.turn is not None
    return found.turn


def codes(found: Assembled) -> set[str]:
    return {item.code for item in found.irregularities}


def test_unknown_members_of_deltas_are_kept_and_a_null_does_not_erase_them() -> None:
    found = turn_of(chat_stream({"content": "a", "annotations": [1]}, {"content": "b", "annotations": None}))
    assert (found.content, found.extra) == ("ab", {"annotations": [1]})
    assert turn_of(chat_stream({"content": "a", "audio": None})).extra == {"audio": None}
    assert turn_of(chat_stream({"content": "a", "n": 1}, {"n": 2})).extra == {"n": 2}


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_under_each_name(name: str) -> None:
    assert turn_of(chat_stream({name: "H"}, {name: "m."}, {"content": "a"})).reasoning == "Hm."


def test_reasoning_sent_twice_counts_once() -> None:
    found = turn_of(
        chat_stream({"reasoning_content": "H", "reasoning": "H"}, {"reasoning_content": "m", "reasoning": "m"})
    )
    assert (found.reasoning, found.extra) == ("Hm", {"reasoning": "m"})
    late = turn_of(chat_stream({"reasoning_content": ""}, {"reasoning": "Hm"}))
    assert late.reasoning == "Hm"


def test_content_in_parts() -> None:
    parts = [{"type": "text", "text": "a"}, "b", {"type": "image", "url": "u"}]
    found = chat_stream({"content": parts})
    assert turn_of(found).content == "ab"
    assert turn_of(found).parts == [{"type": "image", "url": "u"}]
    assert "content_type" in codes(found)


@pytest.mark.parametrize(
    ("deltas", "code"),
    [
        ([{"role": "user", "content": "a"}], "role_unexpected"),
        ([{"role": 5, "content": "a"}], "role_unexpected"),
        ([{"content": "a"}, {"role": "assistant"}], "role_late"),
        ([{"content": 5}], "content_type"),
    ],
)
def test_irregular_deltas(deltas: list[Any], code: str) -> None:
    assert code in codes(chat_stream(*deltas))


def test_regular_deltas() -> None:
    found = chat_stream({"role": "assistant", "content": ""}, {"content": "a"}, {"role": "assistant", "content": "b"})
    assert not codes(found) & {"role_unexpected", "role_late", "content_type"}


def call(arguments: Any = None, **more: Any) -> dict[str, Any]:
    function = {"name": "f", "arguments": {} if arguments is None else arguments}
    return {"function": function, **more}


def ollama(*calls: Any) -> Assembled:
    message = {"role": "assistant", "content": "", "tool_calls": list(calls)}
    line = {"model": "m", "created_at": "x", "message": message, "done": False}
    end = {"model": "m", "created_at": "x", "message": {"role": "assistant", "content": ""}, "done": True}
    return assemble(exchange("ollama_chat", ndjson(line, end | {"done_reason": "stop"})))


@pytest.mark.parametrize(
    ("calls", "found"),
    [
        ([call(), call()], set()),
        ([call(id="a"), call(id="b")], set()),
        ([call(id="a"), call(id="a")], {"id_duplicate"}),
        ([call(id=""), call(id="")], set()),
        ([call(id="a"), call()], set()),
        ([call(index=0), call(index=0)], {"index_reused"}),
        ([call(index=0), call(index=1)], set()),
        ([{"function": {"name": "", "arguments": {}}}], {"name_missing"}),
        ([{"function": {"name": "f"}}], {"arguments_missing"}),
        ([call("{}")], {"arguments_type"}),
        ([call([1])], {"arguments_type"}),
        ([{"function": 5}], {"call_not_object"}),
        ([5], {"call_not_object"}),
    ],
)
def test_ollamas_calls(calls: list[Any], found: set[str]) -> None:
    looked_for = {
        "id_duplicate",
        "index_reused",
        "name_missing",
        "arguments_missing",
        "arguments_type",
        "call_not_object",
    }
    assert codes(ollama(*calls)) & looked_for == found


def test_unknown_members_of_a_call_are_kept() -> None:
    found = turn_of(ollama(call({"a": 1}, id="c", extra=1) | {"type": "function"})).tool_calls[0]
    assert (found.id, found.name, found.arguments, found.index) == ("c", "f", {"a": 1}, None)
    assert found.extra["extra"] == 1


def test_counts_of_ollama() -> None:
    end = {"model": "m", "created_at": "x", "message": {"role": "assistant", "content": "a"}, "done": True}
    counted = turn_of(assemble(exchange("ollama_chat", ndjson(end | {"prompt_eval_count": 7, "eval_count": 3}))))
    assert counted.usage is not None
    assert (counted.usage.prompt, counted.usage.completion, counted.finish) == (7, 3, "stop")
    half = turn_of(assemble(exchange("ollama_chat", ndjson(end | {"eval_count": 3}))))
    assert half.usage is not None
    assert (half.usage.prompt, half.usage.completion) == (None, 3)
    assert turn_of(assemble(exchange("ollama_chat", ndjson(end)))).usage is None
    twice = assemble(exchange("ollama_chat", ndjson(end, end)))
    assert "finish_repeated" in codes(twice)


def anthropic(*events: Any) -> Assembled:
    begin = {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}}
    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
    return assemble(
        exchange("anthropic_messages", sse(begin, *events, stop, {"type": "message_stop"}, done=False, named=True))
    )


def block(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **more}}


def piece(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}


def shut(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


TEXT = [block(0, "text", text=""), piece(0, "text_delta", text="Hi"), shut(0)]


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([piece(0, "text_delta", text="Hi")], "block_missing"),
        ([*TEXT, piece(0, "text_delta", text="!")], "event_out_of_order"),
        ([block(0, "text", text=""), piece(0, "input_json_delta", partial_json="{}"), shut(0)], "event_out_of_order"),
        ([block(0, "text", text=""), piece(0, "odd_delta"), shut(0)], "event_unknown"),
        ([block(0, "text", text=""), piece(0, "text_delta", text=5), shut(0)], "content_type"),
        ([block(0, "tool_use", id="a", name="f", input={}), piece(0, "input_json_delta", partial_json=5), shut(0)],
         "arguments_type"),
    ],
)  # fmt: skip
def test_irregular_blocks(events: list[Any], code: str) -> None:
    found = anthropic(*events)
    assert code in codes(found)
    assert code not in codes(anthropic(*TEXT))


def test_signatures_and_citations_are_no_irregularity() -> None:
    thought = [block(0, "thinking", thinking=""), piece(0, "thinking_delta", thinking="Hm."),
               piece(0, "signature_delta", signature="s"), shut(0)]  # fmt: skip
    found = anthropic(*thought, block(1, "text", text=""), piece(1, "text_delta", text="Hi"),
                      piece(1, "citations_delta", citation={}), shut(1))  # fmt: skip
    assert (turn_of(found).reasoning, turn_of(found).content) == ("Hm.", "Hi")
    assert not codes(found) & {"event_unknown", "event_out_of_order", "block_missing"}


def test_text_after_its_end_or_without_a_beginning_is_still_read() -> None:
    assert turn_of(anthropic(*TEXT, piece(0, "text_delta", text="!"))).content == "Hi!"
    assert turn_of(anthropic(piece(0, "text_delta", text="Hi"))).content == "Hi"


@pytest.mark.parametrize(
    ("more", "names", "state"),
    [
        ({"functions": [{"name": "f"}]}, ["f"], "list"),
        ({"functions": [{"name": "f"}], "tools": []}, ["f"], "list"),
        ({"functions": [{"name": "f"}], "tools": [{"type": "function", "function": {"name": "g"}}]}, ["g"], "list"),
        ({"functions": "f"}, [], "absent"),
        ({"functions": None}, [], "absent"),
        ({}, [], "absent"),
    ],
)
def test_tools_in_the_former_field(more: dict[str, Any], names: list[str], state: str) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **more}
    request = assemble(exchange("openai_chat", {}, asked)).request
    assert request is not None
    assert ([tool.name for tool in request.tools], request.tools_state) == (names, state)


def test_unknown_members_of_an_openai_call_are_kept_and_the_known_ones_are_not_doubled() -> None:
    function = {"name": "f", "arguments": "{}", "strict": True}
    entry = {"index": 0, "id": "c", "type": "function", "function": function, "extra": 1}
    found = turn_of(chat_stream({"tool_calls": [entry]})).tool_calls[0]
    assert (found.name, found.id, found.arguments, found.extra) == ("f", "c", {}, {"strict": True, "extra": 1})
    flat = {"index": 0, "id": "c", "type": "function", "name": "f", "arguments": "{}", "extra": 1}
    odd = chat_stream({"tool_calls": [flat]})
    assert (turn_of(odd).tool_calls[0].name, "call_type" in codes(odd)) == ("f", True)
