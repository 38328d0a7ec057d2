"""Runs for tests of reports: exchanges through the real recorder, with a manifest where one is wanted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from results.manifest import UpstreamFacts, known, new_manifest, write_manifest
from tests.support.journalled import Raw, record

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def request(target: str = "/v1/chat/completions", method: str = "POST", **fields: Any) -> bytes:
    """A chat completion that offers one tool, unless `fields` say otherwise; a GET has no body."""
    if method == "GET":
        return f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    body = {"model": "m", "messages": [{"role": "user", "content": "Weather in Paris?"}], "tools": [TOOL], **fields}
    raw = json.dumps(body).encode()
    return f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw


def response(body: Any, status: str = "200 OK") -> bytes:
    """A JSON answer."""
    raw = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n"
    return head.encode() + raw


def answer(
    content: str | None = None, call: dict[str, Any] | None = None, finish: str = "stop", tokens: int = 9
) -> bytes:
    """A chat completion with text or a call of `get_weather`."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if call is not None:
        function = {"name": "get_weather", "arguments": json.dumps(call)}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
        finish = "tool_calls"
    usage = {"prompt_tokens": 50, "completion_tokens": tokens, "total_tokens": 50 + tokens}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return response({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})


def refusal(words: str = "tools param requires --jinja flag", status: str = "500 Internal Server Error") -> bytes:
    """An error as llama-server words it."""
    return response({"error": {"code": int(status[:3]), "message": words, "type": "server_error"}}, status)


CALL = Raw(request(), answer(call={"city": "Paris"}))
REFUSED = Raw(request(), refusal())
TEXT = Raw(request(), answer('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'))
EMPTY = Raw(request(), answer("", tokens=1))
SERVICE = Raw(request("/v1/models", "GET"), response({"object": "list", "data": []}))


def run_of(folder: Path, exchanges: Iterable[Raw], *, manifest: bool = True) -> Path:
    """A recorded run of these exchanges with llama-server."""
    folder.mkdir(parents=True, exist_ok=True)
    record(folder, exchanges)
    if manifest:
        facts = {"stack": known("llamacpp", "test"), "version": known("b1", "test"), "model": known("m", "test")}
        made = new_manifest(
            "run-1", command=("stacktap", "wrap"), upstreams=[UpstreamFacts("up", "http://127.0.0.1:9", facts)]
        )
        write_manifest(folder, made)
    return folder
