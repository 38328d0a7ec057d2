"""A sample of the truth table, measured again on the real servers: the rows come out as they are published."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from probe.truth_table.__main__ import main
from probe.truth_table.cells import Cell
from probe.truth_table.configurations import Configuration, configurations
from probe.truth_table.measure import measure
from probe.truth_table.store import path_of, read_table
from stacks.launching.launch import EnvironmentMissingError, LaunchError, find_server, recipe_for

pytestmark = [pytest.mark.real, pytest.mark.timeout(420)]

PUBLISHED = Path(__file__).resolve().parents[2] / "results" / "published" / "truth_table"
SAMPLE = [
    ("llamacpp", "jinja", ("good", "two", "trunc", "unknown", "empty", "splitemoji")),
    ("llamacpp", "no-jinja", ("good", "prose")),
    ("llamacpp", "own-mistral_args", ("good", "two", "single", "answer")),
    ("mlx_server", "json_tools", ("good", "prosecall", "comma", "noargs", "loopcall")),
    ("mlx_server", "own-glm47", ("good", "trunc", "badtype")),
    ("llamacpp_python", "default", ("good", "single", "think")),
    ("vllm", "own-hermes", ("good", "trunc")),
    ("sglang", "own-hermes", ("good", "trunc")),
]


def configuration_of(stack: str, name: str) -> Configuration:
    return next(each for each in configurations() if (each.stack, each.name) == (stack, name))


def require(stack: str) -> None:
    try:
        find_server(recipe_for(stack))
    except EnvironmentMissingError as missing:
        pytest.skip(f"{stack}: {missing}")
    except LaunchError as unknown:
        pytest.skip(f"{stack}: {unknown}")


@pytest.mark.parametrize(("stack", "name", "members"), SAMPLE, ids=[f"{stack}-{name}" for stack, name, _ in SAMPLE])
def test_a_sample_comes_out_as_published(stack: str, name: str, members: tuple[str, ...], tmp_path: Path) -> None:
    require(stack)
    configuration = configuration_of(stack, name)
    if configuration.heavy and not path_of(PUBLISHED, configuration).exists():
        pytest.skip(f"{stack} {name}: not published yet (python -m probe.truth_table --heavy --stack {stack})")
    published = read_table(path_of(PUBLISHED, configuration))
    measured = asyncio.run(measure(configuration, tmp_path, members=members))
    wanted = [cell for cell in published.cells if cell.member in members]
    assert len(measured.cells) == 2 * len(members)
    assert [without_detail(cell) for cell in measured.cells] == [without_detail(cell) for cell in wanted]


def without_detail(cell: Cell) -> dict[str, object]:
    return {name: value for name, value in cell.facts().items() if name != "detail"}


def test_the_command_measures_what_is_missing_and_nothing_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require("llamacpp")
    arguments = ["--stack", "llamacpp", "--configuration", "no-jinja", "--out", str(tmp_path)]
    assert main(arguments) == 0
    assert "llamacpp no-jinja: 16 answers" in capsys.readouterr().out
    path = tmp_path / "llamacpp" / "no-jinja.json"
    stamp = os.stat(path).st_mtime_ns
    assert main(arguments) == 0
    assert "answers" not in capsys.readouterr().out
    assert os.stat(path).st_mtime_ns == stamp
    assert "gate.template_flag_missing" in (tmp_path / "llamacpp.md").read_text(encoding="utf-8")
    assert "0 of 6" in (tmp_path / "README.md").read_text(encoding="utf-8")
