"""The whole lines of a journal as they stand on disk, again and again while it grows: each with its segment and offset.

A position is (segment, byte offset in that segment, uncompressed); it stays the same when a segment is rotated or
compressed, so reading can go on from one later, in another process. Reading is by polling.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import zstandard

from results import segments
from results.plain_files import open_plain
from results.record import segment_of

_READ_BYTES = 1 << 20


class Lines(NamedTuple):
    """Whole lines in a row, without their line ends; the first begins at byte `offset` of `segment`."""

    segment: int
    offset: int
    lines: list[bytes]


class JournalTail:
    """Reads the journal in `folder` from (segment, offset) on; `poll` gives what has come since the last call."""

    def __init__(self, folder: Path, segment: int = 1, offset: int = 0) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None
        self._compressed = False
        self._wanted = segment
        self._skip = offset
        self._rest = b""
        self._finished: tuple[str, ...] = ()
        """Where the current segment lies once it is finished."""
        self.segment = segment
        """Segment of the next line."""
        self.offset = offset
        """Its offset in that segment."""
        self.missing: list[int] = []
        """Segments that are gone, or end before they should."""

    @property
    def torn(self) -> bool:
        """Whether a line that has no end yet was read."""
        return bool(self._rest)

    def poll(self) -> Iterator[Lines]:
        """What is there now, in blocks. Raises OSError where reading fails."""
        while True:
            yield from self._blocks()
            if not self._go_on():
                return

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _blocks(self) -> Iterator[Lines]:
        while self._file is not None and (block := self._read()):
            lines = (self._rest + block if self._rest else block).split(b"\n")
            self._rest = lines.pop()
            if lines:
                offset = self.offset
                self.offset += sum(map(len, lines)) + len(lines)
                yield Lines(self.segment, offset, lines)
            if len(self._rest) > segments.MAX_LINE_BYTES:
                self._give_up_segment()

    def _read(self) -> bytes:
        assert self._file is not None
        try:
            return self._file.read(_READ_BYTES)
        except (zstandard.ZstdError, EOFError):
            self._give_up_segment()
            return b""

    def _give_up_segment(self) -> None:
        self.missing.append(self.segment)
        self.close()
        self._wanted, self._rest, self._skip = self.segment + 1, b"", 0

    def _go_on(self) -> bool:
        """Open the next file, where there is one by now; whether there may be more to read."""
        if self._file is not None:
            if not (self._compressed or any(map(os.path.exists, self._finished))):
                return False
            # What was appended before the file got its number may not be read yet.
            if not self._compressed and (left := self._file.read(1)):
                self._file.seek(-len(left), 1)
                return True
            self._wanted = self.segment + 1
        opened = self._open(self._wanted) or self._later(self._wanted)
        if opened is None:
            return False
        self.close()
        self._file, self._compressed, self.segment = opened
        self._rest = b""
        # As text, and once: it is asked for at every poll, and each new Path would intern its name again.
        self._finished = _names(self._folder, self.segment)
        self.offset = self._skip_ahead()
        return True

    def _skip_ahead(self) -> int:
        """Pass over what was read before; the offset of the next line."""
        skip, self._skip = self._skip, 0
        assert self._file is not None
        try:
            return self._file.seek(skip) if skip else 0
        except (zstandard.ZstdError, EOFError):
            self._give_up_segment()
            return 0

    def _later(self, number: int) -> tuple[BinaryIO, bool, int] | None:
        """The first segment after a missing one."""
        try:
            later = [found for found in segments.finished(self._folder) if found > number]
        except OSError:
            return None
        candidates = later[:1] or [found for found in (self._current(),) if found is not None and found > number]
        for found in candidates:
            opened = self._open(found)
            if opened is not None:
                self.missing.extend(range(number, min(found, number + 100)))
                self._skip = 0
                return opened
        return None

    def _current(self) -> int | None:
        try:
            with open_plain(self._folder / segments.LIVE) as file:
                return segment_of(file.readline(1 << 16))
        except OSError:
            return None

    def _open(self, number: int) -> tuple[BinaryIO, bool, int] | None:
        plain = segments.numbered(self._folder, number, compressed=False)
        for path in (plain, self._folder / segments.LIVE, self._folder / segments.NEXT):
            try:
                file = open_plain(path)
            except FileNotFoundError:
                continue
            first = file.readline(1 << 16)
            if (
                segment_of(first) == number
                or path == plain
                or (_headless(first) and not any(map(os.path.exists, _names(self._folder, number))))
            ):
                file.seek(0)
                return file, False, number
            file.close()
        try:
            packed = zstandard.open(segments.numbered(self._folder, number, compressed=True), "rb")
        except FileNotFoundError:
            return None
        return cast(BinaryIO, packed), True, number


def _names(folder: Path, number: int) -> tuple[str, ...]:
    """Where a finished segment may lie."""
    return tuple(str(segments.numbered(folder, number, compressed=how)) for how in (True, False))


def _headless(first: bytes) -> bool:
    """Whether a whole first line is there and is no header (a damaged journal)."""
    return first.endswith(b"\n") and segment_of(first) is None
