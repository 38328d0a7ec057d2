"""Incremental splitter for newline-delimited JSON that keeps the byte range of every line.

Lines end in LF or CRLF; blank lines are skipped; a last line without its line end is handed out by `close`. The bytes
of a line are not interpreted here. Format: one JSON text per line, as Ollama's /api routes stream it.
"""

from __future__ import annotations

import msgspec


class NdjsonLine(msgspec.Struct):
    """One non-blank line without its line end and surrounding blanks; `start`/`end` are its offsets in the body."""

    data: bytes
    start: int
    end: int
    closed: bool = True


class NdjsonParser:
    """Feed bytes in any pieces; lines come out as their line feed arrives. The result does not depend on the pieces."""

    __slots__ = ("_base", "_buffer", "_scan")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._base = 0
        self._scan = 0

    def feed(self, piece: bytes) -> list[NdjsonLine]:
        """Take the next bytes of the body; returns the lines they complete."""
        self._buffer += piece
        cut = self._buffer.rfind(b"\n", self._scan)
        if cut < 0:
            self._scan = len(self._buffer)
            return []
        block = bytes(self._buffer[: cut + 1])
        del self._buffer[: cut + 1]
        self._scan = len(self._buffer)
        lines: list[NdjsonLine] = []
        position = self._base
        for raw in block.split(b"\n")[:-1]:
            _append(lines, raw, position, closed=True)
            position += len(raw) + 1
        self._base = position
        return lines

    def close(self) -> list[NdjsonLine]:
        """End of the body; returns at most one line, the one without its line feed."""
        lines: list[NdjsonLine] = []
        _append(lines, bytes(self._buffer), self._base, closed=False)
        self._base += len(self._buffer)
        self._buffer.clear()
        self._scan = 0
        return lines


def _append(lines: list[NdjsonLine], raw: bytes, position: int, closed: bool) -> None:
    data = raw.strip(b" \t\r")
    if position == 0 and data.startswith(b"\xef\xbb\xbf"):
        data = data[3:].lstrip(b" \t\r")
    if data:
        start = position + raw.index(data)
        lines.append(NdjsonLine(data, start, start + len(data), closed))
