"""One version everywhere."""

from __future__ import annotations

import tomllib
from pathlib import Path

import stacktap
from results.version import VERSION


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION == stacktap.__version__
