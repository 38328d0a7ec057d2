"""The recorder as the relay uses it: events in, a run folder out, exchanges read back."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from pathlib import Path

import pytest

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from proxy.tap import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    RequestData,
    RequestStarted,
    ResponseData,
    SideClosed,
)
from results.exchange import Exchange
from results.journal import JournalWriter
from results.reader import RunReader

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8787\r\nContent-Length: 11\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"


def record(folder: Path, events: list[Event], redactor: Redactor | None = None) -> list[Exchange]:
    """Record events and read them back."""
    recorder = Recorder(folder, "run-1", redactor or Redactor())
    recorder.start()
    for event in events:
        recorder.put(event)
    recorder.close()
    reader = RunReader(folder)
    exchanges = list(reader)
    assert not reader.problems
    return exchanges


def started(head: bytes, body: bytes = b"", *, connection: int = 1, complete: bool = True) -> RequestStarted:
    return RequestStarted(
        connection, time.monotonic_ns(), "up", (("task", "a"),), head, body, head.split(b" ")[1], complete
    )


def test_exchange_comes_back_as_it_was(tmp_path: Path) -> None:
    now = time.monotonic_ns()
    events: list[Event] = [
        ConnectionOpened(1, now, "127.0.0.1:5"),
        RequestStarted(1, now, "up", (("task", "a"),), HEAD, b'{"a":', b"/v1/chat/completions", False),
        RequestData(1, now + 1_000_000, b'"bcd"}', True),
        ResponseData(1, now + 2_000_000, ANSWER[:20]),
        ResponseData(1, now + 3_000_000, ANSWER[20:-2]),
        ResponseData(1, now + 4_000_000, ANSWER[-2:]),
        ConnectionClosed(1, now + 5_000_000),
    ]
    (exchange,) = record(tmp_path / "run", events)
    assert exchange.end == "complete"
    assert exchange.tags == (("task", "a"),)
    assert exchange.client == "127.0.0.1:5"
    request, response = exchange.request, exchange.response
    assert request is not None
    assert response is not None
    assert (request.method, request.target, request.body) == ("POST", "/v1/chat/completions", b'{"a":"bcd"}')
    assert exchange.wire("request") == HEAD + b'{"a":"bcd"}'
    assert exchange.wire("response") == ANSWER
    assert [(p.at_us, p.start, p.end) for p in response.chunks] == [
        (2000, 0, 20),
        (3000, 20, len(ANSWER) - 2),
        (4000, len(ANSWER) - 2, len(ANSWER)),
    ]
    assert (response.status, response.reason, response.body, response.problems) == (200, "OK", b"hello", [])
    assert response.header("CONTENT-type") == "text/plain"


def test_one_read_that_spans_responses_is_cut_between_them(tmp_path: Path) -> None:
    now = time.monotonic_ns()
    head = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
    events: list[Event] = [
        RequestStarted(1, now, "up", (), head, b"", b"/a", True),
        RequestStarted(1, now, "up", (), head, b"", b"/a", True),
        ResponseData(1, now + 1000, ANSWER + ANSWER[:9]),
        ResponseData(1, now + 2000, ANSWER[9:]),
    ]
    one, two = record(tmp_path / "run", events)
    assert one.wire("response") == two.wire("response") == ANSWER
    assert [(p.start, p.end) for p in two.pieces("response")] == [(0, 9), (9, len(ANSWER))]
    assert (one.exchange, two.exchange) == (1, 2)


def test_short_body_tells_who_left(tmp_path: Path) -> None:
    now = time.monotonic_ns()
    head = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
    events: list[Event] = [
        RequestStarted(1, now, "up", (), head, b"", b"/a", True),
        ResponseData(1, now + 1000, ANSWER[:-1]),
        SideClosed(1, now + 2000, "upstream", "fin"),
        ConnectionClosed(1, now + 3000),
        RequestStarted(2, now, "up", (), head, b"", b"/a", True),
        SideClosed(2, now + 1000, "client", "fin"),
        SideClosed(2, now + 2000, "upstream", "fin"),
        ConnectionClosed(2, now + 3000),
    ]
    one, two = record(tmp_path / "run", events)
    assert (one.end, two.end) == ("upstream_closed", "client_gone")
    assert one.response is not None
    assert one.response.problems == ["the body has 4 of 5 bytes"]
    assert two.response is None


async def test_a_slow_disk_stops_reading_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(tmp_path / "run", "r", Redactor(), max_queued_bytes=100_000)
    disk = threading.Event()
    append = JournalWriter.append

    def slow(self: JournalWriter, lines: list[bytes]) -> bool:
        disk.wait(5)
        return append(self, lines)

    monkeypatch.setattr(JournalWriter, "append", slow)
    recorder.start()
    head = b"POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\n"
    sent = 0
    while not recorder.full:
        sent += 1
        recorder.put(RequestStarted(sent, time.monotonic_ns(), "up", (), head, b"%01000d" % sent, b"/", True))
        assert sent < 1000
    assert 20 < sent < 100
    waiting = [asyncio.ensure_future(recorder.wait_drained()) for _ in range(2)]
    await asyncio.sleep(0.05)
    assert not any(one.done() for one in waiting)
    disk.set()
    await asyncio.wait_for(asyncio.gather(*waiting), 5)
    assert not recorder.full
    await asyncio.wait_for(recorder.wait_drained(), 1)
    recorder.close()
    recorder.close()
    assert recorder.status()["stalls"] == 1
    exchanges = list(RunReader(tmp_path / "run"))
    assert [one.request.body for one in exchanges if one.request] == [b"%01000d" % n for n in range(1, sent + 1)]


def test_it_sleeps_when_idle_and_is_soon_awake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.recording.recorder.DRAIN_SECONDS", 0.005)
    recorder = Recorder(tmp_path / "run", "r", Redactor())
    recorder.start()
    for number in range(1, 6):
        time.sleep(0.04)
        recorder.put(started(b"GET / HTTP/1.1\r\n\r\n", connection=number))
        deadline = time.monotonic() + 2
        while recorder.status()["attempts"] < number:
            assert time.monotonic() < deadline
            time.sleep(0.001)
    recorder.close()
    assert len(list(RunReader(tmp_path / "run"))) == 5


def test_a_fault_in_the_recorder_does_not_end_the_recording(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Foreign(Event, frozen=True, gc=False):
        pass

    recorder = Recorder(tmp_path / "run", "r", Redactor())
    recorder.start()
    recorder.put(Foreign(1, time.monotonic_ns()))
    recorder.put(started(b"GET / HTTP/1.1\r\n\r\n"))
    recorder.close()
    assert "Foreign" in recorder.status()["failing"]
    assert "the recording goes on" in caplog.text
    assert len(list(RunReader(tmp_path / "run"))) == 1


def test_body_of_random_bytes_in_many_reads(tmp_path: Path) -> None:
    body = random.Random(2).randbytes(300_000)
    events: list[Event] = []
    for number in (1, 2):
        head = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
        events.append(started(head, connection=number, complete=False))
        for at in range(0, len(body), 65536):
            part = body[at : at + 65536]
            events.append(RequestData(number, time.monotonic_ns(), part, at + len(part) == len(body)))
        events.append(ResponseData(number, time.monotonic_ns(), ANSWER))
    exchanges = record(tmp_path / "run", events)
    assert [one.request.body == body for one in exchanges if one.request] == [True, True]
    size = (tmp_path / "run" / "wire.jsonl").stat().st_size
    assert size < 1.4 * len(body) + 10_000, "the second body is written as references"
