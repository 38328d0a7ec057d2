"""The writer alone: rotation whose every step may be the last, full disks, one writer at a time."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from results import segments
from results.journal import STATUS_BYTES, JournalWriter
from results.reader import JournalMissingError, RunReader
from results.record import End, Note, Request, encode


def attempt(number: int, size: int = 100) -> list[bytes]:
    head = f"GET /{number:06d} HTTP/1.1\r\n\r\n"
    pad = "x" * size
    return [
        encode(Request(number, 1, number, "up", 1, len(head), "GET", "/", complete=True, data=head)),
        encode(Note("pad", 1, {"pad": pad}, number)),
        encode(End(number, 5, "complete", len(head), 0)),
    ]


def attempts(folder: Path) -> list[int]:
    reader = RunReader(folder)
    found = [exchange.attempt for exchange in reader]
    assert not reader.problems, reader.problems.describe()
    return found


def rotated(folder: Path, count: int = 3) -> None:
    """A journal of `count` finished segments and a live one, two attempts in each."""
    writer = JournalWriter(folder, "r")
    for number in range(1, 2 * count + 3):
        writer.append(attempt(number))
        if number % 2 == 0 and number <= 2 * count:
            assert writer.rotate()
    writer.close()


def test_rotation_compresses_and_loses_nothing(tmp_path: Path) -> None:
    rotated(tmp_path / "run")
    names = sorted(path.name for path in (tmp_path / "run").glob("wire*"))
    assert names == [*[f"wire.00000{n}.jsonl.zst" for n in (1, 2, 3)], "wire.jsonl"]
    assert attempts(tmp_path / "run") == list(range(1, 9))


def unpack(folder: Path, number: int) -> bytes:
    path = segments.numbered(folder, number, compressed=True)
    return b"\n".join(segments.LineSource(path)) + b"\n"


def test_every_state_a_kill_can_leave_reads_the_same(tmp_path: Path) -> None:
    base = tmp_path / "base"
    rotated(base)
    whole = attempts(base)

    def state(name: str) -> Path:
        shutil.copytree(base, tmp_path / name)
        return tmp_path / name

    raw = state("before-compression")
    for number in (2, 3):
        segments.numbered(raw, number, compressed=False).write_bytes(unpack(raw, number))
        segments.numbered(raw, number, compressed=True).unlink()
    half = state("half-compressed")
    packed = segments.numbered(half, 3, compressed=True).read_bytes()
    segments.numbered(half, 3, compressed=False).write_bytes(unpack(half, 3))
    segments.numbered(half, 3, compressed=True).unlink()
    (half / "wire.000003.jsonl.zst.tmp").write_bytes(packed[: len(packed) // 2])
    both = state("before-unlink")
    segments.numbered(both, 3, compressed=False).write_bytes(unpack(both, 3))
    spare = state("spare-made")
    (spare / segments.NEXT).write_bytes((base / segments.LIVE).read_bytes().split(b"\n")[0] + b"\n")
    for folder in (raw, half, both, spare):
        assert attempts(folder) == whole, folder.name
    between = state("between-the-renames")
    (between / segments.LIVE).rename(segments.numbered(between, 4, compressed=False))
    (between / segments.NEXT).write_bytes(b'{"event":"segment","schema":1,"run":"r","segment":5,"epoch_us":1}\n')
    assert attempts(between) == whole
    shutil.copytree(between, tmp_path / "nothing-current")
    (tmp_path / "nothing-current" / segments.NEXT).unlink()
    assert attempts(tmp_path / "nothing-current") == whole


def test_missing_segment_is_said(tmp_path: Path) -> None:
    rotated(tmp_path / "run")
    segments.numbered(tmp_path / "run", 2, compressed=True).unlink()
    reader = RunReader(tmp_path / "run")
    assert [exchange.attempt for exchange in reader] == [1, 2, 5, 6, 7, 8]
    assert reader.problems.missing_segments == [2]
    for number in (1, 3):
        segments.numbered(tmp_path / "run", number, compressed=True).unlink()
    assert [exchange.attempt for exchange in reader] == [7, 8]
    assert reader.problems.missing_segments == [1, 2, 3]


def test_reading_while_it_is_written_and_rotated(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "run", "r")
    for number in range(1, 40):
        writer.append(attempt(number))
    reader = RunReader(tmp_path / "run")
    exchanges = iter(reader)
    assert next(exchanges).attempt == 1
    for number in range(40, 200):
        writer.append(attempt(number))
        if number % 10 == 0:
            writer.rotate()
    assert [exchange.attempt for exchange in exchanges] == list(range(2, 200))
    assert not reader.problems
    writer.close()


class FullDisk:
    """`os.write` with a limit for one descriptor: writes what fits, then fails as a full disk does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
        self.left: int | None = None
        self._code = code
        self._write = os.write
        monkeypatch.setattr("results.journal.os.write", self)

    def __call__(self, descriptor: int, data: Any) -> int:
        if self.left is None:
            return self._write(descriptor, data)
        if not self.left:
            raise OSError(self._code, os.strerror(self._code))
        done = self._write(descriptor, bytes(data)[: self.left])
        self.left -= done
        return done


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EFBIG, errno.EIO])
@pytest.mark.parametrize("room", [0, 1, 150, 300, 500, 700])
def test_failed_write_is_cut_back_counted_and_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, room: int
) -> None:
    disk = FullDisk(monkeypatch, code)
    writer = JournalWriter(tmp_path / "run", "r")
    assert writer.append(attempt(1))
    disk.left = room
    lines = [*attempt(2), *attempt(3)]
    assert not writer.append(lines)
    assert writer.failing
    assert not writer.append(attempt(4))
    assert (tmp_path / "run" / "wire.jsonl").read_bytes().endswith(b"}\n")
    disk.left = None
    assert writer.append(attempt(5))
    assert not writer.failing
    writer.write_status({})
    writer.close()
    reader = RunReader(tmp_path / "run")
    found = {exchange.attempt: exchange for exchange in reader}
    assert found[1].end == found[5].end == "complete"
    kept = sum(1 for line in RunReader(tmp_path / "run").lines()) - 1 - 1 - 6
    assert reader.problems.lost_lines == writer.lost_lines == 9 - kept
    assert reader.problems.corrupt_lines == 0
    status = json.loads((tmp_path / "run" / "status.json").read_text())
    assert status["lost_lines"] == 9 - kept
    assert status["lost_bytes"] == writer.lost_bytes > 0


def test_status_keeps_its_size(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "run", "r")
    for fields in ({}, {"a": "x" * 500}, {"a": "x" * 5000}, {"b": 1}):
        writer.write_status(fields)
        raw = (tmp_path / "run" / "status.json").read_bytes()
        assert len(raw) == STATUS_BYTES
        json.loads(raw)
    writer.close()


def test_failed_rotation_goes_on_in_the_old_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = JournalWriter(tmp_path / "run", "r", segment_bytes=100)
    writer.append(attempt(1))
    assert writer.rotation_due

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        assert not writer.rotate()
    writer.append(attempt(2))
    assert writer.rotate()
    writer.append(attempt(3))
    writer.close()
    assert attempts(tmp_path / "run") == [1, 2, 3]


def test_failed_compression_leaves_the_segment_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    writer = JournalWriter(tmp_path / "run", "r")
    writer.append(attempt(1))
    with monkeypatch.context() as patch:
        patch.setattr("results.segments.os.fsync", refuse)
        assert writer.rotate()
        writer.close()
    assert sorted(path.name for path in (tmp_path / "run").glob("wire*")) == ["wire.000001.jsonl", "wire.jsonl"]
    assert attempts(tmp_path / "run") == [1]


def test_no_journal_no_reading(tmp_path: Path) -> None:
    with pytest.raises(JournalMissingError, match="holds no journal"):
        RunReader(tmp_path)
    with pytest.raises(JournalMissingError):
        RunReader(tmp_path / "missing")
