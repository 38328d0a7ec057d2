"""The grid of docs/harness.md is run as the page says, on a stand-in for the user's server."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness.canary_agents import BEHAVIOURS
from harness.grid import parse_grid
from harness.grid_cells import cells_of
from tests.docs.test_commands import ON_A_GRID
from tests.support.servers import ROOT, chat_server, environment

PAGE = (ROOT / "docs" / "harness.md").read_text(encoding="utf-8")
ITEMS = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")


def grid() -> str:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    return str(block)


def test_the_commands_of_the_page_work_in_their_order(tmp_path: Path) -> None:
    lines = [line[2:].split("  #")[0].strip() for line in PAGE.splitlines() if line.startswith("$ ")]
    lines = [line for line in lines if ON_A_GRID.match(line)]
    assert len(lines) == 3
    with chat_server() as url:
        (tmp_path / "grid.yaml").write_text(grid().replace("http://localhost:8080", url))
        shown = []
        for line in lines:
            words = [sys.executable, "-m", "stacktap", *shlex.split(line)[1:]]
            path = {"PYTHONPATH": str(ROOT)}
            done = subprocess.run(
                words,
                check=False,
                cwd=tmp_path,
                env=environment(tmp_path, **path),
                capture_output=True,
                text=True,
                timeout=100,
            )
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            shown.append(done.stdout)
    assert shown[0] == shown[1]
    assert "0.0 % (0/2)" in shown[0]


def test_the_grid_of_the_page_is_the_one_that_it_describes() -> None:
    assert len(cells_of(parse_grid(grid()))) == 2
    for name in BEHAVIOURS:
        assert f"| `{name}` |" in PAGE


def test_every_item_is_mapped_to_files_that_exist() -> None:
    assert re.findall(r"^\| (S2-\d\d)", ITEMS, re.MULTILINE) == [f"S2-{number:02}" for number in range(1, 24)]
    for row in (line for line in ITEMS.splitlines() if re.match(r"\| S\d-", line)):
        named = re.findall(r"`([\w/]+(?:\.py|/))`", row.split("|")[-2])
        assert named or "not measured again" in row or "not here" in row, row
        for name in named:
            assert (ROOT / "tests" / name).exists(), name


def test_the_items_of_dense_bench_stand_once_and_in_order() -> None:
    found = re.findall(r"^\| (S0-\d\d)", ITEMS, re.MULTILINE)
    assert found == sorted(set(found))
    assert set(found) <= {f"S0-{number:02}" for number in range(1, 38)}


@pytest.mark.parametrize("number", range(1, 9))
def test_the_contradictions_are_stated(number: int) -> None:
    assert re.search(rf"^{number}\. \S", ITEMS, re.MULTILINE)
