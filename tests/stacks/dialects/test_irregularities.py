"""Every irregularity of the closed list, shown by a small exchange that has it; and legal variety, which has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stacks.dialects import WireExchange, assemble
from stacks.irregular import IRREGULARITIES, MAX_IRREGULARITIES, IrregularityLog
from tests.support.wire import call, chunk, dumps, exchange, ndjson, plain_chat, sse

START = chunk({"role": "assistant", "content": ""})
FINISH = chunk({}, "tool_calls")
STOP = chunk({}, "stop")
USAGE = {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": {"prompt_tokens": 1}}


def calls(*deltas: list[dict[str, Any]], finish: dict[str, Any] = FINISH) -> WireExchange:
    """A chat stream whose deltas carry these tool call entries."""
    return exchange("openai_chat", sse(START, *(chunk({"tool_calls": entries}) for entries in deltas), finish))


def chat(*chunks: Any, done: bool = True, request: dict[str, Any] | None = None) -> WireExchange:
    return exchange("openai_chat", sse(*chunks, done=done), request)


def plain(message: dict[str, Any], finish: Any = "stop", **more: Any) -> WireExchange:
    return exchange("openai_chat", plain_chat(message, finish, **more))


WHOLE = call(0, "a", "get_weather", '{"city":"Paris"}')


def anthropic(*events: dict[str, Any], stop: str | None = "end_turn", end: bool = True) -> WireExchange:
    """An Anthropic stream around these events."""
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": []}
    out = [{"type": "message_start", "message": {**message, "usage": {"input_tokens": 3, "output_tokens": 0}}}, *events]
    if stop:
        out.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 4}})
    return exchange(
        "anthropic_messages", sse(*out, *([{"type": "message_stop"}] if end else []), done=False, named=True)
    )


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any], closed: bool = True) -> list[dict[str, Any]]:
    out = [{"type": "content_block_start", "index": index, "content_block": content}]
    out += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return out + ([{"type": "content_block_stop", "index": index}] if closed else [])


def text_block(index: int, text: str, closed: bool = True) -> list[dict[str, Any]]:
    return block(index, {"type": "text", "text": ""}, {"type": "text_delta", "text": text}, closed=closed)


def tool_block(index: int, call_id: Any, name: Any, *pieces: Any) -> list[dict[str, Any]]:
    content = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return block(index, content, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def responses(*events: dict[str, Any], output: Any = None, status: str = "completed", end: bool = True) -> WireExchange:
    """A responses stream around these events."""
    head = {"id": "r1", "object": "response", "model": "m", "status": "in_progress", "output": []}
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    last = {
        "type": f"response.{status}",
        "response": {**head, "status": status, "output": output or [], "usage": usage},
    }
    return exchange(
        "openai_responses",
        sse({"type": "response.created", "response": head}, *events, *([last] if end else []), done=False, named=True),
    )


MESSAGE = {"id": "i1", "type": "message", "role": "assistant", "status": "completed"}
FUNCTION = {"id": "f1", "type": "function_call", "call_id": "c1", "name": "get_weather"}


def message_item(text: str, index: int = 0, final: str | None = None) -> list[dict[str, Any]]:
    done = {**MESSAGE, "content": [{"type": "output_text", "text": text if final is None else final}]}
    place = {"output_index": index, "item_id": "i1"}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": {**MESSAGE, "content": []}},
        {"type": "response.output_text.delta", "delta": text, **place},
        {"type": "response.output_text.done", "text": text, **place},
        {"type": "response.output_item.done", "output_index": index, "item": done},
    ]


def function_item(arguments: str, final: str | None = None, **fields: Any) -> list[dict[str, Any]]:
    item = {**FUNCTION, **fields}
    place = {"output_index": 0, "item_id": "f1"}
    closing = arguments if final is None else final
    return [
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "delta": arguments, **place},
        {"type": "response.function_call_arguments.done", "arguments": closing, **place},
        {"type": "response.output_item.done", "output_index": 0, "item": {**item, "arguments": closing}},
    ]


TEXT_OUTPUT = [{**MESSAGE, "content": [{"type": "output_text", "text": "hi"}]}]
CALL_OUTPUT = [{**FUNCTION, "arguments": '{"city":"Paris"}'}]


def ollama(*lines: Any, request: dict[str, Any] | None = None) -> WireExchange:
    return exchange("ollama_chat", ndjson(*lines), request)


def line(message: dict[str, Any] | None = None, done: Any = False, **more: Any) -> dict[str, Any]:
    out = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": done, **more}
    return out if message is None else {**out, "message": {"role": "assistant", "content": "", **message}}


def ollama_call(arguments: Any, index: int | None = 0, **more: Any) -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": arguments, **({"index": index} if index is not None else {})}
    return {"tool_calls": [{"id": "x", "function": function, **more}]}


DONE = line({}, True, done_reason="stop", eval_count=3, prompt_eval_count=4)

EXAMPLES: Mapping[str, list[WireExchange]] = {
    "index_missing": [calls([call(None, "a", "f", "{}")])],
    "index_type": [calls([call("0", "a", "f", "{}")]), calls([call(0.0, "a", "f", "{}")])],
    "index_reused": [
        calls([WHOLE], [call(0, "b", "get_weather", '{"city":"Rome"}')]),
        calls([call(0, None, "f", '{"a":1}')], [call(0, None, "f", '{"a":2}')]),
        ollama(
            line(ollama_call({})),
            line({"tool_calls": [{"id": "y", "function": {"index": 0, "name": "f", "arguments": {}}}]}),
            DONE,
        ),
        anthropic(*tool_block(0, "a", "f", "{}"), *tool_block(0, "b", "g", "{}"), stop="tool_use"),
    ],
    "index_gap": [calls([call(3, "a", "f", "{}")])],
    "id_missing": [
        calls([call(0, None, "f", "{}")]),
        plain({"content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}, "tool_calls"),
    ],
    "id_empty": [calls([call(0, "", "f", "{}")])],
    "id_late": [
        calls([call(0, None, "f", "{")], [call(0, "a", None, "}")]),
        calls([call(0, "", "f", "{")], [call(0, "a", None, "}")]),
    ],
    "id_changed": [calls([call(0, "a", "f", "{")], [call(0, "b", None, "}")])],
    "id_duplicate": [calls([call(0, "a", "f", "{}"), call(1, "a", "f", "{}")])],
    "id_repeated": [calls([call(0, "a", "f", "{")], [call(0, "a", None, "}")])],
    "id_type": [calls([call(0, 7, "f", "{}")])],
    "name_missing": [calls([call(0, "a", None, "{}")]), anthropic(*tool_block(0, "a", None, "{}"), stop="tool_use")],
    "name_type": [calls([call(0, "a", 5, "{}")])],
    "name_repeated": [calls([call(0, "a", "f", "{")], [call(0, "a", "f", "}")])],
    "name_split": [calls([call(0, "a", "get_", "")], [call(0, None, "weather", "{}")])],
    "arguments_type": [
        calls([call(0, "a", "f", {"city": "Paris"})]),
        plain(
            {"content": None, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"a": 1}}}]},
            "tool_calls",
        ),
        ollama(line(ollama_call('{"city":"Paris"}')), DONE),
        ollama(line(ollama_call([1])), DONE),
    ],
    "arguments_empty": [calls([call(0, "a", "f", "")])],
    "arguments_missing": [calls([call(0, "a", "f")]), ollama(line(ollama_call(None)), DONE)],
    "arguments_not_json": [calls([call(0, "a", "f", "{'a': 1}")]), calls([call(0, "a", "f", '{"a": ')])],
    "arguments_not_object": [calls([call(0, "a", "f", "[1]")]), calls([call(0, "a", "f", '"{}"')])],
    "arguments_duplicate_key": [calls([call(0, "a", "f", '{"a":1,"a":2}')])],
    "arguments_differ": [responses(*function_item('{"city":"Paris"}', '{"city":"Rome"}'))],
    "call_type": [calls([call(0, "a", "f", "{}", type="tool") | {"type": "tool"}])],
    "call_not_object": [calls([call(0, "a", "f", "{}"), "x"]), ollama(line({"tool_calls": ["x"]}), DONE)],  # type: ignore[list-item]
    "calls_type": [chat(START, chunk({"tool_calls": {"0": WHOLE}}), FINISH), ollama(line({"tool_calls": {}}), DONE)],
    "two_entries_in_delta": [calls([call(0, "a", "f"), call(0, None, None, "{}")])],
    "role_missing": [chat(chunk({"content": "hi"}), STOP)],
    "role_late": [chat(chunk({"content": "hi"}), chunk({"role": "assistant"}), STOP)],
    "role_unexpected": [chat(chunk({"role": "user", "content": "hi"}), STOP), ollama(line({"role": ""}), DONE)],
    "content_type": [
        exchange(
            "anthropic_messages", {"type": "message", "role": "assistant", "content": None, "stop_reason": "end_turn"}
        ),
        plain({"content": [{"type": "text", "text": "hi"}]}),
        plain({"content": {"a": 1}}),
    ],
    "content_differs": [responses(*message_item("hi", final="ho"), output=TEXT_OUTPUT)],
    "message_missing": [exchange("openai_chat", plain_chat({}) | {"choices": [{"index": 0, "message": None}]})],
    "message_in_stream": [chat(plain_chat({"content": "hi"}))],
    "delta_in_plain": [exchange("openai_chat", chunk({"role": "assistant", "content": "hi"}, "stop"))],
    "finish_missing": [chat(chunk({"role": "assistant", "content": "hi"})), plain({"content": "hi"}, None)],
    "finish_repeated": [chat(START, chunk({"content": "x"}, "stop"), STOP)],
    "finish_changed": [chat(START, chunk({"content": "x"}, "stop"), chunk({}, "length"))],
    "finish_unknown": [plain({"content": "x"}, "eos"), plain({"content": "x"}, ""), plain({"content": "x"}, "abort")],
    "finish_type": [plain({"content": "x"}, 1), ollama(line({"content": "x"}, done=None), DONE)],
    "finish_without_calls": [
        chat(START, chunk({"content": "x"}), FINISH),
        plain({"content": None}, "tool_calls"),
        anthropic(*text_block(0, "x"), stop="tool_use"),
    ],
    "finish_hides_calls": [calls([WHOLE], finish=STOP)],
    "finish_without_payload": [plain({"content": None}), ollama(DONE), anthropic(), responses()],
    "payload_after_finish": [
        chat(START, chunk({"content": "x"}, "stop"), chunk({"content": "y"})),
        ollama(DONE, line({"content": "y"})),
    ],
    "load_only": [ollama(line({}, True, done_reason="load"))],
    "done_missing": [
        chat(START, chunk({"content": "x"}), STOP, done=False),
        ollama(line({"content": "x"})),
        anthropic(*text_block(0, "x"), end=False),
        responses(*message_item("hi"), end=False),
    ],
    "done_repeated": [chat(START, chunk({"content": "x"}), STOP, b"[DONE]")],
    "data_after_done": [
        chat(START, chunk({"content": "x"}), STOP, b"[DONE]", STOP),
        ollama(line({"content": "x"}), DONE, DONE),
    ],
    "done_unexpected": [
        exchange("anthropic_messages", anthropic(*text_block(0, "x")).response_body + b"data: [DONE]\n\n")
    ],
    "final_blank_line_missing": [
        exchange("openai_chat", sse(START, chunk({"content": "x"}), STOP).rstrip(b"\n") + b"\n")
    ],
    "events_run_together": [
        exchange("openai_chat", sse(START, chunk({"content": "x"}), STOP).replace(b"\n\n", b"\n") + b"\n"),
        exchange("openai_chat", sse(dumps(START) + dumps(chunk({"content": "x"})), STOP)),
        exchange("ollama_chat", dumps(line({"content": "x"})) + dumps(DONE), {"stream": True}),
    ],
    "event_truncated": [exchange("openai_chat", sse(START, STOP, done=False)[:-30])],
    "event_not_json": [chat(START, b"oops", STOP), chat(START, b'{"choices":[}', STOP)],
    "event_not_object": [chat(START, b"[1]", STOP)],
    "event_unknown": [
        anthropic({"type": "content_block_sing", "index": 0}),
        responses({"type": "response.song.delta", "delta": "la"}),
    ],
    "event_out_of_order": [
        exchange("anthropic_messages", sse(*text_block(0, "x"), done=False)),
        anthropic(
            *text_block(0, "x"),
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "y"}},
        ),
        anthropic({"type": "content_block_stop", "index": 4}),
    ],
    "event_name_differs": [
        exchange("anthropic_messages", anthropic().response_body.replace(b"event: message_stop", b"event: x"))
    ],
    "event_missing": [
        exchange("openai_responses", sse(*message_item("hi"), done=False)),
        exchange("anthropic_messages", sse(*text_block(0, "x"), done=False)),
    ],
    "line_ignored": [exchange("openai_chat", b"data: " + dumps(START) + b'\n\n{"error":"x"}\n\n')],
    "stream_empty": [
        exchange("openai_chat", b": ping\n\n: ping\n\n"),
        exchange("openai_chat", b"data: [DONE]\n\n"),
        exchange("openai_chat", b"", {"stream": True}, content_type="text/event-stream"),
    ],
    "choices_missing": [chat(START, {"id": "c1", "object": "chat.completion.chunk", "model": "m"}, STOP)],
    "choices_empty": [chat(START, USAGE | {"usage": None}, STOP)],
    "choices_type": [chat(START, chunk() | {"choices": {}}, STOP), chat(START, chunk() | {"choices": [1]}, STOP)],
    "choice_count": [exchange("openai_chat", plain_chat({"content": "x"}), {"n": 2})],
    "block_missing": [
        anthropic({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "y"}}),
        responses({"type": "response.output_text.delta", "output_index": 0, "item_id": "i1", "delta": "hi"}),
    ],
    "block_open": [
        anthropic(*text_block(0, "x", closed=False)),
        responses(*message_item("hi")[:2], output=TEXT_OUTPUT),
    ],
    "block_unknown": [anthropic(*block(0, {"type": "song"}))],
    "output_differs": [
        responses(*message_item("hi"), output=CALL_OUTPUT),
        responses(*message_item("ho"), output=TEXT_OUTPUT),
    ],
    "response_id_changed": [chat(START, chunk({"content": "x"}, id="c2"), STOP)],
    "model_changed": [
        chat(START, chunk({"content": "x"}, model=""), STOP),
        ollama(line({"content": "x"}), {**DONE, "model": "z"}),
    ],
    "object_mismatch": [plain({"content": "x"}, object="chat.completion.chunk")],
    "usage_absent": [
        plain({"content": "x"}, usage=None),
        chat(START, chunk({"content": "x"}), STOP, request={"stream_options": {"include_usage": True}}),
    ],
    "usage_type": [plain({"content": "x"}, usage=[1]), plain({"content": "x"}, usage={"prompt_tokens": "5"})],
    "usage_inconsistent": [
        plain({"content": "x"}, usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 9})
    ],
    "usage_contradicts": [
        plain({"content": "x"}, usage={"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1})
    ],
    "error_in_stream": [chat(START, {"error": {"message": "boom"}}), ollama(line({"content": "x"}), {"error": "boom"})],
    "error_under_success": [
        exchange("openai_chat", {"error": {"message": "boom"}}),
        exchange("ollama_chat", {"error": "boom"}),
    ],
    "answer_under_error": [exchange("openai_chat", plain_chat({"content": "x"}), status=500)],
    "plain_for_stream_request": [exchange("openai_chat", plain_chat({"content": "x"}), {"stream": True})],
    "stream_for_plain_request": [chat(START, chunk({"content": "x"}), STOP, request={"stream": False})],
    "content_type_lies": [
        exchange("openai_chat", sse(START, STOP), content_type="application/json"),
        exchange("openai_chat", plain_chat({"content": "x"}), content_type="text/event-stream"),
        exchange("openai_chat", b"<html>bad gateway</html>", content_type="application/json"),
    ],
    "mixed_dialects": [
        exchange("openai_chat", line({"content": "x"}, True, done_reason="stop")),
        chat(START, line({"content": "x"}), STOP),
    ],
    "frame_differs": [
        exchange("openai_chat", ndjson(START, chunk({"content": "x"}), STOP), {"stream": True}),
        exchange("ollama_chat", sse(line({"content": "x"}), DONE, done=False)),
    ],
    "body_empty": [exchange("openai_chat", b"", {"stream": False})],
    "body_not_json": [
        exchange("openai_chat", b"<html>x</html>"),
        exchange("openai_chat", b"hello"),
        exchange("openai_chat", b"{x}"),
    ],
    "body_truncated": [
        exchange("openai_chat", dumps(plain_chat({"content": "x"}))[:-9]),
        exchange("openai_chat", b'{"a":1}', complete=False),
    ],
    "body_not_text": [
        exchange("openai_chat", b"\x00\x01\xff"),
        exchange("openai_chat", dumps(plain_chat({"content": "QQ"})).replace(b"QQ", b"\xff")),
    ],
    "shape_unknown": [exchange("openai_chat", {"hello": 1}), exchange("openai_chat", b"[1]")],
    "trailing_data": [exchange("openai_chat", dumps(plain_chat({"content": "x"})) + b" x")],
    "json_duplicate_key": [
        exchange("openai_chat", dumps(plain_chat({"content": "x"})).replace(b'"id":"c1"', b'"id":"c0","id":"c1"'))
    ],
    "json_nonstandard": [exchange("openai_chat", dumps(plain_chat({"content": "x"}, logprobs=float("nan"))))],
    "json_too_deep": [
        exchange("openai_chat", dumps(plain_chat({"content": "QQ"})).replace(b'"QQ"', b"[" * 300 + b"]" * 300))
    ],
}

CASES = [(code, item) for code, items in EXAMPLES.items() for item in items]


def test_the_examples_cover_the_closed_list() -> None:
    assert set(EXAMPLES) == set(IRREGULARITIES)


@pytest.mark.parametrize(("code", "item"), CASES, ids=[f"{code}-{n}" for n, (code, _) in enumerate(CASES)])
def test_irregularity_is_seen_at_its_place(code: str, item: WireExchange) -> None:
    found = [irregular for irregular in assemble(item).irregularities if irregular.code == code]
    assert len(found) == 1 or len({irregular.subject for irregular in found}) == len(found) > 0
    for irregular in found:
        assert 0 <= irregular.start <= irregular.end <= len(item.response_body)
        assert irregular.message
        assert irregular.severity in ("breaking", "deviation", "note")


def test_a_code_outside_the_list_is_refused() -> None:
    with pytest.raises(KeyError):
        IrregularityLog().add("sounds_odd", "x", 0, 0)


def test_the_same_thing_seen_again_is_counted() -> None:
    result = calls([call(None, "a", "f", "{")], [call(None, None, None, "}")], [call(None, None, None, " ")])
    (missing,) = [item for item in assemble(result).irregularities if item.code == "index_missing"]
    assert missing.count == 3


def test_a_flood_is_counted_under_its_own_code() -> None:
    log = IrregularityLog()
    log.add("id_missing", "x", 0, 0, subject="first")
    for number in range(MAX_IRREGULARITIES + 500):
        log.add("name_missing", "x", 0, 0, subject=str(number))
    log.add("id_missing", "x", 0, 0, subject="second")
    log.add("done_missing", "x", 0, 0)
    assert sum(item.count for item in log.items if item.code == "name_missing") == MAX_IRREGULARITIES + 500
    assert [item.count for item in log.items if item.code == "id_missing"] == [2]
    assert log.has("done_missing")
    assert len(log.items) == MAX_IRREGULARITIES + 1


LEGAL: dict[str, WireExchange] = {
    "plain answer": plain({"content": "hi"}),
    "content null beside calls": plain(
        {
            "content": None,
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        "tool_calls",
    ),
    "empty list of calls": plain({"content": "hi", "tool_calls": []}),
    "cut by the limit": plain({"content": "hi"}, "length"),
    "id in the first delta only": calls(
        [call(0, "a", "f", "")], [call(0, None, None, '{"city":')], [call(0, None, None, '"Paris"}')]
    ),
    "id null in later deltas": calls(
        [call(0, "a", "f", "{")], [{"index": 0, "id": None, "function": {"name": None, "arguments": "}"}}]
    ),
    "empty arguments object": calls([call(0, "a", "f", "{}")]),
    "parallel calls one after the other": calls([WHOLE], [call(1, "b", "g", "{}")]),
    "parallel calls in one delta": calls([WHOLE, call(1, "b", "g", "{}")]),
    "usage-only chunk": chat(START, chunk({"content": "x"}), STOP, USAGE),
    "usage in every chunk": chat(START, chunk({"content": "x"}, usage={"prompt_tokens": 1}), STOP),
    "role repeated": chat(START, chunk({"role": "assistant", "content": "x"}), chunk({"role": "assistant"}, "stop")),
    "finish with the last piece": chat(START, chunk({"content": "x"}, "stop")),
    "comments between": exchange("openai_chat", b": keepalive 1/2\n\n" + sse(START, chunk({"content": "x"}), STOP)),
    "line ends of another kind": exchange(
        "openai_chat", sse(START, chunk({"content": "x"}), STOP).replace(b"\n", b"\r\n")
    ),
    "call forced by name ends in stop": exchange(
        "openai_chat",
        sse(START, chunk({"tool_calls": [WHOLE]}), STOP),
        {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}},
    ),
    "reasoning under two names": chat(
        START, chunk({"reasoning": "r", "reasoning_content": "r"}), chunk({"content": "x"}), STOP
    ),
    "content filter chunk first": chat(
        chunk() | {"choices": [], "prompt_filter_results": []}, START, chunk({"content": "x"}), STOP
    ),
    "two choices": exchange(
        "openai_chat",
        sse(
            START,
            chunk({"role": "assistant", "content": "y"}, choice=1),
            chunk({"content": "x"}),
            STOP,
            chunk({}, "stop", choice=1),
        ),
        {"n": 2},
    ),
    "ollama answer": ollama(line({"content": "x"}), DONE),
    "ollama call without id and index": ollama(
        line({"tool_calls": [{"function": {"name": "f", "arguments": {}}}]}), DONE
    ),
    "ollama counts of zero left out": ollama(line({"content": "x"}), line({}, True, done_reason="stop")),
    "ollama plain": exchange("ollama_chat", line({"content": "x"}, True, done_reason="stop"), {"stream": False}),
    "ollama one line as a stream": exchange(
        "ollama_chat", ndjson(line({"content": "x"}, True, done_reason="stop")), {"stream": True}
    ),
    "ollama silent about the stream": exchange(
        "ollama_chat", line({"content": "x"}, True, done_reason="stop"), {"stream": None}
    ),
    "ollama generate": exchange(
        "ollama_generate",
        ndjson(
            {"model": "m", "response": "x", "done": False},
            {"model": "m", "response": "", "done": True, "done_reason": "stop"},
        ),
    ),
    "anthropic text and call": anthropic(
        {"type": "ping"}, *text_block(0, "x"), *tool_block(1, "a", "f", "", '{"city":', '"P"}'), stop="tool_use"
    ),
    "anthropic call without input": anthropic(*tool_block(0, "a", "f"), stop="tool_use"),
    "anthropic thinking": anthropic(
        *block(
            0,
            {"type": "thinking", "thinking": ""},
            {"type": "thinking_delta", "thinking": "t"},
            {"type": "signature_delta", "signature": "s"},
        ),
        *text_block(1, "x"),
    ),
    "responses text": responses(*message_item("hi"), output=TEXT_OUTPUT),
    "responses call": responses(*function_item('{"city":"Paris"}'), output=CALL_OUTPUT),
    "responses without output_index": responses(
        *({key: value for key, value in event.items() if key != "output_index"} for event in message_item("hi")),
        output=TEXT_OUTPUT,
    ),
    "an error status with its error": exchange("openai_chat", {"error": {"message": "no"}}, status=400),
    "an error page": exchange("openai_chat", b"<html>502</html>", status=502, content_type="text/html"),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal_variety_is_never_irregular(name: str) -> None:
    assert [(item.code, item.message) for item in assemble(LEGAL[name]).irregularities] == []
