"""The tables of Dense Bench's published counts, from episodes made up to have them (labelled synthetic)."""

from __future__ import annotations

import msgspec

from harness.dense.summary import summarise, text
from results.episodes import CellKey, EpisodeRecord, TurnRecord
from results.outcomes import Outcome
from results.statistics.passes import pass_rate, task_runs
from tests.support.dense_runs import SUCCESSES, TASKS, episode, published


def test_the_published_counts_print_their_table() -> None:
    """G03 and G12's 640: rates with Wilson intervals, floors, loops, and which pairs are not told apart."""
    episodes = list(published())
    assert len(episodes) == 640
    found = summarise(episodes)
    said = text(found)
    assert "llama-4bit @ mlx, raw/hermes  5.0 % [2.6, 9.6] (8/160)" in said
    assert "llama-8bit @ mlx, raw/hermes  10.0 % [6.2, 15.6] (16/160)" in said
    assert "25.0 % " in said
    assert found.floors == list(TASKS[3:])
    assert said.count("floor: no run of any configuration") == 5
    assert "5 of 8 tasks are floors" in said
    names = {(one[0], other[0]) for one, other in found.overlapping}
    assert ("llama-4bit", "llama-8bit") in names
    assert ("qwen-4bit", "llama-4bit") not in names
    (loops,) = [line.split() for line in said.splitlines() if "tool_call_loop" in line]
    assert loops == ["tool_call_loop", "13", "12", "62", "13"]


def test_the_families_flip_in_opposite_directions() -> None:
    rates = {}
    for (family, width), task in ((key, TASKS[0] if key[0] == "qwen" else TASKS[1]) for key in SUCCESSES):
        runs = task_runs(one for one in published() if one.cell.model == f"{family}-{width}" and one.cell.task == task)
        rates[family, width] = round(pass_rate(runs, 5, key="k", resamples=50).value, 2)
    assert rates == {("qwen", "4bit"): 0.75, ("qwen", "8bit"): 0.28, ("llama", "4bit"): 0.0, ("llama", "8bit"): 0.28}


def test_what_is_no_result_stays_outside() -> None:
    lost = EpisodeRecord(
        episode="x",
        cell=CellKey("qwen-4bit", "mlx", "raw/hermes", TASKS[0]),
        seed=0,
        outcome=Outcome(layer="not_run", code="transport.reset", at_fault="network", model_ran="unknown"),
        ended_by="nonresponse",
    )
    found = summarise([lost])
    assert "n/r" in text(found)
    assert "not run, outside every rate: qwen-4bit @ mlx, raw/hermes: transport x1" in text(found)
    nothing = summarise(
        [episode("a", "b", TASKS[0], 0, "failure_to_stop"), episode("c", "d", TASKS[0], 0, "wrong_tool")]
    )
    assert "every task is a floor: nothing is ranked" in text(nothing)
    assert summarise([]).tasks == []
    other = CellKey("m", "s", "native", "aggregation")
    assert not summarise([EpisodeRecord(episode="x", cell=other, seed=0, outcome=lost.outcome, ended_by="prose")]).tasks


def test_what_a_server_made_of_it_is_a_table_by_cause() -> None:
    def turn(layer: str, code: str, fault: str) -> TurnRecord:
        return TurnRecord(outcome=Outcome(layer=layer, code=code, at_fault=fault, model_ran="yes"))  # type: ignore[arg-type]

    words, left = turn("ok", "final_answer", "undetermined"), turn("parser", "left_as_text", "stack")
    plain, lost, made_up_for = (episode("m", width, "files.a", 0, "success") for width in ("a", "b", "b"))
    lost = msgspec.structs.replace(
        lost,
        turns=(words, left),
        outcome=Outcome(layer="not_run", code="parser.left_as_text", at_fault="stack", model_ran="yes"),
    )
    made_up_for = msgspec.structs.replace(made_up_for, repeat=1, turns=(left, words))
    said = text(summarise([msgspec.structs.replace(plain, turns=(words,)), lost, made_up_for]))
    assert "  parser.left_as_text              0        2\n" in said
    assert "  share of all runs              0.0 %  100.0 %" in said
    assert "by cause" not in text(summarise([plain]))
