"""Every command that the documents show is run, with stand-ins for the user's server and agents."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stacktap.cli import COMMANDS
from tests.support.servers import ROOT, chat_server, environment

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
AGENT = """#!{python}
import os, sys, httpx
urls = [word for word in sys.argv if word.startswith("http")] or [os.environ["OPENAI_BASE_URL"]]
httpx.post(urls[0] + "/chat/completions", json={{"model": "m", "messages": []}}, trust_env=False).raise_for_status()
"""
BUILDS = re.compile(r"make |docker |pip |apt|jq |git |zstd|for |export |python -m tests\.bench")
"""Commands of other programs, or that build for minutes; those of `make` are run by the CI script."""

NEEDS_SERVER = re.compile(r"stacktap (?:demo|up|pair|quant)\b|stacktap compare .*\bup:")
"""Run on real servers by tests/stacks_real."""

ON_A_GRID = re.compile(r"stacktap (?:run|validate)\b")
"""Run one after the other by tests/docs/test_harness_page.py."""

ON_A_PACK = re.compile(r"stacktap pack\b")
"""Likewise, by tests/docs/test_packs_page.py."""

FINDS = re.compile(r"stacktap (?:diagnose|compare|doctor|issue)\b")
"""Exit with 1 where something is wrong (`issue`: where nothing is): with the stand-in server, which never calls a tool,
that is right."""


def commands() -> list[tuple[str, str]]:
    found = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for block in re.findall(r"```(?:console|sh|bash)\n(.*?)```", text, re.DOTALL):
            lines = [line[2:].split("  #")[0].strip() for line in block.splitlines() if line.startswith("$ ")]
            found.extend((document.name, line) for line in lines)
    return found


_LOCAL = re.compile(r"https?://localhost:\d+(?:/v1)?|https?://127\.0\.0\.1:\d+")
COMMAND_LINES = commands()
RUNNABLE = [line for _, line in COMMAND_LINES if line.startswith("stacktap ") and not NEEDS_SERVER.match(line)]
RUNNABLE = [line for line in RUNNABLE if not ON_A_GRID.match(line) and not ON_A_PACK.match(line)]


def test_the_documents_show_commands_that_exist() -> None:
    assert len(COMMAND_LINES) > 5
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name, line in COMMAND_LINES:
        words = shlex.split(line)
        if words[0] == "stacktap":
            assert words[1] in COMMANDS, (name, line)
        elif words[0] == "make":
            assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), (name, line)
        else:
            assert BUILDS.match(line), (name, line)


def test_commands_named_in_running_text_exist() -> None:
    for document in DOCUMENTS:
        for name in re.findall(r"`stacktap ([a-z]+)", document.read_text(encoding="utf-8")):
            assert name in COMMANDS, (document.name, name)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a recorded run of four attempts, and agents on PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("mini", "aider", "your-agent"):
        (programs / name).write_text(AGENT.format(python=sys.executable))
        (programs / name).chmod(0o755)
    launcher = programs / "stacktap"
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -m stacktap "$@"\n')
    launcher.chmod(0o755)
    with chat_server() as url:
        code = (
            "import os, httpx; base = os.environ['OPENAI_BASE_URL']; ask = {'role': 'user', 'content': 'Hi.'};"
            "httpx.post(base + '/chat/completions', json={'model': 'm', 'messages': [ask]});"
            "[httpx.get(base + '/models') for _ in range(3)]"
        )
        run_line(tmp_path, ["stacktap", "wrap", "--upstream", url, "--", sys.executable, "-c", code])
    return tmp_path


def _until_it_listens(process: subprocess.Popen[str]) -> str:
    """What is said on stderr until Ctrl-C is awaited; until the end where that is never said."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if "Ctrl-C ends" in line:
            process.send_signal(signal.SIGINT)
            break
    return "".join(said)


def run_line(home: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run to its end; what serves until Ctrl-C gets it as soon as it listens (on a free port)."""
    serves = words[1] in ("proxy", "replay")
    if serves and "--port" in words:
        at = words.index("--port") + 1
        words = [*words[:at], "0", *words[at + 1 :]]
    path = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
    with subprocess.Popen(
        words,
        env=environment(home, PATH=path, XDG_CACHE_HOME=str(home / "cache")),
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            said = _until_it_listens(process) if serves else ""
            out, errors = process.communicate(timeout=100)
        finally:
            process.kill()
    return subprocess.CompletedProcess(words, process.returncode, out, said + errors)


@pytest.mark.parametrize("line", list(dict.fromkeys(RUNNABLE)))
def test_the_command_works(line: str, home: Path) -> None:
    with chat_server() as url:
        words = [
            re.sub(r"https?://localhost:\d+(?:/v1)?|https?://127\.0\.0\.1:\d+", url, word) for word in shlex.split(line)
        ]
        words = ["@last" if word in ("RUN", "@2") else word for word in words]
        words = [str(ROOT / word) if word.startswith("tests/") else word for word in words]
        done = run_line(home, words)
        if words[:2] == ["stacktap", "doctor"] and done.returncode == 3:
            done = run_line(home, words)  # On a busy machine the stand-in may have answered too late.
    assert done.returncode == 0 or (FINDS.match(line) and done.returncode == 1), (line, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr


def test_the_stand_in_agent_is_recorded(home: Path) -> None:
    with chat_server() as url:
        done = run_line(home, ["stacktap", "wrap", "--upstream", url, "--", "mini", "-t", "x"])
    assert "1 exchange recorded" in done.stderr
