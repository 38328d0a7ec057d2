"""A command run inside this process, as `main` runs it: a process of its own takes a second each time."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from stacktap import cli


@dataclass(frozen=True)
class Done:
    """What a command printed and ended with."""

    returncode: int
    stdout: str
    stderr: str


def run_here(home: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Done:
    """Run `stacktap ARGUMENTS` with `home` as working folder and with its data below it."""
    out, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with monkeypatch.context() as patch:
        patch.chdir(home)
        for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            patch.setenv(name, str(home / name.lower()))
        patch.setattr(sys, "argv", ["stacktap", *arguments])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", errors)
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code
        out.flush()
        errors.flush()
    assert isinstance(code, int)
    return Done(code, _text(out), _text(errors))


def _text(stream: io.TextIOWrapper) -> str:
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode("utf-8", "replace").replace(os.linesep, "\n")
