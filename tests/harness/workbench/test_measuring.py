"""Answers are durable one by one: a process that is killed at any moment is carried on to the same record."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.workbench.measuring import Cell, Measuring, Written, places
from results.episode_journal import EpisodeJournalError, EpisodeReader
from tests.support.workbench_runs import CHAIN, MEMBER, little_pack, right, structured_pack

ANSWERS = """
import sys, time
from pathlib import Path
from harness.packs.loading import load_pack
from harness.workbench.measuring import Cell, Measuring, Written, places
from tests.support.workbench_runs import CHAIN, MEMBER, right
out = Path(sys.argv[1])
pack = load_pack(out / "pack")
def answer(task):
    time.sleep(0.01)
    return Written(right(int(task.id[1:])), "stop", 3, 4, 0.5, "0" * 64)
with Measuring(out / "run") as measuring:
    for tier in CHAIN.tiers:
        measuring.measure(Cell(MEMBER, CHAIN, tier, "L0", pack, places(pack)), answer)
"""


def recorded(folder: Path) -> set[tuple[str, int, str]]:
    reader = EpisodeReader(folder)
    found = [(one.cell.stack, one.seed, one.answer["text"]) for one in reader]
    assert len(set(found)) == len(found)
    assert not reader.problems.repeated
    return set(found)


def test_killed_at_random_moments_and_carried_on(tmp_path: Path) -> None:
    little_pack(tmp_path / "pack")
    draw, killed = random.Random(7), 0
    for _ in range(2):
        child = subprocess.Popen([sys.executable, "-c", ANSWERS, str(tmp_path)])
        until = time.monotonic() + 60
        before = (tmp_path / "run/episodes.jsonl").stat().st_size if (tmp_path / "run").exists() else 0
        while child.poll() is None and time.monotonic() < until:
            file = tmp_path / "run/episodes.jsonl"
            if file.exists() and file.stat().st_size > before:
                break
            time.sleep(0.005)
        time.sleep(draw.random() * 0.1)
        if child.poll() is None:
            child.kill()
            killed += 1
        child.wait()
    assert killed
    subprocess.run([sys.executable, "-c", ANSWERS, str(tmp_path)], check=True)
    assert recorded(tmp_path / "run") == {(f"gguf/{tier}", at, right(at)) for tier in CHAIN.tiers for at in range(12)}


def test_an_answer_that_fails_loses_nothing_before_it(tmp_path: Path) -> None:
    pack = little_pack(tmp_path / "pack")
    cell = Cell(MEMBER, CHAIN, "F16", "L0", pack, places(pack))
    calls: list[str] = []

    def vanishes(task):  # type: ignore[no-untyped-def]
        calls.append(task.id)
        if len(calls) > 3:
            raise OSError("the model is gone")
        return Written("{}", "stop", 1, 1, 0.1, "")

    with Measuring(tmp_path) as measuring, pytest.raises(OSError, match="gone"):
        measuring.measure(cell, vanishes)
    with Measuring(tmp_path) as measuring:
        assert len(measuring.missing(cell)) == 9
        assert measuring.measure(cell, lambda task: Written("{}", "length", 1, 1, 0.1, "")) == 9
    outcomes = [one.outcome.name for one in EpisodeReader(tmp_path)]
    assert outcomes.count("ok.final_answer") == 3
    assert outcomes.count("truncation.output_budget") == 9


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with Measuring(tmp_path), pytest.raises(EpisodeJournalError, match="another process"):
        Measuring(tmp_path)


def test_some_cases_are_of_every_kind_in_proportion() -> None:
    pack = structured_pack()
    for count in (1, 6, 40, 100, 249):
        chosen = places(pack, count=count)
        assert len(set(chosen)) == count
        assert list(chosen) == sorted(chosen)
    kinds = [pack.tasks[at].category for at in places(pack, count=40)]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "call": 13,
        "depth": 12,
        "order": 6,
        **dict.fromkeys(("meeting", "label", "colours"), 3),
    }
    assert len(places(pack, half="dev")) == len(places(pack, half="test")) == 125
    assert not set(places(pack, half="dev")) & set(places(pack, half="test"))
