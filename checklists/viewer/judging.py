"""Verdicts of one recording, in order, for an index: begun anew, or carried on where an earlier reading stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from checklists.viewer.gist import verdict_of
from checklists.viewer.records import MAX_ATTEMPT, JudgeMark, Verdict, row_id
from proxy.classify import RunMemory, judge
from proxy.exchange_view import judged_of, view_of
from proxy.served import UNKNOWN_SERVER, ServerFacts, servers_of
from results.exchange import Exchange
from results.follow import JournalFollower


class Judge:
    """Judges the recording in `folder`. What was judged before the mark is read again where it must be, not judged."""

    def __init__(self, recording: int, folder: Path, mark: JudgeMark | None = None) -> None:
        self.recording, self.folder = recording, folder
        self._stop = mark.stop if mark is not None else (0, 0)
        self._memory = RunMemory.restored(mark.memory) if mark is not None else RunMemory()
        self._follower = JournalFollower(folder, mark.resume if mark is not None else 1)
        self._servers: dict[str, ServerFacts] = {}
        self._going: Iterator[Exchange] | None = None

    def work(self, seconds: float) -> tuple[list[Verdict], bool]:
        """Verdicts for about so long; and whether all that has ended is judged now."""
        until = time.monotonic() + seconds
        verdicts: list[Verdict] = []
        if self._going is None:
            self._going = self._follower.poll()
            self._servers = servers_of(self.folder)
        for exchange in self._going:
            if self._follower.position > self._stop:
                self._stop = self._follower.position
                verdicts += self._judge(exchange)
            if time.monotonic() >= until:
                return verdicts, False
        self._going = None
        return verdicts, True

    def cut_off(self) -> list[Verdict]:
        """Verdicts on the attempts that the end of the journal cut; for a recording that nobody writes any more."""
        return [verdict for exchange in self._follower.cut_off() for verdict in self._judge(exchange)]

    def mark(self) -> JudgeMark:
        """How far the verdicts go."""
        return JudgeMark(self.recording, self._stop, self._follower.oldest_segment, self._memory.state())

    def close(self) -> None:
        """Let go of the journal."""
        self._follower.close()

    def _judge(self, exchange: Exchange) -> Iterator[Verdict]:
        if not 0 < exchange.attempt <= MAX_ATTEMPT:
            return
        classified = judge(view_of(exchange, *self._servers.get(exchange.upstream, UNKNOWN_SERVER)), self._memory)
        classified.remember(self._memory)
        number = row_id(self.recording, exchange.attempt)
        yield verdict_of(number, exchange, classified, judged_of(classified))
