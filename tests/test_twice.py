"""Failures get a second chance, and what needed it is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

FLAKY = """
import pathlib
import pytest

@pytest.mark.parametrize("name", {names})
def test_it(name):
    mark = pathlib.Path(__file__).with_name(name)
    seen = mark.exists()
    mark.touch()
    assert name.startswith("good") or (name.startswith("odd") and seen)
"""


@pytest.mark.parametrize(
    ("names", "code", "unstable"),
    [
        (["good"], 0, 0),
        (["good", "odd"], 0, 1),
        (["odd", "bad"], 1, 1),
        ([f"odd{n}" for n in range(6)], 1, 0),
    ],
)
def test_twice(tmp_path: Path, names: list[str], code: int, unstable: int) -> None:
    (tmp_path / "test_flaky.py").write_text(FLAKY.format(names=names), "utf-8")
    told = tmp_path / "unstable"
    told.touch()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "STACKTAP_UNSTABLE": str(told)}
    environment.pop("PYTEST_XDIST_WORKER", None)
    command = [sys.executable, "-m", "tests.twice", "-p", "no:cacheprovider", "-q", "test_flaky.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout
    assert len(told.read_text().splitlines()) == unstable
    assert done.stdout.count("UNSTABLE") == unstable
