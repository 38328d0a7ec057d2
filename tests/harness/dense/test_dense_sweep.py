"""Sweeps over items on a simulated server: killed at any moment and resumed they are the same; validate sees what is
not as declared."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from checklists.dense.writing import encoded
from harness.abandoned import MARK
from harness.dense.experiment.gathering import experiment
from harness.dense.family import own_families
from harness.dense.known_agents import fits
from harness.dense.summary import summarise, text
from harness.grid import parse_grid
from harness.grid_run import run_grid
from harness.telling import told
from results.episode_journal import EpisodeReader
from results.reader import RunReader
from results.runs import RECORDINGS
from results.tables.cells import cell_table
from stacktap.cli import cli
from tests.support.known_server import KnownServer, dense_answers, known_server
from tests.support.servers import ROOT, environment
from tests.support.sweeping import started

AGENTS = ("solves", "misses", "gives_up")
KILLS = 20


def grid_text(url: str, agents: tuple[str, ...] = AGENTS, tasks: int = 10, **more: Any) -> str:
    names = [name for name, one in own_families().items() if all(fits(agent, one.item) for agent in agents)]
    value = {
        "targets": [{"name": agent, "url": url, "canary": agent, "concurrency": 2} for agent in agents],
        "conditions": ["native"],
        "tasks": names[:tasks],
        "sampling": {"temperature": 0.7, "decoder_seed": "repeat"},
        **more,
    }
    return json.dumps(value)


def lasting(folder: Path) -> list[Any]:
    """What two runs of a sweep must have alike: all of an episode but its ids, times and numbers of attempts."""
    found = []
    for one in EpisodeReader(folder):
        turns = tuple(msgspec.structs.replace(turn, attempts=()) for turn in one.turns)
        same = msgspec.structs.replace(one, turns=turns, recording="", started_us=0, ended_us=0, measured={})
        found.append(msgspec.json.encode(same, order="sorted"))
    return sorted(found)


def tables(folder: Path) -> tuple[str, str, bytes]:
    """The tables of a run, and its report without the run's id and manifests."""
    found = msgspec.structs.replace(experiment(folder), run="", host={}, tools={})
    return cell_table(told(folder).cells), text(summarise(EpisodeReader(folder))), encoded(found)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_at_twenty_random_moments_and_resumed_gives_the_same(tmp_path: Path) -> None:
    chance = random.Random(9)
    server = KnownServer(answer=dense_answers(AGENTS))
    with known_server(server) as url:
        path = tmp_path / "sweep.yaml"
        path.write_text(grid_text(url, repeats=5))
        whole, folder = tmp_path / "whole", tmp_path / "killed"
        assert asyncio.run(run_grid(parse_grid(path.read_text()), whole)).complete
        each = server.chats // (2 * KILLS)
        for _ in range(KILLS):
            wanted = server.chats + chance.randrange(1, 2 * each)
            process = started(path.read_text(), folder)
            while process.is_alive() and server.chats < wanted:
                time.sleep(0.001)
            time.sleep(chance.random() * 0.02)
            process.kill()
            process.join()
            assert process.exitcode == -signal.SIGKILL, "it was done before it could be killed"
        command = [sys.executable, "-m", "stacktap", "dense", "sweep", str(path), "--out", str(folder)]
        done = subprocess.run(
            command, check=False, cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, timeout=200
        )
    assert done.returncode == 0, done.stdout + done.stderr
    places = [one.place for one in EpisodeReader(folder)]
    assert len(places) == len(set(places)) == len(list(EpisodeReader(whole)))
    assert lasting(folder) == lasting(whole)
    assert tables(folder) == tables(whole)
    assert told(folder).findings == []
    _only_the_abandoned_are_outside(folder)


def _only_the_abandoned_are_outside(folder: Path) -> None:
    """Every attempt on record belongs to an episode, or is marked as one of an episode that never ended."""
    kept = {
        (one.recording, each.attempt) for one in EpisodeReader(folder) for turn in one.turns for each in turn.attempts
    }
    abandoned = 0
    for recording in sorted((folder / RECORDINGS).iterdir()):
        marked = json.loads((recording / MARK).read_text())["attempts"] if (recording / MARK).exists() else []
        recorded = {one.attempt for one in RunReader(recording) if one.tag("episode")}
        assert recorded - {attempt for name, attempt in kept if name == recording.name} == set(marked)
        abandoned += len(marked)
    assert abandoned


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep") / "run"
    with known_server(KnownServer(answer=dense_answers(AGENTS))) as url:
        grid = parse_grid(grid_text(url, ("solves", "misses"), 1, repeats=2))
        assert asyncio.run(run_grid(grid, folder)).complete
    return folder


def _lines(folder: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    path = folder / "episodes.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def _short(folder: Path) -> None:
    _lines(folder, lambda lines: lines.pop())


def _no_manifest(folder: Path) -> None:
    (folder / RECORDINGS / "001" / "run.json").unlink()


def _another_hash(folder: Path) -> None:
    def change(lines: list[dict[str, Any]]) -> None:
        plan = next(line for line in lines if line["event"] == "cell")
        plan["facts"]["task_version"]["value"] = "files.make_folder 0123456789abcdef"

    _lines(folder, change)


def _edited(folder: Path) -> None:
    def change(lines: list[dict[str, Any]]) -> None:
        failed = next(line for line in lines if line["event"] == "episode" and line["outcome"]["layer"] == "task")
        failed["outcome"] |= {"layer": "ok", "code": "task_done", "at_fault": "none"}

    _lines(folder, change)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_short, "1 of 2"),
        (_no_manifest, "recording 001 has no manifest (run.json)"),
        (_another_hash, "must not be compared"),
        (_edited, "outcome is ok.task_done, not task.wrong_args"),
    ],
)
def test_validate_fails_on_what_is_not_as_declared(
    spoil: Callable[[Path], None], says: str, finished: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    good = CliRunner().invoke(cli, ["dense", "validate", str(folder)])
    assert good.exit_code == 0, good.output
    spoil(folder)
    found = CliRunner().invoke(cli, ["dense", "validate", str(folder)])
    assert found.exit_code == 1
    assert says in found.output, found.output


def test_an_episode_of_another_plan_than_its_cells_is_found(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    _lines(folder, lambda lines: lines[-1].update(plan="0" * 64))
    found = CliRunner().invoke(cli, ["dense", "validate", str(folder)])
    assert found.exit_code == 1
    assert "plan" in found.output or "set-up" in found.output, found.output
