"""`requirements.lock` pins all that the package itself needs (S0-35)."""

from __future__ import annotations

import re
import tomllib

from tests.support.servers import ROOT


def name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def test_every_dependency_is_pinned_to_one_version() -> None:
    lines = [line.strip() for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines()]
    pinned = {name(line) for line in lines if re.match(r"[A-Za-z0-9._-]+(\[[^\]]*\])?==\S", line)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {name(one) for one in project["dependencies"]} <= pinned
