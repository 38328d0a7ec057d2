from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.dense.comparable import EQUAL, asked_digest, unequal
from harness.grid import parse_grid
from harness.grid_cells import cells_of, plan_of
from results.episodes import CellPlan
from results.manifest import known

GRID = """
targets: [{name: a, url: 'http://x', model: four}, {name: b, url: 'http://y', model: eight}]
conditions: [native]
tasks: [files.make_folder, aggregation]
repeats: 20
sampling: {temperature: 0.7, decoder_seed: repeat}
"""


def plans(text: str = GRID) -> dict[Any, CellPlan]:
    grid = parse_grid(text)
    return {cell.key: plan_of(grid, cell, {"version": known(cell.target.name, "a test")}) for cell in cells_of(grid)}


def test_one_grid_asks_all_the_same() -> None:
    found = plans()
    assert unequal(found) == []
    items = [plan for key, plan in found.items() if key.task == "files.make_folder"]
    assert len({asked_digest(plan) for plan in items}) == 1
    assert len({plan.digest for plan in items}) == 2


@pytest.mark.parametrize("name", EQUAL)
def test_each_difference_is_named(name: str) -> None:
    found = plans()
    key = next(key for key in found if key.task == "files.make_folder" and key.stack == "b")
    assert name in found[key].facts
    found[key] = msgspec.structs.replace(found[key], facts={**found[key].facts, name: known("other", "a test")})
    (said,) = unequal(found)
    assert "must not be compared" in said
    assert f"{name} " in said
    assert '"other"' in said


def test_seeds_and_repeats_must_be_the_same() -> None:
    found = plans()
    for key, plan in plans(GRID.replace("repeats: 20", "repeats: 5\nseeds: [1]")).items():
        if key.stack == "b":
            found[key] = plan
    (said,) = unequal(found)
    assert "repeats" in said
    assert "seeds" in said
