"""How a SIMULATED Ollama writes its answers: the forms of 0.30.8 and 0.32.15 on /api/chat (JSON, NDJSON) and on
/v1/chat/completions (JSON, SSE), after the captures. Pure.

The versions differ in a /v1 stream: up to 0.30.8 every delta carries a role, and in native mode the finish reason
stands in the chunk of the calls; 0.32.15 sends the role once and the finish in a chunk of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.support.simulated_ollama_reading import Call, Reading

_PIECE = 20
_TYPES = {400: "invalid_request_error", 404: "not_found_error"}
_NDJSON, _SSE = "application/x-ndjson", "text/event-stream"
_CREATED = "2026-11-30T07:49:13.283406525Z"


@dataclass(frozen=True)
class Reply:
    """One generation to be written: what was read of it, and how it is counted. `api`: /api/chat, else /v1."""

    model: str
    api: bool
    streams: bool
    native: bool
    role_once: bool
    usage_in_stream: bool
    prompt_tokens: int
    tokens: int
    number: int
    reading: Reading

    @property
    def finish(self) -> str:
        """Of /v1; /api/chat always says `stop`."""
        return "tool_calls" if self.reading.calls else "stop"

    @property
    def pieces(self) -> list[str]:
        """The content as it is streamed."""
        text = self.reading.content
        return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]

    @property
    def usage(self) -> dict[str, int]:
        """Token counts in the words of /v1."""
        total = self.prompt_tokens + self.tokens
        return {"prompt_tokens": self.prompt_tokens, "completion_tokens": self.tokens, "total_tokens": total}


def refusal(api: bool, status: int, message: str) -> web.Response:
    """An error before anything was generated."""
    error = {"message": message, "type": _TYPES.get(status, "api_error"), "param": None, "code": None}
    return _json({"error": message} if api else {"error": error}, status, api=api)


def written(reply: Reply) -> web.Response:
    """The whole answer. A parser's error is a status where nothing was sent before it; in a stream that has begun it is
    a line on /api/chat, and on /v1 an empty chunk without model, after which the stream ends."""
    error = reply.reading.error
    if error and not (reply.streams and reply.reading.content):
        return refusal(reply.api, 500, error)
    if reply.streams and reply.api:
        lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in _lines(reply))
        return web.Response(body="".join(lines).encode(), headers={"Content-Type": _NDJSON})
    if reply.streams:
        events = "".join(f"data: {event}\n\n" for event in _events(reply))
        return web.Response(body=events.encode(), headers={"Content-Type": _SSE})
    return _json(_whole(reply), 200, api=reply.api)


def _json(value: Any, status: int, *, api: bool) -> web.Response:
    kind = "application/json; charset=utf-8" if api else "application/json"
    return web.Response(
        body=json.dumps(value, ensure_ascii=False).encode(), status=status, headers={"Content-Type": kind}
    )


def _whole(reply: Reply) -> dict[str, Any]:
    calls = _calls(reply, reply.reading.calls)
    message = {"role": "assistant", "content": reply.reading.content, **({"tool_calls": calls} if calls else {})}
    if reply.api:
        return {**_line(reply, message), **_end(reply)}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    return {**_head(reply, "chat.completion"), "choices": [choice], "usage": reply.usage}


def _lines(reply: Reply) -> Iterator[dict[str, Any]]:
    for piece in reply.pieces:
        yield {**_line(reply, {"role": "assistant", "content": piece}), "done": False}
    if reply.reading.error:
        yield {"error": reply.reading.error}
        return
    for calls in _grouped(reply):
        message = {"role": "assistant", "content": "", "tool_calls": calls}
        if reply.native:
            yield {**_line(reply, message), **_end(reply)}
            return
        yield {**_line(reply, message), "done": False}
    yield {**_line(reply, {"role": "assistant", "content": ""}), **_end(reply)}


def _events(reply: Reply) -> Iterator[str]:
    begun = False

    def chunk(delta: dict[str, Any], finish: str | None = None, model: str | None = None) -> str:
        nonlocal begun
        role = {} if reply.role_once and begun else {"role": "assistant"}
        begun = True
        head = _head(reply, "chat.completion.chunk", model)
        return json.dumps({**head, "choices": [{"index": 0, "delta": {**role, **delta}, "finish_reason": finish}]})

    for piece in reply.pieces:
        yield chunk({"content": piece})
    if reply.reading.error:
        yield chunk({"content": ""}, model="")
        return
    ended = False
    for calls in _grouped(reply):
        ended = reply.native and not reply.role_once
        yield chunk({"content": "", "tool_calls": calls}, reply.finish if ended else None)
    if reply.role_once and not begun:
        yield chunk({"content": ""})
    if not ended:
        yield chunk({} if reply.role_once else {"content": ""}, reply.finish)
    if reply.usage_in_stream:
        yield json.dumps({**_head(reply, "chat.completion.chunk"), "choices": [], "usage": reply.usage})
    yield "[DONE]"


def _grouped(reply: Reply) -> list[list[dict[str, Any]]]:
    """Calls as they are streamed: in native mode all at once, else one at a time."""
    calls = _calls(reply, reply.reading.calls)
    return ([calls] if calls else []) if reply.native else [[call] for call in calls]


def _calls(reply: Reply, calls: list[Call]) -> list[dict[str, Any]]:
    made = []
    for index, (name, arguments) in enumerate(calls):
        serial = f"{reply.number:04d}{index:02d}"
        identity = f"{serial:x<32}" if reply.native else f"call_{serial:x<8}"
        if reply.api:
            made.append({"id": identity, "function": {"index": index, "name": name, "arguments": arguments}})
        else:
            text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
            function = {"name": name, "arguments": text}
            made.append({"id": identity, "index": index, "type": "function", "function": function})
    return made


def _head(reply: Reply, kind: str, model: str | None = None) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{reply.number % 999}",
        "object": kind,
        "created": 1796024953,
        "model": reply.model if model is None else model,
        "system_fingerprint": "fp_ollama",
    }


def _line(reply: Reply, message: dict[str, Any]) -> dict[str, Any]:
    return {"model": reply.model, "created_at": _CREATED, "message": message}


def _end(reply: Reply) -> dict[str, Any]:
    return {
        "done": True,
        "done_reason": "stop",
        "total_duration": 21897519,
        "load_duration": 9946344,
        "prompt_eval_count": reply.prompt_tokens,
        "prompt_eval_duration": 1554000,
        "eval_count": reply.tokens,
        "eval_duration": 1093000,
    }
