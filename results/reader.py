"""Reading a run folder back: every line of every segment, put together into exchanges, in bounded memory.

Nothing on disk is trusted. Lines that cannot be read are counted and located, what they leave missing marks its
exchange as damaged, and a torn last line (a kill in the middle of a write) is skipped and counted. Only a journal of a
newer schema is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from results import segments
from results.assemble import OpenAttempt, RequestBook
from results.exchange import Exchange
from results.locks import is_locked
from results.record import (
    SCHEMA_VERSION,
    Chunk,
    End,
    Line,
    NewerSchemaError,
    Note,
    Segment,
    decode,
    schema_of,
    segment_of,
)
from results.segments import lost_lines

MAX_LISTED = 100
"""So many corrupt lines are listed; further ones are only counted."""


LATE_NOTES = 16
"""An exchange is given out when so many more have ended, so that notes about it that came late are with it."""

LATE_NOTES_BYTES = 16 << 20


class JournalMissingError(Exception):
    """The folder holds no journal, or cannot be read."""


@dataclass(frozen=True)
class Corrupt:
    """A line that could not be read: which file, which line of it (from 1), why."""

    file: str
    line: int
    reason: str


@dataclass
class Problems:
    """What was wrong with a journal; falsy if nothing was."""

    torn_tail: int = 0
    """Torn last lines skipped (a kill in the middle of a write)."""
    corrupt_lines: int = 0
    corrupt: list[Corrupt] = field(default_factory=list)
    missing_segments: list[int] = field(default_factory=list)
    lost_lines: int = 0
    """Lines that the recorder could not write, as it noted itself."""

    def __bool__(self) -> bool:
        return bool(self.torn_tail or self.corrupt_lines or self.missing_segments or self.lost_lines)

    def add(self, file: str, line: int, reason: str) -> None:
        """Count a corrupt line."""
        self.corrupt_lines += 1
        if len(self.corrupt) < MAX_LISTED:
            self.corrupt.append(Corrupt(file, line, reason))

    def describe(self) -> list[str]:
        """One sentence for each kind of problem."""
        said = []
        if self.torn_tail:
            said.append("the last line is torn (the recorder was killed while writing it); it was skipped")
        if self.corrupt_lines:
            first = self.corrupt[0]
            said.append(
                f"{self.corrupt_lines} corrupt lines were skipped, "
                f"the first at {first.file}:{first.line} ({first.reason})"
            )
        if self.missing_segments:
            said.append(f"segments are missing: {', '.join(map(str, self.missing_segments))}")
        if self.lost_lines:
            said.append(f"the recorder could not write {self.lost_lines} lines (full disk?)")
        return said


class RunReader:
    """Streams a run folder. Iterate for exchanges, in order of completion; `problems` is complete after that."""

    def __init__(self, folder: Path) -> None:
        """Raises JournalMissingError where the folder holds no journal, NewerSchemaError where it is too new."""
        self.folder = folder
        try:
            present = segments.has_journal(folder)
        except OSError as error:
            raise JournalMissingError(f"cannot read {folder}: {error.strerror or error}") from error
        if not present:
            raise JournalMissingError(f"{folder} holds no journal (no {segments.LIVE}): it is not a recorded run")
        self.problems = Problems()
        self.run_notes: list[Note] = []
        """Notes about the run as a whole, in order (the latest 1,000)."""
        self.header: Segment | None = None
        """The first segment's header; known once reading has begun."""
        self._check_schema()

    def _check_schema(self) -> None:
        for _, source in self._sources():
            schema = schema_of(source.first())
            source.close()
            if schema is not None and schema > SCHEMA_VERSION:
                raise NewerSchemaError(schema)
            if schema is not None:
                return

    def __iter__(self) -> Iterator[Exchange]:
        return self.exchanges()

    def read(self, attempt: int) -> Exchange | None:
        """One exchange by its number, or None."""
        return next((exchange for exchange in self.exchanges() if exchange.attempt == attempt), None)

    def exchanges(self) -> Iterator[Exchange]:
        """All exchanges: those that ended, as they ended; then those cut off by the end of the journal."""
        live = is_locked(self.folder)
        book = RequestBook()
        attempts: dict[int, OpenAttempt] = {}
        ended: deque[tuple[OpenAttempt, End, int]] = deque()
        held = 0
        for file, number, line in self._lines():
            # The most frequent first: this loop meets every line of a journal.
            if isinstance(line, Chunk):
                following = attempts.get(line.attempt)
                if following is not None and following.follow(line):
                    continue
            elif isinstance(line, Segment):
                book.begin_segment(line)
                continue
            elif isinstance(line, Note) and (line.attempt is None or line.attempt not in attempts):
                self._other_note(line, attempts, ended)
                continue
            opened = attempts.get(line.attempt or 0) or self._opened(line.attempt or 0, attempts)
            try:
                opened.add(line, book)
            except ValueError as error:
                self.problems.add(file, number, str(error))
            if isinstance(line, End):
                del attempts[line.attempt]
                size = opened.size
                ended.append((opened, line, size))
                held += size
                while len(ended) > LATE_NOTES or held > LATE_NOTES_BYTES:
                    first, end, size = ended.popleft()
                    held -= size
                    yield first.finish(end)
        for first, end, _ in ended:
            yield first.finish(end)
        self._unsaid_loss(attempts)
        for opened in attempts.values():
            if opened.begun:
                yield opened.finish(None, live=live)

    @staticmethod
    def _opened(attempt: int, attempts: dict[int, OpenAttempt]) -> OpenAttempt:
        opened = attempts.get(attempt)
        if opened is None:
            opened = attempts[attempt] = OpenAttempt(attempt)
        return opened

    def lines(self) -> Iterator[Line]:
        """Every readable line, brought up to the current schema; for exports and tests."""
        return (line for _, _, line in self._lines())

    def _other_note(
        self, note: Note, attempts: dict[int, OpenAttempt], ended: Iterable[tuple[OpenAttempt, End, int]]
    ) -> None:
        """A note about the run, or about an attempt that has ended (an engine that stops after its client left)."""
        late = next((one for one, _, _ in ended if one.attempt == note.attempt), None)
        if late is not None:
            late.notes.append(note)
            return
        self.run_notes.append(note)
        del self.run_notes[:-1000]
        if note.kind == "lost" and note.attempt is None:
            lost = note.fields.get("lines")
            self.problems.lost_lines += lost if isinstance(lost, int) else 0
            self._damage(attempts)

    @staticmethod
    def _damage(attempts: dict[int, OpenAttempt]) -> None:
        for opened in attempts.values():
            opened.damage.append("lines of this run could not be written while it went on")

    def _unsaid_loss(self, attempts: dict[int, OpenAttempt]) -> None:
        """What was lost at the very end could not be noted in the journal: the status file tells the whole."""
        lost = lost_lines(self.folder)
        if lost > self.problems.lost_lines:
            self.problems.lost_lines = lost
            self._damage(attempts)

    def _lines(self) -> Iterator[tuple[str, int, Line]]:
        self.problems = Problems()
        self.run_notes = []
        live = is_locked(self.folder)
        for last, source in self._sources():
            try:
                yield from self._segment_lines(source, last, live)
            finally:
                source.close()

    def _segment_lines(self, source: segments.LineSource, last: bool, live: bool) -> Iterator[tuple[str, int, Line]]:
        file = source.path.name
        schema = SCHEMA_VERSION
        for number, raw in enumerate(source, 1):
            if source.torn and last:
                self.problems.torn_tail += 0 if live else 1
                break
            if number == 1:
                schema = schema_of(raw) or SCHEMA_VERSION
                if schema > SCHEMA_VERSION:
                    raise NewerSchemaError(schema)
            try:
                line = decode(raw, schema)
            except ValueError as error:
                self.problems.add(file, number, str(error) if raw.strip() else "an empty line")
                continue
            if isinstance(line, Segment):
                self.header = self.header or line
            yield file, number, line
        if source.problem:
            self.problems.add(file, 0, source.problem)

    def _sources(self) -> Iterator[tuple[bool, segments.LineSource]]:
        """(is the last one, its lines) of every segment in order, whole also while the writer rotates."""
        number = 1
        while True:
            path = self._numbered(number)
            if path is not None:
                source = self._open(path)
                if source is not None:
                    yield False, source
                elif not path.exists():
                    continue
                number += 1
                continue
            later = [found for found in segments.finished(self.folder) if found > number]
            if later:
                self._miss(number, later[0])
                number = later[0]
                continue
            source = self._open_current(number)
            if source is not None:
                yield True, source
                number += 1
            if self._numbered(number - 1 if source is not None else number) is None:
                return

    def _miss(self, first: int, stop: int) -> None:
        self.problems.missing_segments.extend(range(first, stop)[:MAX_LISTED])

    def _numbered(self, number: int) -> Path | None:
        for compressed in (True, False):
            path = segments.numbered(self.folder, number, compressed=compressed)
            if path.exists():
                return path
        return None

    def _open(self, path: Path) -> segments.LineSource | None:
        """None where the file went away meanwhile (compressed), or cannot be read (which is counted)."""
        try:
            return segments.LineSource(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.problems.add(path.name, 0, error.strerror or str(error))
            return None

    def _open_current(self, number: int) -> segments.LineSource | None:
        """The file being written, if it still is segment `number`."""
        for name in (segments.LIVE, segments.NEXT, segments.LIVE):
            try:
                source = segments.LineSource(self.folder / name, lambda: self._numbered(number) is not None)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise JournalMissingError(f"cannot read {self.folder / name}: {error.strerror or error}") from error
            found = segment_of(source.first()) or number
            if self._numbered(number) is None or found == number:
                self._miss(number, found)
                return source
            source.close()
            return None
        return None
