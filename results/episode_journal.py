"""`episodes.jsonl` on disk: each finished episode is durable before the next one counts; a kill loses at most a line.

One writer at a time (a lock of its own, beside that of the wire journal). A torn last line is cut off by the next
writer and skipped by readers; a line that cannot be written is taken back, so that the file always ends in whole lines.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from results.episodes import (
    EPISODES_SCHEMA,
    CellKey,
    CellPlan,
    EpisodeLine,
    EpisodeRecord,
    Header,
    decode_episode_line,
    encode_episode_line,
)
from results.locks import FolderLock
from results.runs import EPISODES, EPISODES_LOCK
from results.segments import LineSource, sync_folder

_BLOCK = 1 << 16
_HEADER_BEGINS = b'{"event":"header"'


class EpisodeJournalError(Exception):
    """The episodes of a run cannot be read or written; the message says what to do."""


class EpisodeWriter:
    """Appends to a run's `episodes.jsonl`, which is begun where it is missing. Not thread-safe."""

    def __init__(self, folder: Path, run: str) -> None:
        """Raises EpisodeJournalError: another process writes, the file is of a newer version or another run's."""
        self.path = folder / EPISODES
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = FolderLock(folder, EPISODES_LOCK)
        except OSError as error:
            raise EpisodeJournalError(f"cannot write to the run folder {folder}: {error.strerror or error}") from error
        if not self._lock.acquire():
            raise EpisodeJournalError(f"{folder} is being written by another process; wait for it, or choose --out")
        try:
            self._begin(run)
        except OSError as error:
            self._lock.release()
            raise EpisodeJournalError(
                f"cannot write {self.path}: {error.strerror or error}; make room there, or choose another folder"
            ) from error
        except BaseException:
            self._lock.release()
            raise

    def _begin(self, run: str) -> None:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._fd = os.open(self.path, flags, 0o600)
        try:
            self._end = self.cut_bytes = 0
            size = os.fstat(self._fd).st_size
            self._end = _end_of_last_line(self._fd, size)
            self.cut_bytes = size - self._end
            """Bytes of a torn last line that were cut off."""
            if self._end or self.cut_bytes:
                _check_header(self.path, run, torn=not self._end)
            if self.cut_bytes:
                os.ftruncate(self._fd, self._end)
            if not self._end:
                self._append(encode_episode_line(Header(EPISODES_SCHEMA, run, time.time_ns() // 1000)))
                sync_folder(self.path.parent)
        except BaseException:
            os.close(self._fd)
            raise

    def append(self, line: CellPlan | EpisodeRecord) -> None:
        """Write one line and make it durable. Raises EpisodeJournalError; the file then is as it was before."""
        try:
            self._append(encode_episode_line(line))
        except OSError as error:
            raise EpisodeJournalError(
                f"cannot write {self.path}: {error.strerror or error}; the episode is not kept, and will run again"
            ) from error

    def _append(self, raw: bytes) -> None:
        view, written = memoryview(raw), 0
        try:
            os.lseek(self._fd, self._end, os.SEEK_SET)
            while written < len(raw):
                written += os.write(self._fd, view[written:])
            os.fsync(self._fd)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._end)
            raise
        self._end += len(raw)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)
        self._lock.release()


def _end_of_last_line(descriptor: int, size: int) -> int:
    """Offset behind the last newline; 0 where there is none."""
    end = size
    while end > 0:
        start = max(0, end - _BLOCK)
        os.lseek(descriptor, start, os.SEEK_SET)
        found = os.read(descriptor, end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _check_header(path: Path, run: str, *, torn: bool) -> None:
    source = LineSource(path)
    try:
        if torn and source.first().startswith(_HEADER_BEGINS[: len(source.first())]):
            return
        header = _header_of(source, path)
    finally:
        source.close()
    if header.run != run:
        raise EpisodeJournalError(f"{path} belongs to run {header.run}, not to {run}; choose another folder (--out)")


def _header_of(source: LineSource, path: Path) -> Header:
    raw = source.first()
    try:
        found = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        found = None
    schema = found.get("schema") if isinstance(found, dict) else None
    if isinstance(schema, int) and schema > EPISODES_SCHEMA:
        raise EpisodeJournalError(
            f"{path} has schema version {schema}, this stacktap reads up to {EPISODES_SCHEMA}: update stacktap"
        )
    try:
        header = decode_episode_line(raw)
    except ValueError:
        header = None
    if not isinstance(header, Header):
        raise EpisodeJournalError(f"{path} does not begin with a header: it is no journal of episodes")
    return header


@dataclass(slots=True)
class EpisodeProblems:
    """What was skipped while reading."""

    torn: int = 0
    damaged: int = 0
    repeated: int = 0

    def said(self) -> list[str]:
        """One sentence for each kind that occurred."""
        lines = []
        if self.torn:
            lines.append("the last line is torn (stopped while it was written); it was skipped")
        if self.damaged:
            lines.append(f"{self.damaged} damaged lines were skipped")
        if self.repeated:
            lines.append(f"{self.repeated} episodes were there already (same cell, seed and repeat); the first counts")
        return lines


class EpisodeReader:
    """The episodes of a run, streamed in the order in which they ended; `plans` is complete after iteration."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / EPISODES
        self.run = ""
        self.plans: dict[CellKey, CellPlan] = {}
        """The last plan of each cell."""
        self.earlier_plans: dict[str, CellPlan] = {}
        """Every plan by its digest."""
        self.problems = EpisodeProblems()

    def __iter__(self) -> Iterator[EpisodeRecord]:
        """Raises EpisodeJournalError where the file is missing, of a newer version, or no journal of episodes."""
        self.problems = EpisodeProblems()
        seen: set[tuple[CellKey, int, int]] = set()
        for line in self._lines():
            if isinstance(line, CellPlan):
                self.plans[line.cell] = self.earlier_plans[line.digest] = line
            elif isinstance(line, EpisodeRecord):
                if line.place in seen:
                    self.problems.repeated += 1
                    continue
                seen.add(line.place)
                yield line

    def _lines(self) -> Iterator[EpisodeLine]:
        try:
            source = LineSource(self.path)
        except OSError as error:
            raise EpisodeJournalError(f"cannot read {self.path}: {error.strerror or error}") from error
        try:
            self.run = _header_of(source, self.path).run
            lines = iter(source)
            next(lines)
            yield from self._decoded(lines, source)
        finally:
            source.close()

    def _decoded(self, lines: Iterator[bytes], source: LineSource) -> Iterator[EpisodeLine]:
        for raw in lines:
            if source.torn:
                self.problems.torn = 1
                return
            try:
                yield decode_episode_line(raw)
            except ValueError:
                self.problems.damaged += 1
        self.problems.damaged += bool(source.problem)
