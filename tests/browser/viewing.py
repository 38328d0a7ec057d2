"""A viewer of its own for the tests: `stacktap view` as a process, with runs, cache and key in one folder."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from tests.support.injection import ORDINARY, exchanges
from tests.support.journalled import events
from tests.support.processes import children_of
from tests.support.servers import command_line, environment

if TYPE_CHECKING:
    from playwright.sync_api import Page

FIRST_PATIENCE_MS = 60_000


@dataclass(frozen=True)
class Viewer:
    """A viewer that runs: where, the key that its links carry, the folder of runs, its process."""

    base: str
    key: str
    runs: Path
    process: subprocess.Popen[str]

    def link(self, run: str = "", *, page: str = "", **query: str) -> str:
        """The address of a page, with the key."""
        place = f"runs/{quote(run, safe='')}" if run else page
        asked = "&".join(f"{name}={quote(value, safe='')}" for name, value in {**query, "key": self.key}.items())
        return f"{self.base}#/{place}?{asked}"

    def memory(self) -> int:
        """Resident bytes of the viewer and the processes that it started."""
        return sum(_resident(process) for process in (self.process.pid, *children_of(self.process.pid)))


def _resident(process: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text("ascii", "replace").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


def runs_of(home: Path) -> Path:
    """Where a viewer with this home looks for runs."""
    return home / "data" / "stacktap" / "runs"


@contextlib.contextmanager
def viewer(home: Path, *arguments: str) -> Iterator[Viewer]:
    """Start it, end it."""
    process = subprocess.Popen(
        command_line("view", "--no-open", "--json", "--port", "0", *arguments),
        env=environment(home, XDG_CACHE_HOME=str(home / "cache")),
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise AssertionError(process.communicate()[1])
        said = json.loads(line)
        yield Viewer(said["base"], said["key"], runs_of(home), process)
    finally:
        process.terminate()
        process.communicate(timeout=20)


def part(page: Page, name: str):
    """The element with this `data-testid`."""
    return page.get_by_test_id(name)


def wait_judged(page: Page) -> None:
    """Wait until the run that is shown is read and judged to its end."""
    page.wait_for_function(
        "() => document.querySelector('[data-testid=index-progress]')?.hidden"
        " && document.querySelector('[data-testid=row] .c-outcome')",
        timeout=FIRST_PATIENCE_MS,
    )


def wait_found(page: Page, text: str, patience_ms: float = 10_000) -> None:
    """Wait until the count of found exchanges reads so."""
    page.wait_for_function(
        "text => document.querySelector('[data-testid=found]')?.textContent.startsWith(text)",
        arg=text,
        timeout=patience_ms,
    )


def many(folder: Path, count: int) -> Path:
    """Record `count` exchanges of many outcomes, quickly, by the real recorder."""
    folder.mkdir(parents=True)
    raws = [raw for payload in ORDINARY for raw in exchanges(payload)]
    dice = random.Random(3)
    recorder = Recorder(folder, folder.name, Redactor())
    recorder.start()
    for number in range(count):
        for event in events(raws[number % len(raws)], number + 1, dice):
            recorder.put(event)
        if number % 2000 == 0:
            time.sleep(0.05)  # the recorder's thread takes what is queued
    recorder.close()
    return folder


def quiet() -> bool:
    """Whether the machine has so little else to do that times say something."""
    return os.getloadavg()[0] < 2
