"""Errors in every shape, and errors nested in the messages of errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacks.dialects import assemble
from stacks.errors import error_in, message_path, text_error, unwrap
from stacks.turn import ErrorObject
from tests.support.wire import dumps, exchange, sse


def only_error(body: Any, status: int = 400, dialect: str = "openai_chat") -> tuple[ErrorObject, bytes]:
    item = exchange(dialect, body, status=status)
    result = assemble(item)
    assert len(result.errors) == 1
    return result.errors[0], item.response_body


SHAPES: list[tuple[str, Any, str, str | None, str | int | None]] = [
    ("nested", {"error": {"message": "no", "type": "bad", "code": 400, "param": None}}, "no", "bad", 400),
    ("flat", {"error": "no"}, "no", None, None),
    ("object_error", {"object": "error", "message": "no", "type": "bad", "code": 404}, "no", "bad", 404),
    ("anthropic", {"type": "error", "error": {"type": "bad", "message": "no"}}, "no", "bad", None),
    ("event", {"type": "error", "message": "no", "code": "x"}, "no", "error", "x"),
    ("detail", {"detail": "no"}, "no", None, None),
    ("detail", {"detail": [{"loc": ["body", "n"], "msg": "no", "type": "missing"}]}, "no", None, None),
    ("nested", {"errors": [{"message": "no"}]}, "no", None, None),
    ("message", {"message": "no", "status": 400}, "no", None, None),
    ("response", {"response": {"error": {"code": "x", "message": "no"}}}, "no", None, "x"),
    ("choice", {"choices": [{"error": {"message": "no", "code": 502}}]}, "no", None, 502),
    ("string", "no", "no", None, None),
]


@pytest.mark.parametrize(
    ("shape", "body", "message", "kind", "code"), SHAPES, ids=[f"{s[0]}{n}" for n, s in enumerate(SHAPES)]
)
def test_shape(shape: str, body: Any, message: str, kind: str | None, code: str | int | None) -> None:
    error, raw = only_error(body)
    assert (error.shape, error.message, error.innermost) == (shape, message, message)
    assert (error.type, error.code) == (kind, code)
    assert raw[error.start : error.end] == b'"no"'


def test_an_object_without_any_message_is_still_an_error_under_an_error_status() -> None:
    error, raw = only_error({"code": 17})
    assert error.shape == "unknown"
    assert raw[error.start : error.end] == raw


def test_no_error_where_none_is_said() -> None:
    for body in ({"error": None}, {"error": ""}, {"choices": []}, {"detail": "x", "a": 1}, [], "text", 3, None):
        assert error_in(body) is None


def test_pages_and_texts_under_an_error_status() -> None:
    error, _ = only_error(
        b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad&nbsp;Gateway</h1></body></html>", 502
    )
    assert error.shape == "html"
    assert error.message == "502 Bad Gateway 502 Bad Gateway"
    error, raw = only_error(b"<?xml version='1.0'?><Error><Code>x</Code></Error>", 403)
    assert (error.shape, error.message, (error.start, error.end)) == ("xml", "x", (0, len(raw)))
    error, _ = only_error(b"404 page not found\n", 404)
    assert (error.shape, error.message) == ("text", "404 page not found")
    assert text_error(b"upstream: \xff", "text").message == "upstream: \ufffd"


def test_error_inside_a_text_inside_an_error_is_led_back_to_the_body() -> None:
    inner = {"error": {"code": 400, "message": 'exceeds "4096" – é', "type": "exceed_context_size_error"}}
    body = {"error": json.dumps(inner)}
    error, raw = only_error(body)
    assert error.innermost == 'exceeds "4096" – é'
    assert error.type == "exceed_context_size_error"
    assert error.code == 400
    assert len(error.chain) == 2
    quoted = raw[error.inner_start : error.inner_end]
    assert json.loads(json.loads(b'"' + quoted + b'"').join('""')) == error.innermost


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 3, 5, 8])
def test_any_depth(depth: int, ascii_only: bool) -> None:
    text = 'the "innermost" – \U0001f600\n'
    for level in range(depth):
        text = f"level {level}: " + json.dumps(
            {"error": {"message": text, "type": f"t{level}"}}, ensure_ascii=ascii_only
        )
    error, raw = only_error(dumps({"error": {"message": text}}))
    assert error.innermost == 'the "innermost" – \U0001f600\n'
    assert len(error.chain) == depth + 1
    quoted: str = raw[error.inner_start : error.inner_end].decode()
    for _ in range(depth + 1):
        quoted = json.loads('"' + quoted + '"')
    assert quoted == error.innermost


def test_prefixed_by_a_gateway() -> None:
    message = "litellm.BadRequestError: OpenAIException - " + json.dumps(
        {"error": {"message": "too long", "code": "ctx"}}
    )
    nested = unwrap(message)
    assert nested.chain == (message, "too long")
    assert nested.first is not None
    assert nested.last is not None
    assert message[nested.first : nested.last] == "too long"


def test_dictionary_printed_by_python() -> None:
    message = "Error code: 400 - {'error': {'message': \"it's bad\", 'type': 'x', 'param': None}}"
    nested = unwrap(message)
    assert nested.chain[-1] == "it's bad"
    assert nested.first is None


def test_json_that_is_no_error_is_left_alone() -> None:
    for text in (
        'failed to parse {"name": "f", "arguments": {}}',
        '{"city": "Paris"}',
        "{",
        "{}",
        "a { b } c",
        '{"message": "x"}',
    ):
        assert unwrap(text).chain == (text,)


def test_error_event_in_a_stream() -> None:
    item = exchange("openai_chat", sse({"error": {"message": "boom", "code": 500}}, done=False))
    result = assemble(item)
    assert result.turn is None
    error = result.errors[0]
    assert item.response_body[error.start : error.end] == b'"boom"'
    assert error.event == 0


def test_error_field_line_and_named_event_of_text() -> None:
    result = assemble(
        exchange(
            "openai_chat",
            b'error: {"code":500,"message":"old","type":"server_error"}\n\n',
            content_type="text/event-stream",
            path="/v1/chat/completions",
        )
    )
    assert [error.message for error in result.errors] == ["old"]
    result = assemble(exchange("openai_chat", b"event: error\ndata: it broke\n\n"))
    assert [error.message for error in result.errors] == ["it broke"]
    assert result.has("error_in_stream")


def test_hostile_nesting_is_bounded() -> None:
    text = "x"
    for _ in range(40):
        text = json.dumps({"error": text})
        if len(text) > 200_000:
            break
    assert len(unwrap(text).chain) <= 17
    unwrap("{" * 200_000)
    unwrap("{'a': " * 100_000)
    unwrap('{"error": ' * 50_000 + "1")


@given(st.text(alphabet="{}[]'\":,error message\\n\ud800é(", max_size=120))
def test_unwrap_never_raises(text: str) -> None:
    nested = unwrap(text)
    assert nested.chain[0] == text
    if nested.first is not None and nested.last is not None:
        assert 0 <= nested.first <= nested.last <= len(text)


def test_message_path_is_bounded() -> None:
    value: Any = "deep"
    for _ in range(50):
        value = {"error": value}
    assert message_path(value) is None


def test_an_object_right_after_another_brace_is_found() -> None:
    assert unwrap('x {{"error": {"message": "deep"}}').chain[-1] == "deep"


@pytest.mark.parametrize(("brackets", "read"), [(58, True), (59, False)])
def test_a_printed_dictionary_is_read_up_to_a_depth_that_the_compiler_bears(brackets: int, read: bool) -> None:
    text = "e: {'error': {'message': 'm', 'x': " + "[" * brackets + "]" * brackets + "}}"
    assert (unwrap(text).chain[-1] == "m") == read
