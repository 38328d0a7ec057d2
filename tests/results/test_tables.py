"""Tables: every number with its denominator, a word where there is no rate, the published half as it was printed."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from results.episodes import CellKey, CellPlan
from results.manifest import Fact, known, unknown
from results.statistics.cells import CellStatistics
from results.statistics.grid import statistics_of
from results.statistics.resampling import Interval
from results.tables.cells import cell_json, cell_table
from results.tables.layout import aligned, counts
from results.tables.published import AGGREGATION, CHAIN, HUMAN_EVAL, SINGLE_STEP, paper_grid
from results.tables.replication import NOT_CLAIMED, PAPER_SETUP, replication_table, row_json, rows, scope_lines
from tests.support.episodes import CELL, episodes

PER_CENT = re.compile(r"-?\d+\.\d %")


def measured(
    *rows_of_cell: str,
    model: str = "phi3:latest",
    condition: str = "text-tools",
    task: str = AGGREGATION,
    stack: str = "ollama",
) -> CellStatistics:
    return statistics_of(episodes(rows_of_cell, CellKey(model, stack, condition, task)), resamples=500)[0]


def test_aligned() -> None:
    assert aligned(("a", "bb"), [("ccc", "d"), ("", "")]) == ["a    bb", "ccc  d", ""]
    assert (counts({}), counts({"gate": 2, "engine": 1})) == ("none", "gate x2, engine x1")
    with pytest.raises(ValueError, match="columns"):
        aligned(("a",), [("b", "c")])


def test_every_rate_has_its_denominator_beside_it() -> None:
    text = cell_table([measured("vvp", "vx", "x", "vf"), measured("vp", "p", model="other")])
    for line in text.splitlines():
        for found in PER_CENT.finditer(line):
            after = line[found.end() : found.end() + 30]
            assert re.match(r"( \[[0-9., -]+\])? \(\d+(/| of )\d+( seeds)?\)", after), line
    assert "nonresponse x2" in text
    assert "beware" in text


def test_an_undefined_cell_prints_words_and_no_zero() -> None:
    text = cell_table([measured("g", "g")])
    row = re.split(" {2,}", text.splitlines()[1])
    # the naive rate is what it is: a careless harness does print 0
    assert row[4:9] == ["rej (0 of 2 seeds)", "rej", "0.0 % (0/2)", "0 turns", "gate x2"]
    assert "first turn valid     rej" in text
    assert cell_table([]) == "no cells"
    found = cell_json(measured("g", "g"))
    assert (found["per_seed"]["value"], found["per_seed"]["undefined"]) == (None, "rej")
    assert (found["pooled"]["value"], found["pooled"]["undefined"]) == (None, "rej")


def test_pooled_turns_get_no_interval() -> None:
    found = cell_json(measured("vvp", "vx"))
    assert "wilson" not in found["pooled"]
    assert "wilson" not in found["naive"]
    assert found["first_turn"]["wilson"]
    assert json.loads(json.dumps(found)) == found


def test_the_published_grid() -> None:
    grid = paper_grid()
    assert len(grid.cells) == 55
    by_task = {
        task: sum(cell.task == task for cell in grid.cells) for task in (AGGREGATION, CHAIN, HUMAN_EVAL, SINGLE_STEP)
    }
    assert by_task == {AGGREGATION: 28, CHAIN: 11, HUMAN_EVAL: 7, SINGLE_STEP: 9}
    assert (grid.ollama, len(grid.aggregation_seeds), len(grid.chain_seeds)) == ("0.30.8", 8, 4)
    assert len(grid.models) == 10
    assert grid.cross_stack["phi3"]["ollama"] == "HTTP400_rejected"
    assert grid.cell(AGGREGATION, "phi3:latest", "native+hint") is None
    refused = [cell for cell in grid.cells if cell.undefined]
    assert [cell.text() for cell in refused] == ["rej (0 of 8 seeds)"] * 3
    assert all(cell.comparable is None for cell in refused)


@pytest.mark.parametrize(
    ("task", "model", "condition", "text"),
    [
        (AGGREGATION, "llama3.2:latest", "text-tools", "43.8 % [31.2, 50.0] (8 of 8 seeds)"),
        (CHAIN, "llama3.2:latest", "text-tools", "12.5 % (4 seeds)"),
        (HUMAN_EVAL, "phi3:latest", "text-tools", "66.7 % [30.0, 90.3] (4/6)"),
        (SINGLE_STEP, "gemma3:4b", "constrained", "100.0 % [67.6, 100.0] (8/8)"),
        (AGGREGATION, "qwen2.5-coder:0.5b", "constrained", "100.0 % (seeds not published)"),
    ],
)
def test_published_cells_as_text(task: str, model: str, condition: str, text: str) -> None:
    cell = paper_grid().cell(task, model, condition)
    assert cell is not None
    assert cell.text() == text


def test_a_published_interval_without_width_is_not_compared_as_such() -> None:
    cell = paper_grid().cell(AGGREGATION, "gemma3:4b", "text-tools")
    assert cell is not None
    assert cell.interval == Interval(1, 1)
    assert cell.comparable is not None
    assert round(cell.comparable.low, 3) == 0.676


def test_the_published_half_alone() -> None:
    table = rows(paper_grid())
    text = replication_table(table, source=paper_grid().source)
    assert len(table) == 55
    assert text.count("not measured") == 55
    assert "gemma3:4b" in text
    assert "50.0 % (8/16)" in text
    assert text.endswith(NOT_CLAIMED)
    assert " > " not in text


def test_beside_the_published() -> None:
    ours = measured("v", "vp", "p", "x", "v", "p", "p", "v")
    found = next(row for row in rows(paper_grid(), [ours]) if row.measured)
    assert found.published is not None
    assert found.difference == pytest.approx((3.5 / 7) - 0.375)
    assert found.overlap is True
    text = replication_table([found], source="s", how="own labels, a stream for each cell", scope=["stack: a"])
    line = text.splitlines()[1]
    assert "+12.5 points" in line
    assert "8 (published 10)" in line
    assert "nonresponse x1 (published 0)" in line
    assert "44.4 % (4/9) (published 30.0 % (3/10))" in line
    assert "measured: own labels, a stream for each cell\nscope: stack: a" in text
    assert json.loads(json.dumps(row_json(found)))["intervals_overlap"] is True


@pytest.mark.parametrize(
    ("condition", "letters", "word"),
    [
        ("native", "g", "both undefined"),
        ("native", "v", "published is undefined"),
        ("text-tools", "x", "measured is undefined"),
        ("text-tools", "v", "no"),
    ],
)
def test_overlap_in_words(condition: str, letters: str, word: str) -> None:
    ours = measured(*[letters] * 80, condition=condition)
    found = next(row for row in rows(paper_grid(), [ours]) if row.measured)
    line = replication_table([found], source="s").splitlines()[1]
    assert word in re.split(" {2,}", line)
    assert (found.overlap is None) == ("undefined" in word)


def test_names_are_translated_and_what_the_paper_has_not_stays() -> None:
    ours = [
        measured("v", "p", model="phi3.gguf", task="agg", stack="llamacpp"),
        measured("v", model="phi3.gguf", task="agg", stack="vllm"),
        measured("v", model="smollm2"),
    ]
    table = rows(paper_grid(), ours, models={"phi3.gguf": "phi3:latest"}, tasks={"agg": AGGREGATION})
    assert len(table) == 57
    assert [row.measured.cell.stack for row in table if row.measured] == ["llamacpp", "vllm", "ollama"]
    assert table[-1].published is None
    assert "not in the paper" in replication_table(table[-1:], source="s")


def test_single_turn_tasks_compare_their_trials() -> None:
    ours = measured("v", "v", "p", "v", "p", "v", task=HUMAN_EVAL)
    found = next(row for row in rows(paper_grid(), [ours]) if row.measured)
    assert (found.difference, found.overlap) == (0, True)
    assert "66.7 % [30.0, 90.3] (4/6)  66.7 % [30.0, 90.3] (4/6)" in replication_table([found], source="s")


def test_models_are_ranked_only_where_they_are_apart() -> None:
    alike = [measured("v", "p", "vp", model=model) for model in ("phi3:latest", "gemma3:4b")]
    said = replication_table(rows(paper_grid(), alike), source="s")
    assert "ollama, text-tools, aggregation: No ranking: the 95 % intervals of" in said


def test_scope_says_what_differs_and_what_is_not_known() -> None:
    same = {name: known(value, "test") for name, value in PAPER_SETUP.items()}
    facts: dict[str, Fact] = {**same, "model_digest": known("sha256:a", "file")}
    plan = CellPlan(cell=msgspec.structs.replace(CELL, stack="ollama"), seeds=(1,), facts=facts)
    assert scope_lines([plan]) == ["model digest: not published, sha256:a here (llama3.2)"]
    changed = {**same, "version": known("0.31.0", "test"), "quantization": unknown("not measured")}
    del changed["stack"], changed["top_p"]
    other = CellPlan(cell=CELL, seeds=(1,), facts=changed)
    assert scope_lines([other]) == [
        "stack: ollama in the paper, llamacpp here (llama3.2 @ llamacpp)",
        "version: 0.30.8 in the paper, 0.31.0 here (llama3.2 @ llamacpp)",
        "quantization: Q4_K_M in the paper, unknown here: not measured (llama3.2 @ llamacpp)",
        "top p: 1.0 in the paper, not stated here (llama3.2 @ llamacpp)",
        "model digest: neither published nor known here (llama3.2)",
    ]
