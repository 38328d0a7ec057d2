"""What is assembled: the turn of every dialect, plain and streamed, whole and odd."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.dialects import Assembled, WireExchange, assemble
from stacks.strictjson import UNPARSED
from stacks.turn import Turn
from tests.support.wire import call, chunk, dumps, exchange, ndjson, plain_chat, sse


def turn_of(item: WireExchange) -> Turn:
    turn = assemble(item).turn
    assert turn is not None
    return turn


def stream(*chunks: Any, **more: Any) -> WireExchange:
    return exchange("openai_chat", sse(chunk({"role": "assistant", "content": None}), *chunks), **more)


def calls_of(*deltas: list[dict[str, Any]]) -> list[tuple[Any, Any, Any, str]]:
    turn = turn_of(stream(*(chunk({"tool_calls": entries}) for entries in deltas), chunk({}, "tool_calls")))
    return [(each.index, each.id, each.name, each.arguments_text) for each in turn.tool_calls]


def test_chat_stream() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    turn = turn_of(
        stream(
            chunk({"reasoning_content": "thin"}),
            chunk({"reasoning_content": "king"}),
            chunk({"content": "Hé"}),
            chunk({"content": "llo"}),
            chunk({"tool_calls": [call(0, "a", "f", "")]}),
            chunk({"tool_calls": [call(0, None, None, '{"n": 123456789012345678901234567890,')]}),
            chunk({"tool_calls": [call(0, None, None, ' "b": true}')]}),
            chunk({}, "tool_calls", timings={"x": 1}, system_fingerprint="fp"),
            {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": usage},
        )
    )
    assert (turn.role, turn.content, turn.reasoning, turn.reasoning_field) == (
        "assistant",
        "Héllo",
        "thinking",
        "reasoning_content",
    )
    assert (turn.finish, turn.finish_raw, turn.model, turn.response_id, turn.fingerprint) == (
        "tool_calls",
        "tool_calls",
        "m",
        "c1",
        "fp",
    )
    assert turn.tool_calls[0].arguments == {"n": 123456789012345678901234567890, "b": True}
    assert turn.tool_calls[0].arguments_valid
    assert turn.usage is not None
    counts = turn.usage
    assert (counts.prompt, counts.completion, counts.total, counts.cached, counts.reasoning) == (10, 4, 14, 3, 2)
    assert turn.extra["timings"] == {"x": 1}


def test_absent_is_not_zero_and_null_is_not_empty() -> None:
    turn = turn_of(exchange("openai_chat", plain_chat({"content": None}, usage=None)))
    assert (turn.content, turn.usage, turn.reasoning) == (None, None, None)
    turn = turn_of(exchange("openai_chat", plain_chat({"content": ""}, usage={"prompt_tokens": 0})))
    assert turn.content == ""
    assert turn.usage is not None
    assert (turn.usage.prompt, turn.usage.completion, turn.usage.cached) == (0, None, None)


def test_calls_that_share_an_index_stay_apart() -> None:
    assert calls_of([call(0, "a", "f", '{"a":1}')], [call(0, "b", "f", '{"a":2}')]) == [
        (0, "a", "f", '{"a":1}'),
        (0, "b", "f", '{"a":2}'),
    ]
    assert calls_of([call(0, None, "f", '{"a":1}')], [call(0, None, "f", '{"a":2}')]) == [
        (0, None, "f", '{"a":1}'),
        (0, None, "f", '{"a":2}'),
    ]


def test_calls_without_index_are_told_by_id_or_order() -> None:
    assert calls_of(
        [call(None, "a", "f", "{")],
        [call(None, "b", "g", "{")],
        [call(None, "a", None, "}")],
        [call(None, "b", None, "}")],
    ) == [
        (None, "a", "f", "{}"),
        (None, "b", "g", "{}"),
    ]
    assert calls_of([call(None, None, "f", "{")], [call(None, None, None, "}")], [call(None, None, "g", "{}")]) == [
        (None, None, "f", "{}"),
        (None, None, "g", "{}"),
    ]


def test_interleaved_parallel_calls() -> None:
    assert calls_of(
        [call(0, "a", "f", "{")], [call(1, "b", "g", "{")], [call(0, None, None, "}")], [call(1, None, None, "}")]
    ) == [
        (0, "a", "f", "{}"),
        (1, "b", "g", "{}"),
    ]


def test_name_split_repeated_and_late_id() -> None:
    assert calls_of([call(0, "a", "get_", "")], [call(0, None, "weather", "{}")]) == [(0, "a", "get_weather", "{}")]
    assert calls_of([call(0, "a", "f", "{")], [call(0, "a", "f", "}")]) == [(0, "a", "f", "{}")]
    assert calls_of([call(0, None, "f", "{")], [call(0, "late", None, "}")]) == [(0, "late", "f", "{}")]


def test_arguments_of_other_types() -> None:
    turn = turn_of(stream(chunk({"tool_calls": [call(0, "a", "f", {"a": 1})]}), chunk({}, "tool_calls")))
    (made,) = turn.tool_calls
    assert (made.arguments, made.arguments_type, made.arguments_text) == ({"a": 1}, "object", '{"a":1}')
    turn = turn_of(stream(chunk({"tool_calls": [call(0, "a", "f", "{'a'")]}), chunk({}, "length")))
    (made,) = turn.tool_calls
    assert made.arguments is UNPARSED
    assert not made.arguments_valid
    assert made.arguments_error
    turn = turn_of(stream(chunk({"tool_calls": [call(0, "a", "f")]}), chunk({}, "tool_calls")))
    assert (turn.tool_calls[0].arguments_type, turn.tool_calls[0].arguments_error) == ("absent", "missing")


def test_former_function_call_and_both_together() -> None:
    legacy = {"name": "f", "arguments": "{}"}
    (made,) = turn_of(stream(chunk({"function_call": legacy}), chunk({}, "function_call"))).tool_calls
    assert (made.kind, made.name, made.arguments) == ("function_call", "f", {})
    both = {"function_call": legacy, "tool_calls": [call(0, "a", "f", "{}")]}
    (made,) = turn_of(stream(chunk(both), chunk({}, "tool_calls"))).tool_calls
    assert (made.kind, made.id, made.arguments_text) == ("function", "a", "{}")


def test_custom_tool_call() -> None:
    entry = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    (made,) = turn_of(stream(chunk({"tool_calls": [entry]}), chunk({}, "tool_calls"))).tool_calls
    assert (made.kind, made.name, made.arguments) == ("custom", "sql", "select 1")


def test_all_choices_are_kept_and_the_first_is_the_main_one() -> None:
    result = assemble(
        exchange(
            "openai_chat",
            sse(
                chunk({"role": "assistant", "content": "b"}, choice=1),
                chunk({"role": "assistant", "content": "a"}),
                chunk({}, "stop"),
                chunk({}, "length", choice=1),
            ),
            {"n": 2},
        )
    )
    assert [(turn.index, turn.content, turn.finish) for turn in result.turns] == [(0, "a", "stop"), (1, "b", "length")]
    assert result.turn is result.turns[0]


def test_choices_without_index_are_told_by_place() -> None:
    choices = [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"} for text in "ab"]
    result = assemble(exchange("openai_chat", plain_chat({}) | {"choices": choices}))
    assert [turn.content for turn in result.turns] == ["a", "b"]


def test_nothing_is_said_about_a_request_that_was_not_kept() -> None:
    body = sse(chunk({"role": "assistant", "content": "x"}), chunk({}, "stop"))
    headers = {"content-type": "text/event-stream"}
    item = WireExchange("POST", "/v1/chat/completions", status=200, response_headers=headers, response_body=body)
    assert assemble(item).irregularities == []


def test_content_as_parts_and_refusal() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    turn = turn_of(exchange("openai_chat", plain_chat({"content": parts, "refusal": "no"})))
    assert (turn.content, turn.parts, turn.refusal) == ("ab", [{"type": "image"}], "no")


def test_what_came_before_an_error_event_is_kept() -> None:
    result = assemble(
        exchange(
            "openai_chat",
            sse(chunk({"role": "assistant", "content": "half"}), {"error": {"message": "boom"}}, done=False),
        )
    )
    assert result.turn is not None
    assert (result.turn.content, result.turn.finish, result.errors[0].message) == ("half", None, "boom")
    assert not result.has("finish_missing")


def test_a_cut_event_does_not_enter_the_turn() -> None:
    body = sse(chunk({"role": "assistant", "content": "whole"}), chunk({"content": "cut here"}), done=False)
    result = assemble(exchange("openai_chat", body[:-60], complete=False))
    assert result.turn is not None
    assert result.turn.content == "whole"
    assert result.has("event_truncated")
    assert not result.has("finish_missing")


def test_a_cut_plain_body_is_read_as_far_as_it_goes() -> None:
    body = dumps(plain_chat({"content": "what came through"}))
    result = assemble(exchange("openai_chat", body[: body.index(b"came") + 4], complete=False))
    assert result.turn is not None
    assert result.turn.content == "what came"


def test_completions() -> None:
    choice = {"index": 0, "text": "abc", "finish_reason": "length", "logprobs": {"t": 1}}
    turn = turn_of(
        exchange(
            "openai_completions",
            {
                "id": "x",
                "object": "text_completion",
                "model": "m",
                "choices": [choice],
                "usage": {"prompt_tokens": 1, "completion_tokens": 2},
            },
        )
    )
    assert (turn.content, turn.finish, turn.role, turn.extra["logprobs"]) == ("abc", "length", None, {"t": 1})
    chunks = [
        {"object": "text_completion", "choices": [{"index": 0, "text": text, "finish_reason": None}]} for text in "abc"
    ]
    assert turn_of(exchange("openai_completions", sse(*chunks))).content == "abc"


def test_ollama_stream() -> None:
    message = {
        "role": "assistant",
        "content": "",
        "thinking": "hm",
        "tool_calls": [{"id": "c", "function": {"index": 0, "name": "f", "arguments": {"n": 10**25}}}],
    }
    last = {
        "model": "m",
        "message": {"role": "assistant", "content": "x"},
        "done": True,
        "done_reason": "length",
        "eval_count": 3,
        "prompt_eval_count": 9,
        "total_duration": 5,
    }
    turn = turn_of(exchange("ollama_chat", ndjson({"model": "m", "message": message, "done": False}, last)))
    assert (turn.content, turn.reasoning, turn.reasoning_field, turn.finish) == ("x", "hm", "thinking", "length")
    (made,) = turn.tool_calls
    assert (made.id, made.index, made.name, made.arguments, made.arguments_type) == (
        "c",
        0,
        "f",
        {"n": 10**25},
        "object",
    )
    assert made.arguments_text == '{"n":10000000000000000000000000}'
    assert turn.usage is not None
    assert (turn.usage.prompt, turn.usage.completion, turn.usage.total) == (9, 3, None)
    assert turn.extra["total_duration"] == 5


def test_ollama_load_generate_and_error_line() -> None:
    turn = turn_of(
        exchange(
            "ollama_chat",
            {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "load"},
        )
    )
    assert (turn.finish, turn.finish_raw, turn.usage) == ("load", "load", None)
    lines = [{"model": "m", "response": text, "done": text == ""} for text in ("a", "b", "")]
    turn = turn_of(exchange("ollama_generate", ndjson(*lines)))
    assert (turn.content, turn.finish, turn.finish_raw) == ("ab", "stop", None)
    result = assemble(
        exchange("ollama_chat", ndjson({"model": "m", "message": {"content": "a"}, "done": False}, {"error": "boom"}))
    )
    assert result.turn is not None
    assert (result.turn.content, result.errors[0].message, result.done_mark) == ("a", "boom", False)


def test_anthropic_plain() -> None:
    body = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "t", "signature": "s"},
            {"type": "text", "text": "a"},
            {"type": "tool_use", "id": "u", "name": "f", "input": {"a": 1}},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "text", "text": "b"},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 2},
        "container": None,
    }
    turn = turn_of(exchange("anthropic_messages", body))
    assert (turn.content, turn.reasoning, turn.finish, turn.finish_raw) == ("ab", "t", "tool_calls", "tool_use")
    (made,) = turn.tool_calls
    assert (made.id, made.name, made.arguments, made.arguments_type) == ("u", "f", {"a": 1}, "object")
    assert turn.parts == [{"type": "redacted_thinking", "data": "x"}]
    assert turn.usage is not None
    # Anthropic's input_tokens leaves out what came from the cache; the prompt has both.
    assert (turn.usage.prompt, turn.usage.completion, turn.usage.cached) == (5, 4, 2)
    assert turn.extra == {"container": None}


def test_anthropic_stream() -> None:
    events: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {
                "id": "m1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [],
                "usage": {"input_tokens": 3, "output_tokens": 1},
            },
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "u", "name": "f", "input": {}},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":'}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "1}"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "max_tokens", "stop_sequence": None},
            "usage": {"output_tokens": 7},
        },
        {"type": "message_stop"},
    ]
    result = assemble(exchange("anthropic_messages", sse(*events, done=False, named=True)))
    turn = result.turn
    assert turn is not None
    assert result.done_mark is True
    assert (turn.content, turn.finish, turn.role) == ("hi", "length", "assistant")
    assert (turn.tool_calls[0].arguments, turn.tool_calls[0].index) == ({"a": 1}, 1)
    assert turn.usage is not None
    assert (turn.usage.prompt, turn.usage.completion) == (3, 7)


def test_responses_plain() -> None:
    body = {
        "id": "r1",
        "object": "response",
        "model": "m",
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [
            {"type": "reasoning", "id": "x", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "no"}],
            },
            {
                "type": "function_call",
                "id": "f1",
                "call_id": "c1",
                "name": "f",
                "arguments": '{"a":1}',
                "status": "completed",
            },
            {"type": "web_search_call", "id": "w"},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 4, "output_tokens_details": {"reasoning_tokens": 2}},
        "text": {"format": {}},
    }
    turn = turn_of(exchange("openai_responses", body))
    assert (turn.content, turn.reasoning, turn.refusal, turn.role) == ("a", "t", "no", "assistant")
    assert (turn.finish, turn.finish_raw, turn.stop_detail) == ("length", "incomplete", {"reason": "max_output_tokens"})
    (made,) = turn.tool_calls
    assert (made.id, made.name, made.arguments, made.extra["id"]) == ("c1", "f", {"a": 1}, "f1")
    assert turn.parts == [{"type": "web_search_call", "id": "w"}]
    assert turn.usage is not None
    assert turn.usage.reasoning == 2
    assert turn.extra == {"text": {"format": {}}}


def test_responses_stream_without_output_index_and_with_a_final_item_only() -> None:
    call_item = {"id": "f1", "type": "function_call", "call_id": "c1", "name": "f"}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r1", "object": "response", "model": "m"}},
        {
            "type": "response.output_item.added",
            "item": {"id": "i1", "type": "message", "role": "assistant", "content": []},
        },
        {"type": "response.output_text.delta", "item_id": "i1", "delta": "he"},
        {"type": "response.output_text.delta", "item_id": "i1", "delta": "llo"},
        {"type": "response.output_item.added", "item": {**call_item, "arguments": ""}},
        {
            "type": "response.output_item.done",
            "item": {
                "id": "i1",
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "hello"}],
            },
        },
        {"type": "response.output_item.done", "item": {**call_item, "arguments": '{"a":1}'}},
        {
            "type": "response.completed",
            "response": {"id": "r1", "status": "completed", "usage": {"input_tokens": 1, "output_tokens": 2}},
        },
    ]
    turn = turn_of(exchange("openai_responses", sse(*events, done=False, named=True)))
    assert (turn.content, turn.finish) == ("hello", "tool_calls")
    assert turn.tool_calls[0].arguments == {"a": 1}


def test_responses_failed() -> None:
    events = [
        {"type": "response.created", "response": {"id": "r1", "object": "response"}},
        {
            "type": "response.failed",
            "response": {"id": "r1", "status": "failed", "error": {"code": "server_error", "message": "boom"}},
        },
    ]
    result = assemble(exchange("openai_responses", sse(*events, done=False)))
    assert [error.message for error in result.errors] == ["boom"]
    assert result.turn is not None
    assert result.turn.finish == "error"


def test_native_completions() -> None:
    result = assemble(
        exchange(
            "openai_chat",
            {
                "content": "abc",
                "stop": True,
                "stop_type": "limit",
                "tokens_predicted": 3,
                "tokens_evaluated": 5,
                "model": "m",
            },
            path="/completion",
        )
    )
    assert (result.dialect, result.route) == ("other", "llamacpp_completion")
    assert result.turn is not None
    assert (result.turn.content, result.turn.finish) == ("abc", "length")
    assert result.turn.usage is not None
    assert (result.turn.usage.prompt, result.turn.usage.completion) == (5, 3)
    events = [{"content": text, "stop": text == ""} for text in ("a", "b", "")]
    assert turn_of(exchange("openai_chat", sse(*events, done=False), path="/completion")).content == "ab"
    meta = {"finish_reason": {"type": "stop"}, "prompt_tokens": 1, "completion_tokens": 2}
    grown = [{"text": text, "meta_info": meta} for text in ("a", "ab", "abc")]
    turn = turn_of(exchange("openai_chat", sse(*grown), path="/generate"))
    assert (turn.content, turn.finish) == ("abc", "stop")


def kind(body: bytes, **more: Any) -> tuple[str, bool, Assembled]:
    result = assemble(exchange("openai_chat", body, **more))
    return result.body_kind, result.streamed, result


@pytest.mark.parametrize(
    ("body", "expected", "streamed"),
    [
        (b"", "empty", False),
        (b" \r\n ", "empty", False),
        (b"{}", "json", False),
        (b"\xef\xbb\xbf [1]\n", "json", False),
        (b'{"a":\n 1}', "json", False),
        (b'{"a":', "json", False),
        (b'{"a":1}\n{"b":', "ndjson", True),
        (b'{"a":1}{"b":2}', "ndjson", True),
        (b'"text"', "json", False),
        (b"null", "json", False),
        (b"data: {}\n\n", "sse", True),
        (b": ping\n\n", "sse", True),
        (b"event: x\r\ndata: {}\r\n\r\n", "sse", True),
        (b"\n\ndata: {}\n\n", "sse", True),
        (b'{"error":"x"}\n\ndata: {}\n\n', "sse", True),
        (b"<!DOCTYPE html><p>x", "html", False),
        (b"<h1>502</h1>", "html", False),
        (b"<?xml version='1.0'?><E/>", "xml", False),
        (b"404 page not found", "text", False),
        ("é".encode() * 40_000, "text", False),
        (b"\x1f\x8b\x08\x00", "binary", False),
        (b"\xff\xfe", "binary", False),
    ],
)
def test_kind_of_body(body: bytes, expected: str, streamed: bool) -> None:
    assert kind(body, content_type="application/json")[:2] == (expected, streamed)
    assert kind(body, content_type="text/event-stream")[:2] == (expected, streamed)


def test_headers_are_not_believed() -> None:
    body = sse(chunk({"role": "assistant", "content": "hi"}), chunk({}, "stop"))
    _, _, result = kind(body, content_type="application/json")
    assert result.turn is not None
    assert result.turn.content == "hi"
    _, _, result = kind(dumps(plain_chat({"content": "hi"})), content_type="text/event-stream")
    assert result.turn is not None
    assert result.turn.content == "hi"


def test_answer_in_another_dialect_than_the_route() -> None:
    result = assemble(
        exchange(
            "openai_chat",
            {"model": "m", "message": {"role": "assistant", "content": "hi"}, "done": True, "done_reason": "stop"},
        )
    )
    assert result.dialect == "ollama_chat"
    assert result.turn is not None
    assert result.turn.content == "hi"


def test_no_response_at_all() -> None:
    result = assemble(WireExchange("POST", "/v1/chat/completions", b'{"model":"m","messages":[]}', 0, (), b"", False))
    assert (result.turn, result.errors, result.irregularities, result.body_kind) == (None, [], [], "empty")
    result = assemble(WireExchange("GET", "/v1/models", status=200, response_body=b'{"data":[]}'))
    assert (result.dialect, result.route, result.irregularities) == ("other", "models", [])
