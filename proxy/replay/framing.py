"""Recorded HTTP/1.1 answers made servable: framing repaired where a capture's is off, pieces, and labels. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r\n]*chunked", re.IGNORECASE)
_LENGTH = re.compile(rb"(\r\ncontent-length:[ \t]*)(\d+)", re.IGNORECASE)
_SIZE_LINE = re.compile(rb"(?:\A|\r\n)([0-9a-fA-F]{1,8})\r\n")
_END = b"\r\n\r\n"


def split_head(raw: bytes) -> tuple[bytes, bytes]:
    """(head with its blank line, the rest) of a raw answer; the head is empty where there is none."""
    position = raw.find(_END)
    return (raw[: position + 4], raw[position + 4 :]) if position >= 0 and raw.startswith(b"HTTP/") else (b"", raw)


def chunks_of(body: bytes) -> list[bytes] | None:
    """The chunks of a chunked body, framing included, the last of size 0; None where the sizes are not true."""
    chunks, at = [], 0
    while True:
        found = _SIZE_LINE.match(body[at : at + 10])
        if found is None:
            return None
        end = at + found.end() + int(found.group(1), 16) + 2
        if body[end - 2 : end] != b"\r\n":
            return None
        chunks.append(body[at:end])
        if int(found.group(1), 16) == 0:
            return chunks if end == len(body) else None
        at = end


def joined_body(body: bytes) -> bytes:
    """The payload of a chunked body whose sizes may be off (text in it was replaced after recording): a size is
    believed where the next size line confirms it, else the data go up to the next size line."""
    parts, found = [], _SIZE_LINE.match(body)
    while found is not None and int(found.group(1), 16):
        start = found.end()
        nearby = _SIZE_LINE.match(body, start + int(found.group(1), 16))
        nearby = nearby or _SIZE_LINE.search(body, start)
        parts.append(body[start : nearby.start() if nearby else len(body)])
        found = nearby
    return b"".join(parts)


def payload(raw: bytes) -> bytes:
    """The body of an answer without its transfer coding."""
    head, body = split_head(raw)
    return joined_body(body) if _CHUNKED.search(head) else body


def reframed(raw: bytes) -> bytes:
    """The same answer with a framing that holds; unchanged where it does already."""
    head, body = split_head(raw)
    if not head:
        return raw
    if _CHUNKED.search(head):
        if chunks_of(body) is not None:
            return raw
        whole = joined_body(body)
        return head + b"%x\r\n" % len(whole) + whole + b"\r\n0\r\n\r\n"
    length = _LENGTH.search(head)
    if length is None or int(length.group(2)) == len(body) or not body:
        return raw
    return head[: length.start()] + length.group(1) + b"%d" % len(body) + head[length.end() :] + body


def labelled(raw: bytes, headers: Iterable[tuple[str, str]]) -> bytes:
    """The answer with more header lines at the end of its head; characters outside latin-1 become `?`."""
    head, body = split_head(raw)
    lines = [f"{name}: {_line(value)}\r\n".encode("latin-1", "replace") for name, value in headers]
    return head[:-2] + b"".join(lines) + b"\r\n" + body if head else raw


def pieces_of(raw: bytes) -> tuple[tuple[int, bytes], ...]:
    """What a server writes at a time: the head with the first chunk, then chunk by chunk (microsecond 1)."""
    head, body = split_head(raw)
    chunks = chunks_of(body) if head and _CHUNKED.search(head) else None
    if not chunks:
        return ((0, raw),) if raw else ()
    return ((0, head + chunks[0]), *((1, chunk) for chunk in chunks[1:]))


def json_answer(status: int, reason: str, body: bytes, headers: Iterable[tuple[str, str]] = ()) -> bytes:
    """An answer of our own with a JSON body, after which the connection is closed."""
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json; charset=utf-8\r\n"
    plain = f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
    return labelled(plain + body, headers)


def _line(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text)
