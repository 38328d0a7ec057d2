"""Items of a grid's run: cells, plans, several models and recordings, and what is honest where they differ."""

from __future__ import annotations

from pathlib import Path

from checklists.items.collect import checklist_of
from results.episodes import CellKey
from results.manifest import known
from tests.support.checklist_runs import SERVER, make_grid, plan_of
from tests.support.episodes import CELL, episode, outcome

PLAN = plan_of(CELL)
DONE = [episode("vvv", seed=seed, plan=PLAN.digest) for seed in (0, 1)]


def test_a_whole_run_fills_all_but_the_other_server(tmp_path: Path) -> None:
    found = checklist_of(make_grid(tmp_path, [PLAN], DONE))
    open_ones = {one.id: one.counted for one in found.entries if one.counted != "filled"}
    assert open_ones == {"C17": "not_done"}
    assert found.run == "grid-1"
    assert "2 instances, 1 runs of each" in found.entry("C10").said
    assert "per seed 100.0 %" in found.entry("C13").said
    assert "done_tool 2; 0 of 2 had to be ended by the harness" in found.entry("C14").said
    assert found.entry("C22").said == (
        "no: nothing differs: 2 of 2 declared episodes are there, each under its cell's plan"
    )


def test_what_is_missing_differs_from_the_plan(tmp_path: Path) -> None:
    found = checklist_of(make_grid(tmp_path, [PLAN], DONE[:1])).entry("C22")
    assert (found.state, found.counted) == ("yes", "filled")
    assert "1 of 2 episodes are there; missing: seed 1" in found.said


def test_a_check_that_nobody_met_is_not_known_to_be_meetable(tmp_path: Path) -> None:
    failed = [episode("v", seed=seed, result="task.missing_step", plan=PLAN.digest) for seed in (0, 1)]
    found = checklist_of(make_grid(tmp_path, [PLAN], failed)).entry("C21")
    assert found.counted == "unknown"
    assert "canary: does" in found.command


def test_a_broken_check_is_a_truthful_no(tmp_path: Path) -> None:
    broken = [episode("v", seed=0, result=outcome("checker.unsatisfiable"), plan=PLAN.digest)]
    found = checklist_of(make_grid(tmp_path, [PLAN], broken)).entry("C21")
    assert (found.counted, found.said) == ("filled", "no: broken checks were met: checker.unsatisfiable 1")


def test_undefined_cells_are_rej_and_not_zero(tmp_path: Path) -> None:
    refused = [episode("g", seed=seed, result="gate.tools_unsupported", plan=PLAN.digest) for seed in (0, 1)]
    found = checklist_of(make_grid(tmp_path, [PLAN], refused))
    assert "outside: gate 2; the rate is undefined (rej), not 0" in found.entry("C11").said
    assert found.entry("C06").counted == "not_applicable"


def test_recovered_calls_are_told_apart(tmp_path: Path) -> None:
    rows = [episode("vL", seed=0, plan=PLAN.digest), episode("t", seed=1, plan=PLAN.digest)]
    found = checklist_of(make_grid(tmp_path, [PLAN], rows))
    assert "recovered where the server had left them as text: fence 1" in found.entry("C07").said
    assert "asked for as text and read from it: 1" in found.entry("C07").said
    assert "1 of 3 in its own field" in found.entry("C06").said


def test_models_that_overlap_are_not_ranked_and_conditions_are_compared(tmp_path: Path) -> None:
    other = CellKey("qwen", CELL.stack, CELL.condition, CELL.task)
    plans = [PLAN, plan_of(other)]
    rows = [*DONE, *(episode("vp", seed=seed, cell=other, plan=plans[1].digest) for seed in (0, 1))]
    found = checklist_of(make_grid(tmp_path, plans, rows))
    assert "the same for all 2 models" in found.entry("C08").said
    assert "0 of 1 rankings are made" in found.entry("C16").said
    assert "overlap" in found.entry("C16").said


def test_another_text_of_a_condition_is_not_held_fixed(tmp_path: Path) -> None:
    other = CellKey("qwen", CELL.stack, CELL.condition, CELL.task)
    plans = [PLAN, plan_of(other, condition_text="ef" * 32)]
    assert "NOT the same" in checklist_of(make_grid(tmp_path, plans, DONE)).entry("C08").said


def test_the_same_task_on_two_stacks_is_a_cross_check(tmp_path: Path) -> None:
    other = CellKey(CELL.model, "vllm", CELL.condition, CELL.task)
    vllm = {**SERVER, "stack": known("vllm", "x"), "version": known("0.32.0", "x")}
    plans = [PLAN, plan_of(other)]
    rows = [*DONE, *(episode("v", seed=seed, cell=other, plan=plans[1].digest) for seed in (0, 1))]
    recordings = {"001": {"llamacpp": SERVER}, "002": {"vllm": vllm}}
    found = checklist_of(make_grid(tmp_path, plans, rows, recordings)).entry("C17")
    assert found.said == "the same tasks ran on: llamacpp (llama-server b11434), vllm (vLLM 0.32.0)"


def test_recordings_that_differ_say_both(tmp_path: Path) -> None:
    newer = {**SERVER, "version": known("b12000", "/props")}
    found = checklist_of(make_grid(tmp_path, [PLAN], DONE, {"001": {"llamacpp": SERVER}, "002": {"llamacpp": newer}}))
    assert "b11434 / b12000" in found.entry("C01").said
    assert len(found.entry("C20").data["sha256"]) == 2


def test_episodes_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    source = make_grid(tmp_path, [PLAN], DONE)
    (tmp_path / "episodes.jsonl").write_text("nonsense\n")
    found = checklist_of(source)
    assert "does not begin with a header" in found.entry("C13").why
    assert found.entry("C13").counted == "unknown"


def test_a_grid_that_has_not_begun(tmp_path: Path) -> None:
    found = checklist_of(make_grid(tmp_path, [], []))
    assert found.entry("C13").counted == "not_applicable"
    assert found.entry("C04").counted == "filled"
