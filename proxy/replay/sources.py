"""Where recorded answers come from: the journal of a run, or a captures file. Pure."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from proxy.relay.rewrite import parse_target
from proxy.replay.framing import reframed, split_head
from proxy.replay.recordings import RecordedAnswer
from results.exchange import Exchange
from results.http1 import Framer, Kind, parse_headers

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


def answers_of_run(
    exchanges: Iterable[Exchange], recording: str = "", left_out: Counter[str] | None = None
) -> Iterator[RecordedAnswer]:
    """Answers of a recorded run: exchanges that reached the upstream, whatever came back. `recording` names the one of
    a grid's run; `left_out` counts those that no server can serve again, by how they ended."""
    for exchange in exchanges:
        request = exchange.request
        if request is None or exchange.relay_answer or exchange.end in _NEVER_ANSWERED:
            if left_out is not None:
                left_out[exchange.end if request is not None else "not HTTP"] += 1
            continue
        wire = exchange.wire("response")
        own = parse_target(request.target.encode("latin-1"), frozenset({exchange.upstream})).rest.decode("latin-1")
        where = f"attempt {recording}/{exchange.attempt}" if recording else f"attempt {exchange.attempt}"
        yield RecordedAnswer(
            request.method,
            request.forwarded_target,
            request.body,
            tuple((piece.at_us, wire[piece.start : piece.end]) for piece in exchange.pieces("response")),
            _ending(exchange),
            where,
            exchange.upstream,
            exchange.tags,
            (own,),
        )


def _whole(exchange: Exchange) -> bool:
    """Whether the server had answered to the end; a client that had left by then took nothing from its connection."""
    if exchange.end == "complete":
        return True
    return exchange.end == "client_gone" and exchange.response is not None and exchange.response.complete


def _ending(exchange: Exchange) -> str:
    """How to go on after the recorded bytes. Where the client left, or the recording ended, the server had not."""
    if exchange.end == "upstream_reset":
        return "reset"
    if exchange.end in ("upstream_closed", "not_http"):
        return "close"
    response = exchange.response
    if response is None or not _whole(exchange):
        return "hang"
    closes = response.header("connection").lower() == "close" or response.version == "HTTP/1.0"
    framed = response.header("content-length") or response.header("transfer-encoding") or response.status in (204, 304)
    return "close" if closes or not framed else "keep"


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
        raw, ended = _servable(_as_it_was(raw), method, str(record.get("ended", "eof")))
        pieces = ((0, raw),) if raw else ()
        answers.append(RecordedAnswer(method, path, text.encode(), pieces, ended, str(record.get("id", number))))
    return answers


def _as_it_was(raw: bytes) -> bytes:
    """The answer with sizes that hold, where text in it was replaced after it was captured, or its file added a line
    end: a body longer than it says, or shorter and yet whole JSON, or chunks of other sizes than they say."""
    head, body = split_head(raw)
    if not head:
        return raw
    stated = re.search(rb"\r\ncontent-length:[ \t]*(\d+)", head, re.IGNORECASE)
    if stated is None:
        return reframed(raw) if re.match(rb"[0-9a-fA-F]{1,8}\r\n", body) else raw
    if len(body) <= int(stated[1]):
        try:
            json.loads(body)
        except (ValueError, RecursionError):
            return raw
    return reframed(raw)


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
