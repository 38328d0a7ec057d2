"""One attempt as it was: the request, the response, when each piece came, how it ended, and its decoded bodies.

Offsets are wire offsets: per attempt and direction, from 0. Evidence is cited as (attempt, direction, start, end) and
read back with `Exchange.wire(direction)[start:end]`. Masked secrets read as `*`, one for each byte.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from results.body import Body, BodySegment, decode_body
from results.http1 import Framer, Head, Kind
from results.lazily import lazily
from results.record import Direction, Note


class Piece(msgspec.Struct, frozen=True, gc=False):
    """One read from a socket: wire bytes `start` to `end`, `at_us` after the first byte of the request."""

    at_us: int
    start: int
    end: int


class WireStream(NamedTuple):
    """All bytes of one direction of an attempt.

    From `withheld` on (None: nowhere) the wire bytes were not kept, because the decoded body holds a secret; `decoded`
    is then the decoded, masked body from decoded offset `decoded_start` on.
    """

    data: bytes
    pieces: tuple[Piece, ...] = ()
    complete: bool = False
    withheld: int | None = None
    decoded_start: int = 0
    decoded: bytes = b""


def _header(headers: list[tuple[str, str]], name: str, default: str) -> str:
    wanted = name.lower()
    return next((value for key, value in headers if key.lower() == wanted), default)


class HttpMessage:
    """What request and response share. `head_start`, `body_start` and `body_end` are wire offsets in `wire`."""

    def __init__(self, stream: WireStream, head: Head, head_start: int, body_end: int, finished: bool) -> None:
        self.wire = stream.data
        """Every byte of this direction (for a response, interim heads before it too)."""
        self.chunks = stream.pieces
        self.head_start = head_start
        self.head_length = len(head.raw)
        self.body_start = head_start + self.head_length
        self.body_end = body_end
        self.complete = finished
        """Whether the message came to the end that its framing promises."""
        self.withheld = stream.withheld
        """Wire offset from which on the bytes were not kept (see `WireStream`), or None."""
        self._stream = stream
        self._head = head

    @lazily
    def headers(self) -> list[tuple[str, str]]:
        """Header fields in order, names as written, duplicates kept."""
        return self._head.headers()

    def header(self, name: str, default: str = "") -> str:
        """The first value of a header, whatever its case."""
        return _header(self.headers, name, default)

    @lazily
    def _decoded(self) -> Body:
        stream, head = self._stream, self._head
        end = self.body_end if stream.withheld is None else min(self.body_end, stream.withheld)
        body = decode_body(
            self.wire[:end],
            self.body_start,
            chunked=head.chunked,
            # Most heads name no coding, and need not be parsed for it.
            content_encoding=self.header("content-encoding") if b"content-encoding" in head.raw.lower() else "",
            pieces=((piece.start, piece.end) for piece in stream.pieces),
        )
        if stream.withheld is not None:
            return self._with_masked(body, stream, end)
        have = self.body_end - self.body_start
        if not self.complete and not head.chunked and head.length is not None and have < head.length:
            body.problems.append(f"the body has {have} of {head.length} bytes")
        return body

    def _with_masked(self, body: Body, stream: WireStream, end: int) -> Body:
        known = min(len(body.data), stream.decoded_start)
        segments = [replace(segment, end=min(segment.end, known)) for segment in body.segments if segment.start < known]
        segments.append(BodySegment(known, known + len(stream.decoded), end, self.body_end))
        problems = [] if known == stream.decoded_start else ["part of the masked body is missing"]
        if not self.complete:
            problems.append("the body is cut short")
        return Body(body.data[:known] + stream.decoded, segments, problems)

    @property
    def body(self) -> bytes:
        """The body, de-chunked and content-decoded."""
        return self._decoded.data

    @property
    def segments(self) -> list[BodySegment]:
        """Where each part of `body` is on the wire."""
        return self._decoded.segments

    @property
    def problems(self) -> list[str]:
        """What is wrong with the body: bad framing, a lying content-encoding, a short body."""
        return self._decoded.problems

    def wire_range(self, start: int, end: int) -> tuple[int, int]:
        """The wire range that body bytes `start` to `end` came from (see `Body.wire_range`)."""
        return self._decoded.wire_range(start, end)

    def at_us(self, offset: int) -> int:
        """When the wire byte at `offset` was seen, in microseconds after the request's first byte."""
        return next((piece.at_us for piece in self.chunks if piece.start <= offset < piece.end), 0)


class HttpRequest(HttpMessage):
    """A request as the client sent it (secrets masked); `forwarded_target` is the one that went on upstream."""

    def __init__(
        self, stream: WireStream, head: Head, head_start: int, body_end: int, finished: bool, *, forwarded: str
    ) -> None:
        super().__init__(stream, head, head_start, body_end, finished)
        self.method = head.method.decode("latin-1")
        self.target = head.target.decode("latin-1")
        self.forwarded_target = forwarded or self.target
        self.version = head.version.decode("latin-1")

    @property
    def path(self) -> str:
        """Path of the forwarded target, without its query."""
        return self.forwarded_target.split("?", 1)[0]


class HttpResponse(HttpMessage):
    """A response as the upstream sent it. `interim` holds the heads of 1xx responses before it."""

    def __init__(
        self, stream: WireStream, head: Head, head_start: int, body_end: int, finished: bool, *, interim: list[Head]
    ) -> None:
        super().__init__(stream, head, head_start, body_end, finished)
        self.status = head.status
        self.reason = head.reason.decode("latin-1")
        self.version = head.version.decode("latin-1")
        self.interim = interim


class Exchange:
    """One attempt: an HTTP exchange, or one connection that was not HTTP (`request` is None)."""

    def __init__(
        self,
        *,
        attempt: int,
        connection: int,
        exchange: int,
        upstream: str,
        started_us: int,
        client: str = "",
        tags: tuple[tuple[str, str], ...] = (),
        method: str | None,
        forwarded: str = "",
        request: WireStream,
        response: WireStream,
        end: str,
        end_detail: str = "",
        ended_at_us: int | None = None,
        relay_answer: bytes = b"",
        notes: tuple[Note, ...] = (),
        damage: tuple[str, ...] = (),
    ) -> None:
        self.attempt = attempt
        self.connection = connection
        self.exchange = exchange
        """Its number on the connection, from 1."""
        self.upstream = upstream
        self.client = client
        self.tags = tags
        self.started_us = started_us
        """Microseconds since the Unix epoch when the first byte of the request was seen."""
        self.end = end
        """How it ended: a `record.EndReason`, `recorder_killed`, or `open` while it is still being recorded."""
        self.end_detail = end_detail
        self.ended_at_us = ended_at_us
        self.relay_answer = relay_answer
        """What the relay itself answered to the client, where it did."""
        self.notes = notes
        self.damage = damage
        """What is missing from the record of this attempt (corrupt lines, losses); empty for a sound one."""
        self._streams: dict[str, WireStream] = {"request": request, "response": response}
        self._method = method
        self._forwarded = forwarded

    @property
    def damaged(self) -> bool:
        """Whether part of the record of this attempt is missing."""
        return bool(self.damage)

    def wire(self, direction: Direction) -> bytes:
        """Every byte of one direction, offsets from 0."""
        return self._streams[direction].data

    def pieces(self, direction: Direction) -> tuple[Piece, ...]:
        """The reads of one direction, with their times."""
        return self._streams[direction].pieces

    def tag(self, name: str, default: str = "") -> str:
        """The value of a tag."""
        return next((value for key, value in self.tags if key == name), default)

    def noted(self, kind: str) -> dict[str, Any] | None:
        """The fields of the first note of a kind, or None."""
        return next((note.fields for note in self.notes if note.kind == kind), None)

    @lazily
    def _request(self) -> tuple[HttpRequest | None, int]:
        stream = self._streams["request"]
        if self._method is None:
            return None, 0
        framer = Framer()
        heads, body_end, opaque, finished = _frame(framer, stream)
        if not heads:
            return None, opaque
        start, head = heads[0]
        return HttpRequest(
            stream, head, start, body_end, finished and stream.complete, forwarded=self._forwarded
        ), opaque

    @lazily
    def _response(self) -> tuple[HttpResponse | None, int]:
        stream = self._streams["response"]
        if not stream.data:
            return None, 0
        framer = Framer(response=True)
        framer.expect((self._method or "GET").encode("latin-1"))
        heads, body_end, opaque, finished = _frame(framer, stream)
        final = [(start, head) for start, head in heads if not head.interim]
        if not final:
            return None, opaque if framer.opaque or not heads else len(stream.data)
        start, head = final[0]
        if head.until_close or stream.withheld is not None:
            finished = self.end == "complete"
        interim = [head for _, head in heads if head.interim]
        return HttpResponse(stream, head, start, body_end, finished, interim=interim), opaque

    @property
    def request(self) -> HttpRequest | None:
        """The request; None where the connection was not HTTP (see `opaque`)."""
        return self._request[0]

    @property
    def response(self) -> HttpResponse | None:
        """The final response; None where no whole head of one came."""
        return self._response[0]

    def opaque(self, direction: Direction) -> bytes:
        """Bytes of a direction that are not HTTP: all of a foreign protocol, or what follows an upgrade."""
        start = self._request[1] if direction == "request" else self._response[1]
        return self._streams[direction].data[start:]

    def __repr__(self) -> str:
        request = self.request
        line = f"{request.method} {request.forwarded_target}" if request else "(not HTTP)"
        return f"<Exchange {self.attempt} {line} end={self.end}>"


def _frame(framer: Framer, stream: WireStream) -> tuple[list[tuple[int, Head]], int, int, bool]:
    """(heads with their offsets, end of the body, where opaque bytes begin, whether the message ended)."""
    kept = stream.data if stream.withheld is None else stream.data[: stream.withheld]
    heads: list[tuple[int, Head]] = []
    position, opaque, finished, body_end = 0, len(stream.data), False, -1
    for piece in framer.feed(kept):
        if piece.kind is Kind.HEAD and piece.head is not None and not finished:
            heads.append((position, piece.head))
        elif piece.kind is Kind.END and not finished:
            finished, body_end = True, position
        elif piece.kind is Kind.OPAQUE:
            opaque = min(opaque, position)
        position += len(piece.data)
    if not heads:
        return heads, 0, 0, False
    if finished:
        return heads, body_end, min(opaque, position), True
    if stream.withheld is not None:
        return heads, len(stream.data), len(stream.data), stream.complete
    return heads, len(stream.data), len(stream.data), False
