"""Running the tests on a copy of the tree with one fault in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.mutants.mutate import Mutant
from tests.mutants.plan import ROOT
from tests.mutants.worker import changed

CPU_SECONDS = 200
"""Tests that take more CPU time count as a fault noticed: a user would notice, too. (By the clock it could be load.)"""
CLOCK_SECONDS = 1800
FOLDERS = ("results", "stacks", "proxy", "probe", "stacktap", "tests")
FOREIGN = (
    "hypothesis hypothesis.strategies orjson msgspec regex zstandard jsonschema httpx aiohttp openai openai.types.chat "
    "openai.types.responses anthropic anthropic.types ollama numpy click rich.console tokenizers"
)
"""What loads slowly and is not under test: loaded once, before the tests are."""
WORKER = Path(__file__).with_name("worker.py")


class Tree:
    """A copy of the tree in which faults are put, one at a time; and the processes that run the tests on it."""

    def __init__(self, folder: Path, every: tuple[str, ...], without: tuple[str, ...] = (), slack: int = 20) -> None:
        """Copy what the tests need to `folder`, afresh. `every`: all tests, for faults inside functions; `without`:
        beginnings of the names of tests that are left out; `slack`: seconds of CPU beyond twice the usual ones."""
        self.folder = folder.resolve()
        self.without = without
        self.slack = slack
        self.unsound: list[str] = []
        shutil.rmtree(folder, ignore_errors=True)
        for name in FOLDERS:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        self._loaded = self._worker("loaded", FOREIGN, *every)
        self._fresh = self._worker("fresh", FOREIGN)
        self._order: dict[str, float] = defaultdict(float)
        self._called_at_load: set[str] = set()

    def close(self) -> None:
        """End the processes."""
        for process in (self._loaded, self._fresh):
            if process.stdin is not None:
                process.stdin.close()
            process.wait(timeout=60)
            if process.stdout is not None:
                process.stdout.close()

    def sound(self) -> list[str]:
        """Run every test without a fault, noting what each calls and takes. The names of those that fail."""
        said = self._ask(self._loaded, {"clock": CLOCK_SECONDS, "without": self.without})
        notes = json.loads((self.folder / "notes.json").read_text())
        for name, seconds in notes["seconds"].items():
            self._order[name.partition("::")[0]] += seconds
        self._called_at_load = {f"{path} {name}" for path, name in notes["loading"]}
        self.unsound = list(said["failed"])
        return self.unsound

    def survives(self, mutant: Mutant, tests: tuple[str, ...]) -> tuple[bool, float, str]:
        """(whether every test passes, seconds, what failed). `tests`: for a fault that is seen at loading."""
        began = time.monotonic()
        path = self.folder / mutant.path
        sound = path.read_bytes()
        faulty = mutant.applied(sound)
        inside = changed(str(path), sound, faulty)
        if inside is not None and not any(f"{path} {name}" in self._called_at_load for name in inside):
            request = {
                "path": mutant.path,
                "functions": list(inside),
                "source": faulty.decode(),
                "without": self.without,
                "slack": self.slack,
            }
            said = self._ask(self._loaded, request | {"clock": CLOCK_SECONDS})
        else:
            said = self._afresh(path, sound, faulty, tests)
        noticed = said["status"] != 0
        return not noticed, time.monotonic() - began, (said["failed"] or [f"status {said['status']}"])[0]

    def _afresh(self, path: Path, sound: bytes, faulty: bytes, tests: tuple[str, ...]) -> dict[str, Any]:
        try:
            self._put(path, faulty)
            limits = {"cpu": CPU_SECONDS, "clock": CLOCK_SECONDS}
            return self._ask(
                self._fresh,
                {"tests": tests, "order": self._order, "unsound": self.unsound, "without": self.without, **limits},
            )
        finally:
            self._put(path, sound)

    @staticmethod
    def _put(path: Path, source: bytes) -> None:
        path.write_bytes(source)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def _worker(self, *arguments: str) -> subprocess.Popen[str]:
        # The copied data is used, not a shared folder: a check must not depend on where it runs.
        environment = {name: value for name, value in os.environ.items() if name != "STACKTAP_SHARED"}
        return subprocess.Popen(
            [sys.executable, str(WORKER), *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @staticmethod
    def _ask(process: subprocess.Popen[str], request: dict[str, Any]) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process that runs the tests ended with {process.wait()}")
        answered: dict[str, Any] = json.loads(line)
        return answered
