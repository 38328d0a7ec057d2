"""Running the tests on a copy of the tree with one fault in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.mutants.mutate import Mutant
from tests.mutants.plan import ROOT

CPU_SECONDS = 150
"""Tests that take more CPU time count as a fault noticed: a user would notice, too. (By the clock it could be load.)"""
CLOCK_SECONDS = 1800
_LIMITED = (
    "import resource, sys, pytest\n"
    f"resource.setrlimit(resource.RLIMIT_CPU, ({CPU_SECONDS}, {CPU_SECONDS}))\n"
    "sys.exit(pytest.main(sys.argv[1:]))"
)
FOLDERS = ("results", "stacks", "proxy", "probe", "stacktap", "tests")


class Tree:
    """A copy of the tree in which faults are put, one at a time."""

    def __init__(self, folder: Path) -> None:
        """Copy what the tests need to `folder`, afresh."""
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        for name in FOLDERS:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)

    def survives(self, mutant: Mutant | None, tests: tuple[str, ...]) -> tuple[bool, float, str]:
        """(whether every test passes, seconds, the end of what pytest says). None: without a fault."""
        began = time.monotonic()
        path = self.folder / mutant.path if mutant is not None else None
        sound = path.read_bytes() if path is not None else b""
        try:
            if path is not None and mutant is not None:
                self._put(path, mutant.applied(sound))
            passed, said = self._run(tests)
        finally:
            if path is not None:
                self._put(path, sound)
        return passed, time.monotonic() - began, said

    @staticmethod
    def _put(path: Path, source: bytes) -> None:
        path.write_bytes(source)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def _run(self, tests: tuple[str, ...]) -> tuple[bool, str]:
        # The copied data is used, not a shared folder: a check must not depend on where it runs.
        environment = {name: value for name, value in os.environ.items() if name != "STACKTAP_SHARED"}
        command = [sys.executable, "-c", _LIMITED, "-x", "-q", "-m", "not slow and not real", "--tb=no", *tests]
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=CLOCK_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False, "timeout"
        said = (done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or [""])[-1]
        return done.returncode == 0, said
