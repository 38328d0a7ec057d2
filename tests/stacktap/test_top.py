"""`stacktap top`: lines and JSON without a terminal, a screen on one, nothing unprintable in either."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from click.testing import CliRunner
from rich.console import Console

from checklists.live.counting import Tally
from checklists.live.drawing import screen
from checklists.live.following import RunFollower
from proxy.exchange_view import classify_run
from results.reader import RunReader
from stacktap.commands.top import command
from stacktap.failure import CouldNotRunError
from tests.support.recorded import CALL_TEXT, Script, answer

NASTY = "\x1b]0;owned\x07\x1b[2J[red]\u202eevil\u202c\r\nsecond [/red] line"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    script = Script(folder)
    script.chat(answer(content=CALL_TEXT), tags=(("task", NASTY),), model=NASTY)
    script.chat(answer(content="hello"))
    script.refused("upstream_refused", "connection refused " + NASTY, b"")
    script.run()
    return folder


def told(*arguments: str) -> Any:
    return CliRunner().invoke(command, list(arguments), catch_exceptions=False)


def test_one_line_for_each_exchange(run: Path) -> None:
    lines = told(str(run)).stdout.splitlines()
    want = [one.outcome.name for one in classify_run(RunReader(run))]
    assert len(lines) == len(want) == 3
    assert all(name in line for name, line in zip(want, lines, strict=True))
    assert all(char.isprintable() for line in lines for char in line)


def test_json_lines_and_the_counts(run: Path) -> None:
    said = [json.loads(line) for line in told(str(run), "--json").stdout.splitlines()]
    assert [one["event"] for one in said] == ["exchange"] * 3 + ["counts"]
    assert said[0]["outcome"] == "parser.left_as_text"
    assert said[0]["model"] == NASTY
    assert said[-1]["exchanges"] == 3
    assert sum(said[-1]["outcomes"].values()) == 3


def test_a_run_that_is_not_there_and_an_empty_one(tmp_path: Path, run: Path) -> None:
    with pytest.raises(CouldNotRunError, match="no run is called"):
        told(str(tmp_path / "nothing"))
    Script(tmp_path / "empty").run()
    assert "nothing was recorded" in told(str(tmp_path / "empty")).stderr
    assert told(str(run), "--url", "x").exit_code == 2
    with pytest.raises(CouldNotRunError, match="no control port answers"):
        told("--url", "http://127.0.0.1:9")


def test_the_screen_holds_no_control_characters_of_a_recording(run: Path) -> None:
    tally, follower = Tally(), RunFollower(run)
    for ended in follower.poll(cut=True):
        tally.add(ended)
    follower.close()
    out = io.StringIO()
    console = Console(file=out, width=150, height=30, color_system=None, force_terminal=True)
    console.print(screen(tally, "run", live=True, now=0.0, height=30))
    text = out.getvalue()
    assert "parser.left_as_text" in text
    assert "3 exchanges" in text
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "[red]" in text  # shown, not obeyed


@pytest.mark.parametrize("height", [1, 8, 40])
def test_the_screen_fits_and_an_empty_one_is_drawn(run: Path, height: int) -> None:
    tally, follower = Tally(), RunFollower(run)
    console = Console(file=io.StringIO(), width=80, height=height, color_system=None)
    console.print(screen(tally, "run", live=False, now=0.0, height=height))
    for ended in list(follower.poll(cut=True)) * 50:
        tally.add(ended)
    follower.close()
    out = io.StringIO()
    Console(file=out, width=80, height=height, color_system=None).print(
        screen(tally, "run", live=False, now=0.0, height=height)
    )
    assert len(out.getvalue().splitlines()) <= max(height, 16)


def test_exchanges_a_second() -> None:
    tally = Tally()
    for second in (100, 100, 101, 109, 109, 300):
        tally._tick(second)
    assert tally.per_second(300.0) == pytest.approx(0.1)
    assert tally.per_second(900.0) == 0


def test_on_a_terminal_the_last_screen_stays(run: Path) -> None:
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "stacktap", "top", str(run)],
        stdin=slave, stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm", "COLUMNS": "140", "LINES": "30"},
    )  # fmt: skip
    os.close(slave)
    heard, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.2)[0]:
            try:
                block = os.read(master, 1 << 16)
            except OSError:
                break
            if not block:
                break
            heard += block
    assert child.wait(10) == 0
    os.close(master)
    assert b"3 exchanges" in heard
    assert b"owned\x07" not in heard
    assert b"\x1b[2J[" not in heard


def test_a_live_run_is_followed_until_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    script = Script(folder)
    script.chat(answer(content="one"))

    def finish() -> None:
        time.sleep(0.5)
        script.chat(answer(content="two"))
        script.run()

    thread = threading.Thread(target=finish)
    thread.start()
    lines = told(str(folder)).stdout.splitlines()
    thread.join()
    assert len(lines) == 2


async def test_a_control_port_names_the_run(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    said: dict[str, Any] = {"run": "20260101-000000-abcd"}

    async def status(_: web.Request) -> web.Response:
        return web.json_response(said)

    app = web.Application()
    app.router.add_get("/status", status)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"127.0.0.1:{runner.addresses[0][1]}"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    home = tmp_path / "data" / "stacktap" / "runs"
    home.mkdir(parents=True)
    with pytest.raises(CouldNotRunError, match="folder of its own"):
        await asyncio.to_thread(told, "--url", url)
    run.rename(home / "20260101-000000-abcd")
    assert len((await asyncio.to_thread(told, "--url", url)).stdout.splitlines()) == 3
    said["run"] = None
    with pytest.raises(CouldNotRunError, match="no control port"):
        await asyncio.to_thread(told, "--url", url + "/status")
    await runner.cleanup()
