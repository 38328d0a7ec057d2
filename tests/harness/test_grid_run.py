"""Grids on a simulated server: what is kept, resumed, refused, and what is said where something cannot be run."""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.abandoned import MARK
from harness.conditions import Condition
from harness.grid import Grid, parse_grid
from harness.grid_run import GridChangedError, GridRun, run_grid
from harness.tasks import FAMILIES
from harness.telling import facts, text, told
from results.episode_journal import EpisodeJournalError, EpisodeReader, EpisodeWriter
from results.episodes import TurnRecord
from results.manifest import known
from results.reader import RunReader
from results.runs import RECORDINGS
from results.tables.cells import cell_table
from tests.support.known_server import KnownServer, known_answers, known_server
from tests.support.servers import ROOT, environment
from tests.support.simulated import chat_handler, error, http_server

CONDITIONS = ("native", "native+hint", "text-tools", "constrained")


def grid_text(url: str, canaries: tuple[str, ...] = ("does",), seeds: int = 2, **more: Any) -> str:
    targets = [
        {"name": name, "url": url, "canary": name, "concurrency": 2, **more.pop("target", {})} for name in canaries
    ]
    value = {
        "targets": targets,
        "conditions": list(CONDITIONS),
        "tasks": [{"family": "aggregation", "size": 1}, {"family": "chain", "size": 1}],
        "seeds": [42, 123, 456, 789, 2024, 7, 99, 2025][:seeds],
        "limits": {"turns": 5},
        **more,
    }
    return json.dumps(value)


def grid_of(url: str, *given: Any, **more: Any) -> Grid:
    return parse_grid(grid_text(url, *given, **more))


def carry(grid: Grid, folder: Path) -> GridRun:
    return asyncio.run(run_grid(grid, folder))


def outcomes(folder: Path) -> list[Any]:
    """What two runs of a grid must have alike: everything but ids and times."""
    return sorted(
        (
            one.cell.text,
            one.seed,
            one.repeat,
            one.outcome.name,
            one.ended_by,
            one.score,
            str(list(map(_turn, one.turns))),
        )
        for one in EpisodeReader(folder)
    )


def _turn(turn: TurnRecord) -> Any:
    return turn.outcome.name, turn.channel, turn.calls


EXPECTED = {
    "does": ("ok.task_done", "done_tool", ["valid", "valid", "valid"]),
    "loops": ("model.loop", "turn_cap", ["valid"] * 5),
    "stops": ("task.missing_step", "final_answer", ["valid", "prose"]),
    "never": ("task.premature_done", "prose", ["prose"]),
    "once": ("not_run.nonresponse.empty", "nonresponse", ["valid", "non-response"]),
}


def test_every_behaviour_is_counted_as_what_it_is(tmp_path: Path) -> None:
    with known_server(KnownServer()) as url:
        found = carry(grid_of(url, tuple(EXPECTED), conditions=["native", "text-tools"]), tmp_path / "run")
    assert found.complete
    assert found.declared == 5 * 2 * 2 * 2
    said = told(tmp_path / "run")
    for cell in said.cells:
        name, ended, labels = EXPECTED[cell.cell.stack]
        assert {one.outcome.name for one in EpisodeReader(tmp_path / "run") if one.cell == cell.cell} == {name}
        assert cell.ended_by == {ended: 2}
        assert sum(cell.labels.values()) == 2 * len(labels)
        assert cell.labels.get("valid", 0) == 2 * labels.count("valid")
        if cell.cell.stack == "once":
            assert (cell.pooled.value, cell.naive.value) == (1.0, 0.5)
            assert cell.completion.rate.value is None
    assert any("once" in line and "were not run (nonresponse)" in line for line in said.findings)


def test_a_schema_that_is_not_enforced_is_said_by_evidence(tmp_path: Path) -> None:
    with known_server(KnownServer()) as url:
        found = carry(grid_of(url, ("does", "never"), conditions=["constrained"]), tmp_path / "run")
    said = told(tmp_path / "run")
    assert said.ignored == {
        "canary-never @ never, constrained, aggregation/1": 2,
        "canary-never @ never, constrained, chain/1": 2,
    }
    assert "ignored by evidence: 2 answers do not follow the schema" in text(said, found)
    assert json.loads(json.dumps(facts(said, found)))["schema_ignored"] == said.ignored


def test_repeated_runs_print_pass_k_and_none_at_temperature_zero(tmp_path: Path) -> None:
    with known_server(KnownServer()) as url:
        carry(grid_of(url, ("does", "stops", "once"), conditions=["native"], repeats=3), tmp_path / "run")
        carry(grid_of(url, conditions=["native"], repeats=2, sampling={"temperature": 0.0}), tmp_path / "cold")
    said = told(tmp_path / "run").repeated
    assert len(said) == 6
    assert "pass^3 = 100.0 % [100.0, 100.0] (2 tasks, 6 runs)" in said["canary-does @ does, native, chain/1"]
    assert "pass^3 = 0.0 %" in said["canary-stops @ stops, native, chain/1"]
    assert said["canary-once @ once, native, chain/1"] == "pass^k is undefined: a task has no run left"
    cold = told(tmp_path / "cold")
    assert all("no pass^k: " in line and "temperature 0" in line for line in cold.repeated.values())
    assert "runs of the same task:" in text(cold)


def test_what_is_there_is_not_run_again(tmp_path: Path) -> None:
    server = KnownServer()
    with known_server(server) as url:
        carry(grid_of(url), tmp_path / "run")
        asked, before = server.chats, (tmp_path / "run" / "episodes.jsonl").read_bytes()
        assert carry(grid_of(url), tmp_path / "run").complete
        assert server.chats == asked
        assert (tmp_path / "run" / "episodes.jsonl").read_bytes() == before
        more = carry(grid_of(url, seeds=3), tmp_path / "run")
    assert (more.done, more.declared) == (24, 24)
    places = [episode.place for episode in EpisodeReader(tmp_path / "run")]
    assert len(places) == len(set(places)) == 24
    assert not told(tmp_path / "run").findings


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_at_random_and_resumed_gives_the_same(tmp_path: Path) -> None:
    chance = random.Random(7)
    server = KnownServer()
    with known_server(server) as url:
        path = tmp_path / "grid.yaml"
        path.write_text(grid_text(url, ("does", "stops"), 8, limits={"turns": 5}))
        whole = tmp_path / "whole"
        assert carry(parse_grid(path.read_text()), whole).complete
        folder, kills = tmp_path / "killed", 0
        command = [sys.executable, "-m", "stacktap", "run", str(path), "--out", str(folder)]
        while kills < 5:
            started = server.chats
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            wanted = started + chance.randrange(5, 60)
            while process.poll() is None and server.chats < wanted:
                time.sleep(0.001)
            time.sleep(chance.random() * 0.02)
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
        done = subprocess.run(
            command, check=False, cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, timeout=200
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert outcomes(folder) == outcomes(whole)
    assert cell_table(told(folder).cells) == cell_table(told(whole).cells)
    recordings = sorted((folder / RECORDINGS).iterdir())
    assert len(recordings) >= kills
    counted = {
        (one.recording, each.attempt) for one in EpisodeReader(folder) for turn in one.turns for each in turn.attempts
    }
    abandoned = 0
    for recording in recordings:
        marked = json.loads((recording / MARK).read_text())["attempts"] if (recording / MARK).exists() else []
        recorded = [one.attempt for one in RunReader(recording) if one.tag("episode")]
        kept = {attempt for name, attempt in counted if name == recording.name}
        assert set(recorded) - kept == set(marked)
        abandoned += len(marked)
    assert abandoned


@pytest.mark.parametrize("fact", ["version", "model_digest", "chat_template_hash"])
def test_a_server_that_is_another_one_now_is_not_mixed_in(tmp_path: Path, fact: str) -> None:
    with known_server(KnownServer()) as url:
        carry(grid_of(url, conditions=["native"]), tmp_path / "run")
        reader = EpisodeReader(tmp_path / "run")
        episodes = list(reader)
        shutil.rmtree(tmp_path / "run")
        writer = EpisodeWriter(tmp_path / "run", reader.run)
        for plan in reader.plans.values():
            was = known("of before", "a test")
            writer.append(msgspec.structs.replace(plan, facts={**plan.facts, fact: was}))
        for episode in episodes[:-1]:
            writer.append(episode)
        writer.close()
        kept = (tmp_path / "run" / "episodes.jsonl").read_bytes()
        with pytest.raises(GridChangedError, match=f'{fact}: "of before" -> '):
            carry(grid_of(url, conditions=["native"]), tmp_path / "run")
    assert (tmp_path / "run" / "episodes.jsonl").read_bytes() == kept


def test_another_text_of_a_condition_is_not_mixed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with known_server(KnownServer()) as url:
        carry(grid_of(url, conditions=["text-tools"]), tmp_path / "run")
        monkeypatch.setattr("harness.conditions._PROTOCOL", "Answer in JSON.")
        assert Condition("text-tools").prompt("x", ()).count("Answer in JSON.") == 1
        with pytest.raises(GridChangedError, match="condition_text"):
            carry(grid_of(url, seeds=3, conditions=["text-tools"]), tmp_path / "run")


def test_other_sampling_is_not_mixed_in(tmp_path: Path) -> None:
    with known_server(KnownServer()) as url:
        carry(grid_of(url), tmp_path / "run")
        with pytest.raises(GridChangedError, match=r"temperature: 1\.0 -> 0\.0"):
            carry(grid_of(url, seeds=3, sampling={"temperature": 0.0}), tmp_path / "run")


def test_a_server_that_dies_leaves_the_rest_unrun_and_another_target_goes_on(tmp_path: Path) -> None:
    with known_server(KnownServer()) as other, known_server(KnownServer()) as url:
        value = json.loads(grid_text(url, seeds=4, conditions=["native"]))
        value["targets"].append({**value["targets"][0], "name": "other", "url": other})
        value["targets"][0]["concurrency"] = 1
        with dying_relay(url, after=12) as dying:
            value["targets"][0]["url"] = dying
            found = carry(parse_grid(json.dumps(value)), tmp_path / "run")
        assert not found.complete
        assert found.not_run["does"].startswith("not_run:transport.connect: ")
        assert found.short["canary-does @ does, native, chain/1"] == (0, 4)
        episodes = list(EpisodeReader(tmp_path / "run"))
        assert sum(one.cell.stack == "other" for one in episodes) == 8
        said = told(tmp_path / "run")
        for cell in said.cells:
            assert cell.per_seed.value in (1.0, None)
            assert cell.completion.rate.value in (1.0, None)
        shown = text(said, found)
        assert "did not run:" in shown
        assert "canary-does @ does, native, chain/1: 0 of 4 episodes" in shown


class dying_relay:  # noqa: N801 - used as a context
    """A server that answers so many requests and is gone then, port and all."""

    def __init__(self, url: str, after: int) -> None:
        self.server = KnownServer(self._count)
        self.after, self.context = after, known_server(self.server)

    def _count(self, number: int) -> bool:
        if number == self.after:
            import threading

            threading.Thread(target=self.__exit__, daemon=True).start()
        return number >= self.after

    def __enter__(self) -> str:
        return self.context.__enter__()

    def __exit__(self, *exc: object) -> None:
        if self.context is not None:
            context, self.context = self.context, None  # type: ignore[assignment]
            context.__exit__(None, None, None)


def test_a_server_that_is_not_there_is_said_and_counts_nothing(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        found = carry(grid_of(f"http://127.0.0.1:{free.getsockname()[1]}"), tmp_path / "run")
    assert found.not_run["does"].startswith("not_run:transport.connect")
    assert (found.done, len(found.short)) == (0, 8)
    assert not told(tmp_path / "run").cells


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (401, "Incorrect API key provided", "transport.auth"),
        (404, "model 'qwen' not found", "gate.model_not_found"),
    ],
)
async def test_what_nothing_can_be_measured_on_is_said_and_can_be_run_later(
    tmp_path: Path, status: int, message: str, code: str
) -> None:
    broken = True
    known = known_answers()

    def answer(body: dict[str, Any]) -> Any:
        return error(message, status) if broken else known(body)

    async with http_server(chat_handler(answer)) as url:
        grid = grid_of(url, conditions=["native"])
        found = await run_grid(grid, tmp_path / "run")
        assert found.not_run["does"].startswith(f"not_run:{code}: ")
        assert found.done == 0
        broken = False
        again = await run_grid(grid, tmp_path / "run")
    assert again.complete
    assert {one.outcome.name for one in EpisodeReader(tmp_path / "run")} == {"ok.task_done"}
    assert again.abandoned["001"]


def test_a_model_that_is_not_there_is_said(tmp_path: Path) -> None:
    grid = parse_grid("targets: [{name: a, up: llamacpp, path: /nonexistent/m.gguf}]\ntasks: [chain]")
    found = carry(grid, tmp_path / "run")
    assert found.not_run["a"].startswith("not_run:launch: ")
    assert found.short == {"m @ a, native, chain": (0, 1)}


def test_a_task_that_raises_is_said_and_the_others_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    family = FAMILIES["chain"]
    real = family.task

    def task(seed: int, size: int | None = None) -> Any:
        made = real(seed, size)
        if seed != 123:
            return made

        class Broken:
            def __getattr__(self, name: str) -> Any:
                if name == "world":
                    raise ZeroDivisionError("a fault of the task")
                return getattr(made, name)

        return Broken()

    server = KnownServer()
    monkeypatch.setattr(family, "task", task)
    with known_server(server) as url:
        found = carry(grid_of(url, conditions=["native"]), tmp_path / "run")
    title = "canary-does @ does, native, chain/1"
    assert found.not_run == {title: "not_run:task_error: ZeroDivisionError: a fault of the task"}
    assert found.short == {title: (1, 2)}
    said = told(tmp_path / "run")
    assert {cell.completion.rate.value for cell in said.cells} == {1.0}
    assert said.findings == [f"{title}: 1 of 2 episodes are there; missing: seed 123"]


@pytest.mark.parametrize("limit", [6_000, 60_000])
def test_a_disk_that_fills_ends_the_run_and_leaves_a_resumable_one(tmp_path: Path, limit: int) -> None:
    with known_server(KnownServer()) as url:
        path, folder = tmp_path / "grid.yaml", tmp_path / "run"
        path.write_text(grid_text(url, seeds=8, conditions=["native"]))
        command = [sys.executable, "-m", "stacktap", "run", str(path), "--out", str(folder)]

        def small() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        done = subprocess.run(
            command,
            check=False,
            cwd=ROOT,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=100,
            preexec_fn=small,
        )
        assert done.returncode in (1, 3), done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        assert "not_run:record" in done.stderr or "cannot write" in done.stderr or "not kept" in done.stderr
        assert carry(parse_grid(path.read_text()), folder).complete
    assert {one.outcome.name for one in EpisodeReader(folder)} == {"ok.task_done"}
    assert not told(folder).findings


def test_one_run_folder_has_one_writer(tmp_path: Path) -> None:
    writer = EpisodeWriter(tmp_path / "run", "r")
    with pytest.raises(EpisodeJournalError, match="another process"):
        carry(grid_of("http://127.0.0.1:1"), tmp_path / "run")
    writer.close()


def test_cancelled_it_can_be_carried_on(tmp_path: Path) -> None:
    server = KnownServer()

    async def part(grid: Grid) -> None:
        task = asyncio.create_task(run_grid(grid, tmp_path / "run"))
        while server.chats < 20:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with known_server(server) as url:
        asyncio.run(part(grid_of(url)))
        some = len(list(EpisodeReader(tmp_path / "run")))
        assert 0 < some < 16
        assert carry(grid_of(url), tmp_path / "run").complete
    assert not told(tmp_path / "run").findings


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_thousand_episodes_in_a_minute_and_in_flat_memory(tmp_path: Path) -> None:
    taken: list[tuple[int, int]] = []

    def tell(line: str) -> None:
        number = int(line.partition("/")[0])
        if number in (200, 1000):
            taken.append((number, tracemalloc.get_traced_memory()[0]))

    with known_server(KnownServer()) as url:
        grid = grid_of(url, seeds=8, repeats=16, tasks=[{"family": "aggregation", "size": 1}], conditions=["native"])
        wide = msgspec.structs.replace(
            grid, targets=tuple(msgspec.structs.replace(t, concurrency=8) for t in grid.targets), repeats=125
        )
        began, busy = time.monotonic(), time.process_time()
        found = asyncio.run(run_grid(wide, tmp_path / "run"))
        took, busy = time.monotonic() - began, time.process_time() - busy
        assert (found.done, found.complete) == (1000, True)
        tracemalloc.start()
        asyncio.run(run_grid(wide, tmp_path / "again", tell))
        tracemalloc.stop()
    (_, early), (_, late) = taken
    assert late - early < 4 << 20, (early, late)
    # The server's work included, which is done in this process.
    assert busy < 60, busy
    if os.getloadavg()[0] < 2:
        assert took < 60, took
