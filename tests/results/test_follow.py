"""Following a journal while it is written: every exchange once, in order, across rotations."""

from __future__ import annotations

import random
import time
from pathlib import Path

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from proxy.tap import ConnectionClosed, ConnectionOpened, RequestStarted, ResponseData, SideClosed
from results.follow import JournalFollower
from results.reader import RunReader


def exchange(recorder: Recorder, connection: int, size: int) -> None:
    head = b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size
    body = random.Random(connection).randbytes(size).hex().encode()[:size]
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    at = connection * 1000
    for event in (
        ConnectionOpened(connection, at, "c"),
        RequestStarted(connection, at + 1, "u", (), head, body, b"/v1/x", True),
        ResponseData(connection, at + 2, answer),
        SideClosed(connection, at + 3, "client", "fin"),
        ConnectionClosed(connection, at + 4),
    ):
        recorder.put(event)


def test_every_exchange_is_seen_once_across_rotations(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "run", Redactor(), segment_bytes=20_000)
    recorder.start()
    follower = JournalFollower(tmp_path)
    seen: list[int] = []
    for connection in range(1, 201):
        exchange(recorder, connection, 1500)
        if connection % 23 == 0:
            time.sleep(0.03)
            seen += [one.attempt for one in follower.poll()]
    recorder.close()
    seen += [one.attempt for one in follower.poll()]
    follower.close()
    assert seen == list(range(1, 201))
    assert [one.attempt for one in RunReader(tmp_path)] == seen
    assert len(list(tmp_path.glob("wire.*"))) > 2


def test_a_folder_without_a_journal_gives_nothing(tmp_path: Path) -> None:
    follower = JournalFollower(tmp_path)
    assert list(follower.poll()) == []
    follower.close()
