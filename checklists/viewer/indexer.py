"""A process of its own that reads a run and tells of it on its standard output: `python -m checklists.viewer.indexer`.

It is given a `Job` on standard input and writes frames: four bytes of length (big-endian), then records as
MessagePack. Rows come first, verdicts after them; while the run is being recorded it goes on following it. It ends
when all is told and nobody records, or when its standard input is closed. It writes no file.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from checklists.viewer.records import Job, Known, Record, Told, encode_records
from checklists.viewer.scan import Scanner
from results.locks import is_locked
from results.reader import Problems
from results.record import NewerSchemaError
from results.runs import EPISODES_LOCK, RECORDINGS
from results.segments import lost_lines
from results.tail import JournalTail

if TYPE_CHECKING:
    from checklists.viewer.judging import Judge

POLL_SECONDS = 0.15
FIRST_ROWS = 200
BATCH_ROWS = 2000
SLICE_SECONDS = 0.25
"""So long is judged before new rows are looked for again."""

Send = Callable[[list[Record]], None]


class _Recording:
    """One journal of the run: its rows, then its verdicts."""

    def __init__(self, number: int, name: str, folder: Path, known: Known | None) -> None:
        self.number, self.name, self.folder = number, name, folder
        self.scanner = Scanner(number, name, known.scan if known is not None else None)
        self.tail = JournalTail(folder, *self.scanner.resume)
        self._missing = known.scan.missing if known is not None and known.scan is not None else []
        self._judge: Judge | None = None
        self._judge_mark = known.judge if known is not None else None
        self._sent = known.scan if known is not None else None
        self.judged_all = False

    def scan(self, send: Send) -> bool:
        """Send what rows there are; whether there were any."""
        found, most = False, FIRST_ROWS
        for block in self.tail.poll():
            self.scanner.take(block)
            if self.scanner.pending >= most:
                found, most = self._send_rows(send) or found, BATCH_ROWS
        return self._send_rows(send) or found

    def _send_rows(self, send: Send) -> bool:
        rows: list[Record] = list(self.scanner.rows())
        mark = self.scanner.mark(self.missing)
        if mark is None or (not rows and mark == self._sent):
            return False
        self._sent = mark
        while len(rows) > BATCH_ROWS:
            send(rows[:BATCH_ROWS])
            rows = rows[BATCH_ROWS:]
        send([*rows, mark])
        self.judged_all = False
        return True

    def judge(self, send: Send, *, cut: bool) -> bool:
        """Send verdicts for a while; whether all that has ended is judged. `cut`: nobody writes, what has no end was
        cut off."""
        if self.scanner.newer:
            self.judged_all = True
            return True
        from checklists.viewer.judging import Judge  # noqa: PLC0415 - slow to import, and rows come first

        if self._judge is None:
            self._judge = Judge(self.number, self.folder, self._judge_mark)
        verdicts, done = self._judge.work(SLICE_SECONDS)
        if verdicts:
            send([*verdicts, self._judge.mark()])
        if done and cut and (last := self._judge.cut_off()):
            send(list(last))
        self.judged_all = done
        return done

    def close(self) -> None:
        """Let go of the journal."""
        self.tail.close()
        if self._judge is not None:
            self._judge.close()

    @property
    def missing(self) -> list[int]:
        """Segments that are gone, or end before they should."""
        return sorted({*self._missing, *self.tail.missing})

    def problems(self, *, live: bool) -> list[str]:
        """What is wrong with the record, as far as reading its lines tells."""
        scanner = self.scanner
        if scanner.newer:
            return [str(NewerSchemaError(scanner.newer))]
        lost = max(scanner.lost, lost_lines(self.folder))
        said = [f"{scanner.corrupt} corrupt lines were skipped"] if scanner.corrupt else []
        return said + Problems(int(not live and self.tail.torn), 0, [], self.missing, lost).describe()


class Indexer:
    """Reads the run of a job; `send` is given its records."""

    def __init__(self, job: Job, send: Send) -> None:
        self.folder = Path(job.folder)
        self._send = send
        self._known = {known.name: (number, known) for number, known in enumerate(job.known)}
        self._recordings: dict[str, _Recording] = {}
        self._preview = job.preview
        self._told: Told | None = None

    def run(self) -> None:
        """Until all is told, and as long as somebody records."""
        while True:
            live = self._live()
            self._look_for_recordings()
            found = [recording.scan(self._send) for recording in self._recordings.values()]
            if self._preview:
                self._preview = False
                self._send_preview()
            done = self._judge_some(cut=not live)
            self._tell(live, done)
            if done and not live:
                break
            if done and not any(found):
                time.sleep(POLL_SECONDS)
        for recording in self._recordings.values():
            recording.close()

    def _live(self) -> bool:
        return is_locked(self.folder) or is_locked(self.folder, EPISODES_LOCK)

    def _look_for_recordings(self) -> None:
        for name, folder in places(self.folder):
            if name not in self._recordings:
                number, known = self._known.get(name, (None, None))
                if number is None:
                    number = max([*(known[0] for known in self._known.values()), *self._numbers()], default=-1) + 1
                self._recordings[name] = _Recording(number, name, folder, known)

    def _numbers(self) -> list[int]:
        return [recording.number for recording in self._recordings.values()]

    def _send_preview(self) -> None:
        from checklists.viewer.preview import previewed  # noqa: PLC0415 - not needed where an index is carried on

        for recording in self._recordings.values():
            for verdicts in previewed(recording.folder, recording.number):
                self._send(list(verdicts))

    def _judge_some(self, *, cut: bool) -> bool:
        for recording in self._recordings.values():
            if not recording.judged_all and not recording.judge(self._send, cut=cut):
                return False
        return True

    def _tell(self, live: bool, done: bool) -> None:
        said = [
            (f"{recording.name}: " if recording.name else "") + text
            for recording in self._recordings.values()
            for text in recording.problems(live=live)
        ]
        told = Told(live, done, said)
        if told != self._told:
            self._told = told
            self._send([told])


def places(folder: Path) -> list[tuple[str, Path]]:
    """The recordings of a run by name; that of a plain run has none."""
    inside = folder / RECORDINGS
    with contextlib.suppress(OSError):
        if inside.is_dir():
            return [(entry.name, entry) for entry in sorted(inside.iterdir()) if entry.is_dir()]
    return [("", folder)]


def sender(stream: int) -> Send:
    """Writes frames to a file descriptor."""

    def send(records: list[Record]) -> None:
        body = encode_records(records)
        view = memoryview(len(body).to_bytes(4, "big") + body)
        while view:
            view = view[os.write(stream, view) :]

    return send


def _job() -> Job:
    given = b""
    while not given.endswith(b"\n") and (block := os.read(0, 1 << 16)):
        given += block
    return msgspec.json.decode(given, type=Job)


def _watch() -> None:
    """End with the viewer: it holds the other end of standard input."""
    while os.read(0, 1):
        pass
    os._exit(0)


def main() -> None:
    """Read the job, work, end quietly when nobody listens any more."""
    job = _job()
    threading.Thread(target=_watch, daemon=True).start()
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        Indexer(job, sender(sys.stdout.fileno())).run()


if __name__ == "__main__":
    main()
