"""One exchange as data for the page: what was asked, what came, the verdict with its evidence, when each piece came.

Texts are cut where they are very long; the wire itself is fetched in stretches. Nothing here is markup: the page puts
every text in as text.
"""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.classify.facts import Facts
from proxy.exchange_view import view_of
from proxy.served import UNKNOWN_SERVER, ServerFacts
from results.exchange import Exchange, HttpMessage
from results.outcomes import Outcome, decode_outcome
from results.record import Direction
from results.taxonomy import CODES
from stacks.dialects import Assembled
from stacks.turn import CanonicalRequest, Message, ToolCall, Turn

LONGEST_TEXT = 40_000
"""Characters of one text (a message, an answer, a prompt) that are sent to the page."""
MOST_PIECES = 20_000
MOST_MESSAGES = 400
MOST_TOOLS = 200
_DIRECTIONS: tuple[Direction, ...] = ("request", "response")


def detail(exchange: Exchange, outcome: bytes | None, server: ServerFacts = UNKNOWN_SERVER) -> dict[str, Any]:
    """Everything about one exchange but its wire bytes. `outcome` is its verdict as JSON, None where there is none."""
    facts = Facts(view_of(exchange, *server))
    assembled = facts.assembled
    return {
        "attempt": exchange.attempt,
        "connection": exchange.connection,
        "number_on_connection": exchange.exchange,
        "client": exchange.client,
        "end_detail": exchange.end_detail,
        "damage": list(exchange.damage)[:20],
        "relay_answer": cut(exchange.relay_answer.decode("utf-8", "backslashreplace")),
        "request": _message(exchange, "request", exchange.request),
        "response": _message(exchange, "response", exchange.response),
        "asked": _asked(assembled.request) if assembled.request is not None else None,
        "answered": _answered(assembled, facts),
        "rendered": rendered_prompt(exchange, assembled),
        "outcome": _outcome(outcome),
        "notes": [_note(note.kind, note.fields) for note in exchange.notes[:100]],
    }


def cut(text: str, longest: int = LONGEST_TEXT) -> dict[str, Any]:
    """A text for the page: its beginning, and how long it is in all."""
    return {"text": text[:longest], "length": len(text)}


def _note(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": kind,
        "fields": {name: cut(value if isinstance(value, str) else repr(value), 4000) for name, value in fields.items()},
    }


def _message(exchange: Exchange, direction: Direction, message: HttpMessage | None) -> dict[str, Any]:
    pieces = exchange.pieces(direction)
    said: dict[str, Any] = {
        "bytes": len(exchange.wire(direction)),
        "pieces": [[piece.at_us, piece.start, piece.end] for piece in pieces[:MOST_PIECES]],
        "piece_count": len(pieces),
        "http": message is not None,
    }
    if message is not None:
        said |= {
            "headers": message.headers[:300],
            "head": [message.head_start, message.body_start],
            "body": [message.body_start, message.body_end],
            "complete": message.complete,
            "withheld": message.withheld,
            "problems": message.problems,
            "body_length": len(message.body),
            "coding": message.header("content-encoding"),
        }
    return said


def _asked(request: CanonicalRequest) -> dict[str, Any]:
    limit = {request.max_tokens_field or "max_tokens": request.max_tokens} if request.max_tokens is not None else {}
    settings = {**request.sampling, **limit, **_stated(request)}
    return {
        "model": request.model,
        "messages": [_said(message) for message in request.messages[-MOST_MESSAGES:]],
        "message_count": len(request.messages),
        "prompt": cut(request.prompt) if isinstance(request.prompt, str) else None,
        "tools": [
            {"name": tool.name or "?", "description": tool.description or "", "schema": _json(tool.parameters)}
            for tool in request.tools[:MOST_TOOLS]
        ],
        "tool_count": len(request.tools),
        "settings": {name: _json(value)["text"] for name, value in settings.items()},
        "error": request.body_error,
    }


def _stated(request: CanonicalRequest) -> dict[str, object]:
    choice = request.tool_choice.raw if request.tool_choice is not None else None
    pairs = (
        ("tool_choice", choice),
        (request.response_format_field, request.response_format),
        (request.thinking_field, request.thinking),
        ("num_ctx", request.context_length),
        ("n", request.choices),
        ("stop", request.stop),
    )
    return {"stream": request.stream, **{name: value for name, value in pairs if name and value is not None}}


def _said(message: Message) -> dict[str, Any]:
    return {
        "role": message.role or "?",
        "content": cut(message.content or ""),
        "reasoning": cut(message.reasoning or ""),
        "calls": [_call(call) for call in message.tool_calls],
        "answers": message.tool_call_id or message.name or "",
        "parts": len(message.parts),
    }


def _call(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name or "", "id": call.id or "", "arguments": cut(call.arguments_text)}


def _answered(assembled: Assembled, facts: Facts) -> dict[str, Any]:
    return {
        "dialect": assembled.dialect,
        "kind": "stream" if assembled.streamed else assembled.body_kind,
        "turns": [_turn(turn) for turn in assembled.turns[:8]],
        "calls": [{"verdict": judged.verdict, "reason": judged.reason} for judged in facts.calls],
        "errors": [{"message": cut(error.message, 4000), "type": str(error.type or "")} for error in assembled.errors],
        "irregular": [
            {"code": item.code, "message": item.message, "start": item.start, "end": item.end}
            for item in assembled.irregularities[:100]
        ],
    }


def _turn(turn: Turn) -> dict[str, Any]:
    usage = turn.usage
    return {
        "role": turn.role or "",
        "content": cut(turn.content) if turn.content is not None else None,
        "reasoning": cut(turn.reasoning) if turn.reasoning is not None else None,
        "refusal": cut(turn.refusal) if turn.refusal else None,
        "calls": [_call(call) for call in turn.tool_calls],
        "finish": turn.finish_raw,
        "tokens": {"prompt": usage.prompt, "completion": usage.completion} if usage is not None else None,
        "model": turn.model or "",
        "parts": len(turn.parts),
    }


def rendered_prompt(exchange: Exchange, assembled: Assembled) -> dict[str, Any] | None:
    """The prompt as the model got it, where the record holds it, and where it was found; None where it does not."""
    for note in exchange.notes:
        text = note.fields.get("prompt_text")
        if isinstance(text, str):
            return {**cut(text), "from": "the model ran inside stacktap, which kept its prompt"}
    for path, source in _SHOWN:
        for event in assembled.events[:3]:
            text = _at(event.value, path)
            if isinstance(text, str) and text:
                return {**cut(text), "from": source}
    request = assembled.request
    if request is not None and isinstance(request.prompt, str) and not request.messages:
        raw = isinstance(request.raw, dict) and request.raw.get("raw") is True
        templated = assembled.dialect == "ollama_generate" and not raw
        if not templated:
            return {**cut(request.prompt), "from": "the request itself is a prompt: no template was applied"}
    return None


_SHOWN = (
    (("__verbose", "prompt"), "llama-server was started with --verbose and says so in its answer"),
    (("_debug_info", "rendered_template"), "Ollama was asked to show it"),
    (("prompt",), "the server was asked to render and not to generate"),
)


def _at(value: object, path: tuple[str, ...]) -> object:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _json(value: object) -> dict[str, Any]:
    if value is None:
        return cut("")
    if isinstance(value, str):
        return cut(value, 4000)
    try:
        text = msgspec.json.format(msgspec.json.encode(value, enc_hook=repr), indent=2).decode()
    except (ValueError, TypeError, RecursionError):
        text = repr(value)
    return cut(text, 8000)


def _outcome(raw: bytes | None) -> dict[str, Any] | None:
    if raw is None:
        return None
    try:
        outcome: Outcome = decode_outcome(raw)
    except ValueError:
        return None
    meaning = CODES[outcome.name].meaning if outcome.name in CODES else ""
    return {"name": outcome.name, "meaning": meaning, **msgspec.to_builtins(outcome)}
