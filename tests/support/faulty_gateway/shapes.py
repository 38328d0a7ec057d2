"""Where text, calls, finish reasons and counts stand in an answer, whatever its dialect.

Chat completions (`choices[].delta|message`), Responses (`output` items and typed events) and Ollama's chat lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Value = dict[str, Any]


def parts(value: Value) -> Iterator[Value]:
    """The messages and deltas of a chat completion or of an Ollama line."""
    for choice in value.get("choices") or ():
        for name in ("delta", "message"):
            if isinstance(choice, dict) and isinstance(choice.get(name), dict):
                yield choice[name]
    if isinstance(value.get("message"), dict) and "choices" not in value:
        yield value["message"]


def response_of(value: Value) -> Value | None:
    """The whole response that a Responses answer or event carries."""
    held = value.get("response")
    if isinstance(held, dict):
        return held
    return value if isinstance(value.get("output"), list) else None


def items(value: Value) -> Iterator[Value]:
    """The call items of a Responses answer or event."""
    whole = response_of(value)
    found = [*(whole.get("output") or ())] if whole is not None else []
    if isinstance(value.get("item"), dict):
        found.append(value["item"])
    yield from (item for item in found if isinstance(item, dict) and item.get("type") == "function_call")


def calls(value: Value) -> Iterator[Value]:
    """The entries of `tool_calls` in a chat completion or Ollama line."""
    for part in parts(value):
        yield from (call for call in part.get("tool_calls") or () if isinstance(call, dict))


def functions(value: Value) -> Iterator[Value]:
    """What carries `name` and `arguments` of each call."""
    for call in calls(value):
        if isinstance(call.get("function"), dict):
            yield call["function"]
    yield from items(value)


def of_a_call(value: Value) -> bool:
    """Whether a Responses event belongs to a call."""
    item = value.get("item")
    in_item = isinstance(item, dict) and item.get("type") == "function_call"
    return in_item or str(value.get("type", "")).startswith("response.function_call_arguments")


def argument_delta(value: Value) -> str | None:
    """The piece of arguments that a stream's event adds to a call begun before, or None."""
    if value.get("type") == "response.function_call_arguments.delta":
        return value.get("delta") or None
    for call in calls(value):
        function = call.get("function") or {}
        given = function.get("arguments")
        if isinstance(given, str) and given and not function.get("name"):
            return given
    return None


def set_argument_delta(value: Value, text: str) -> None:
    """Put another piece in its place."""
    if "delta" in value and "type" in value:
        value["delta"] = text
        return
    for call in calls(value):
        call["function"]["arguments"] = text


def text_delta(value: Value) -> str | None:
    """The piece of text that a stream's event adds, or None."""
    if value.get("type") == "response.output_text.delta":
        return value.get("delta") or None
    return next(
        (part["content"] for part in parts(value) if isinstance(part.get("content"), str) and part["content"]), None
    )


def finishes(value: Value) -> bool:
    """Whether an event ends the answer."""
    if value.get("type") in ("response.completed", "response.incomplete"):
        return True
    reasons = [choice.get("finish_reason") for choice in value.get("choices") or () if isinstance(choice, dict)]
    return any(reasons) or value.get("done") is True


def set_finish(value: Value, old: str, new: str) -> None:
    """Change the finish reason `old` to `new` where it stands."""
    for choice in value.get("choices") or ():
        if isinstance(choice, dict) and choice.get("finish_reason") == old:
            choice["finish_reason"] = new
    if value.get("done_reason") == old:
        value["done_reason"] = new
    whole = response_of(value)
    if new == "length" and whole is not None and whole.get("status") == "completed":
        whole["status"], whole["incomplete_details"] = "incomplete", {"reason": "max_output_tokens"}
        if "response" in value:
            value["type"] = "response.incomplete"
