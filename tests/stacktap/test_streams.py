"""What a terminal gets: text as text, the program's own marks as marks; pipes get every byte."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from stacktap.streams import shown
from tests.support.servers import ROOT

SAYS = r"""
import sys
import click
from stacktap.streams import print_anything, unguarded
print_anything()
click.echo("a\x1b[2Jb\x9bc\u202ed \x1b[1mbold\x1b[0m \ud800")
print("e\x07", file=sys.stderr)
unguarded(sys.stdout).write("\x1b[2Craw\n")
sys.stdout.write("end\n")
"""


def _ran(stdout: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", SAYS],
        stdout=stdout,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
    )


def test_on_a_terminal_nothing_acts_but_our_own_marks() -> None:
    ours, theirs = pty.openpty()
    process = _ran(theirs)
    os.close(theirs)
    got = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux says so when the other side is closed.
            break
        if not piece:
            break
        got += piece
    os.close(ours)
    assert process.wait(20) == 0
    assert got.decode().splitlines() == [
        "a\\u001b[2Jb\\u009bc\\u202ed \x1b[1mbold\x1b[0m \\ud800",
        "e\\u0007",
        "\x1b[2Craw",
        "end",
    ]


def test_a_pipe_gets_what_was_written() -> None:
    process = _ran(subprocess.PIPE)
    got = process.communicate(timeout=20)[0].decode()
    assert "b\x9bc\u202ed" in got
    assert "\\ud800" in got


KEPT = [
    "a\nb\tc",
    "\r\x1b[Kprogress",
    "\x1b[7mmarked\x1b[27m",
    "Z\u00fcrich \u2600\ufe0f \U0001f469\u200d\U0001f4bb \u200f\u05d0",
]


@pytest.mark.parametrize("kept", KEPT)
def test_what_is_left_alone(kept: str) -> None:
    assert shown(kept) == kept


@pytest.mark.parametrize("acting", ["\x1b[8m", "\x1b[31m", "\x1b]8;;x\x07", "a\rb", "\b", "\x7f", "\x85", "\u2066"])
def test_what_is_not(acting: str) -> None:
    said = shown(acting)
    assert all(char.isprintable() for char in said)
