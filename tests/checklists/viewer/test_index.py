"""The index: carried on after a kill and as the journal grows, made anew for another journal, unwritten read-only."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from checklists.viewer.index import Index
from checklists.viewer.indexer import Indexer
from checklists.viewer.judging import Judge
from checklists.viewer.one import NEEDED, Place, merged, read_exchange
from checklists.viewer.opened import OpenedRun, index_path, prune
from checklists.viewer.records import Job, JudgeMark, Record, Row, Told, Verdict
from proxy.exchange_view import classify_run
from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from results.outcomes import encode
from results.reader import RunReader
from tests.support.journalled import Raw, events, record
from tests.support.recorded import CALL_TEXT, answer, chat_request
from tests.support.viewing import viewing


def exchanges(count: int, seed: int = 1) -> Iterator[Raw]:
    """Conversations that grow, so that requests refer to earlier ones; answers good, bad and cut."""
    dice = random.Random(seed)
    said: list[dict[str, str]] = []
    for number in range(count):
        said = [] if number % 12 == 0 else said
        said = [*said, {"role": "user", "content": f"{number} " + "long words " * 60}]
        head, body = chat_request(messages=said)
        if number % 7 == 3:
            yield Raw(head + body, b"", "refused")
        else:
            text = CALL_TEXT if number % 5 == 0 else f"answer {number}"
            yield Raw(head + body, answer(content=text), dice.choice(["fin", "fin", "rst", "client"]))


def outcomes(folder: Path) -> dict[int, bytes]:
    return {one.attempt: encode(one.outcome) for one in classify_run(RunReader(folder))}


def indexed(run: OpenedRun) -> dict[int, bytes]:
    return {number: bytes(raw) for number, raw in run.index.query("SELECT id, outcome FROM verdict")}


@contextlib.asynccontextmanager
async def opened(folder: Path, cache: Path | None, version: str = "1"):  # type: ignore[no-untyped-def]
    run = OpenedRun(folder.name, folder, cache, version)
    await run.open()
    try:
        yield run
    finally:
        await run.close()


async def complete(run: OpenedRun) -> None:
    with run.watched() as changed:
        while not run.complete:
            assert not run.problem
            changed.clear()
            await asyncio.wait_for(changed.wait(), 30)


async def test_verdicts_of_the_index_are_those_of_classify_and_come_back_at_once(tmp_path: Path) -> None:
    record(tmp_path / "run", exchanges(60))
    want = outcomes(tmp_path / "run")
    async with opened(tmp_path / "run", tmp_path / "cache") as run:
        assert not run.complete
        await complete(run)
        assert indexed(run) == want
    async with opened(tmp_path / "run", tmp_path / "cache") as run:
        assert run.complete  # without an indexer
        assert (run.index.total, run.index.judged) == (60, 60)
        assert indexed(run) == want


async def test_another_version_and_another_journal_begin_anew(tmp_path: Path) -> None:
    folder, cache = tmp_path / "run", tmp_path / "cache"
    record(folder, exchanges(5))
    async with opened(folder, cache) as run:
        await complete(run)
    async with opened(folder, cache, "2") as run:
        assert run.index.total == 0
        await complete(run)
    for path in folder.iterdir():
        path.unlink()
    record(folder, exchanges(3, seed=2))
    async with opened(folder, cache, "2") as run:
        await complete(run)
        assert run.index.total == 3
    index_path(cache, folder).write_bytes(b"this is no database" * 1000)
    async with opened(folder, cache, "2") as run:
        await complete(run)
        assert run.index.total == 3


async def test_a_journal_changed_in_its_last_line_begins_anew(tmp_path: Path) -> None:
    folder, cache = tmp_path / "run", tmp_path / "cache"
    record(folder, exchanges(4))
    async with opened(folder, cache) as run:
        await complete(run)
    journal = folder / "wire.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]))
    async with opened(folder, cache) as run:
        await complete(run)
        ended = dict(run.index.query("SELECT id, ended FROM exchange"))
        assert ended == {one.attempt: one.end for one in RunReader(folder)}
        assert "recorder_killed" in ended.values()


async def test_the_indexer_is_killed_and_another_goes_on(tmp_path: Path) -> None:
    folder, cache = tmp_path / "run", tmp_path / "cache"
    record(folder, exchanges(400))
    async with opened(folder, cache) as run:
        with run.watched() as changed:
            while not run.index.judged:
                changed.clear()
                await asyncio.wait_for(changed.wait(), 30)
        assert run._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(run._process.pid, signal.SIGKILL)
        await asyncio.wait_for(asyncio.shield(run._task or asyncio.sleep(0)), 30)
        assert run.complete or "indexer" in run.problem
        before = run.index.judged
    async with opened(folder, cache) as run:
        assert run.index.judged == before > 0
        await complete(run)
        assert indexed(run) == outcomes(folder)


def test_every_way_to_stop_and_go_on_gives_the_same_verdicts(tmp_path: Path) -> None:
    """Records are taken up to a cut, the indexer begins again from what was kept, until all is told."""
    folder = tmp_path / "run"
    recorder = Recorder(folder, "run", Redactor(), segment_bytes=20_000)
    recorder.start()
    dice = random.Random(3)
    for connection, raw in enumerate(exchanges(50), 1):
        for event in events(raw, connection, dice):
            recorder.put(event)
    recorder.close()
    want = outcomes(folder)
    for cut in (1, 3, 1000):
        index = Index(None, "x")
        for _ in range(200):
            told: list[list[Record]] = []
            Indexer(Job(str(folder), index.known(), False), told.append).run()
            for batch in told[:cut]:
                index.apply(batch)
            if len(told) <= cut:
                break
        kept = {number: bytes(raw) for number, raw in index.query("SELECT id, outcome FROM verdict")}
        assert kept == want, cut
        rows = index.query("SELECT id, ended, request_bytes, response_bytes, status FROM exchange ORDER BY id")
        read = sorted(RunReader(folder), key=lambda one: one.attempt)
        assert [(row[0], row[1]) for row in rows] == [(one.attempt, one.end) for one in read]
        assert [row[2:4] for row in rows] == [(len(one.wire("request")), len(one.wire("response"))) for one in read]
        assert [row[4] for row in rows] == [one.response.status if one.response else 0 for one in read]
        index.close()


def test_judging_goes_on_in_small_steps(tmp_path: Path) -> None:
    record(tmp_path, exchanges(40))
    mark: JudgeMark | None = None
    found: dict[int, Verdict] = {}
    for _ in range(100):
        judge = Judge(0, tmp_path, mark)
        verdicts, done = judge.work(0.0)
        while not verdicts and not done:  # what was judged before is passed over
            verdicts, done = judge.work(0.0)
        found.update({one.id: one for one in verdicts})
        mark = msgspec.msgpack.decode(msgspec.msgpack.encode(judge.mark()), type=JudgeMark)
        judge.close()
        if done:
            break
    assert {number: one.outcome for number, one in found.items()} == outcomes(tmp_path)


@pytest.mark.parametrize("segment_bytes", [15_000, 1 << 26])
def test_one_exchange_is_read_by_its_place_as_the_reader_reads_it(tmp_path: Path, segment_bytes: int) -> None:
    recorder = Recorder(tmp_path, "run", Redactor(), segment_bytes=segment_bytes)
    recorder.start()
    dice = random.Random(5)
    streams = [iter(events(raw, connection, dice)) for connection, raw in enumerate(exchanges(60), 1)]
    while streams:  # many at once, their lines mixed
        stream = dice.choice(streams[:6])
        event = next(stream, None)
        if event is None:
            streams.remove(stream)
        else:
            recorder.put(event)
    recorder.close()
    index = Index(None, "x")
    Indexer(Job(str(tmp_path), [], False), index.apply).run()
    referring = 0
    for want in RunReader(tmp_path):
        places = [Place(row[0], (row[1], row[2]), (row[3], row[4])) for row in index.query(NEEDED, (want.attempt, 0))]
        referring += len(places) > 1
        got = read_exchange(tmp_path, places, want.attempt, live=False)
        assert got is not None
        for direction in ("request", "response"):
            assert got.wire(direction) == want.wire(direction)
            assert got.pieces(direction) == want.pieces(direction)
        assert (got.end, got.damage, got.tags, len(got.notes)) == (want.end, want.damage, want.tags, len(want.notes))
    assert referring > 20
    assert read_exchange(tmp_path, [], 1, live=False) is None
    index.close()


def test_stretches_are_merged() -> None:
    places = [
        Place(1, (1, 0), (1, 10)),
        Place(2, (1, 5), (1, 8)),
        Place(3, (1, 20), (2, 3)),
        Place(4, (1, 10), (1, 12)),
    ]
    assert merged(places) == [((1, 0), (1, 12)), ((1, 20), (2, 3))]


async def test_read_only_writes_nothing(tmp_path: Path) -> None:
    record(tmp_path / "runs" / "run", exchanges(5))
    seen = sorted(tmp_path.rglob("*"))
    async with viewing(tmp_path / "runs", cache=tmp_path / "cache", read_only=True) as viewer:
        state = await viewer.whole("run")
        assert (state["total"], state["judged"], state["kept"]) == (5, 5, False)
    assert sorted(tmp_path.rglob("*")) == seen


async def test_two_viewers_of_one_run(tmp_path: Path) -> None:
    folder, cache = tmp_path / "run", tmp_path / "cache"
    record(folder, exchanges(5))
    async with opened(folder, cache) as first, opened(folder, cache) as second:
        await asyncio.gather(complete(first), complete(second))
        assert (first.index.path is None, second.index.path is None) == (False, True)
        assert indexed(first) == indexed(second)


async def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    record(tmp_path / "run", exchanges(3))
    (tmp_path / "cache").write_text("a file where a folder should be")
    async with opened(tmp_path / "run", tmp_path / "cache") as run:
        await complete(run)
        assert run.index.total == 3


async def test_outcomes_on_disk_are_shown_until_each_is_judged(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    record(folder, exchanges(12))
    lines = b"".join(encode(one) + b"\n" for one in classify_run(RunReader(folder)))
    (folder / "outcomes.jsonl").write_bytes(lines + b"{not json}\n")
    told: list[list[Record]] = []
    Indexer(Job(str(folder)), told.append).run()
    verdicts = [one for batch in told for one in batch if isinstance(one, Verdict)]
    assert [one.end == "" for one in verdicts] == [True] * 12 + [False] * 12
    index = Index(None, "x")
    for batch in told:
        index.apply(batch)
    assert index.judged == 12
    os.utime(folder / "outcomes.jsonl", (1, 1))
    told.clear()
    Indexer(Job(str(folder)), told.append).run()
    assert sum(isinstance(one, Verdict) for batch in told for one in batch) == 12
    index.close()


def test_a_batch_that_fails_leaves_nothing(tmp_path: Path) -> None:
    record(tmp_path / "run", exchanges(3))
    told: list[list[Record]] = []
    Indexer(Job(str(tmp_path / "run"), [], False), told.append).run()
    index = Index(tmp_path / "index.sqlite", "x")
    bad = msgspec.structs.replace(next(one for batch in told for one in batch if isinstance(one, Row)), upstream=None)
    with pytest.raises(sqlite3.Error):
        index.apply([*told[0], bad])
    assert index.query("SELECT count(*) FROM exchange") == [(0,)]
    for batch in told:
        index.apply(batch)
    assert index.total == index.judged == 3
    index.close()


async def test_indexes_of_runs_that_are_gone_are_removed(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for name in ("stays", "goes"):
        record(tmp_path / name, exchanges(3))
        async with opened(tmp_path / name, cache) as run:
            await complete(run)
    gone = index_path(cache, tmp_path / "goes")
    shutil.rmtree(tmp_path / "goes")
    prune(cache)
    stays = index_path(cache, tmp_path / "stays")
    assert {path.stem for path in cache.iterdir()} == {stays.stem}
    assert gone.stem != stays.stem
    async with opened(tmp_path / "stays", cache):
        prune(cache, 0)
        assert stays.exists()  # in use
    prune(cache, 0)
    assert list(cache.iterdir()) == []
    prune(tmp_path / "nothing")


def test_a_journal_of_a_newer_version_is_not_read(tmp_path: Path) -> None:
    record(tmp_path, exchanges(3))
    journal = tmp_path / "wire.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"schema":1', b'"schema":99', 1))
    told: list[list[Record]] = []
    Indexer(Job(str(tmp_path), [], False), told.append).run()
    records = [one for batch in told for one in batch]
    assert [type(one) for one in records] == [Told]
    assert isinstance(records[0], Told)
    assert "update stacktap" in records[0].problems[0]


def test_damage_is_told_again_by_whoever_goes_on(tmp_path: Path) -> None:
    record(tmp_path, exchanges(3))
    journal = tmp_path / "wire.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:2], b"{not json}\n", *lines[2:]]))
    index = Index(None, "x")
    Indexer(Job(str(tmp_path), [], False), index.apply).run()
    said = index.told.problems
    assert said == ["1 corrupt lines were skipped"]
    Indexer(Job(str(tmp_path), index.known(), False), index.apply).run()
    assert index.told.problems == said
    index.close()
