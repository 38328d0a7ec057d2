"""An agent below its guard (``probe.pairing.agent_run.guard``), seen from this process: started, heard of, ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from probe.pairing.agent_run import guard
from probe.pairing.agent_run.busy import computed_seconds
from probe.pairing.agent_run.output_tail import OutputTail

_PROCESS_TABLE = Path("/proc/self")
_SWEEP_SECONDS = 3.0
_OUTPUT_SECONDS = 0.5
_GUARD_SECONDS = 2 * guard.KILLED_SECONDS + guard.SETTLE_SECONDS + guard.LEFT_GRACE_SECONDS + 2.0
"""The most that a guard takes to end an agent, the agent's grace aside."""


class GuardedAgent:
    """A started guard. ``ended`` is done when the agent itself has: its exit code, None where it was never started or
    nobody can know. ``left_running`` counts what had to be stopped after it; ``problem`` says what went wrong."""

    def __init__(self, output: OutputTail, mark: str, grace: float) -> None:
        loop = asyncio.get_running_loop()
        self.output = output
        self.ended: asyncio.Future[int | None] = loop.create_future()
        self.started = False
        self.left_running = 0
        self.problem = ""
        self._mark = mark.encode()
        self._grace = grace
        self._pid = 0
        self._cleared = False
        self._reports = _Reports(self)
        self._orders = -1
        self._process: subprocess.Popen[bytes] | None = None
        self._transports: list[asyncio.ReadTransport] = []

    async def start(self, executable: str, command: Sequence[str], environment: Mapping[str, str], cwd: Path) -> None:
        """Start the guard, which starts the agent; the mark stands in ``environment``. Raises OSError, ValueError."""
        theirs: list[int] = []
        try:
            # All waiting lies before the start: a task that is cancelled meanwhile has started nothing.
            orders, self._orders = os.pipe()
            theirs.append(orders)
            theirs.append(await self._read_from(self._reports))
            theirs.append(await self._read_from(self.output))
            self._spawn(theirs, executable, command, environment, cwd)
        except BaseException:
            self._close()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)

    async def _read_from(self, protocol: asyncio.Protocol) -> int:
        """The writing end of a pipe that ``protocol`` reads."""
        reading, writing = os.pipe()
        file = os.fdopen(reading, "rb", 0)
        try:
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, file)
        except BaseException:
            file.close()
            os.close(writing)
            raise
        self._transports.append(transport)
        return writing

    def _spawn(
        self, theirs: list[int], executable: str, command: Sequence[str], environment: Mapping[str, str], cwd: Path
    ) -> None:
        orders, reports, printed = theirs
        words = [sys.executable, "-I", "-S", guard.__file__, str(orders), str(reports), str(self._grace)]
        self._process = subprocess.Popen(
            [*words, executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            env=dict(environment),
            cwd=cwd,
            pass_fds=(orders, reports),
            start_new_session=True,
        )

    def _close(self) -> None:
        if self._orders >= 0:
            os.close(self._orders)
            self._orders = -1
        for transport in self._transports:
            transport.close()

    def computed_seconds(self) -> float:
        """Processor time of the agent and what it started so far; 0 where the system does not tell."""
        return computed_seconds(guard.descendants(self._process.pid)) if self._process is not None else 0.0

    def order(self, word: bytes) -> None:
        """Tell the guard ``t`` (end the agent) or ``k`` (kill it at once)."""
        if self._orders >= 0:
            with contextlib.suppress(OSError):  # it has ended
                os.write(self._orders, word)

    def kill(self) -> None:
        """End everything without waiting for it to end by itself."""
        self.order(b"k")

    async def finish(self) -> None:
        """End the agent if it has not ended, and all that it started; returns when nothing of it is left.

        A task that is cancelled meanwhile stays so, and has everything killed at once.
        """
        if not self.ended.done():
            self.order(b"t")
        finishing = asyncio.ensure_future(self._finished())
        cancelled: asyncio.CancelledError | None = None
        while not finishing.done():
            try:
                await asyncio.shield(finishing)
            except asyncio.CancelledError as wrong:
                cancelled = wrong
                self.kill()
        if cancelled is not None:
            raise cancelled
        finishing.result()

    async def _finished(self) -> None:
        process = self._process
        if process is None:
            return
        await asyncio.wait([self._reports.over], timeout=self._grace + _GUARD_SECONDS)
        deadline = time.monotonic() + 1.0
        while process.poll() is None and time.monotonic() < deadline:
            await asyncio.sleep(0.005)
        if process.poll() is None:
            process.kill()
            process.wait()
        self.left_running += await _swept(self._mark)
        if self._pid and not self._cleared:
            self.left_running += _killed_group(self._pid)
        await asyncio.wait([self.output.closed], timeout=_OUTPUT_SECONDS)
        self._close()

    def take(self, line: str) -> None:
        """A report of the guard."""
        word, _, rest = line.partition(" ")
        if word == "started":
            self.started, self._pid = True, int(rest)
        elif word == "cleared":
            self._cleared, self.left_running = True, int(rest)
        elif word == "failed":
            self.problem = rest
        if word in ("ended", "failed") and not self.ended.done():
            self.ended.set_result(int(rest) if word == "ended" else None)

    def guard_ended(self) -> None:
        """No more reports will come."""
        if not self.ended.done():
            self.problem = "the process that guards the agent was killed; the agent was stopped"
            self.ended.set_result(None)


class _Reports(asyncio.Protocol):
    """Reads the guard's lines."""

    def __init__(self, agent: GuardedAgent) -> None:
        self._agent = agent
        self._rest = b""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._agent.take(line.decode("utf-8", "replace"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._agent.guard_ended()
        if not self.over.done():
            self.over.set_result(None)


def _killed_group(leader: int) -> int:
    """Kill a process group where there is no /proc to sweep; 1 where there was one."""
    if _PROCESS_TABLE.is_dir():
        return 0
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return 0
    return 1


def marked_processes(mark: bytes) -> list[int]:
    """The living processes of this user whose environment holds ``mark``, this one left out. Empty without /proc."""
    found = []
    for name in os.listdir("/proc") if _PROCESS_TABLE.is_dir() else ():
        if name.isdigit() and int(name) != os.getpid():
            # That of a process that has ended is empty.
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if mark in file.read():
                    found.append(int(name))
    return found


async def _swept(mark: bytes) -> int:
    """Kill what carries the mark and is still there: a guard that was itself killed leaves such. How many it was."""
    killed: set[int] = set()
    deadline = time.monotonic() + _SWEEP_SECONDS
    while (left := marked_processes(mark)) and time.monotonic() < deadline:
        killed.update(left)
        guard.kill_groups(left)
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(0.02)
    return len(killed)
