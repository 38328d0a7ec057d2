"""Bodies as they were meant: transfer framing removed, content coding undone, every byte traceable to the wire.

Chunked framing: RFC 9112 section 7.1. Content codings: `results.coding`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

import msgspec

from results.coding import CodingError, ContentDecoder
from results.http1 import plain_chunks, whole_chunk

MAX_BODY_BYTES = 1 << 30
"""Decoded bodies are cut at this size (1 GiB), against decompression bombs."""


class PayloadSplitter:
    """Tells payload from framing in the wire bytes of a body. Framing: chunk-size lines, line ends, trailers."""

    __slots__ = ("_left", "_line", "_state", "broken", "chunked", "done")

    def __init__(self, *, chunked: bool) -> None:
        self.chunked = chunked
        self.done = False
        """Whether the last chunk and the trailers have been read."""
        self.broken = False
        """Whether the framing could not be followed; the rest counts as payload."""
        self._state = "size"
        self._left = 0
        self._line = b""

    @property
    def between_chunks(self) -> bool:
        """Whether a size line is awaited, and none of it is here."""
        return self._state == "size" and not self._line and not self.broken

    def feed(self, data: bytes) -> list[tuple[bool, int, int]]:
        """(is payload, start, end) ranges of `data`, in order and without gaps."""
        if not self.chunked or self.broken:
            return [(True, 0, len(data))] if data else []
        start = whole_chunk(data) if self.between_chunks else 0
        if start:
            return [(False, 0, start), (True, start, len(data) - 2), (False, len(data) - 2, len(data))]
        spans: list[tuple[bool, int, int]] = []
        position, total = 0, len(data)
        while position < total:
            if self._state == "data":
                stop = min(position + self._left, total)
                self._left -= stop - position
                spans.append((True, position, stop))
                position = stop
                if not self._left:
                    self._state = "data_end"
                continue
            newline = data.find(b"\n", position)
            stop = total if newline < 0 else newline + 1
            self._line += data[position:stop]
            spans.append((False, position, stop))
            position = stop
            ended = newline >= 0 or len(self._line) > 1 << 16
            if ended and not self._on_line():
                self.broken = True
                if position < total:
                    spans.append((True, position, total))
                break
        return spans

    def _on_line(self) -> bool:
        """Take in a framing line; False where it is none."""
        line, self._line = self._line.strip(b" \t\r\n"), b""
        if self._state == "size":
            try:
                self._left = int(line.split(b";", 1)[0], 16)
            except ValueError:
                self._left = -1
            self._state = "data" if self._left > 0 else "trailer"
            return self._left >= 0
        if self._state == "data_end":
            self._state = "size"
            return not line
        self.done = self.done or not line
        return True


class BodySegment(msgspec.Struct, frozen=True, gc=False):
    """Body bytes `start` to `end` came from wire bytes `wire_start` to `wire_end` of the message.

    Equal lengths: byte for byte. Different lengths (content coding): the one range as a whole came from the other.
    """

    start: int
    end: int
    wire_start: int
    wire_end: int


def _end_of(segment: BodySegment) -> int:
    return segment.end


class Body:
    """A decoded body: `data`, where it came from on the wire, and what was wrong with it."""

    __slots__ = ("data", "problems", "segments")

    def __init__(self, data: bytes, segments: list[BodySegment], problems: list[str]) -> None:
        self.data = data
        self.segments = segments
        self.problems = problems

    def wire_range(self, start: int, end: int) -> tuple[int, int]:
        """The smallest wire range of the message that covers body bytes `start` to `end` (exact if not encoded)."""
        low: int | None = None
        high = 0
        for segment in self.segments[bisect_right(self.segments, start, key=_end_of) :]:
            if segment.start >= max(end, start + 1):
                break
            exact = segment.end - segment.start == segment.wire_end - segment.wire_start
            first = segment.wire_start + max(0, start - segment.start) if exact else segment.wire_start
            last = segment.wire_end - max(0, segment.end - end) if exact else segment.wire_end
            low = first if low is None else min(low, first)
            high = max(high, last)
        return (low, max(low, high)) if low is not None else (0, 0)


def decode_body(
    wire: bytes,
    start: int,
    *,
    chunked: bool,
    content_encoding: str = "",
    pieces: Iterable[tuple[int, int]] = (),
    limit: int = MAX_BODY_BYTES,
) -> Body:
    """Decode the body that begins at offset `start` of the message `wire`.

    `pieces` are the (start, end) wire ranges of single reads, which make the mapping of an encoded body finer. A body
    that lies about its coding is given undecoded, with a problem. At most `limit` bytes come out.
    """
    decoder = ContentDecoder(content_encoding) if content_encoding else None
    ranges: list[tuple[int, int]] = []
    problems: list[str] = []
    if decoder or chunked:
        if decoder is None and (ranges := plain_chunks(wire, start)):
            start = ranges[-1][1] + 2
        problems = _add_payload(ranges, wire, start, chunked, pieces)
    elif len(wire) > start:
        ranges.append((start, len(wire)))
    if decoder and not decoder.supported:
        problems.append(f"content coding {content_encoding!r} is not known; the body is as on the wire")
    elif decoder:
        try:
            return _decode(wire, ranges, decoder, problems, limit)
        except CodingError as error:
            problems.append(f"content-encoding says {content_encoding}, but: {error}")
    return _joined(wire, ranges, problems, limit)


def _add_payload(
    ranges: list[tuple[int, int]], wire: bytes, start: int, chunked: bool, pieces: Iterable[tuple[int, int]]
) -> list[str]:
    """Add the ranges of the payload from `start` on, cut where a read ends; returns what is wrong with the framing."""
    splitter = PayloadSplitter(chunked=chunked)
    cuts = [start, *sorted({end for _, end in pieces if start < end < len(wire)}), len(wire)]
    problems: list[str] = []
    for first, last in pairwise(cuts):
        spans = splitter.feed(wire[first:last])
        ranges.extend((first + low, first + high) for is_payload, low, high in spans if is_payload)
        if splitter.broken and not problems:
            problems.append(f"chunk framing cannot be followed from byte {first} on")
    if chunked and not splitter.done and not splitter.broken:
        problems.append("the last chunk is missing")
    return problems


def _joined(wire: bytes, ranges: list[tuple[int, int]], problems: list[str], limit: int) -> Body:
    segments: list[BodySegment] = []
    total = 0
    for first, last in ranges:
        end = total + last - first
        if segments and segments[-1].wire_end == first:
            segments[-1] = msgspec.structs.replace(segments[-1], end=end, wire_end=last)
        else:
            segments.append(BodySegment(total, end, first, last))
        total = end
    data = b"".join([wire[segment.wire_start : segment.wire_end] for segment in segments])
    if len(data) > limit:
        problems.append(f"the body was cut at {limit} bytes")
        data = data[:limit]
    return Body(data, segments, problems)


def _decode(
    wire: bytes, ranges: list[tuple[int, int]], decoder: ContentDecoder, problems: list[str], limit: int
) -> Body:
    out: list[bytes] = []
    segments: list[BodySegment] = []
    total, pending = 0, ranges[0][0] if ranges else 0
    for first, last in ranges:
        before = total
        for piece in decoder.feed(wire[first:last]):
            out.append(piece[: limit - total])
            total += len(out[-1])
            if len(out[-1]) < len(piece):
                problems.append(f"the decoded body was cut at {limit} bytes")
                segments.append(BodySegment(before, total, pending, last))
                return Body(b"".join(out), segments, problems)
        if total > before:
            segments.append(BodySegment(before, total, pending, last))
            pending = last
    if ranges and not decoder.finished:
        problems.append(f"the {', '.join(decoder.names)} data is cut short")
    return Body(b"".join(out), segments, problems)
