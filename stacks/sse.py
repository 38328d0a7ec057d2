"""Incremental parser for server-sent events that keeps the byte range of every event.

Rules: WHATWG HTML, section 9.2 "Server-sent events" (event stream interpretation): lines end in CR, LF or CRLF; one
leading byte order mark is dropped; a line starting with a colon is a comment; one space after the colon is dropped;
several data lines are joined by a line feed; an id with a NUL is ignored; a retry that is not digits is ignored; a
block without data is not dispatched. Two things beyond the standard, both kept apart: a block that the end of the
body leaves unclosed is handed out by `close` (the standard drops it), and lines with unknown field names are listed.
"""

from __future__ import annotations

import msgspec

_BOM = b"\xef\xbb\xbf"


class SseEvent(msgspec.Struct):
    """One event. `data` is the joined data; `start`/`end` are body offsets from the first to the last byte of its
    lines (line ends and the closing blank line not included). `data_starts` has the body offset of each data line's
    value, in order, so that an offset into `data` can be led back to the body. `closed` is false for a last block
    without its blank line."""

    name: str
    data: bytes
    start: int
    end: int
    data_starts: list[int]
    last_event_id: str = ""
    closed: bool = True


class IgnoredLine(msgspec.Struct):
    """A line that is neither comment nor known field, with its byte range in the body. `field` is its name where that
    is a word, else "" and `value` is the whole line."""

    field: str
    value: bytes
    start: int
    end: int


class SseParser:
    """Feed bytes in any pieces; events come out as their blank line arrives. The result does not depend on the pieces.

    Time is linear in the bytes fed (a line's bytes are looked at once). Public: `ignored` (lines with unknown field
    names), `comments` (count), `retry` (milliseconds or None), `last_event_id`.
    """

    __slots__ = (
        "_base",
        "_buffer",
        "_data",
        "_data_starts",
        "_end",
        "_first",
        "_name",
        "_scan",
        "_skip_lf",
        "_start",
        "comments",
        "ignored",
        "last_event_id",
        "retry",
    )

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._base = 0  # body offset of buffer[0]
        self._scan = 0  # bytes of the buffer already searched for a line end
        self._first = True
        self._skip_lf = False
        self._data: list[bytes] = []
        self._data_starts: list[int] = []
        self._name = ""
        self._start = -1
        self._end = -1
        self.comments = 0
        self.ignored: list[IgnoredLine] = []
        self.last_event_id = ""
        self.retry: int | None = None

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Take the next bytes of the body; returns the events they complete."""
        self._buffer += piece
        if self._first and not self._pass_bom():
            return []
        return self._drain()

    def close(self) -> list[SseEvent]:
        """End of the body; returns at most one event, the one left without a closing blank line."""
        events: list[SseEvent] = []
        if self._first:
            self._first = False
            events += self._drain()
        if self._buffer:
            self._line(bytes(self._buffer), self._base)
            self._base += len(self._buffer)
            self._buffer.clear()
            self._scan = 0
        if self._data:
            events.append(self._take(closed=False))
        return events

    def _pass_bom(self) -> bool:
        head = bytes(self._buffer[:3])
        if head == _BOM:
            del self._buffer[:3]
            self._base = 3
        elif _BOM.startswith(head):
            return False
        self._first = False
        return True

    def _drain(self) -> list[SseEvent]:
        events: list[SseEvent] = []
        buffer = bytes(self._buffer) if self._scan == 0 else self._buffer
        position, scan, length = 0, self._scan, len(buffer)
        if self._skip_lf and length:
            self._skip_lf = False
            if buffer[0] == 10:
                position = scan = 1
        carriage = buffer.find(b"\r", scan)
        feed = buffer.find(b"\n", scan)
        while carriage >= 0 or feed >= 0:
            cut = carriage if feed < 0 or 0 <= carriage < feed else feed
            following = cut + 1
            if cut == carriage:
                if following < length:
                    following += buffer[following] == 10
                else:
                    self._skip_lf = True
            if cut == position:
                self._blank(events)
            else:
                self._line(bytes(buffer[position:cut]), self._base + position)
            position = following
            if 0 <= carriage < position:
                carriage = buffer.find(b"\r", position)
            if 0 <= feed < position:
                feed = buffer.find(b"\n", position)
        if position:
            del self._buffer[:position]
            self._base += position
        self._scan = len(self._buffer)
        return events

    def _blank(self, events: list[SseEvent]) -> None:
        if self._data:
            events.append(self._take(closed=True))
        self._name = ""
        self._start = -1

    def _take(self, closed: bool) -> SseEvent:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        event = SseEvent(
            self._name or "message", data, self._start, self._end, self._data_starts, self.last_event_id, closed
        )
        self._data = []
        self._data_starts = []
        self._name = ""
        self._start = -1
        return event

    def _line(self, line: bytes, start: int) -> None:
        if line.startswith(b"data:"):
            skip = 6 if line[5:6] == b" " else 5
            self._data.append(line[skip:])
            self._data_starts.append(start + skip)
            self._mark(start, len(line))
            return
        if line.startswith(b":"):
            self.comments += 1
            return
        name, colon, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            self._data.append(b"")
            self._data_starts.append(start + len(line))
        elif name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"id":
            if b"\0" not in value:
                self.last_event_id = value.decode("utf-8", "replace")
        elif name == b"retry":
            if value and value.isdigit() and len(value) < 19:
                self.retry = int(value)
        else:
            named = bool(colon) and name.isalpha()
            field = name.decode("ascii") if named else ""
            self.ignored.append(IgnoredLine(field, value if named else line, start, start + len(line)))
            return
        self._mark(start, len(line))

    def _mark(self, start: int, length: int) -> None:
        if self._start < 0:
            self._start = start
        self._end = start + length
