"""A run read once: verdicts as `classify` gives them, recordings of a grid one after the other, damage told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from checklists.reading import RunSource
from proxy.exchange_view import classify_run
from proxy.served import servers_of
from results.reader import JournalMissingError, RunReader
from tests.support.journalled import Raw, record

ASKED = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(ASKED) + ASKED
ANSWERED = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}'
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(ANSWERED) + ANSWERED


def test_verdicts_are_those_of_classify(tmp_path: Path) -> None:
    record(tmp_path, [Raw(REQUEST, RESPONSE), Raw(REQUEST, b"", "refused")])
    source = RunSource(tmp_path)
    seen = list(source)
    assert [one.judged for one in seen] == list(classify_run(RunReader(tmp_path), servers_of(tmp_path)))
    assert {one.judged.outcome.layer for one in seen} == {"ok", "transport"}
    assert not source.has_episodes
    assert source.recordings[0].manifest is None
    assert "run.json" in source.recordings[0].manifest_problem


def test_recordings_of_a_grid_come_in_order(tmp_path: Path) -> None:
    for name in ("002", "001"):
        (tmp_path / "recordings" / name).mkdir(parents=True)
        record(tmp_path / "recordings" / name, [Raw(REQUEST, RESPONSE)])
    assert [one.recording for one in RunSource(tmp_path)] == ["001", "002"]


def test_a_damaged_line_is_told(tmp_path: Path) -> None:
    record(tmp_path, [Raw(REQUEST, RESPONSE)])
    with (tmp_path / "wire.jsonl").open("ab") as journal:
        journal.write(b"{not json}\n")
    source = RunSource(tmp_path)
    assert len(list(source)) == 1
    assert source.recordings[0].problems


def test_no_journal_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(JournalMissingError):
        RunSource(tmp_path)
    shutil.rmtree(tmp_path)
    with pytest.raises(JournalMissingError):
        RunSource(tmp_path)
