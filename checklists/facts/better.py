"""Verdicts that rest on more than the wire: lines of `outcomes.jsonl` with a better grade than the record gives.

An experiment (a known answer, a second channel) may have left them there. They are found by attempt while the run is
read, in bounded memory, because both files are in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from results.outcomes import Judged, decode_judged
from results.segments import LineSource

OUTCOMES = "outcomes.jsonl"
GRADES = ("observed", "differential", "known-answer")
AHEAD = 2000
"""Lines read ahead of the attempt that is looked for."""


class BetterVerdicts:
    """The better graded lines of one recording."""

    def __init__(self, folder: Path) -> None:
        self._lines = _graded(folder / OUTCOMES)
        self._ahead: dict[int, Judged] = {}

    def of(self, judged: Judged) -> Judged:
        """The verdict to print for an attempt: what was left there where that is better founded, else the one given."""
        found = self._ahead.pop(judged.attempt, None)
        while found is None and len(self._ahead) < AHEAD:
            line = next(self._lines, None)
            if line is None:
                break
            if line.attempt == judged.attempt:
                found = line
            else:
                self._ahead[line.attempt] = line
        if found is None or GRADES.index(found.outcome.grade) <= GRADES.index(judged.outcome.grade):
            return judged
        return found


def _graded(path: Path) -> Iterator[Judged]:
    """Lines of a better grade than `observed`; what cannot be read is passed over."""
    try:
        source = LineSource(path)
    except OSError:
        return
    try:
        for raw in source:
            if b'"grade":"observed"' in raw:
                continue
            try:
                yield decode_judged(raw)
            except (ValueError, RecursionError):
                continue
    finally:
        source.close()
