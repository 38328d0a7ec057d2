"""tool-eval-bench in an environment of its own (`make peers`), run as its README says."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from stacks.locations import environments_folder
from tests.setups.build import Standing, filled
from tests.setups.model import Setup
from tests.versus.words import PeerSaid, read

VERSION = "3.0.0"
SCENARIOS = ("TC-01", "TC-02", "TC-03", "TC-04", "TC-05")
"""The smoke test of its README ("Smoke test: 5 scenarios")."""


class PeerMissingError(RuntimeError):
    """tool-eval-bench is not installed where `make peers` puts it."""


@dataclass(frozen=True, slots=True)
class PeerRun:
    """One run: what it said, the arguments that it was given (addresses as in the set-up), its time in seconds."""

    said: PeerSaid
    arguments: tuple[str, ...]
    seconds: float
    printed: str


def program() -> Path:
    """Its command; raises PeerMissingError."""
    folder = environments_folder().parent / "peers" / "tool-eval-bench"
    command = folder / "bin" / "tool-eval-bench"
    if not command.exists():
        raise PeerMissingError(f"{command} does not exist; `make peers` installs tool-eval-bench {VERSION}")
    return command


def arguments(setup: Setup) -> tuple[str, ...]:
    """The arguments for a set-up: the same address, model and key as the diagnosis gets."""
    url, *more = setup.arguments
    given = dict(zip(more[::2], more[1::2], strict=True))
    asked = ["run", "--scenarios", *SCENARIOS, "--base-url", url]
    if "--model" in given:
        asked += ["--model", given["--model"]]
    if "--api-key-env" in given:
        asked += ["--api-key", str(setup.extra[given["--api-key-env"]])]
    return tuple(asked)


def run(setup: Setup, at: Standing) -> PeerRun:
    """Run it on a set-up that stands, in an empty folder, so that no settings of its own are found."""
    asked = arguments(setup)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [str(program()), *(filled(each, at, Path(folder)) for each in asked)],
            capture_output=True,
            text=True,
            timeout=500,
            stdin=subprocess.DEVNULL,
            check=False,
            cwd=folder,
            env={"PATH": os.environ.get("PATH", ""), "HOME": folder, "COLUMNS": "1000", "LANG": "C.UTF-8"},
        )
    return PeerRun(read(done.returncode, done.stdout), asked, time.monotonic() - began, done.stdout + done.stderr)


def scenarios_offered() -> dict[str, int]:
    """How many scenarios its selections would run, by its own `--dry-run`."""
    counts = {}
    for name, options in (("--short", ("--short",)), ("standard", ()), ("--hardmode", ("--hardmode",))):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [str(program()), "run", "--dry-run", *options],
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
                cwd=folder,
                env={"PATH": os.environ.get("PATH", ""), "HOME": folder, "COLUMNS": "200", "LANG": "C.UTF-8"},
            )
        counts[name] = int(done.stdout.partition("Dry run:")[2].split()[0])
    return counts
