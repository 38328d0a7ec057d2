from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.conditions import Condition
from harness.dense.again import contradictions
from harness.dense.known_agents import fits, speech
from harness.telling import told
from results.episode_journal import EpisodeReader, EpisodeWriter
from results.episodes import EpisodeRecord
from results.outcomes import Outcome
from tests.harness.dense.test_dense_episode import FAMILIES
from tests.harness.dense.test_reparse import NAME, run_of

DONE = Outcome(layer="ok", code="task_done", at_fault="none", model_ran="yes")


def _edited(folder: Path, **change: object) -> None:
    reader = EpisodeReader(folder)
    episodes = list(reader)
    (folder / "episodes.jsonl").unlink()
    writer = EpisodeWriter(folder, reader.run)
    for plan in reader.plans.values():
        writer.append(plan)
    for episode in episodes:
        writer.append(msgspec.structs.replace(episode, **change))
    writer.close()


async def test_what_was_not_touched_holds(tmp_path: Path) -> None:
    names = list(FAMILIES)[:4]
    texts = {
        name: speech(("solves", "misses", "circles", "fences")[at], FAMILIES[name].item)
        for at, name in enumerate(names)
    }
    assert contradictions(await run_of(tmp_path, texts)) == []


async def test_a_hand_edited_outcome_is_found(tmp_path: Path) -> None:
    folder = await run_of(tmp_path, {NAME: speech("misses", FAMILIES[NAME].item)})
    _edited(folder, outcome=DONE)
    (said,) = contradictions(folder)
    assert "outcome is ok.task_done, not task.wrong_args" in said
    assert said in told(folder).findings


async def test_a_hand_edited_label_or_call_is_found(tmp_path: Path) -> None:
    folder = await run_of(tmp_path, {NAME: speech("misses", FAMILIES[NAME].item)})
    (episode,) = EpisodeReader(folder)
    _edited(folder, labels={**episode.labels, "dense": "wrong_tool"})
    assert "dense is wrong_tool, not right_tool_wrong_args" in contradictions(folder)[0]
    _edited(folder, labels=episode.labels, turns=episode.turns[1:])
    assert "dense_counted is not stated, not no_action" in contradictions(folder)[0]


async def test_what_the_stack_lost_holds_and_cannot_be_edited_either_way(tmp_path: Path) -> None:
    name = next(name for name, family in FAMILIES.items() if fits("batches", family.item))
    folder = await run_of(tmp_path, {name: speech("batches", FAMILIES[name].item)}, condition=Condition("native"))
    assert contradictions(folder) == []
    (episode,) = EpisodeReader(folder)
    _edited(folder, outcome=Outcome(layer="task", code="premature_done", at_fault="model", model_ran="yes"))
    assert "outcome is task.premature_done, not not_run.parser.left_as_text" in contradictions(folder)[0]
    folder = await run_of(tmp_path / "2", {NAME: speech("misses", FAMILIES[NAME].item)})
    _edited(folder, outcome=episode.outcome, labels={})
    assert "outcome is not_run.parser.left_as_text, not task.wrong_args" in contradictions(folder)[0]


@pytest.mark.parametrize("task", ["files.unheard_of", "bfcl.base_3"])
async def test_an_item_that_is_not_here_is_said(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = await run_of(tmp_path, {NAME: speech("solves", FAMILIES[NAME].item)})
    (episode,) = EpisodeReader(folder)
    assert isinstance(episode, EpisodeRecord)
    _edited(folder, cell=msgspec.structs.replace(episode.cell, task=task))
    (said,) = contradictions(folder)
    assert said.startswith("1 episodes could not be judged again: ")
