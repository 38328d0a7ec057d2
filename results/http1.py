"""HTTP/1.x message framing, incremental and without I/O: where each message on a connection begins and ends.

Only framing is done here: bytes are cut, never changed, and every byte fed comes out again in exactly one piece.
Rules of RFC 9112 (sections 2.2, 6 and 7), read leniently the way clients and servers do: a bare LF ends a line,
blank lines before a request line are kept with its head, `Transfer-Encoding` wins over `Content-Length`.
What cannot be framed becomes `OPAQUE` from that byte on, and stays so.
"""

from __future__ import annotations

import re
from collections import deque
from enum import IntEnum

MAX_HEAD_BYTES = 1 << 20
"""A head longer than this is treated as opaque bytes (1 MiB; servers refuse far smaller ones)."""

MAX_LINE_BYTES = 1 << 16
"""A chunk-size or trailer line longer than this makes the rest opaque."""

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_REQUEST_LINE = re.compile(rb"((?:\r?\n)*)(" + _TOKEN + rb") ([^\s]+) (HTTP/1\.[0-9])\r?\n")
_REQUEST_BEGIN = re.compile(
    rb"(?:\r?\n)*\r?(?:" + _TOKEN + rb"(?: [^\s]*(?: (?:H(?:T(?:T(?:P(?:/(?:1(?:\.[0-9]?)?)?)?)?)?)?)?\r?)?)?)?\Z"
)
_STATUS_LINE = re.compile(rb"((?:\r?\n)*)(HTTP/1\.[0-9]) ([0-9]{3})(?: ([^\r\n]*))?\r?\n")
_STATUS_BEGIN = re.compile(rb"(?:\r?\n)*\r?(?:H(?:T(?:T(?:P(?:/(?:1(?:\.(?:[0-9](?: [^\r\n]*\r?)?)?)?)?)?)?)?)?)?\Z")
_FRAMING = re.compile(rb"\n(transfer-encoding|content-length|upgrade)[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\n]*)?\r?\n\Z")
_PLAIN_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_HEADER = re.compile(r"^([^\s:][^:\r\n]*?)[ \t]*:([^\n]*(?:\n[ \t][^\n]*)*)\n", re.MULTILINE | re.ASCII)
_FOLD = re.compile(r"[ \t]*\r?\n[ \t]+")
_SPACE = " \t\n\r\v\f"


class Kind(IntEnum):
    """What a piece of a connection is."""

    HEAD = 1
    """A whole head, start line to blank line."""
    BODY = 2
    """Bytes of a body as on the wire, chunk framing and trailers included."""
    END = 3
    """The message is complete (no bytes)."""
    OPAQUE = 4
    """Bytes that are not (or are no longer) HTTP/1.x."""


class Head:
    """The head of one message. `raw` is every byte of it, blank line included.

    Requests have `method` and `target`; responses have `status` and `reason`. `length` is the declared body length in
    bytes, or None; `chunked` and `until_close` say how the body ends otherwise. `upgrade` is true where a request asks
    for, or a response grants, another protocol.
    """

    __slots__ = (
        "chunked",
        "length",
        "method",
        "raw",
        "reason",
        "status",
        "target",
        "until_close",
        "upgrade",
        "version",
    )

    def __init__(self, raw: bytes, version: bytes) -> None:
        self.raw = raw
        self.version = version
        self.method = b""
        self.target = b""
        self.status = 0
        self.reason = b""
        self.length: int | None = None
        self.chunked = False
        self.until_close = False
        self.upgrade = False

    @property
    def interim(self) -> bool:
        """Whether this is an informational response (1xx other than 101) that another response follows."""
        return 100 <= self.status < 200 and self.status != 101

    def headers(self) -> list[tuple[str, str]]:
        """Header fields in order, names as written, duplicates kept, as Latin-1 text; folded lines are joined."""
        return parse_headers(self.raw)


def parse_headers(raw: bytes) -> list[tuple[str, str]]:
    """Header fields of a raw head (the start line is skipped); lines that are no header field are left out."""
    start = raw.find(b"\n", len(raw) - len(raw.lstrip(b"\r\n"))) + 1
    fields = []
    for name, value in _HEADER.findall(raw.decode("latin-1"), start):
        stripped = value.strip(_SPACE)
        fields.append((name, _FOLD.sub(" ", stripped) if "\n" in stripped else stripped))
    return fields


class Piece:
    """A run of bytes of one kind; `head` is set for `Kind.HEAD` alone."""

    __slots__ = ("data", "head", "kind")

    def __init__(self, kind: Kind, data: bytes = b"", head: Head | None = None) -> None:
        self.kind = kind
        self.data = data
        self.head = head

    def __repr__(self) -> str:
        return f"Piece({self.kind.name}, {self.data!r})"


_END = Piece(Kind.END)


class _BadFramingError(Exception):
    """The body's framing cannot be followed."""


class Framer:
    """Cuts one direction of one connection into pieces. Feed bytes as they come; `eof()` when the side has closed.

    For responses, say `expect(method)` once for each request sent, in order: framing depends on the method
    (HEAD has no body; a granted CONNECT or 101 makes the rest opaque). Concatenating `data` of all pieces (and
    `pending()`) gives back exactly what was fed.
    """

    def __init__(self, *, response: bool = False) -> None:
        self._response = response
        self._methods: deque[bytes] = deque()
        self._buffer = b""
        self._searched = 0
        self._remaining: int | None = None
        self._chunks: _ChunkedBody | None = None
        self.opaque = False
        """Whether everything from here on is passed through unframed."""
        self.in_message = False
        """Whether a head has been given out and its message has not ended."""

    def expect(self, method: bytes) -> None:
        """Announce the next request, so that its response is framed by its rules."""
        self._methods.append(method)

    def pending(self) -> bytes:
        """Bytes of an incomplete head, held back."""
        return self._buffer

    def become_opaque(self) -> bytes:
        """Stop framing for good; returns the bytes held back."""
        held, self._buffer = self._buffer, b""
        self.opaque = True
        self.in_message = False
        return held

    def eof(self) -> bool:
        """The side has closed. True where that is proper: between messages, or ending a read-until-close body."""
        if self.opaque:
            return True
        if self.in_message and self._remaining is None and self._chunks is None:
            self.in_message = False
            return True
        return not self.in_message and not self._buffer

    @property
    def between_chunks(self) -> bool:
        """Whether a chunk of a body is over and the next one has not begun: whole chunks leave it so."""
        return self._chunks is not None and self._chunks.between_chunks

    @property
    def until_close(self) -> bool:
        """Whether whatever comes belongs to the body of a response that has no other end than its connection's."""
        return self.in_message and self._chunks is None and self._remaining is None and not self.opaque

    def feed(self, data: bytes) -> list[Piece]:
        """Cut the next bytes read. Pieces come in wire order."""
        pieces: list[Piece] = []
        while data and not self.opaque:
            data = self._body(data, pieces) if self.in_message else self._head(data, pieces)
        if data:
            pieces.append(Piece(Kind.OPAQUE, data))
        return pieces

    def _head(self, data: bytes, pieces: list[Piece]) -> bytes:
        buffer = self._buffer + data if self._buffer else data
        end = _head_end(buffer, max(0, self._searched - 3))
        if end < 0:
            begin = (_STATUS_BEGIN if self._response else _REQUEST_BEGIN).match(buffer[:MAX_LINE_BYTES])
            line = (_STATUS_LINE if self._response else _REQUEST_LINE).match(buffer)
            if (begin is None and line is None) or len(buffer) > MAX_HEAD_BYTES:
                self.become_opaque()
                return buffer
            self._buffer, self._searched = buffer, len(buffer)
            return b""
        self._buffer, self._searched = b"", 0
        head = self._parse(buffer[:end]) if end <= MAX_HEAD_BYTES else None
        if head is None:
            self.become_opaque()
            return buffer
        pieces.append(Piece(Kind.HEAD, head.raw, head))
        self._begin(head, pieces)
        return buffer[end:]

    def _parse(self, raw: bytes) -> Head | None:
        match = (_STATUS_LINE if self._response else _REQUEST_LINE).match(raw)
        if match is None:
            return None
        if self._response:
            head = Head(raw, match[2])
            head.status, head.reason = int(match[3]), match[4] or b""
        else:
            head = Head(raw, match[4])
            head.method, head.target = match[2], match[3]
        try:
            _read_framing(head, match.end() - 1)
        except _BadFramingError:
            return None
        return head

    def _begin(self, head: Head, pieces: list[Piece]) -> None:
        method = head.method
        if self._response:
            if head.interim:
                return
            method = self._methods.popleft() if self._methods else b"GET"
            bodiless = (
                method == b"HEAD" or head.status in (101, 204, 304) or (method == b"CONNECT" and head.status < 300)
            )
            if head.status == 101 or (method == b"CONNECT" and 200 <= head.status < 300):
                head.upgrade = True
            if bodiless:
                head.length, head.chunked = 0, False
            head.until_close = head.length is None and not head.chunked
        else:
            if head.length is None and not head.chunked:
                head.length = 0
            head.upgrade = head.upgrade or method == b"CONNECT"
        self._chunks = _ChunkedBody() if head.chunked else None
        self._remaining = None if head.chunked else head.length
        self.in_message = True
        if self._remaining == 0:
            self._finish(pieces)
        if (self._response and head.upgrade) or (method == b"CONNECT" and not self._response):
            self.become_opaque()

    def _body(self, data: bytes, pieces: list[Piece]) -> bytes:
        if self._chunks is not None:
            try:
                used = self._chunks.feed(data)
            except _BadFramingError:
                self.become_opaque()
                return data
            pieces.append(Piece(Kind.BODY, data[:used]))
            if self._chunks.done:
                self._finish(pieces)
            return data[used:]
        if self._remaining is None:
            pieces.append(Piece(Kind.BODY, data))
            return b""
        body = data[: self._remaining]
        pieces.append(Piece(Kind.BODY, body))
        self._remaining -= len(body)
        if self._remaining == 0:
            self._finish(pieces)
        return data[len(body) :]

    def _finish(self, pieces: list[Piece]) -> None:
        self.in_message = False
        self._chunks = self._remaining = None
        pieces.append(_END)


def _head_end(buffer: bytes, start: int) -> int:
    """Offset just behind the blank line that ends a head, or -1. Blank lines before the start line do not count."""
    if buffer[:1] in (b"\r", b"\n"):
        start = max(start, len(buffer) - len(buffer.lstrip(b"\r\n")))
    crlf = buffer.find(b"\n\r\n", start)
    bare = buffer.find(b"\n\n", start, crlf + 1 if crlf >= 0 else len(buffer))
    if bare >= 0:
        return bare + 2
    return crlf + 3 if crlf >= 0 else -1


def _read_framing(head: Head, start: int) -> None:
    """Fill in length, chunked and upgrade. Raises _BadFramingError where the length is contradictory or no number."""
    lengths: set[bytes] = set()
    coding = b""
    for name, value in _FRAMING.findall(head.raw, start):
        lowered = name.lower()
        if lowered == b"content-length":
            lengths.update(part.strip() for part in value.split(b","))
        elif lowered == b"transfer-encoding":
            coding = value.strip().lower()
        else:
            head.upgrade = bool(value.strip()) and head.method != b""
    if coding:
        head.chunked = coding.rsplit(b",", 1)[-1].strip() == b"chunked"
        if not head.chunked and head.method:
            raise _BadFramingError
        return
    if lengths:
        value = lengths.pop()
        if lengths or not value.isdigit() or len(value) > 18:
            raise _BadFramingError
        head.length = int(value)


def whole_chunk(data: bytes) -> int:
    """The length of the size line where `data` is exactly one chunk with payload, as servers write them; else 0."""
    match = _PLAIN_SIZE.match(data)
    if match is None:
        return 0
    start = match.end()
    end = start + int(match[1], 16)
    return start if start < end == len(data) - 2 and data.endswith(b"\r\n") else 0


def plain_chunks(data: bytes, at: int = 0) -> list[tuple[int, int]]:
    """Where the payload of each whole chunk stands (start, end), from offset `at` on and for as long as chunks are
    framed as servers write them: a size, CRLF, payload, CRLF. What follows begins 2 bytes behind the last of them."""
    found: list[tuple[int, int]] = []
    while (match := _PLAIN_SIZE.match(data, at)) is not None:
        start = match.end()
        end = start + int(match[1], 16)
        at = end + 2
        if start == end or data[end:at] != b"\r\n":
            break
        found.append((start, end))
    return found


class _ChunkedBody:
    """Follows chunked framing (RFC 9112 section 7.1) without copying the data."""

    __slots__ = ("_left", "_line", "_state", "done")

    def __init__(self) -> None:
        self._state = "size"
        self._left = 0
        self._line = b""
        self.done = False

    @property
    def between_chunks(self) -> bool:
        """Whether a size line is awaited, and none of it is here."""
        return self._state == "size" and not self._line

    def feed(self, data: bytes) -> int:
        """Consume framing; returns how many bytes belong to this body. Raises _BadFramingError on nonsense."""
        position = 0
        if self.between_chunks:
            if whole_chunk(data):
                return len(data)
            found = plain_chunks(data)
            position = found[-1][1] + 2 if found else 0
        while position < len(data) and not self.done:
            if self._state == "data":
                step = min(self._left, len(data) - position)
                self._left -= step
                position += step
                if self._left == 0:
                    self._state = "data_end"
                continue
            newline = data.find(b"\n", position)
            stop = len(data) if newline < 0 else newline + 1
            self._line += data[position:stop]
            position = stop
            if len(self._line) > MAX_LINE_BYTES:
                raise _BadFramingError
            if newline >= 0:
                line, self._line = self._line, b""
                self._on_line(line)
            elif self._state == "data_end" and self._line != b"\r":
                raise _BadFramingError
        return position

    def _on_line(self, line: bytes) -> None:
        if self._state == "size":
            match = _CHUNK_SIZE.match(line)
            if match is None:
                raise _BadFramingError
            self._left = int(match[1], 16)
            self._state = "data" if self._left else "trailer"
        elif self._state == "data_end":
            if line.strip(b"\r\n"):
                raise _BadFramingError
            self._state = "size"
        elif not line.strip(b"\r\n"):
            self.done = True
