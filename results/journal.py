"""Writing a journal: whole lines appended in batches, rotated and compressed, and cut back cleanly when a write fails.

A batch is written with `os.write` before `append` returns, so that only what was never given to `append` can be lost
to a kill. A failed write (full disk, file-size limit, I/O error) is cut back to the last whole line, what was lost is
counted, and a `note` of the loss follows as soon as writing works again.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec

from results import segments
from results.locks import FolderLock
from results.record import SCHEMA_VERSION, Note, Segment, encode
from results.segments import STATUS, STATUS_BYTES

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # a program in front of a terminal says it in its own words, or not at all

SEGMENT_BYTES = 64 << 20
"""A segment is finished once it is at least this large."""

ROOM_BYTES = 64 << 10
MAX_ROOM_BYTES = 8 << 20
"""After a failed write, so much room must be there before anything is written again."""

WINDOW = 8
WINDOW_BYTES = 32 << 20


class JournalError(Exception):
    """A journal cannot be begun: it exists already, is being written by another process, or the disk refuses."""


class JournalWriter:
    """The one writer of a run folder's journal. Not thread-safe: one thread appends and closes."""

    def __init__(self, folder: Path, run: str, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        """Begin a journal; the folder is made (0700) where it is missing. Raises JournalError."""
        self.folder = folder
        self.run = run
        self.segment = 1
        """Number of the segment being written."""
        self.failing = ""
        """Why the last write failed, or empty."""
        self.lines = self.bytes = 0
        """Lines and bytes written."""
        self.lost_lines = self.lost_bytes = 0
        self._unsaid_lines = self._unsaid_bytes = 0
        self._room = ROOM_BYTES
        self._segment_bytes = segment_bytes
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = FolderLock(folder)
        except OSError as error:
            raise JournalError(f"cannot write to the run folder {folder}: {error.strerror or error}") from error
        if not self._lock.acquire():
            raise JournalError(f"{folder} is being written by another process; choose another folder (--out)")
        try:
            self._begin(folder)
        except BaseException:
            self._lock.release()
            raise
        self._compressor = _Compressor(folder)

    def _begin(self, folder: Path) -> None:
        if segments.has_journal(folder):
            raise JournalError(
                f"{folder} already holds a journal; nothing was overwritten. Choose another folder (--out)"
            )
        try:
            self._fd, self._end = self._open(segments.LIVE, 1)
            self._status_fd = os.open(folder / STATUS, os.O_RDWR | os.O_CREAT, 0o600)
            os.write(self._status_fd, b" " * (STATUS_BYTES - 1) + b"\n")
        except OSError as error:
            raise JournalError(f"cannot begin a journal in {folder}: {error.strerror or error}") from error

    def _open(self, name: str, number: int) -> tuple[int, int]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        header = encode(Segment(SCHEMA_VERSION, self.run, number, time.time_ns() // 1000, WINDOW, WINDOW_BYTES))
        descriptor = os.open(self.folder / name, flags, 0o600)
        if (written := os.write(descriptor, header)) < len(header):
            os.close(descriptor)
            (self.folder / name).unlink()
            raise OSError(28, f"only {written} bytes could be written")
        return descriptor, len(header)

    @property
    def rotation_due(self) -> bool:
        """Whether the current segment is full."""
        return self._end >= self._segment_bytes

    def append(self, lines: Sequence[bytes]) -> bool:
        """Write whole lines; True if all of them were written. Never raises: what cannot be written is counted."""
        said = self._loss_note() if self._unsaid_lines else []
        batch = b"".join([*said, *lines])
        written, error = self._write(batch) if not self.failing else self._write_again(batch)
        if error is None:
            self.lines += len(lines) + len(said)
            self.bytes += len(batch)
            self._end += len(batch)
            if said:
                self._unsaid_lines = self._unsaid_bytes = 0
            self._set_failing("")
            self._room = ROOM_BYTES
            return True
        whole = batch.rfind(b"\n", 0, written) + 1
        self._cut_back(whole, written)
        self._count_loss(batch, whole, said, lines)
        self._room = min(MAX_ROOM_BYTES, max(self._room, 2 * len(batch)))
        self._set_failing(error.strerror or str(error))
        return False

    def _write(self, batch: bytes) -> tuple[int, OSError | None]:
        view, written = memoryview(batch), 0
        try:
            while written < len(batch):
                written += os.write(self._fd, view[written:])
        except OSError as error:
            return written, error
        return written, None

    def _write_again(self, batch: bytes) -> tuple[int, OSError | None]:
        """Write after a failure: only where there is room for more than these lines, so that writing is not taken up
        for a short line, and given up again with the next long one."""
        try:
            if hasattr(os, "posix_fallocate"):
                try:
                    os.posix_fallocate(self._fd, self._end, max(self._room, 2 * len(batch)))
                finally:
                    os.ftruncate(self._fd, self._end)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
                return 0, error
        return self._write(batch)

    def _cut_back(self, whole: int, written: int) -> None:
        if written > whole:
            try:
                os.ftruncate(self._fd, self._end + whole)
            except OSError:
                self._end += written
                whole = 0
        self._end += whole
        with contextlib.suppress(OSError):
            os.lseek(self._fd, self._end, os.SEEK_SET)

    def _count_loss(self, batch: bytes, whole: int, said: list[bytes], lines: Sequence[bytes]) -> None:
        kept = batch.count(b"\n", 0, whole)
        self.lines += kept
        self.bytes += whole
        if said and kept >= len(said):
            self._unsaid_lines = self._unsaid_bytes = 0
        lost = len(lines) - max(0, kept - len(said))
        lost_bytes = sum(len(line) for line in lines[len(lines) - lost :])
        self.lost_lines += lost
        self.lost_bytes += lost_bytes
        self._unsaid_lines += lost
        self._unsaid_bytes += lost_bytes

    def _loss_note(self) -> list[bytes]:
        fields: dict[str, Any] = {
            "lines": self._unsaid_lines,
            "bytes": self._unsaid_bytes,
            "reason": self.failing or "a write failed",
        }
        return [encode(Note("lost", time.time_ns() // 1000, fields))]

    def _set_failing(self, reason: str) -> None:
        if reason and not self.failing:
            log.warning("the journal in %s cannot be written: %s; losses are counted", self.folder, reason)
        elif self.failing and not reason:
            log.warning("the journal in %s is written again; %d lines were lost", self.folder, self.lost_lines)
        self.failing = reason

    def rotate(self) -> bool:
        """Finish this segment and begin the next; the old one is compressed aside. False (and go on) if it fails."""
        path, following = self.folder / segments.LIVE, self.segment + 1
        spare = self.folder / segments.NEXT
        try:
            spare.unlink(missing_ok=True)
            descriptor, end = self._open(segments.NEXT, following)
            try:
                path.rename(segments.numbered(self.folder, self.segment, compressed=False))
            except OSError:
                os.close(descriptor)
                spare.unlink(missing_ok=True)
                raise
        except OSError as error:
            log.warning("the journal in %s could not begin segment %d: %s", self.folder, following, error)
            self._segment_bytes *= 2
            return False
        with contextlib.suppress(OSError):
            spare.rename(path)
        os.close(self._fd)
        self._fd, self._end = descriptor, end
        self._compressor.submit(self.segment)
        self.segment = following
        return True

    def write_status(self, fields: dict[str, Any]) -> None:
        """Overwrite `status.json` in place (its size never changes, so that a full disk can still show the loss)."""
        body = msgspec.json.encode({"lost_lines": self.lost_lines, "lost_bytes": self.lost_bytes, **fields})
        if len(body) < STATUS_BYTES:
            with contextlib.suppress(OSError):
                os.lseek(self._status_fd, 0, os.SEEK_SET)
                os.write(self._status_fd, body + b" " * (STATUS_BYTES - 1 - len(body)) + b"\n")

    def close(self) -> None:
        """Make everything durable and let go of the folder."""
        self._compressor.close()
        with contextlib.suppress(OSError):
            os.fsync(self._fd)
        os.close(self._fd)
        os.close(self._status_fd)
        self._lock.release()


class _Compressor:
    """Compresses finished segments on a thread of its own, so that a large one does not delay the writer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._queue: SimpleQueue[int | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, number: int) -> None:
        self._queue.put(number)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="stacktap-compress", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while (number := self._queue.get()) is not None:
            try:
                segments.compress(self._folder, number)
            except OSError as error:
                log.warning("segment %d in %s stays uncompressed: %s", number, self._folder, error)

    def close(self) -> None:
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
