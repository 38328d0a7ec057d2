"""Grids on Ray: the same results as the local executor's, carried on after a kill, and what goes wrong said.

Needs the environment that `make ray` makes; the cluster is started by each run on this machine.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from harness.grid import parse_grid
from harness.telling import told
from results.episode_journal import EpisodeReader
from results.tables.cells import cell_table
from stacks.locations import environments_folder
from tests.harness.test_grid_run import carry, grid_text, outcomes
from tests.stacks_real.test_servers_real import require
from tests.support.known_server import KnownServer, known_server
from tests.support.servers import ROOT, environment

PYTHON = environments_folder() / "ray" / "bin" / "python"
pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not PYTHON.exists(), reason="no Ray here: make ray"),
]


def around(home: Path, **more: str) -> dict[str, str]:
    """The test's environment, with the installed stacks; its processes are known by the folder in it."""
    return environment(home, XDG_DATA_HOME=str(environments_folder().parents[1]), **more)


def command(grid: Path, folder: Path, executor: str = "ray") -> list[str]:
    return [str(PYTHON), "-m", "stacktap", "run", str(grid), "--executor", executor, "--out", str(folder)]


def on_ray(tmp_path: Path, text: str, folder: Path, executor: str = "ray") -> subprocess.CompletedProcess[str]:
    (tmp_path / "grid.yaml").write_text(text)
    return subprocess.run(
        command(tmp_path / "grid.yaml", folder, executor),
        check=False,
        cwd=ROOT,
        env=around(tmp_path),
        capture_output=True,
        text=True,
        timeout=500,
    )


def started(tmp_path: Path, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(tmp_path / "grid.yaml", folder),
        cwd=ROOT,
        env=around(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def kept(folder: Path) -> int:
    journal = folder / "episodes.jsonl"
    return journal.read_bytes().count(b'"event":"episode"') if journal.exists() else 0


def alike(one: Path, other: Path) -> None:
    assert outcomes(one) == outcomes(other)
    assert cell_table(told(one).cells) == cell_table(told(other).cells)
    assert told(one).findings == told(other).findings


def test_the_same_comes_out_as_on_this_machine_alone(tmp_path: Path) -> None:
    with known_server(KnownServer()) as url:
        text = grid_text(url, ("does", "once"), 4)
        carry(parse_grid(text), tmp_path / "here")
        done = on_ray(tmp_path, text, tmp_path / "ray")
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    alike(tmp_path / "ray", tmp_path / "here")


def test_servers_are_started_by_the_tasks_and_stopped(tmp_path: Path) -> None:
    require("llamacpp")
    value = json.loads(grid_text("http://h", (), 2, conditions=["native", "text-tools"]))
    value["targets"] = [
        {"name": name, "up": "llamacpp", "canary": name, "flags": ["--jinja"]} for name in ("does", "stops")
    ]
    value["targets"].append({"name": "big", "up": "llamacpp", "canary": "does", "resources": {"GPU": 1000}})
    done = on_ray(tmp_path, json.dumps(value), tmp_path / "ray")
    assert "big: not_run:resources: it needs 1000 GPU, and the cluster has" in done.stderr, done.stderr
    value["targets"].pop()
    carry(parse_grid(json.dumps(value)), tmp_path / "here")
    episodes = list(EpisodeReader(tmp_path / "ray"))
    assert len(episodes) == 2 * 2 * 2 * 2
    assert outcomes(tmp_path / "ray") == outcomes(tmp_path / "here")
    assert not servers(tmp_path)


def servers(home: Path) -> list[str]:
    """Command lines of model servers that belong to this test (their state folder is the test's own)."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(home).encode() in (entry / "environ").read_bytes():
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found += [line] if "llama-server" in line else []
        except OSError:
            continue
    return found


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_in_the_middle_it_is_carried_on_by_either_executor(how: signal.Signals, tmp_path: Path) -> None:
    with known_server(KnownServer()) as url:
        text = grid_text(url, ("does", "stops"), 8, limits={"turns": 5})
        (tmp_path / "grid.yaml").write_text(text)
        carry(parse_grid(text), tmp_path / "here")
        folder = tmp_path / "ray"
        for wanted in (1, 60):
            process = started(tmp_path, folder)
            while process.poll() is None and kept(folder) < wanted:
                time.sleep(0.005)
            assert process.poll() is None, "it ended before it was stopped"
            process.send_signal(how)
            process.wait(60)
        assert 0 < kept(folder) < 128
        first = on_ray(tmp_path, text, folder)
        assert first.returncode in (0, 1), first.stderr
    alike(folder, tmp_path / "here")
    places = [one.place for one in EpisodeReader(folder)]
    assert len(set(places)) == len(places) == 128


def test_a_worker_that_dies_is_said_and_its_cells_are_run_the_next_time(tmp_path: Path) -> None:
    with known_server(KnownServer()) as url:
        text = grid_text(url, ("does",), 8)
        (tmp_path / "grid.yaml").write_text(text)
        folder = tmp_path / "ray"
        process = subprocess.Popen(
            command(tmp_path / "grid.yaml", folder),
            cwd=ROOT,
            env=around(tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        while process.poll() is None and not kept(folder):
            time.sleep(0.005)
        for pid in workers(tmp_path):
            os.kill(pid, signal.SIGKILL)
        _, said = process.communicate(timeout=100)
        assert process.returncode == 1
        assert "not_run:worker: " in said
        done = on_ray(tmp_path, text, folder, "local")
    assert done.returncode == 0, done.stderr
    assert len(list(EpisodeReader(folder))) == 64


def workers(home: Path) -> list[int]:
    """Ray's processes of this test that run our task."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"ray::parts"):
                found += [int(entry.name)] if str(home).encode() in (entry / "environ").read_bytes() else []
        except OSError:
            continue
    return found


def test_a_key_is_filled_in_where_the_task_runs_and_stands_nowhere(tmp_path: Path) -> None:
    key = "sk-ray-0123456789abcdef"
    server = KnownServer()
    with known_server(server) as url:
        value: dict[str, Any] = json.loads(grid_text(url, conditions=["native"]))
        value["targets"][0]["headers"] = {"Authorization": "Bearer ${RAY_TEST_KEY}"}
        (tmp_path / "grid.yaml").write_text(json.dumps(value))
        done = subprocess.run(
            command(tmp_path / "grid.yaml", tmp_path / "ray"),
            check=False,
            cwd=ROOT,
            env=around(tmp_path, RAY_TEST_KEY=key),
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stderr
    assert {each["Authorization"] for each in server.headers} == {f"Bearer {key}"}
    for path in (tmp_path / "ray").rglob("*"):
        assert not path.is_file() or key.encode() not in path.read_bytes(), path
