"""The lines of a growing journal: every line once with its place, from any place on, across rotation and damage."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from results import segments
from results.tail import JournalTail
from tests.support.journalled import Raw, events


def written(folder: Path, count: int = 60) -> None:
    recorder = Recorder(folder, "run", Redactor(), segment_bytes=20_000)
    recorder.start()
    dice = random.Random(1)
    for connection in range(1, count + 1):
        body = dice.randbytes(600).hex().encode()
        head = b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
        for event in events(Raw(head + body, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), connection, dice):
            recorder.put(event)
        if connection % 12 == 0:
            time.sleep(0.03)  # so that it is written, and rotated
    recorder.close()


def placed(tail: JournalTail) -> list[tuple[int, int, bytes]]:
    found = []
    for segment, offset, lines in tail.poll():
        at = offset
        for line in lines:
            found.append((segment, at, line))
            at += len(line) + 1
        assert (tail.segment, tail.offset) == (segment, at)
    tail.close()
    return found


def test_every_line_once_with_its_place_and_from_any_place_on(tmp_path: Path) -> None:
    written(tmp_path)
    whole = placed(JournalTail(tmp_path))
    last = whole[-1][0]
    assert last >= 3
    raw = (tmp_path / segments.LIVE).read_bytes()
    assert b"".join(line + b"\n" for segment, _, line in whole if segment == last) == raw
    for number in range(0, len(whole), 7):
        segment, offset, _ = whole[number]
        assert placed(JournalTail(tmp_path, segment, offset)) == whole[number:]


def test_a_line_that_has_no_end_yet_waits(tmp_path: Path) -> None:
    written(tmp_path, 3)
    whole = (tmp_path / segments.LIVE).read_bytes()
    (tmp_path / segments.LIVE).write_bytes(whole[:-5])
    tail = JournalTail(tmp_path)
    first = [line for block in tail.poll() for line in block.lines]
    assert tail.torn
    with (tmp_path / segments.LIVE).open("ab") as file:
        file.write(whole[-5:])
    rest = [line for block in tail.poll() for line in block.lines]
    assert [*first, *rest] == whole.splitlines()
    assert len(rest) == 1
    assert not tail.torn
    tail.close()


def test_a_missing_segment_is_passed_over_and_named(tmp_path: Path) -> None:
    written(tmp_path)
    whole = placed(JournalTail(tmp_path))
    segments.numbered(tmp_path, 2, compressed=True).unlink()
    tail = JournalTail(tmp_path)
    assert placed(tail) == [one for one in whole if one[0] != 2]
    assert tail.missing == [2]
    for path in tmp_path.glob("wire.0*"):
        path.unlink()
    tail = JournalTail(tmp_path)
    last = whole[-1][0]
    assert placed(tail) == [one for one in whole if one[0] == last]
    assert tail.missing == list(range(1, last))


@pytest.mark.parametrize("cut", [10, 200, -3])
def test_a_damaged_compressed_segment_ends_early_and_the_next_is_read(tmp_path: Path, cut: int) -> None:
    written(tmp_path)
    whole = placed(JournalTail(tmp_path))
    path = segments.numbered(tmp_path, 1, compressed=True)
    path.write_bytes(path.read_bytes()[:cut])
    found = placed(JournalTail(tmp_path))
    assert [one for one in found if one[0] > 1] == [one for one in whole if one[0] > 1]
    assert set(found) <= set(whole)
    path.write_bytes(b"nonsense" * 50)
    tail = JournalTail(tmp_path, 1, 500)
    assert placed(tail) == [one for one in whole if one[0] > 1]
    assert 1 in tail.missing


def test_nothing_is_there(tmp_path: Path) -> None:
    assert placed(JournalTail(tmp_path)) == []
    assert placed(JournalTail(tmp_path / "nothing", 3, 500)) == []
