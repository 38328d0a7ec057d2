"""One JSON object an exchange: what was asked, the turn as it was put together, the verdict, and when each came.

`exchange.schema.json` beside this file is the JSON Schema of one line. Pure: gives the file in pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from checklists.exports.encoding import encoded, iso_time, text_or_base64
from checklists.exports.selection import ExportRun
from checklists.reading import Seen
from results.exchange import Exchange, HttpMessage
from stacks.dialects.exchange import Assembled
from stacks.turn import CanonicalRequest, ToolCall, Turn

OBJECT_VERSION = 1
"""Version of the shape of an object; raised where a field changes its meaning or goes."""


def exchange_objects(run: ExportRun) -> Iterator[bytes]:
    """Lines of JSON. Raises ExportError as `ExportRun` does."""
    for seen in run:
        yield encoded(exchange_object(run, seen)) + b"\n"


def exchange_object(run: ExportRun, seen: Seen) -> dict[str, Any]:
    """One exchange as an object of `exchange.schema.json`."""
    exchange, judged = seen.exchange, seen.judged
    assembled = seen.classified.facts.assembled
    return {
        "version": OBJECT_VERSION,
        "run": run.run,
        "recording": seen.recording,
        "attempt": exchange.attempt,
        "connection": exchange.connection,
        "upstream": exchange.upstream,
        "stack": judged.stack,
        "stack_version": run.version(seen),
        "dialect": judged.dialect,
        "tags": dict(exchange.tags),
        "request": _request(exchange, assembled),
        "response": _response(exchange),
        "turn": turn_object(assembled.turn) if assembled.turn is not None else None,
        "errors": [error.message for error in assembled.errors],
        "irregularities": [
            {"code": item.code, "message": item.message, "start": item.start, "end": item.end}
            for item in assembled.irregularities
        ],
        "end": exchange.end,
        "end_detail": exchange.end_detail,
        "timing": _timing(exchange),
        "outcome": {"name": judged.outcome.name, **msgspec.to_builtins(judged.outcome)},
        "damage": list(exchange.damage),
    }


def _request(exchange: Exchange, assembled: Assembled) -> dict[str, Any] | None:
    request = exchange.request
    if request is None:
        return None
    asked = assembled.request
    return {
        "method": request.method,
        "target": request.forwarded_target,
        "headers": _headers(request),
        **_body(request),
        "asked": _asked(asked) if asked is not None and asked.body_error is None else None,
    }


def _asked(asked: CanonicalRequest) -> dict[str, Any]:
    choice = asked.tool_choice
    return {
        "model": asked.model,
        "messages": len(asked.messages),
        "tools": list(asked.tool_names),
        "tool_choice": choice.mode if choice is not None else None,
        "stream": asked.stream,
        "max_tokens": asked.max_tokens,
        "context_length": asked.context_length,
        "sampling": {name: value for name, value in sorted(asked.sampling.items()) if isinstance(value, int | float)},
    }


def _response(exchange: Exchange) -> dict[str, Any] | None:
    response = exchange.response
    if response is None:
        return None
    return {
        "status": response.status,
        "reason": response.reason,
        "headers": _headers(response),
        **_body(response),
        "complete": response.complete,
        "problems": list(response.problems),
    }


def _headers(message: HttpMessage) -> list[list[str]]:
    return [[name, value] for name, value in message.headers]


def _body(message: HttpMessage) -> dict[str, Any]:
    """The body, decoded, as text where it is UTF-8 and in base64 where it is not."""
    text, encoding = text_or_base64(message.body)
    return {"body": text, "body_encoding": encoding}


def turn_object(turn: Turn) -> dict[str, Any]:
    """One answer, whatever its dialect."""
    usage = turn.usage
    return {
        "role": turn.role,
        "content": turn.content,
        "reasoning": turn.reasoning,
        "refusal": turn.refusal,
        "tool_calls": [_call(call) for call in turn.tool_calls],
        "finish": turn.finish,
        "finish_raw": turn.finish_raw,
        "model": turn.model,
        "response_id": turn.response_id,
        "usage": {
            "prompt": usage.prompt,
            "completion": usage.completion,
            "total": usage.total,
            "reasoning": usage.reasoning,
            "cached": usage.cached,
        }
        if usage is not None
        else None,
    }


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments_text, "valid_json": call.arguments_valid}


def _timing(exchange: Exchange) -> dict[str, Any]:
    """Microseconds; all but `started_us` count from the first byte of the request."""
    came = exchange.pieces("response")
    return {
        "started": iso_time(exchange.started_us),
        "started_us": exchange.started_us,
        "first_byte_us": came[0].at_us if came else None,
        "last_byte_us": came[-1].at_us if came else None,
        "duration_us": exchange.ended_at_us,
        "request_bytes": len(exchange.wire("request")),
        "response_bytes": len(exchange.wire("response")),
        "chunks": [[piece.at_us, piece.start, piece.end] for piece in came],
    }
