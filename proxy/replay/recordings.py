"""Recorded answers by request: what replay serves. Pure.

A request is matched on a ladder: same bytes, equal JSON, equal JSON once defaults and empty fields are dropped. Equal
requests that were recorded several times are answered in the order of the recording, the last one again and again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from results.exchange import Exchange
from results.http1 import Framer, Kind, parse_headers


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One exchange to serve: the request's method, path (with query) and decoded body; the answer's wire bytes.

    `pieces` are (microseconds since the request, bytes) as they were read; `ended` is how the connection went on:
    `keep` open, `close` after the last byte, `reset`, or `hang` (no byte ever came).
    """

    method: str
    path: str
    body: bytes
    pieces: tuple[tuple[int, bytes], ...]
    ended: str
    source: str


@dataclass(slots=True)
class _Shelf:
    answers: list[RecordedAnswer] = field(default_factory=list)
    served: int = 0

    def next(self) -> RecordedAnswer:
        answer = self.answers[min(self.served, len(self.answers) - 1)]
        self.served += 1
        return answer


class Recordings:
    """All recorded answers of a run or captures file, looked up by request."""

    unseen_status = (404, "Not Found")

    def __init__(self, answers: Iterable[RecordedAnswer]) -> None:
        self.answers = list(answers)
        self._shelves: list[dict[tuple[str, str, str], _Shelf]] = [{}, {}, {}]
        for answer in self.answers:
            keys = _keys(answer.method, answer.path, answer.body)
            for rung, key in zip(self._shelves, keys, strict=True):
                rung.setdefault(key, _Shelf()).answers.append(answer)

    def find(self, method: str, path: str, body: bytes) -> tuple[RecordedAnswer, str] | None:
        """The answer to serve next and how it matched: `bytes`, `json` or `normalised`. None where unseen."""
        for rung, key, how in zip(
            self._shelves, _keys(method, path, body), ("bytes", "json", "normalised"), strict=True
        ):
            shelf = rung.get(key)
            if shelf is not None:
                return shelf.next(), how
        return None

    def nearest(self, method: str, path: str, body: bytes) -> str:
        """For the error message: what was recorded that is closest to an unseen request."""
        same = [answer for answer in self.answers if (answer.method, answer.path) == (method, path)]
        if not same:
            paths = sorted({f"{answer.method} {answer.path}" for answer in self.answers})
            return f"nothing was recorded for {method} {path}; recorded: {', '.join(paths[:8])}"
        wanted = _flat(body)
        best = max(same[:500], key=lambda answer: len(wanted & _flat(answer.body)))
        recorded = _flat(best.body)
        extra = sorted(name for name, _ in wanted - recorded)[:4]
        missing = sorted(name for name, _ in recorded - wanted)[:4]
        return f"{len(same)} requests to this path were recorded; the nearest ({best.source}) differs in: " + (
            ", ".join(dict.fromkeys(extra + missing)) or "repeated or binary content"
        )


def _keys(method: str, path: str, body: bytes) -> tuple[tuple[str, str, str], ...]:
    exact = (method, path, body.decode("latin-1"))
    try:
        value = json.loads(body) if body else None
    except (ValueError, RecursionError):
        return exact, exact, exact
    plain = (method, path, json.dumps(value, sort_keys=True))
    return exact, plain, (method, path, json.dumps(_normalised(value, path), sort_keys=True))


def _normalised(value: Any, path: str) -> Any:
    value = _without_empty(value)
    if isinstance(value, dict):
        streams_by_default = "/api/" in path
        if value.get("stream", streams_by_default) == streams_by_default:
            value.pop("stream", None)
    return value


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _without_empty(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    return value


def _flat(body: bytes) -> set[tuple[str, str]]:
    """Leaves of a JSON body as (path, text), so that two bodies can be compared field by field."""
    try:
        value = json.loads(body) if body else None
    except (ValueError, RecursionError):
        return {("body", body.decode("latin-1"))}
    leaves: set[tuple[str, str]] = set()
    open_values: list[tuple[str, Any]] = [("", value)]
    while open_values:
        path, item = open_values.pop()
        if isinstance(item, dict):
            open_values.extend((f"{path}.{name}".lstrip("."), inner) for name, inner in item.items())
        elif isinstance(item, list):
            open_values.extend((f"{path}[{number}]", inner) for number, inner in enumerate(item))
        else:
            leaves.add((path, json.dumps(item)))
    return leaves


def answers_of_captures(lines: Iterable[str], source: str) -> list[RecordedAnswer]:
    """Answers of a captures file: JSON lines with `request` and `response_raw` (or `response_raw_base64`).

    Raises ValueError naming the line where one is no such record. Lines of other kinds (`meta`) are passed over.
    """
    answers = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if record.get("kind", "exchange") != "exchange":
                continue
            request = record["request"]
            encoded = record.get("response_raw_base64")
            raw = base64.b64decode(encoded) if encoded else str(record.get("response_raw") or "").encode()
            body = request.get("body") or ""
            text = body if isinstance(body, str) else json.dumps(body)
            method, path = str(request["method"]), str(request["path"])
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise ValueError(f"{source}, line {number}: not a captured exchange ({wrong!r})") from None
        raw, ended = _servable(raw, method, str(record.get("ended", "eof")))
        pieces = ((0, raw),) if raw else ()
        answers.append(RecordedAnswer(method, path, text.encode(), pieces, ended, str(record.get("id", number))))
    return answers


def _servable(raw: bytes, method: str, ended: str) -> tuple[bytes, str]:
    """Repair what a capturing client took out of the framing (a chunked body already joined); how to end afterwards."""
    if not raw:
        return raw, "hang" if "timeout" in ended else "close"
    framer = Framer(response=True)
    framer.expect(method.encode())
    pieces = framer.feed(raw)
    head = next(
        (piece.head for piece in pieces if piece.kind == Kind.HEAD and piece.head and not piece.head.interim), None
    )
    if head is not None and head.chunked and any(piece.kind == Kind.OPAQUE for piece in pieces):
        body = raw[len(head.raw) :]
        start_line = head.raw.split(b"\n", 1)[0].rstrip(b"\r")
        fields = [
            (name, value)
            for name, value in parse_headers(head.raw)
            if name.lower() not in ("transfer-encoding", "content-length")
        ]
        lines = [start_line, *(f"{name}: {value}".encode("latin-1") for name, value in fields)]
        return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", body]), "close"
    return raw, "close"


def answers_of_run(exchanges: Iterable[Exchange]) -> list[RecordedAnswer]:
    """Answers of a recorded run: exchanges in which the upstream sent anything, or closed without a byte."""
    answers = []
    for exchange in exchanges:
        request = exchange.request
        if request is None or exchange.relay_answer or exchange.end in _NEVER_ANSWERED:
            continue
        wire = exchange.wire("response")
        pieces = tuple((piece.at_us, wire[piece.start : piece.end]) for piece in exchange.pieces("response"))
        target = request.forwarded_target
        answers.append(
            RecordedAnswer(
                request.method, target, request.body, pieces, _ending(exchange), f"attempt {exchange.attempt}"
            )
        )
    return answers


_NEVER_ANSWERED = frozenset(
    {
        "upstream_refused",
        "upstream_unreachable",
        "name_not_resolved",
        "tls_failed",
        "timeout_connect",
        "refused_by_relay",
        "opaque",
        "open",
    }
)


def _ending(exchange: Exchange) -> str:
    """How to go on after the recorded bytes."""
    if exchange.end == "upstream_reset":
        return "reset"
    response = exchange.response
    if exchange.end == "complete" and response is not None:
        closes = response.header("connection").lower() == "close" or response.version == "HTTP/1.0"
        framed = (
            response.header("content-length") or response.header("transfer-encoding") or response.status in (204, 304)
        )
        return "close" if closes or not framed else "keep"
    return "close" if exchange.wire("response") or exchange.end == "upstream_closed" else "hang"
