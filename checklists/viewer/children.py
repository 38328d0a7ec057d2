"""Commands that were started from the page: as child processes without a shell, in sessions of their own, their output
kept in memory, bounded, and all of them ended with the viewer."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

MOST_KEPT = 20
MOST_RUNNING = 4
OUTPUT_BYTES = 256 << 10
GRACE_SECONDS = 5.0


class TooManyError(Exception):
    """So many commands run already that another one is not started."""


class Child:
    """One started command."""

    def __init__(self, number: int, words: tuple[str, ...], text: str) -> None:
        self.number, self.words, self.text = number, words, text
        self.began = time.time()
        self.exit_code: int | None = None
        self.dropped = 0
        """Bytes of output that are no longer kept."""
        self.output = bytearray()
        self.changed = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start it. Raises OSError where that is impossible."""
        environment = {
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            "NO_COLOR": "1",
            "TERM": "dumb",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        self._process = await asyncio.create_subprocess_exec(
            *self.words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        while block := await process.stdout.read(1 << 16):
            self.output += block
            over = len(self.output) - OUTPUT_BYTES
            if over > 0:
                del self.output[:over]
                self.dropped += over
            self._tell()
        self.exit_code = await process.wait()
        self._tell()

    def _tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.exit_code is None

    def send(self, number: int) -> None:
        """Send a signal to it and all that it started."""
        if self._process is not None and self.running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """As Ctrl-C does; after a while by force."""
        self.send(signal.SIGINT)
        if self._task is not None:
            await asyncio.wait([self._task], timeout=grace)
        if self.running:
            self.send(signal.SIGKILL)
            if self._task is not None:
                await asyncio.wait([self._task], timeout=grace)

    def facts(self) -> dict[str, Any]:
        """For the page."""
        return {"id": self.number, "command": self.text, "began": self.began, "exit_code": self.exit_code}

    async def told(self, known: int, wait: float) -> dict[str, Any]:
        """What it has printed beyond `known` bytes; waits a while for something new."""
        if known >= self.dropped + len(self.output) and self.running:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.changed.wait(), wait)
        start = max(0, known - self.dropped)
        text = bytes(self.output[start:]).decode("utf-8", "replace")
        return {
            **self.facts(),
            "text": text,
            "from": self.dropped + start,
            "next": self.dropped + len(self.output),
            "dropped": self.dropped,
        }


class Children:
    """All started commands; the oldest that ended are forgotten."""

    def __init__(self) -> None:
        self._all: dict[int, Child] = {}
        self._next = 1

    async def start(self, words: Sequence[str], text: str) -> Child:
        """Start one. Raises TooManyError or OSError."""
        if sum(child.running for child in self._all.values()) >= MOST_RUNNING:
            raise TooManyError(f"{MOST_RUNNING} commands are running; stop one first")
        child = Child(self._next, tuple(words), text)
        await child.start()
        self._all[self._next] = child
        self._next += 1
        for number in [one.number for one in self._all.values() if not one.running][: -MOST_KEPT or None]:
            del self._all[number]
        return child

    def get(self, number: int) -> Child | None:
        """The command of that number."""
        return self._all.get(number)

    def list(self) -> list[dict[str, Any]]:
        """All, the latest first."""
        return [child.facts() for child in reversed(self._all.values())]

    async def close(self) -> None:
        """End all."""
        await asyncio.gather(*(child.stop(3.0) for child in self._all.values() if child.running))
