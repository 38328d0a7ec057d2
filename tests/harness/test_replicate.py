"""The paper's grid as grids of ours: names, sizes, and the table beside the published one."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.grid import Target, check_grid
from harness.grid_cells import cells_of
from harness.replicate import Size, beside, grids_of, measure, published_models, published_name, table
from results.tables.published import paper_grid
from tests.support.known_server import KnownServer, known_server


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("qwen2.5-coder:0.5b", "qwen2.5-coder:0.5b"),
        ("Qwen2.5-Coder-1.5B-Instruct-Q4_K_M", "qwen2.5-coder:1.5b"),
        ("gemma-3-270m-q4_k_m", "gemma3:270m"),
        ("phi3", "phi3:latest"),
        ("llama3.2:latest", "llama3.2:latest"),
        ("Phi-3.5-mini", None),
        ("SmolLM2-135M-Instruct.Q4_1", None),
        ("", None),
    ],
)
def test_a_model_is_the_published_one_only_where_its_name_is_sure(ours: str, theirs: str | None) -> None:
    assert published_name(ours) == theirs


def test_the_grids_have_the_papers_seeds_conditions_and_trials() -> None:
    grids = grids_of([Target(name="t", url="http://x", model="phi3")], Size())
    for grid in grids:
        check_grid(grid)
    cells = {(cell.key.condition, cell.key.task): cell for grid in grids for cell in cells_of(grid)}
    assert {condition for condition, task in cells if task == "chain"} == {"native", "native+hint", "text-tools"}
    assert cells["native", "aggregation"].seeds == (42, 123, 456, 789, 2024, 7, 99, 2025)
    assert cells["native", "chain"].seeds == (42, 123, 456, 789)
    assert len(cells["text-tools", "submit"].seeds) == 6
    assert len(cells["constrained", "single_step"].seeds) == 8
    assert len(cells) == 8
    assert [grid.sampling.max_tokens for grid in grids] == [1024, 400, 300]
    assert {grid.limits_of(cells["native", "chain"].family).turns for grid in grids} == {40}


def test_without_a_run_the_published_half_stands_alone() -> None:
    found, measured = beside(None, {})
    assert measured is None
    assert len(found) == len(paper_grid().cells)
    shown = table(found, measured, "")
    assert "not measured: no server was named" in shown
    assert all(model in shown for model in published_models())
    assert "rej (0 of 8 seeds)" in shown


@pytest.mark.parametrize(
    ("words", "tools"), [("own", "own"), ("paper", "own"), ("paper-compat", "own"), ("paper-compat", "paper-compat")]
)
async def test_what_was_measured_stands_beside(words: str, tools: str, tmp_path: Path) -> None:
    """A simulated server whose answers are prose: every rate is 0, every interval known."""
    names = {"phi": "phi3:latest"}
    with known_server(KnownServer()) as url:
        grids = grids_of([Target(name="here", url=url, model="phi")], Size(seeds=2, turns=3, tools=tools))
        run = await measure(grids, tmp_path / "run", lambda line: None)
    assert run.complete
    assert (run.done, run.declared) == (3 * 2 * 2 + 2 + 2, 16)
    found, measured = beside(tmp_path / "run", names, words=words, rng="paper")  # type: ignore[arg-type]
    rows = {(row.published.task, row.published.condition): row for row in found if row.published and row.measured}
    assert set(rows) == {
        ("aggregation", "native"),
        ("aggregation", "text-tools"),
        ("chain", "text-tools"),
        ("humaneval6", "text-tools"),
        ("single_step_constrained", "constrained"),
    }
    assert rows["aggregation", "text-tools"].difference == pytest.approx(-0.375)
    assert rows["humaneval6", "text-tools"].value == 0
    assert rows["single_step_constrained", "constrained"].difference == -1
    shown = table(found, measured, f"labels {words}")
    assert f"measured: labels {words}" in shown
    assert "scope: stack: ollama in the paper, openai here (phi @ here)" in shown
    assert "scope: retries: 50 in the paper, 0 here" in shown
    assert ("scope: tools: 16 in the paper, 5 here" in shown) == (tools == "own")
    assert "model digest: neither published nor known here" in shown
