"""A disk that takes no more: traffic goes on and the loss is counted and shown; with --strict it is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from results.reader import RunReader
from results.runs import inspect

pytest.importorskip("resource")
CHILD = Path(__file__).with_name("full_disk_child.py")


def run(folder: Path, mode: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, str(CHILD), str(folder), mode]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_traffic_goes_on_and_the_loss_is_shown(tmp_path: Path) -> None:
    found = run(tmp_path / "run", "lenient")
    assert set(found["full"]) == {"200"}
    assert found["failing"]["failing"]
    assert found["failing"]["lost_lines"] > 0
    assert found["on_disk"]["lost_lines"] > 0
    assert found["on_disk"]["failing"]
    assert found["again"] == ["200"] * 3
    assert found["end"]["failing"] == ""
    reader = RunReader(tmp_path / "run")
    exchanges = list(reader)
    assert reader.problems.lost_lines == found["end"]["lost_lines"]
    assert reader.problems.corrupt_lines <= sum(len(one.damage) for one in exchanges)
    assert reader.problems.torn_tail == 0
    assert [one.end for one in exchanges if not one.damaged][-3:] == ["complete"] * 3
    sound = [one for one in exchanges if not one.damaged and one.end == "complete"]
    assert all(len(one.response.body) == 2000 for one in sound if one.response is not None)
    assert len(sound) >= 10


def test_strict_refuses_until_it_can_be_written_again(tmp_path: Path) -> None:
    found = run(tmp_path / "run", "strict")
    assert found["full"][0] == "200"
    assert found["full"][-1] == "503"
    assert found["failing"]["failing"]
    assert found["again"] == ["200"] * 3


def test_strict_does_not_go_on_for_the_sake_of_short_lines(tmp_path: Path) -> None:
    found = run(tmp_path / "run", "strict-large")
    refused = found["full"].index("503")
    assert set(found["full"][refused:]) == {"503"}
    assert refused <= 5
    assert found["again"] == ["200"] * 3


def test_what_was_lost_last_is_shown_too(tmp_path: Path) -> None:
    found = run(tmp_path / "run", "lenient")
    status = tmp_path / "run" / "status.json"
    status.write_text(json.dumps({**found["end"], "lost_lines": found["end"]["lost_lines"] + 5}))
    reader = RunReader(tmp_path / "run")
    list(reader)
    assert reader.problems.lost_lines == found["end"]["lost_lines"] + 5
    info = inspect(tmp_path / "run")
    assert info is not None
    assert info.lost == found["end"]["lost_lines"] + 5
    status.write_text("[[[")
    list(reader)
    assert reader.problems.lost_lines == found["end"]["lost_lines"]
