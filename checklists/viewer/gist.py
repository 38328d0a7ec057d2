"""What a verdict's row holds of an exchange: a hash of the question asked, and the text that a search looks through."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from checklists.viewer.records import Verdict
from proxy.classify import Classified
from results.exchange import Exchange
from results.outcomes import Judged, encode
from stacks.turn import CanonicalRequest, Turn

MOST_SAID = 1600
"""Characters kept for the search."""
_EACH = 500

SEARCHED = (
    "method, path, upstream, model, stack, outcome, flags, tags, and the beginnings of the last message, the answer, "
    "its reasoning, its tool calls and its errors"
)
"""What a text filter looks through, in words."""

_encode = msgspec.json.Encoder(order="sorted", enc_hook=repr).encode


def verdict_of(number: int, exchange: Exchange, classified: Classified, judged: Judged) -> Verdict:
    """The row of verdict `number` (a row id)."""
    outcome, facts = judged.outcome, classified.facts
    request = facts.assembled.request
    usage = facts.turn.usage if facts.turn is not None else None
    model = request.model if request is not None and facts.generates else None
    return Verdict(
        id=number,
        name=outcome.name,
        fault=outcome.at_fault,
        ran=outcome.model_ran,
        confidence=outcome.confidence,
        flags=list(outcome.flags),
        signature=outcome.signature or "",
        stack=judged.stack,
        dialect=judged.dialect,
        model=_writable(str(model or ""))[:300],
        end=exchange.end,
        tokens_in=_count(usage.prompt if usage is not None else None),
        tokens_out=_count(usage.completion if usage is not None else None),
        question=question_of(request) if request is not None and facts.generates else b"",
        said=said(exchange, judged, classified),
        outcome=encode(outcome),
    )


def _count(value: int | None) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 50 else -1


def _writable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def question_of(request: CanonicalRequest) -> bytes:
    """A hash of what the model was asked, whatever the server, the dialect and the sampling: messages (role, text,
    calls) and the names of the tools. Empty where the request asks nothing."""
    if not request.messages and request.prompt is None:
        return b""
    asked = (
        [
            (message.role, message.content or "", [(call.name, call.arguments_text) for call in message.tool_calls])
            for message in request.messages
        ],
        request.prompt if not request.messages else None,
        sorted(name for name in request.tool_names if name),
    )
    try:
        return blake2b(_encode(asked), digest_size=12).digest()
    except (ValueError, TypeError, RecursionError):
        return b""


def said(exchange: Exchange, judged: Judged, classified: Classified) -> str:
    """The text that is searched, in lower case, one thing a line."""
    outcome, assembled = judged.outcome, classified.facts.assembled
    pieces = [judged.method, judged.path, exchange.upstream, judged.stack, judged.dialect, outcome.name]
    pieces += [*outcome.flags, outcome.signature or "", *(f"{name}={value}" for name, value in exchange.tags)]
    request = assembled.request
    if request is not None:
        pieces.append(str(request.model or ""))
        if request.messages:
            pieces.append((request.messages[-1].content or "")[:_EACH])
        elif isinstance(request.prompt, str):
            pieces.append(request.prompt[-_EACH:])
    pieces += [error.message[:_EACH] for error in assembled.errors[:2] if error.message]
    if assembled.turn is not None:
        pieces += _answered(assembled.turn)
    return searchable(pieces)


def _answered(turn: Turn) -> list[str]:
    calls = [f"{call.name}({call.arguments_text[:200]})" for call in turn.tool_calls[:4]]
    return [(turn.content or "")[:_EACH], *calls, (turn.reasoning or "")[: _EACH // 2]]


def searchable(pieces: list[str]) -> str:
    """Pieces of text as a search sees them: lower case, joined by line ends, bounded."""
    return _writable("\n".join(piece for piece in pieces if piece)[:MOST_SAID].lower())
