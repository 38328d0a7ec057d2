"""Chunked framing (RFC 9112 section 7.1): where chunks begin and end, without copying their data."""

from __future__ import annotations

import re

MAX_LINE_BYTES = 1 << 16
"""A chunk-size or trailer line longer than this makes the rest opaque."""

_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\n]*)?\r?\n\Z")
_PLAIN_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")


class BadFramingError(Exception):
    """The body's framing cannot be followed."""


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


class ChunkedBody:
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
        """Consume framing; returns how many bytes belong to this body. Raises BadFramingError on nonsense."""
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
                raise BadFramingError
            if newline >= 0:
                line, self._line = self._line, b""
                self._on_line(line)
            elif self._state == "data_end" and self._line != b"\r":
                raise BadFramingError
        return position

    def _on_line(self, line: bytes) -> None:
        if self._state == "size":
            match = _CHUNK_SIZE.match(line)
            if match is None:
                raise BadFramingError
            self._left = int(match[1], 16)
            self._state = "data" if self._left else "trailer"
        elif self._state == "data_end":
            if line.strip(b"\r\n"):
                raise BadFramingError
            self._state = "size"
        elif not line.strip(b"\r\n"):
            self.done = True
