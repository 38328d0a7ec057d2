"""Exchanges of a journal as they end, while it is being written: for what is shown live.

Reading is by polling; rotation is followed by the segments' numbers. What happened before `poll` was first called is
read too. A damaged line is passed over here: `results.reader` tells of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from results import segments
from results.assemble import OpenAttempt, RequestBook
from results.exchange import Exchange
from results.record import End, Line, Note, Segment, decode, segment_of

_READ_BYTES = 1 << 20


class JournalFollower:
    """Follows the journal in `folder`; call `poll` now and then, `close` at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None
        self._segment = 0
        self._rest = b""
        self._book = RequestBook()
        self._attempts: dict[int, OpenAttempt] = {}

    def poll(self) -> Iterator[Exchange]:
        """Exchanges that have ended since the last call, in that order. Raises OSError where reading fails."""
        while True:
            for raw in self._whole_lines():
                exchange = self._take(raw)
                if exchange is not None:
                    yield exchange
            if not self._next_segment():
                return

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _whole_lines(self) -> Iterator[bytes]:
        while self._file is not None and (block := self._file.read(_READ_BYTES)):
            lines = (self._rest + block).split(b"\n")
            self._rest = lines.pop()
            yield from lines

    def _next_segment(self) -> bool:
        """Go on to the segment after the current one, if there is one by now."""
        wanted = self._segment + 1
        if self._file is not None and not self._finished(self._segment):
            return False
        opened = self._open(wanted)
        if opened is None:
            return False
        # What was appended before the old file got its number may not be read yet.
        if self._file is not None and (left := self._file.read()):
            opened.close()
            self._file.seek(-len(left), 1)
            return True
        self.close()
        self._file, self._segment, self._rest = opened, wanted, b""
        return True

    def _finished(self, number: int) -> bool:
        return any(segments.numbered(self._folder, number, compressed=how).exists() for how in (True, False))

    def _open(self, number: int) -> BinaryIO | None:
        for path in (
            segments.numbered(self._folder, number, compressed=False),
            self._folder / segments.LIVE,
            self._folder / segments.NEXT,
        ):
            try:
                file = path.open("rb")
            except FileNotFoundError:
                continue
            if segment_of(file.readline()) == number:
                file.seek(0)
                return file
            file.close()
        try:
            return cast(BinaryIO, zstandard.open(segments.numbered(self._folder, number, compressed=True), "rb"))
        except FileNotFoundError:
            return None

    def _take(self, raw: bytes) -> Exchange | None:
        try:
            line: Line = decode(raw)
        except ValueError:
            return None
        if isinstance(line, Segment):
            self._book.begin_segment(line)
            return None
        if line.attempt is None or (isinstance(line, Note) and line.attempt not in self._attempts):
            return None
        opened = self._attempts.setdefault(line.attempt, OpenAttempt(line.attempt))
        with contextlib.suppress(ValueError):
            opened.add(line, self._book)
        if isinstance(line, End):
            return self._attempts.pop(line.attempt).finish(line)
        return None
