"""`stacktap view`: what it prints, the key it keeps, ports in use, folders that hold no run."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stacktap.commands.view import command
from stacktap.failure import CouldNotRunError
from tests.support.recorded import Script, answer


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    runs = tmp_path / "XDG_DATA_HOME" / "stacktap" / "runs"
    for name in ("20260101-000000-aaaa", "20260102-000000-bbbb"):
        script = Script(runs / name)
        script.chat(answer(content="hello"))
        script.run()
    return tmp_path


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[tuple[dict[str, Any], subprocess.Popen[str]]]:
    child = subprocess.Popen(
        [sys.executable, "-m", "stacktap", "view", "--json", *arguments], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        with child.stdout:
            yield json.loads(child.stdout.readline()), child
    finally:
        child.send_signal(signal.SIGINT)
        assert child.wait(20) == 0


def asked(said: dict[str, Any], path: str) -> Any:
    request = urllib.request.Request(said["base"] + path, headers={"X-Stacktap-Key": said["key"]})
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.loads(response.read())


def test_all_runs_with_a_key_that_stays(home: Path) -> None:
    with started("--port", "0") as (said, _):
        assert said["url"] == f"{said['base']}#/?key={said['key']}"
        assert [run["run"] for run in asked(said, "api/runs")["runs"]] == [
            "20260102-000000-bbbb",
            "20260101-000000-aaaa",
        ]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(said["base"] + "api/runs", timeout=20)
    key = home / "XDG_CACHE_HOME" / "stacktap" / "view" / "key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.parent.stat().st_mode & 0o777 == 0o700
    assert key.read_text() == said["key"]
    with started("@last", "--port", "0") as (again, _):
        assert again["key"] == said["key"]
        assert "#/runs/20260102-000000-bbbb?key=" in again["url"]


def test_a_run_from_elsewhere_is_shown_alone_and_read_only_writes_nothing(home: Path, tmp_path: Path) -> None:
    script = Script(tmp_path / "elsewhere")
    script.chat(answer(content="hello"))
    script.run()
    with started(str(tmp_path / "elsewhere"), "--port", "0", "--read-only") as (said, _):
        assert [run["run"] for run in asked(said, "api/runs")["runs"]] == ["elsewhere"]
        assert asked(said, "api/start")["read_only"]
        assert asked(said, "api/runs/elsewhere/exchanges")["from"] == 0
    assert not (home / "XDG_CACHE_HOME").exists()


def test_a_folder_of_runs(home: Path) -> None:
    with started(str(home / "XDG_DATA_HOME" / "stacktap" / "runs"), "--port", "0") as (said, _):
        assert len(asked(said, "api/runs")["runs"]) == 2


def test_a_port_in_use(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(CouldNotRunError, match="is in use; stop what listens there or choose another") as failure:
            CliRunner().invoke(command, ["--port", str(taken.getsockname()[1])], catch_exceptions=False)
    assert failure.value.exit_code == 3


@pytest.mark.parametrize("what", ["empty folder", "nothing", "file"])
def test_what_is_no_run(home: Path, tmp_path: Path, what: str) -> None:
    place = tmp_path / "place"
    if what == "empty folder":
        place.mkdir()
    elif what == "file":
        place.write_text("x")
    with pytest.raises(CouldNotRunError, match=r"is no run and holds none|no run is called|cannot read"):
        CliRunner().invoke(command, [str(place), "--no-open"], catch_exceptions=False)


def test_the_browser_is_sent_there_by_a_private_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = home / "opened"
    program = home / "browser.sh"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.tmp; mv {opened}.tmp {opened}\n')
    program.chmod(0o700)
    child = subprocess.Popen(
        [sys.executable, "-m", "stacktap", "view", "--port", "0"],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "BROWSER": f"{program} %s"},
    )  # fmt: skip
    assert child.stderr is not None
    with child.stderr:
        link = child.stderr.readline().removeprefix("open ").strip()
        deadline = time.monotonic() + 30
        while not opened.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        given = opened.read_text()
        assert given.startswith("file://")
        page = Path(given.removeprefix("file://"))
        assert link in page.read_text()
        assert page.stat().st_mode & 0o777 == 0o600
        child.send_signal(signal.SIGINT)
        assert child.wait(20) == 0
    assert "key=" in link
    assert "key=" not in given
    assert not page.exists()


def test_no_run_yet_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    with started("--port", "0") as (said, _):
        assert asked(said, "api/runs")["runs"] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_cache_that_cannot_be_written(home: Path) -> None:
    (home / "XDG_CACHE_HOME").mkdir(mode=0o500)
    with pytest.raises(CouldNotRunError, match="--read-only"):
        CliRunner().invoke(command, ["--no-open"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("ignored", "number"), [(False, signal.SIGTERM), (False, signal.SIGHUP), (True, signal.SIGHUP)]
)
def test_it_ends_with_its_terminal_save_under_nohup(home: Path, ignored: bool, number: signal.Signals) -> None:
    line = [sys.executable, "-m", "stacktap", "view", "--json", "--port", "0"]
    child = subprocess.Popen([*(["nohup"] if ignored else []), *line], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        with child.stdout:
            said = json.loads(child.stdout.readline())
        child.send_signal(number)
        if ignored:
            time.sleep(0.3)
            assert asked(said, "api/runs")["runs"]
            child.terminate()
        assert child.wait(20) == 0
    finally:
        child.kill()
        child.wait()
