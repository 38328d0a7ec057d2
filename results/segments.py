"""The files of a journal: `wire.000001.jsonl.zst`, `wire.000002.jsonl.zst`, ..., and `wire.jsonl`, being written.

Rotation goes by small steps, each of which may be the last one that happens: the next file is made (`wire.next.jsonl`),
the current one gets its number, the next one becomes current; then, aside, the numbered file is compressed into a
temporary file, synced, renamed, and only then is the original removed. A reader that meets any state in between finds
every line exactly once: a numbered `.zst` counts before a numbered `.jsonl`, temporary files do not count.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import msgspec
import zstandard

from results.plain_files import open_plain
from results.whole_files import create_new

LIVE = "wire.jsonl"
NEXT = "wire.next.jsonl"
STATUS = "status.json"
STATUS_BYTES = 2048
"""The status file never changes its size, so that a full disk can still show the loss."""
_NUMBERED = re.compile(r"wire\.([0-9]{6,})\.jsonl(\.zst)?\Z")
_READ_BYTES = 1 << 20
_ZSTD_HEADER_BYTES = 18
MAX_LINE_BYTES = 1 << 28
"""A line longer than this is corrupt (256 MiB; the recorder writes far shorter ones)."""


def numbered(folder: Path, number: int, *, compressed: bool) -> Path:
    """Path of a finished segment."""
    return folder / f"wire.{number:06d}.jsonl{'.zst' if compressed else ''}"


def finished(folder: Path) -> list[int]:
    """Numbers of the finished segments present, in order."""
    found = (_NUMBERED.match(name) for name in os.listdir(folder))
    return sorted({int(match[1]) for match in found if match})


def has_journal(folder: Path) -> bool:
    """Whether the folder holds any file of a journal."""
    return folder.is_dir() and ((folder / LIVE).exists() or (folder / NEXT).exists() or bool(finished(folder)))


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def compress(folder: Path, number: int, level: int = 3) -> None:
    """Replace a finished raw segment by its compressed form; a kill at any step loses nothing. Raises OSError."""
    raw = numbered(folder, number, compressed=False)
    final = numbered(folder, number, compressed=True)
    temporary = folder / (final.name + ".tmp")
    try:
        with open(create_new(temporary), "wb") as target, open(raw, "rb") as source:
            size = os.fstat(source.fileno()).st_size
            zstandard.ZstdCompressor(level=level, write_checksum=True).copy_stream(source, target, size=size)
            target.flush()
            os.fsync(target.fileno())
        temporary.rename(final)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(folder)
    raw.unlink()


class LineSource:
    """The lines of one segment file, streamed.

    The file is opened at once, so that a rotation meanwhile does not matter. `rotated` says, for the file being
    written, whether it has got its number by now: what was appended up to then is read too. After iteration `torn`
    says whether the last line had no end. Raises OSError where the file cannot be opened.
    """

    def __init__(self, path: Path, rotated: Callable[[], bool] | None = None) -> None:
        self.path = path
        self.torn = False
        self.problem = ""
        """Why reading stopped early (a damaged compressed file), or empty."""
        self._rotated = rotated
        self._file = open_plain(path)
        self._first: bytes | None = None
        self._lines = self._read()

    def first(self) -> bytes:
        """The first line, without consuming it."""
        if self._first is None:
            self._first = next(self._lines, b"")
            self._lines = chain([self._first] if self._first else [], self._lines)
        return self._first

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __iter__(self) -> Iterator[bytes]:
        return self._lines

    def _read(self) -> Iterator[bytes]:
        rest: list[bytes] = []
        size = 0
        with self._file:
            for block in self._blocks():
                first, newline, behind = block.partition(b"\n")
                rest.append(first)
                size += len(first)
                if newline:
                    yield b"".join(rest)
                    *lines, last = behind.split(b"\n")
                    yield from lines
                    rest, size = [last], len(last)
                if size > MAX_LINE_BYTES:
                    self.problem = f"a line of more than {MAX_LINE_BYTES} bytes"
                    return
        if size:
            self.torn = True
            yield b"".join(rest)

    def _blocks(self) -> Iterator[bytes]:
        if self.path.suffix == ".zst":
            yield from self._decompressed()
            return
        last = False
        while True:
            while block := self._file.read(_READ_BYTES):
                yield block
            if last or self._rotated is None or not self._rotated():
                return
            last = True

    def _decompressed(self) -> Iterator[bytes]:
        total = 0
        try:
            size = zstandard.frame_content_size(self._file.read(_ZSTD_HEADER_BYTES))
            self._file.seek(0)
            reader = zstandard.ZstdDecompressor().stream_reader(self._file, read_across_frames=True)
            while block := reader.read(_READ_BYTES):
                total += len(block)
                yield block
        except zstandard.ZstdError as error:
            self.problem = f"damaged compression: {error}"
            return
        # The decompressor does not mind a frame that is cut between two blocks: the size it states tells.
        if total < size:
            self.problem = f"the compressed file is cut short: {total} of {size} bytes"


def lost_lines(folder: Path) -> int:
    """Lines of a run that could not be written, by its status file; 0 where it says nothing."""
    try:
        with open_plain(folder / STATUS) as file:
            said = msgspec.json.decode(file.read(STATUS_BYTES))
    except (OSError, msgspec.DecodeError, RecursionError):
        return 0
    lost = said.get("lost_lines") if isinstance(said, dict) else 0
    return lost if isinstance(lost, int) and lost > 0 else 0
