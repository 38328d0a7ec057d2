"""Small exchanges written out by hand, for the tests of the dialects."""

from __future__ import annotations

import json
from typing import Any

from stacks.dialects import WireExchange

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_completions": "/v1/completions",
    "openai_responses": "/v1/responses",
    "ollama_chat": "/api/chat",
    "ollama_generate": "/api/generate",
    "anthropic_messages": "/v1/messages",
}


def dumps(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def sse(*values: Any, done: bool = True, named: bool = False) -> bytes:
    """An event stream of JSON values (bytes stand for themselves), closed by [DONE] unless told otherwise."""
    out = []
    for value in values:
        name = b"event: " + value["type"].encode() + b"\n" if named and isinstance(value, dict) else b""
        out.append(name + b"data: " + (value if isinstance(value, bytes) else dumps(value)) + b"\n\n")
    return b"".join(out) + (b"data: [DONE]\n\n" if done else b"")


def ndjson(*values: Any) -> bytes:
    return b"".join((value if isinstance(value, bytes) else dumps(value)) + b"\n" for value in values)


def exchange(
    dialect: str,
    response: Any,
    request: dict[str, Any] | None = None,
    *,
    status: int = 200,
    content_type: str | None = None,
    complete: bool = True,
    path: str | None = None,
) -> WireExchange:
    """An exchange of a dialect. A bytes response is taken as it is, anything else is written as JSON; whether a stream
    was asked for follows the response unless the request says it."""
    body = response if isinstance(response, bytes) else dumps(response)
    streamed = body.startswith((b"data:", b"event:", b":")) or (dialect.startswith("ollama") and body.count(b"\n") > 0)
    if content_type is None:
        kind = "application/x-ndjson" if dialect.startswith("ollama") else "text/event-stream"
        content_type = kind if streamed else "application/json"
    asked: dict[str, Any] = {"model": "m", "stream": streamed}
    asked.update(
        {"messages": [{"role": "user", "content": "hi"}]} if dialect != "ollama_generate" else {"prompt": "hi"}
    )
    asked.update(request or {})
    return WireExchange(
        "POST", path or PATHS[dialect], dumps(asked), status, {"Content-Type": content_type}, body, complete
    )


def chunk(delta: dict[str, Any] | None = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    """A chat completion chunk."""
    choice = {"index": more.pop("choice", 0), "delta": delta or {}, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}


def call(index: Any = 0, call_id: Any = None, name: Any = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    """A tool call entry of a delta; what is None is left out."""
    entry: dict[str, Any] = dict(more)
    if index is not None:
        entry["index"] = index
    if call_id is not None:
        entry |= {"id": call_id, "type": "function"}
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return entry | {"function": function}


def plain_chat(message: dict[str, Any], finish: Any = "stop", **more: Any) -> dict[str, Any]:
    """A plain chat completion."""
    body = {
        "id": "c1",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    }
    return {**body, **more}
