"""Small exchanges for the classifier's tests."""

from __future__ import annotations

import json
from typing import Any

from proxy.classify import ExchangeView, classify
from proxy.exchange_files import from_case
from results.outcomes import Outcome

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}
QUESTION = {"role": "user", "content": "What is the weather in Lyon?"}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Lyon"}}\n</tool_call>'


def chat(
    answer: dict[str, Any] | str | None = None,
    *,
    status: int | None = 200,
    stream: list[Any] | None = None,
    path: str = "/v1/chat/completions",
    headers: dict[str, str] | None = None,
    disconnect: bool = False,
    transport_error: str = "",
    stack: str = "",
    estimate: int | None = None,
    **request: Any,
) -> ExchangeView:
    """The view of one chat exchange; fields of the request override the usual ones."""
    body: dict[str, Any] = {"model": "m", "messages": [QUESTION], "tools": [WEATHER], **request}
    body = {key: value for key, value in body.items() if value is not None}
    given = headers or {"content-type": "text/event-stream" if stream is not None else "application/json"}
    lines = [line if isinstance(line, str) else "data: " + json.dumps(line) for line in stream or ()]
    response: dict[str, Any] = {"status": status, "headers": given, "disconnect": disconnect}
    if stream is not None:
        body.setdefault("stream", True)
        response["stream"] = lines
    else:
        response["body"] = answer
    if transport_error:
        response["transport_error"] = transport_error
    asked: dict[str, Any] = {"method": "POST", "path": path, "body": body}
    if estimate is not None:
        asked["prompt_token_estimate"] = estimate
    return from_case({"id": "x", "stack": stack, "request": asked, "response": response}).view


def message(
    content: str | None = None,
    calls: list[tuple[str, Any]] | None = None,
    finish: str | None = None,
    usage: tuple[int, int] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A plain chat completion. Calls are (name, arguments); arguments that are no text are written as JSON."""
    said: dict[str, Any] = {"role": "assistant", "content": content, **more}
    if calls is not None:
        said["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": name, "arguments": value if isinstance(value, str) else json.dumps(value)},
            }
            for number, (name, value) in enumerate(calls)
        ]
    finish = finish or ("tool_calls" if calls else "stop")
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "m",
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
    }
    if usage is not None:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return body


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One chunk of a streamed chat completion."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "m",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def entry(
    index: int | None, name: str | None = None, arguments: Any = "", call_id: str | None = None
) -> dict[str, Any]:
    """One tool call entry of a delta."""
    function: dict[str, Any] = {"arguments": arguments}
    said: dict[str, Any] = {"function": function}
    if name is not None:
        function["name"] = name
        said |= {"id": call_id or "call_a", "type": "function"}
    if index is not None:
        said["index"] = index
    return said


def verdict(view: ExchangeView, known_text: str | None = None) -> Outcome:
    """Classify one view."""
    return classify(view, None, known_text)


def error(text: str, status: int, **request: Any) -> Outcome:
    """The outcome of an exchange that is answered with an error of this text."""
    return verdict(chat({"error": {"message": text, "type": "x", "code": status}}, status=status, **request))
