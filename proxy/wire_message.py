"""One HTTP message from its raw bytes: head, de-chunked and decoded body, and where each body byte stands on the wire.

Reads what files hold, so it forgives what a live connection never shows: a body that is already joined under a
`Transfer-Encoding: chunked` header, a content length that is wrong, a content coding that is a lie. What was forgiven
is said in `notes`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from proxy.classify.view import BodyMap, Segment
from results.body import decode_body
from results.http1 import Framer, Head, Kind, parse_headers


@dataclass(slots=True)
class WireMessage:
    """`status` is 0 for a request or where no status line could be read; `complete` is false where the message ends
    before its framing says so. `length` counts the message's bytes on the wire."""

    method: str = ""
    target: str = ""
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    map: BodyMap = field(default_factory=BodyMap)
    head: tuple[int, int] = (0, 0)
    length: int = 0
    complete: bool = True
    notes: list[str] = field(default_factory=list)


def read_response(raw: bytes, method: str = "POST") -> WireMessage:
    """Read a response; interim (1xx) responses in front of it are passed over. Never raises."""
    return _read(raw, response=True, method=method)


def read_request(raw: bytes) -> WireMessage:
    """Read a request. Never raises."""
    return _read(raw, response=False, method="")


def split_messages(raw: bytes, methods: list[str] | None = None) -> list[bytes]:
    """The messages that stand one after the other in one direction of a connection; responses where the requests'
    `methods` are given. Bytes that cannot be framed, or are cut, form the last one."""
    framer = Framer(response=methods is not None)
    for method in methods or ():
        framer.expect(method.encode("latin-1", "replace"))
    messages: list[bytes] = []
    current = b""
    for piece in framer.feed(raw):
        current += piece.data
        if piece.kind is Kind.END:
            messages.append(current)
            current = b""
    current += framer.pending()
    return [*messages, current] if current else messages


def _read(raw: bytes, *, response: bool, method: str) -> WireMessage:
    message = WireMessage(length=len(raw))
    framer = Framer(response=response)
    if response:
        framer.expect(method.encode("latin-1", "replace"))
    at = 0
    head: Head | None = None
    for piece in framer.feed(raw):
        if piece.kind is Kind.HEAD and piece.head is not None and not (piece.head.interim and response):
            head, start = piece.head, at
            message.head = (start, start + len(piece.data))
            at += len(piece.data)
            break
        at += len(piece.data)
    if head is None:
        if raw.strip():
            message.notes.append("not HTTP/1: no head could be read")
            message.body = raw
            message.map = BodyMap([Segment(0, 0, len(raw))])
        message.complete = not raw.strip()
        return message
    message.status = head.status
    message.method = head.method.decode("latin-1")
    message.target = head.target.decode("latin-1")
    message.headers = parse_headers(head.raw)
    body_raw = raw[at:]
    _frame(message, head, body_raw, at)
    _decode(message, at, len(raw))
    return message


def _frame(message: WireMessage, head: Head, raw: bytes, at: int) -> None:
    """Cut the body out of what follows the head, and fill the map."""
    if head.chunked:
        found = _dechunk(raw, at)
        if found is not None:
            message.body, message.map.segments, message.complete = found
            return
        message.notes.append("the body is not chunked although its header says so")
    message.body = raw
    if head.length is not None and not head.chunked:
        if len(raw) < head.length:
            message.complete = False
            message.notes.append(f"content-length says {head.length} bytes, {len(raw)} came")
        elif len(raw) > head.length:
            message.notes.append(f"content-length says {head.length} bytes, {len(raw)} came")
    message.map.segments = [Segment(0, at, len(message.body))]


def _dechunk(raw: bytes, at: int) -> tuple[bytes, list[Segment], bool] | None:
    """Undo chunked framing (RFC 9112 section 7.1); None where the first bytes are no chunk size."""
    parts: list[bytes] = []
    segments: list[Segment] = []
    position = total = 0
    while position < len(raw):
        line_end = raw.find(b"\n", position)
        digits = raw[position : line_end if line_end >= 0 else len(raw)].split(b";", 1)[0].strip()
        try:
            size = int(digits, 16) if digits and b"_" not in digits else -1
        except ValueError:
            size = -1
        if size < 0 or line_end < 0:
            return (b"".join(parts), segments, False) if segments or not raw.strip() else None
        if size == 0:
            return b"".join(parts), segments, True
        start = line_end + 1
        size = _resync(raw, start, size)
        data = raw[start : start + size]
        parts.append(data)
        segments.append(Segment(total, at + start, len(data)))
        total += len(data)
        position = start + size
        if raw[position : position + 2] == b"\r\n":
            position += 2
        elif raw[position : position + 1] == b"\n":
            position += 1
    return b"".join(parts), segments, False


_CHUNK_OVER = re.compile(rb"(?:\r?\n(?:[0-9A-Fa-f]{1,8}[^\r\n]*\r?\n|\Z)|\Z)")
_NEXT_CHUNK = re.compile(rb"\r\n[0-9A-Fa-f]{1,8}(?:;[^\r\n]*)?\r\n")


def _resync(raw: bytes, start: int, size: int) -> int:
    """The size of a chunk as it stands: the declared one where a line end follows it, else up to the next chunk's line
    (files whose texts were edited after the capture)."""
    if start + size <= len(raw) and _CHUNK_OVER.match(raw, start + size):
        return size
    found = _NEXT_CHUNK.search(raw, start)
    return found.start() - start if found is not None else size


def _decode(message: WireMessage, start: int, end: int) -> None:
    """Undo content codings; a coding that does not fit leaves the bytes as they are, with a note."""
    coding = ", ".join(value for name, value in message.headers if name.lower() == "content-encoding")
    if not coding or not message.body:
        return
    body = decode_body(message.body, 0, chunked=False, content_encoding=coding)
    message.notes.extend(body.problems)
    if body.data != message.body:
        message.body = body.data
        message.map = BodyMap(whole=(start, end))
    if body.problems:
        message.complete = False
