"""From fragments to byte ranges."""

from __future__ import annotations

import json

from stacks.dialects import assemble
from stacks.locate import ranges, request_range, text_ranges
from tests.support.wire import WEATHER, chunk, exchange, plain_chat, sse


def test_text_of_a_stream_is_cited_piece_by_piece() -> None:
    item = exchange(
        "openai_chat", sse(*(chunk({"content": text}) for text in ("Hé ", "<tool_", 'call>"x"', "")), chunk({}, "stop"))
    )
    result = assemble(item)
    assert result.turn is not None
    text = result.turn.content or ""
    first = text.index("<tool_call>")
    found = text_ranges(result, result.turn.where_content, first, first + len("<tool_call>"))
    assert [item.response_body[start:end] for start, end in found] == [b"<tool_", b"call>"]
    assert [item.response_body[start:end] for start, end in ranges(result, result.turn.where_finish)] == [b'"stop"']


def test_data_over_several_lines_is_led_back_line_by_line() -> None:
    body = b'data: {"choices": [{"index": 0,\r\ndata:   "delta": {"role": "assistant", "content": "hi"}}]}\r\n\r\n'
    result = assemble(exchange("openai_chat", body))
    assert result.turn is not None
    (span,) = ranges(result, result.turn.where_content)
    assert body[span[0] : span[1]] == b'"hi"'
    (span,) = text_ranges(result, result.turn.where_content, 1, 2)
    assert body[span[0] : span[1]] == b"i"


def test_a_plain_body() -> None:
    calls = [{"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Köln"}'}}]
    item = exchange("openai_chat", plain_chat({"content": None, "tool_calls": calls}, "tool_calls"))
    result = assemble(item)
    assert result.turn is not None
    call = result.turn.tool_calls[0]
    (start, end), body = ranges(result, call.where_arguments)[0], item.response_body
    assert json.loads(body[start:end]) == '{"city":"Köln"}'
    (start, end) = ranges(result, call.where_name)[0]
    assert body[start:end] == b'"get_weather"'
    assert result.turn.usage is not None
    (start, end) = ranges(result, result.turn.usage.where)[0]
    assert json.loads(body[start:end])["total_tokens"] == 7


def test_the_request_can_be_cited_too() -> None:
    history = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{bad"}}]},
    ]
    item = exchange("openai_chat", plain_chat({"content": "x"}), {"tools": [WEATHER], "messages": history})
    result = assemble(item)
    assert result.request is not None
    call = result.request.messages[1].tool_calls[0]
    (start, end) = ranges(result, call.where_arguments)[0]
    assert item.request_body[start:end] == b'"{bad"'
    span = request_range(item.request_body, result.request.tools[0].path)
    assert span is not None
    assert json.loads(item.request_body[span[0] : span[1]]) == WEATHER
    assert request_range(item.request_body, ("nothing",)) is None
