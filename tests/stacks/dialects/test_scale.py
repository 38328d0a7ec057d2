"""Hostile and very large bodies: time linear, memory bounded, no exception.

Bounds are far above what is needed, so that only quadratic work or a hang can break them.
"""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stacks.dialects import WireExchange, assemble
from stacks.locate import ranges
from stacks.strictjson import UNPARSED
from tests.support.captured import selected_captures
from tests.support.wire import PATHS, call, chunk, dumps, exchange, plain_chat

SIZE = 10_000_000


def event(value: Any) -> bytes:
    return b"data: " + dumps(value) + b"\n\n"


def filled(unit: bytes, head: bytes = b"", tail: bytes = b"") -> bytes:
    return head + unit * (SIZE // len(unit)) + tail


def block_start() -> dict[str, Any]:
    content = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    return {"type": "content_block_start", "index": 0, "content_block": content}


def arguments_event(kind: str) -> dict[str, Any]:
    field = "arguments" if kind == "done" else "delta"
    return {"type": f"response.function_call_arguments.{kind}", "item_id": "i", field: "xy"}


BODIES: dict[str, tuple[str, Any]] = {
    "content": ("openai_chat", lambda: filled(event(chunk({"content": "word "})))),
    "arguments": ("openai_chat", lambda: filled(event(chunk({"tool_calls": [call(0, None, None, "ab")]})))),
    "names repeated": ("openai_chat", lambda: filled(event(chunk({"tool_calls": [call(0, None, "f", "{}")]})))),
    "no index": (
        "openai_chat",
        lambda: b"".join(event(chunk({"tool_calls": [call(None, f"a{n}", "f", "{}")]})) for n in range(40_000)),
    ),
    "one line": (
        "openai_chat",
        lambda: filled(b"x", b'data: {"choices":[{"index":0,"delta":{"content":"', b'"}}]}\n\n'),
    ),
    "open brackets": ("openai_chat", lambda: filled(b"[", b'{"choices":')),
    "open objects": ("openai_chat", lambda: filled(b'{"a":')),
    "not quite JSON": ("openai_chat", lambda: filled(b'{"a":NaN},', b'{"choices":[')),
    "glued objects": ("openai_chat", lambda: filled(dumps(chunk({"content": "a"})), b"data: ", b"\n\n")),
    "run together": ("openai_chat", lambda: filled(b"data: " + dumps(chunk({"content": "a"})) + b"\n")),
    "empty data lines": ("openai_chat", lambda: filled(b"data: \n", b"data: {\n", b"data: }\n\n")),
    "carriage returns": ("openai_chat", lambda: filled(b"\r", b"data: x\r")),
    "tags": ("openai_chat", lambda: filled(b"<p", b"<html>")),
    "comments unclosed": ("openai_chat", lambda: filled(b"<!-- <script", b"<html>")),
    "braces in an error": ("openai_chat", lambda: dumps({"error": {"message": "{" * SIZE}})),
    "dictionaries in an error": ("openai_chat", lambda: dumps({"error": {"message": "{'a':[" * (SIZE // 6)}})),
    "lines": ("ollama_chat", lambda: filled(dumps({"message": {"content": "word "}, "done": False}) + b"\n")),
    "blocks": ("anthropic_messages", lambda: filled(event(block_start()))),
    "closing texts": (
        "openai_responses",
        lambda: filled(event(arguments_event("delta")) + event(arguments_event("done"))),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_ten_megabytes_take_seconds(name: str) -> None:
    dialect, make = BODIES[name]
    status = 500 if "error" in name or name in ("tags", "comments unclosed") else 200
    item = exchange(dialect, make(), {"stream": True}, status=status)
    started = time.process_time()
    result = assemble(item)
    assert time.process_time() - started < 60
    assert len(result.irregularities) <= 3000
    if result.turn is not None and result.turn.where_content:
        assert ranges(result, result.turn.where_content[-1:])


INSERTS = [b'"', b"{", b"}", b"[", b"null", b"\n\n", b"\r", b"\\", b"\xff", b"data: ", b"0"]


def mutate(body: bytes, generator: random.Random) -> bytes:
    """A body with a few bytes changed, cut, doubled or moved."""
    data = bytearray(body)
    for _ in range(generator.randrange(1, 6)):
        if not data:
            break
        start = generator.randrange(len(data))
        end = min(len(data), start + generator.randrange(1, 40))
        kind = generator.randrange(6)
        if kind == 0:
            del data[start:end]
        elif kind == 1:
            data[start:start] = data[start:end]
        elif kind == 2:
            data[start] = generator.randrange(256)
        elif kind == 3:
            data[start:start] = generator.choice(
                [b'"', b"{", b"}", b"[", b"null", b"\n\n", b"\r", b"\\", b"\xff", b"data: ", b"0"]
            )
        elif kind == 4:
            del data[start:]
        else:
            data[start:end] = generator.choice([b"1", b"{}", b"[]", b'""', b"true", b"null"])
    return bytes(data)


def fuzz(count: int, seed: int) -> None:
    generator = random.Random(seed)
    selection = [item.exchange for item in selected_captures() if item.exchange.response_body]
    for _ in range(count):
        base = generator.choice(selection)
        response = mutate(base.response_body, generator)
        request = mutate(base.request_body, generator) if generator.random() < 0.2 else base.request_body
        status = generator.choice([base.status, 200, 500])
        item = WireExchange(base.method, base.target, request, status, base.response_headers, response)
        result = assemble(item)
        for irregular in result.irregularities:
            assert 0 <= irregular.start <= irregular.end <= len(response)
        for error in result.errors:
            assert 0 <= error.start <= error.inner_start <= error.inner_end <= error.end <= len(response)
        for turn in result.turns:
            for where in (turn.where_content, turn.where_reasoning, turn.where_finish):
                assert all(0 <= start <= end <= len(response) for start, end in ranges(result, where))


def test_mutated_exchanges() -> None:
    fuzz(3000, 1)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_many_mutated_exchanges() -> None:
    fuzz(100_000, 2)


FIELDS = """id object model choices index delta message role content tool_calls function name arguments type usage error
done done_reason response output item item_id output_index content_block text input thinking finish_reason status
stop_reason prompt_tokens partial_json summary call_id refusal"""
WORDS = """assistant stop message_start content_block_start content_block_delta content_block_stop message_delta
response.output_item.added response.output_text.delta response.completed response.output_item.done function_call
response.function_call_arguments.done text_delta input_json_delta tool_use message {}"""
fields = st.sampled_from(FIELDS.split())
words = st.sampled_from(["", *WORDS.split()])
trees = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=300)
@given(
    st.sampled_from(sorted(PATHS)),
    st.lists(trees, max_size=5),
    st.sampled_from(["sse", "ndjson", "json"]),
    st.sampled_from([200, 500]),
)
def test_any_json_in_any_dialect(dialect: str, values: list[Any], form: str, status: int) -> None:
    texts = [json.dumps(value).encode() for value in values]
    ends = {"sse": (b"data: ", b"\n\n"), "ndjson": (b"", b"\n"), "json": (b"", b"")}[form]
    body = b"".join(ends[0] + text + ends[1] for text in texts)
    assemble(exchange(dialect, body, status=status))


@settings(max_examples=200)
@given(st.sampled_from(sorted(PATHS)), trees, trees)
def test_any_shape_of_a_choice_message_or_item(dialect: str, one: Any, two: Any) -> None:
    shapes: list[Any] = [
        {"choices": [{"delta": {"tool_calls": [one, two], "content": one}, "finish_reason": two}]},
        {"choices": [{"message": one, "text": two}, two], "usage": one},
        {"message": {"content": one, "tool_calls": [two], "thinking": one}, "done": two},
        {"type": "message", "content": [one, two], "usage": one, "stop_reason": two},
        {"object": "response", "output": [one, two], "status": one, "usage": two, "id": one},
        {"type": "response.output_item.added", "item": one, "output_index": two},
        {"type": "content_block_start", "index": one, "content_block": two},
        {"error": one, "message": two},
    ]
    for shape in shapes:
        assemble(exchange(dialect, shape))
    assemble(exchange(dialect, b"".join(event(shape) for shape in shapes)))


def test_values_of_a_very_long_stream_are_read_again() -> None:
    result = assemble(exchange("openai_chat", event(chunk({"content": "word "})) * 20_500))
    assert result.turn is not None
    assert result.turn.content == "word " * 20_500
    last = result.events[-1]
    assert last.value is UNPARSED
    assert last.read() == result.events[0].read() == result.events[0].value


def test_deep_values_stay_readable() -> None:
    deep = b"[" * 5000 + b"]" * 5000
    body = dumps(plain_chat({"content": "hi"})).replace(b'"object"', b'"deep":' + deep + b',"object"', 1)
    result = assemble(exchange("openai_chat", body))
    assert result.turn is not None
    assert result.turn.content == "hi"
    assert result.has("json_too_deep")
    assert repr(result)
