"""`python -m tests.twice PYTEST-ARGUMENTS`: a run of tests on real servers, agents or browsers whose failures get one
more chance, each in a process without neighbours.

A server that is slow to start or a machine that is busy fails such a test now and then, and an hour's run with it. What
passes the second time is named as unstable, on the screen and in the file of `STACKTAP_UNSTABLE`, and is to be looked
into; what fails twice fails. More than five failures are no accident and are not tried again. Exit codes are pytest's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

MOST = 5
_FILE = "STACKTAP_FAILED_TESTS"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """As a plugin (`-p tests.twice`): remember what failed, in whatever phase. Workers leave it to their controller."""
    file = os.environ.get(_FILE)
    if file and report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(file).open("a", encoding="utf-8") as names:
            names.write(f"{report.nodeid}\n")


def main(arguments: Sequence[str]) -> int:
    """Run; run what failed once more."""
    with tempfile.TemporaryDirectory() as folder:
        names = Path(folder) / "failed"
        names.touch()
        code = _run(arguments, names)
        failed = list(dict.fromkeys(names.read_text(encoding="utf-8").splitlines()))
        if code != pytest.ExitCode.TESTS_FAILED or not 0 < len(failed) <= MOST:
            return code
        print(f"\n{len(failed)} failed; once more, each alone: {', '.join(failed)}", flush=True)
        again = [name for name in failed if _run((*_settings(arguments), name), names) != 0]
    unstable = [name for name in failed if name not in again]
    for name in unstable:
        print(f"UNSTABLE: failed, then passed: {name}", flush=True)
    if unstable and (file := os.environ.get("STACKTAP_UNSTABLE")):
        with Path(file).open("a", encoding="utf-8") as told:
            told.writelines(f"{name}\n" for name in unstable)
    return int(pytest.ExitCode.TESTS_FAILED) if again else 0


def _settings(arguments: Sequence[str]) -> list[str]:
    """The marker expression of a run, without its files and its workers."""
    return [word for at, word in enumerate(arguments) if word == "-m" or (at and arguments[at - 1] == "-m")]


def _run(arguments: Sequence[str], names: Path) -> int:
    command = [sys.executable, "-X", "faulthandler", "-m", "pytest", "-p", "tests.twice", *arguments]
    return subprocess.run(command, env={**os.environ, _FILE: str(names)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
