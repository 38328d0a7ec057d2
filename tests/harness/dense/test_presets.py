"""The presets are grids: the paper's counts, and the small one as it was run and published."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.bfcl import items as bfcl
from harness.bfcl.items import KINDS, NUMBERS
from harness.dense.family import own_families
from harness.grid import Grid, read_grid
from harness.grid_cells import cells_of
from tests.support.servers import ROOT

PRESETS = ROOT / "presets"


def declared(path: Path) -> int:
    return sum(cell.declared for cell in cells_of(read_grid(path)))


def test_the_papers_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four configurations, 8 items of BFCL, 20 seeds: 640 episodes. The items themselves need BFCL's wheel."""
    items = {f"{kind}_{number}" for kind in KINDS for number in NUMBERS}
    stand_in = next(iter(own_families().values())).item
    monkeypatch.setattr(bfcl, "bfcl_items", lambda: dict.fromkeys(items, stand_in))
    grid = read_grid(PRESETS / "dense-8.yaml")
    cells = cells_of(grid)
    assert {row.family.removeprefix("bfcl.") for row in grid.task_rows()} < items
    assert (len(grid.targets), len(grid.tasks), grid.repeats) == (4, 8, 20)
    assert sum(cell.declared for cell in cells) == 640
    assert {cell.target.name: sum(c.declared for c in cells if c.target is cell.target) for cell in cells} == {
        "qwen-4bit": 160,
        "qwen-8bit": 160,
        "llama-4bit": 160,
        "llama-8bit": 160,
    }
    assert (grid.sampling.temperature, grid.sampling.decoder_seed) == (0.7, "repeat")
    assert {cell.key.model for cell in cells if cell.target.name.startswith("qwen")} == {
        "Qwen2.5-72B-Instruct-4bit",
        "Qwen2.5-72B-Instruct-8bit",
    }


def test_the_small_grid_is_the_one_that_was_published() -> None:
    small = read_grid(PRESETS / "dense-small.yaml")
    assert small == read_grid(ROOT / "results" / "published" / "dense-cpu" / "grid.yaml")
    assert declared(PRESETS / "dense-small.yaml") == 4 * 3 * 5


def test_the_known_agents_walk_the_small_grid() -> None:
    small, known = read_grid(PRESETS / "dense-small.yaml"), read_grid(PRESETS / "dense-canary.yaml")
    assert isinstance(known, Grid)
    assert (known.tasks, known.repeats, known.sampling, known.limits) == (
        small.tasks,
        small.repeats,
        small.sampling,
        small.limits,
    )
    assert declared(PRESETS / "dense-canary.yaml") == 60
