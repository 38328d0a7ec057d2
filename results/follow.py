"""Exchanges of a journal as they end, while it is being written: for what is shown live.

Reading is by polling; rotation is followed by the segments' numbers. What happened before `poll` was first called is
read too. A damaged line is passed over here: `results.reader` tells of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from results.assemble import OpenAttempt, RequestBook
from results.exchange import Exchange
from results.record import End, Line, Note, Segment, decode
from results.tail import JournalTail


class JournalFollower:
    """Follows the journal in `folder`, from the beginning of `segment` on; call `poll` now and then, `close` at the
    end."""

    def __init__(self, folder: Path, segment: int = 1) -> None:
        self._tail = JournalTail(folder, segment)
        self._book = RequestBook()
        self._attempts: dict[int, OpenAttempt] = {}
        self._begun_in: dict[int, int] = {}
        self.position = (segment, 0)
        """(segment, offset) of the line that ended the exchange given last."""

    @property
    def oldest_segment(self) -> int:
        """The segment in which the oldest attempt that is still open began, else the one being read: who goes on from
        its beginning misses nothing."""
        return min(self._begun_in.values(), default=self._tail.segment)

    def poll(self) -> Iterator[Exchange]:
        """Exchanges that have ended since the last call, in that order. Raises OSError where reading fails."""
        for segment, offset, lines in self._tail.poll():
            at = offset
            for raw in lines:
                exchange = self._take(raw, segment)
                if exchange is not None:
                    self.position = (segment, at)
                    yield exchange
                at += len(raw) + 1

    def cut_off(self) -> Iterator[Exchange]:
        """The attempts that have no end, once nobody writes any more; they are then no longer open here."""
        attempts, self._attempts, self._begun_in = self._attempts, {}, {}
        for opened in attempts.values():
            if opened.begun:
                yield opened.finish(None)

    def close(self) -> None:
        """Let go of the file."""
        self._tail.close()

    def _take(self, raw: bytes, segment: int) -> Exchange | None:
        try:
            line: Line = decode(raw)
        except ValueError:
            return None
        if isinstance(line, Segment):
            self._book.begin_segment(line)
            return None
        if line.attempt is None or (isinstance(line, Note) and line.attempt not in self._attempts):
            return None
        opened = self._attempts.get(line.attempt)
        if opened is None:
            opened = self._attempts[line.attempt] = OpenAttempt(line.attempt)
            self._begun_in[line.attempt] = segment
        with contextlib.suppress(ValueError):
            opened.add(line, self._book)
        if isinstance(line, End):
            del self._attempts[line.attempt], self._begun_in[line.attempt]
            return opened.finish(line)
        return None
