"""Error objects in bodies, whatever their shape, and the errors nested in their messages.

Servers that front another server put the inner JSON error into a string (Ollama around llama-server, gateways around
anything). `unwrap` follows such nesting to any depth and says where in the body the innermost message stands.
"""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from stacks.jsonspans import StringMap, span_of
from stacks.jsontext import skip_value
from stacks.strictjson import UNPARSED, Path, read
from stacks.turn import ErrorObject

if TYPE_CHECKING:
    from stacks.dialects.exchange import Event

_MESSAGE_KEYS = ("message", "error", "detail", "msg", "reason", "title", "error_message", "description")
_MAX_NESTING = 16
_MAX_STARTS = 12
_MAX_TEXT = 200_000
_MAX_LITERAL = 20_000


class Nested(msgspec.Struct):
    """Result of `unwrap`: all messages from the outside in, the innermost error object (None where nothing was
    nested), and the character range of the innermost message in the outer text (None where it cannot be told)."""

    chain: tuple[str, ...]
    error: dict[str, object] | None
    first: int | None
    last: int | None


def message_path(value: object, path: Path = ()) -> tuple[str, Path] | None:
    """The message text of an error value and its path inside it: the value itself, or the first message-like member,
    looked for at most a few levels down."""
    if isinstance(value, str):
        return (value, path)
    if len(path) > 6:
        return None
    if isinstance(value, list):
        return message_path(value[0], (*path, 0)) if value else None
    if isinstance(value, dict):
        for key in _MESSAGE_KEYS:
            member = value.get(key)
            if member:
                found = message_path(member, (*path, key))
                if found is not None and found[0]:
                    return found
    return None


def unwrap(text: str) -> Nested:
    """Follow JSON error objects nested in `text`, to any depth (at most 16 levels are followed)."""
    chain = [text]
    error: dict[str, object] | None = None
    locate: Callable[[int], int] | None = _same
    first: int | None = 0
    last: int | None = len(text)
    current = text
    for _ in range(_MAX_NESTING):
        inner = _inner_error(current)
        if inner is None:
            break
        value, start, encoded, path, message = inner
        error = value
        chain.append(message)
        locate = _through(locate, start, encoded, path) if locate is not None and encoded is not None else None
        first, last = (None, None) if locate is None else (locate(0), locate(len(message)))
        current = message
    return Nested(tuple(chain), error, first, last)


def _same(position: int) -> int:
    return position


def _through(outer: Callable[[int], int], start: int, encoded: bytes, path: Path) -> Callable[[int], int] | None:
    """Map from offsets in the message at `path` of the JSON `encoded`, which starts at character `start` of the
    outer text, to offsets of the outermost text."""
    span = span_of(encoded, path)
    if span is None or encoded[span[0] : span[0] + 1] != b'"':
        return None
    decoded = StringMap(encoded[span[0] : span[1]], span[0])
    ascii_only = encoded.isascii()

    def locate(position: int) -> int:
        offset = decoded.offset(position)
        if not ascii_only:
            offset = len(encoded[:offset].decode("utf-8", "replace"))
        return outer(start + offset)

    return locate


def _inner_error(text: str) -> tuple[dict[str, object], int, bytes | None, Path, str] | None:
    """The first error object inside a text: (object, character offset, its JSON bytes or None, path, message)."""
    text = text[:_MAX_TEXT]
    start = text.find("{")
    for _ in range(_MAX_STARTS):
        if start < 0:
            return None
        encoded = text[start:].encode("utf-8", "surrogatepass")
        end = skip_value(encoded, 0)
        exact: bytes | None = encoded[:end]
        value = read(encoded[:end]).value if encoded[1:2] != b"'" else UNPARSED
        if not isinstance(value, dict) or not value:
            value, exact = _python_literal(text, start), None
        if isinstance(value, dict) and _is_error(value):
            found = message_path(value)
            if found is not None:
                return value, start, exact, found[1], found[0]
        start = text.find("{", start + 1)
    return None


def _is_error(value: dict[str, object]) -> bool:
    if any(key in value for key in ("error", "errors", "detail")):
        return True
    return "message" in value and any(key in value for key in ("code", "type", "status", "object", "param"))


def _python_literal(text: str, start: int) -> object:
    """A dictionary printed by Python (single quotes), as client libraries put it into messages."""
    end = text.rfind("}")
    literal = text[start : end + 1]
    if not literal or len(literal) > _MAX_LITERAL or literal.count("{") + literal.count("[") + literal.count("(") > 60:
        return UNPARSED
    try:
        value: object = ast.literal_eval(literal)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return UNPARSED
    return value


def error_in(value: object, failed: bool = False) -> tuple[object, Path, str] | None:
    """The error a JSON body or event carries: (error value, its path, name of the shape), or None.

    Shapes: `nested` {"error": {...}}, `flat` {"error": "text"}, `object_error` {"object": "error", ...}, `anthropic`
    {"type": "error", "error": {...}}, `event` {"type": "error", "message": ...}, `response` {"response": {"error":
    {...}}}, `choice` {"choices": [{"error": {...}}]}, `detail` {"detail": ...}; with `failed` (an
    error status) also `message` {"message": ...}, `string` and `unknown` (any other object).
    """
    if not isinstance(value, dict):
        return (value, (), "string") if failed and isinstance(value, str) and value else None
    error = value.get("error")
    if error:
        shape = "anthropic" if value.get("type") == "error" else "nested" if isinstance(error, dict) else "flat"
        return error, ("error",), shape
    if value.get("object") == "error" or (value.get("type") == "error" and "message" in value):
        return value, (), "object_error" if value.get("object") == "error" else "event"
    choices = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict) and choices[0].get("error"):
        return choices[0]["error"], ("choices", 0, "error"), "choice"
    response = value.get("response")
    if isinstance(response, dict) and response.get("error"):
        return response["error"], ("response", "error"), "response"
    if value.get("detail") and (failed or len(value) == 1):
        return value["detail"], ("detail",), "detail"
    if value.get("errors") and failed:
        return value["errors"], ("errors",), "nested"
    if failed and "choices" not in value:
        return value, (), "message" if message_path(value) is not None else "unknown"
    return None


def error_object(event: Event, found: tuple[object, Path, str]) -> ErrorObject:
    """Build the record of an error found by `error_in` in an event, with byte ranges in the body."""
    value, path, shape = found
    located = message_path(value, path)
    message, where = located if located is not None else (_rendered(value), path)
    error = ErrorObject(message=message, shape=shape, raw=value, event=event.number)
    if isinstance(value, dict):
        error.type = _text(value.get("type"))
        code = value.get("code")
        error.code = code if isinstance(code, (int, str)) and not isinstance(code, bool) else None
        error.param = _text(value.get("param"))
    span = span_of(event.data, where)
    shift = event.data_starts[0] if len(event.data_starts) == 1 else None
    if span is None or shift is None:
        error.start, error.end = event.start, event.end
        _fill_nested(error, None)
    else:
        error.start, error.end = span[0] + shift, span[1] + shift
        literal = event.data[span[0] : span[1]]
        _fill_nested(error, StringMap(literal, error.start) if literal.startswith(b'"') else None)
    return error


def text_error(body: bytes, shape: str) -> ErrorObject:
    """The record of an error page or text that is no JSON; of HTML and XML the visible text is the message."""
    text = body.decode("utf-8", "replace")
    message = _visible(text) if shape in ("html", "xml") else text.strip()
    error = ErrorObject(message=message, shape=shape, raw=text, event=-1, start=0, end=len(body))
    _fill_nested(error, None)
    return error


def _fill_nested(error: ErrorObject, literal: StringMap | None) -> None:
    nested = unwrap(error.message)
    error.chain = nested.chain
    error.innermost = nested.chain[-1]
    error.inner_start, error.inner_end = error.start, error.end
    if literal is not None and nested.first is not None and nested.last is not None and len(nested.chain) > 1:
        error.inner_start, error.inner_end = literal.offset(nested.first), literal.offset(nested.last)
    if nested.error is not None:
        inner = nested.error.get("error")
        source = inner if isinstance(inner, dict) else nested.error
        error.type = error.type or _text(source.get("type"))
        code = source.get("code")
        if error.code is None and isinstance(code, (int, str)) and not isinstance(code, bool):
            error.code = code


def _rendered(value: object) -> str:
    return value if isinstance(value, str) else repr(value)[:2000]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


_TAGS = re.compile(r"<(?:script|style)\b.*?</(?:script|style)\s*>|<!--.*?-->|<[^<>]*>", re.DOTALL | re.IGNORECASE)


def _visible(text: str) -> str:
    return " ".join(html.unescape(_TAGS.sub(" ", text[:20_000])).split())
