"""Every command that reads a run, on runs that nobody should have: a clear word and its exit code, nothing broken."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checklists.viewer.guard import KEY_HEADER
from results.manifest import write_manifest
from results.reader import RunReader
from stacktap.cli import COMMANDS
from tests.support.bug_cases import manifest
from tests.support.command_line import Done, run_here
from tests.support.damaged_runs import DAMAGED, ERROR, sound
from tests.support.recorded import Script, answer, response
from tests.support.servers import environment
from tests.support.viewing import KEY, Viewer, viewing

pytestmark = pytest.mark.timeout(60)

READERS: dict[str, tuple[str, ...]] = {
    "report": ("report", "RUN"),
    "report as JSON": ("report", "RUN", "--json"),
    "issue": ("issue", "RUN", "1"),
    "issue as JSON": ("issue", "RUN", "2", "--json"),
    "explain": ("explain", "RUN", "1"),
    "classify": ("classify", "RUN"),
    "show": ("show", "RUN"),
    "top": ("top", "RUN"),
    **{f"export {form}": ("export", "RUN", "--to", form, "--out", f"out.{form}")
       for form in ("har", "otel", "jsonl", "curl", "pytest")},
}  # fmt: skip
READERS = {name: words for name, words in READERS.items() if words[0] in COMMANDS}
GRIDS = ("report", "issue", "export", "view", "top")
"""Commands that take a grid's run."""


def clear(done: Done) -> None:
    """No traceback, no control character, an exit code of ours; with code 3 a reason, and nothing else printed."""
    assert done.returncode in (0, 1, 3), done
    assert "Traceback" not in done.stderr, done.stderr
    assert not [char for char in done.stdout + done.stderr if ord(char) < 32 and char not in "\n\t"]
    # In JSON they are data for a program.
    assert not set("\u202e\u2066\u202a") & set(done.stderr + ("" if done.stdout.startswith("{") else done.stdout))
    if done.returncode == 3:
        assert any(line.startswith("stacktap: ") for line in done.stderr.splitlines())
        assert len(done.stderr) > 20


@pytest.mark.parametrize("damage", list(DAMAGED))
def test_damaged_runs(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    DAMAGED[damage](tmp_path / "run")
    for words in READERS.values():
        if "grid" in damage and words[0] not in GRIDS:
            continue
        done = run_here(tmp_path, monkeypatch, *(word.replace("RUN", "./run") for word in words))
        clear(done)
        if "--json" in words and done.returncode != 3:
            json.loads(done.stdout)
        if "newer schema" in damage:
            assert done.returncode == 3
            assert "update" in done.stderr or "newer" in done.stderr


# ---------------------------------------------------------------------- names
NAMES = [
    "", " ", "@", "@0", "@-1", "@99999999999999999999", "@last", "@x", "./", "../..", "/", "/dev/null", "/dev/zero",
    "/proc/self/mem", "./nothing", "./file", "./empty", "x" * 5000, "./" + "x/" * 3000, "*", "$(id)", "`id`",
    "\x1b[31mred", "\u202eder", "run\nrun", "\udcff", "./\udcff", "2026", "http://localhost:8080",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=[ascii(name)[:20] for name in NAMES])
def test_names_that_are_no_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no run")
    (tmp_path / "empty").mkdir()
    others = {
        "replay": ("replay", "RUN"),
        "view": ("view", "RUN", "--no-open"),
        "top": ("top", "RUN"),
    }
    for words in (*READERS.values(), *(each for each in others.values() if each[0] in COMMANDS)):
        done = run_here(tmp_path, monkeypatch, *("--" if word == "--" else word.replace("RUN", name) for word in words))
        assert done.returncode in (2, 3), (words, done)
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        assert len(done.stderr) < 20_000
        assert not [char for char in done.stderr if ord(char) < 32 and char not in "\n\t"], (words, done.stderr)
        assert "\u202e" not in done.stderr, (words, done.stderr)


ATTEMPTS = ["0", "-1", "99", "1e3", "x", "", "1/1", "../1", "\x1b[31m", "9" * 30, "\u0664", "\udcff"]


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=[ascii(attempt) for attempt in ATTEMPTS])
def test_attempts_that_are_not_there(attempt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound(tmp_path / "run")
    lines = [("issue", "./run", "--", attempt), ("explain", "./run", "--", attempt), ("show", "./run", "--", attempt)]
    if "export" in COMMANDS:
        lines += [("export", "./run", "--to", "jsonl", "--out", "-", f"--attempt={attempt}")]
    for words in lines:
        done = run_here(tmp_path, monkeypatch, *words)
        assert done.returncode in (2, 3), (words, done)
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        assert not [char for char in done.stderr if ord(char) < 32 and char not in "\n\t"], (words, done.stderr)


# ---------------------------------------------------------------------- targets
WRITERS: dict[str, tuple[str, ...]] = {
    "report": ("report", "./run", "--out"),
    "issue": ("issue", "./run", "1", "--out"),
    **{f"export {form}": ("export", "./run", "--to", form, "--out")
       for form in ("har", "otel", "jsonl", "curl", "pytest")},
}  # fmt: skip
WRITERS = {name: words for name, words in WRITERS.items() if words[0] in COMMANDS}


@pytest.mark.parametrize("name", list(WRITERS))
def test_places_that_cannot_be_written(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound(tmp_path / "run")
    (tmp_path / "file").write_text("kept")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "full").symlink_to("/dev/full")
    places = ["file/below", "/proc/nothing/here", "full", "loop", "x" * 300, "a\nb/\x1b[31m/c"]
    for place in places:
        done = run_here(tmp_path, monkeypatch, *WRITERS[name], place)
        if done.returncode == 0:
            # A folder that could be made, or a name that is strange and possible.
            assert name == "report" or place not in places[:3], (place, done)
            continue
        assert done.returncode in (2, 3), (place, done)
        assert "Traceback" not in done.stderr
        assert not [char for char in done.stderr if ord(char) < 32 and char not in "\n\t"], (place, done.stderr)
    assert (tmp_path / "file").read_text() == "kept"
    assert (tmp_path / "full").is_symlink()
    assert not list(tmp_path.rglob("*.tmp*"))


@pytest.mark.parametrize("name", list(WRITERS))
def test_a_full_disk(name: str, tmp_path: Path) -> None:
    """No file may grow beyond 1,000 bytes: what is there before stays, what is half written goes."""
    sound(tmp_path / "run", 9)
    place = "out" if name == "report" else "out.x"
    if name != "report":
        (tmp_path / place).write_text("before")
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        "from stacktap.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *WRITERS[name][0:], place],
        cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 3, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert place in done.stderr
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.parent != tmp_path / "run"]
    assert all(path.read_text() == "before" for path in left), left


def test_a_link_in_a_run_leads_no_writer_astray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound(tmp_path / "run")
    victim = tmp_path / "victim"
    victim.write_text("kept")
    for name in ("report.md", "report.html", "report.json", "outcomes.jsonl", "report.md.tmp", "outcomes.jsonl.tmp"):
        (tmp_path / "run" / name).symlink_to(victim)
    for words in (("report", "./run"), ("classify", "./run")):
        done = run_here(tmp_path, monkeypatch, *words)
        assert victim.read_text() == "kept", (words, done)
        assert "Traceback" not in done.stderr
    (tmp_path / "link").symlink_to(tmp_path / "run")
    for words in READERS.values():
        done = run_here(tmp_path, monkeypatch, *(word.replace("RUN", "./link") for word in words))
        assert done.returncode in (0, 1), done


# ---------------------------------------------------------------------- being written
def test_a_run_that_is_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(tmp_path / "run")
    for _ in range(40):
        script.chat(answer(content="Hello."))
    # `top` goes on as long as the recorder does: tests/stacktap/test_top.py.
    readers = [words for words in READERS.values() if words[0] != "top"]
    try:
        for words in readers:
            done = run_here(tmp_path, monkeypatch, *(word.replace("RUN", "./run") for word in words))
            clear(done)
            assert "torn" not in done.stderr
    finally:
        script.run()
    assert len(list(RunReader(tmp_path / "run"))) == 40


# ---------------------------------------------------------------------- what serves
@pytest.fixture
def busy_port() -> Iterator[str]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield str(taken.getsockname()[1])


@pytest.mark.parametrize("damage", list(DAMAGED))
def test_replay_of_damaged_runs_on_a_port_in_use(
    damage: str, busy_port: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever can be served comes as far as listening; the rest is refused before."""
    DAMAGED[damage](tmp_path / "run")
    done = run_here(tmp_path, monkeypatch, "replay", "./run", "--port", busy_port)
    clear(done)
    assert done.returncode == 3
    if "run.json" in damage or damage == "torn":
        assert f"cannot listen on 127.0.0.1:{busy_port}" in done.stderr


def test_the_viewer_on_a_port_in_use(busy_port: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound(tmp_path / "run")
    done = run_here(tmp_path, monkeypatch, "view", "./run", "--no-open", "--port", busy_port)
    clear(done)
    assert done.returncode == 3
    assert busy_port in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize("group", range(4))
async def test_the_viewer_on_damaged_runs(group: int, tmp_path: Path) -> None:
    """Each is listed and opened as far as it goes; an answer is never a fault of the viewer's own (500)."""
    runs = tmp_path / "runs"
    names = {}
    for number, damage in enumerate(list(DAMAGED)[group::4]):
        names[f"run{number}"] = damage
        (runs / f"run{number}").parent.mkdir(exist_ok=True)
        DAMAGED[damage](runs / f"run{number}")
    async with asyncio.timeout(150), viewing(runs, cache=tmp_path / "cache") as viewer:
        listed = {run["run"] for run in (await viewer.get("/api/runs"))["runs"]}
        for name, damage in names.items():
            status, state = await _asked(viewer, f"/api/runs/{name}")
            assert status in (200, 404, 503), (damage, state)
            assert (status == 200) <= (name in listed), damage
            until = time.monotonic() + 3
            while status == 200 and not state["complete"] and time.monotonic() < until:
                path = f"/api/runs/{name}/changes?wait=1&generation={state['generation']}"
                status, state = await _asked(viewer, path)
                assert status in (200, 503), (damage, state)
            if status != 200:
                continue
            status, page = await _asked(viewer, f"/api/runs/{name}/exchanges?limit=10")
            assert status == 200, (damage, page)
            for row in page["rows"]:
                for rest in ("", "/wire?direction=request", "/wire"):
                    status, body = await _asked(viewer, f"/api/runs/{name}/exchanges/{row['key']}{rest}")
                    assert status in (200, 404, 503), (damage, row, body)
            status, body = await _asked(viewer, f"/api/runs/{name}/facets")
            assert status == 200, (damage, body)


async def _asked(viewer: Viewer, path: str) -> tuple[int, Any]:
    async with viewer.client.get(path, headers={KEY_HEADER: KEY}) as response:
        return response.status, await response.json()


# ---------------------------------------------------------------------- a large journal
MEASURE = """
import os, sys, time
began = time.monotonic()
pid = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-m", "stacktap", *sys.argv[1:]])
_, status, used = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""
"""In a small process of its own: what a child is said to have used begins at the size of the one that started it."""


def large(folder: Path, exchanges: int, size: int) -> None:
    """A run of so many exchanges with answers of `size` bytes: two that were really recorded, again and again."""
    script = Script(folder)
    script.chat(response(ERROR.encode(), b"500 Internal Server Error"))
    script.chat(answer(content="word and more of it, " * (size // 21)))
    script.run()
    write_manifest(folder, manifest())
    journal = folder / "wire.jsonl"
    header, *lines = journal.read_bytes().splitlines(keepends=True)
    recorded = {number: [line for line in lines if b'"attempt":%d,' % number in line[:60]] for number in (1, 2)}
    with journal.open("wb") as out:
        out.write(header)
        for attempt in range(1, exchanges + 1):
            number = 2 if attempt % 50 else 1
            for line in recorded[number]:
                out.write(line.replace(b'"attempt":%d,' % number, b'"attempt":%d,' % attempt, 1))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_journal_of_1_gb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reader is through in bounded memory; the time is printed (about 75 s of CPU). The report is made always, the
    other kinds of readers where STACKTAP_EVERY_READER is set."""
    large(tmp_path / "run", 5_200, 200_000)
    assert (tmp_path / "run" / "wire.jsonl").stat().st_size > 1_000_000_000
    wanted = ("report", "issue", "export har", "show") if os.environ.get("STACKTAP_EVERY_READER") else ("report",)
    chosen = {name: words for name, words in READERS.items() if name in wanted}
    for name, words in chosen.items():
        if name == "issue":
            words = ("issue", "RUN", "5000")  # noqa: PLW2901
        command = [sys.executable, "-c", MEASURE, *(word.replace("RUN", "./run") for word in words)]
        began = time.monotonic()
        done = subprocess.run(
            command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False
        )
        code, seconds, megabytes = done.stdout.splitlines()[-1].split()
        with capsys.disabled():
            print(
                f"{name}: {time.monotonic() - began:.0f} s ({float(seconds):.0f} s of CPU), {float(megabytes):.0f} MB"
            )
        assert code in ("0", "1"), done.stderr[-2000:]
        assert float(megabytes) < 500, name
        for path in tmp_path.glob("out.*"):
            path.unlink()
