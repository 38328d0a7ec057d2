"""docs/dense.md says of grid, known agents and tasks what is so."""

from __future__ import annotations

import re

from harness.dense.family import own_families
from harness.dense.known_agents import BEHAVIOURS
from harness.dense.oracle import ORACLES
from harness.dense.rules import MODES
from harness.grid import parse_grid
from harness.grid_cells import cells_of
from tests.support.servers import ROOT

PAGE = (ROOT / "docs" / "dense.md").read_text(encoding="utf-8")


def test_the_grid_of_the_page_is_one() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    cells = cells_of(parse_grid(block))
    assert [cell.key.condition for cell in cells] == ["raw/hermes"] * 2
    assert {cell.key.task for cell in cells} <= own_families().keys()


def test_every_known_agent_is_called_so_on_the_page() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", PAGE, re.MULTILINE))
    rows.pop("canary")
    assert rows.keys() == BEHAVIOURS.keys()
    for name, known in BEHAVIOURS.items():
        assert known.mode in rows[name]
        assert known.counted in rows[name]


def test_modes_and_oracles_stand_on_the_page() -> None:
    for name in (*MODES, *ORACLES):
        assert f"`{name}`" in PAGE
