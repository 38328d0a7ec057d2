"""Running a real, unchanged agent in bounded time: nobody to ask, nothing of it left behind.

It runs below a guard of its own (``guard.py``): no terminal, an empty standard input, a session of its own.
On Linux everything that it starts is found and ended, daemons and double forks included; on other systems (macOS) only
its process group is.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from probe.pairing.agent_run.busy import is_work
from probe.pairing.agent_run.guarding import GuardedAgent
from probe.pairing.agent_run.interrupts import interrupts
from probe.pairing.agent_run.output_tail import OutputTail
from probe.pairing.records import AgentRun, Ending
from proxy.agents.child import CommandMissingError, located

MARKER = "STACKTAP_PAIRING"
"""The variable that every process of an agent's run carries, with a value of that run alone."""
_TICK_SECONDS = 0.05
_LOOK_SECONDS = 4.0
"""So long before an agent's time is over it is looked whether it computes, every half of that."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When an agent is ended, in seconds.

    ``total_seconds`` after its start in any case; after ``silent_seconds`` without output and without a request; after
    ``first_request_seconds`` where it has asked the server nothing at all. Where nobody watches its requests, silence
    is judged by its output alone. Neither ends one that computes (a cold start on a loaded machine; known on Linux
    alone). ``grace_seconds`` lie between SIGTERM and SIGKILL.
    """

    total_seconds: float = 120.0
    silent_seconds: float = 30.0
    first_request_seconds: float = 45.0
    grace_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class Activity:
    """What an agent has asked of the server so far: ``requests`` in all, ``open`` those without their whole answer.

    An agent that waits for an answer is not silent, however long it takes.
    """

    requests: int = 0
    open: int = 0


async def run_agent(
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path,
    *,
    limits: Limits,
    watch: Callable[[], Activity] | None = None,
    on_output: Callable[[bytes], None] | None = None,
    stop: asyncio.Event | None = None,
) -> AgentRun:
    """Run an agent to its end or to a limit, and end everything that it started.

    ``watch`` tells what it has asked of the server; ``on_output`` gets its output as it comes; ``stop``, once set, ends
    it. Ctrl-C (and SIGTERM) meanwhile give the ending ``interrupted``, a second one kills at once; a cancelled task
    kills it as well, and stays cancelled. ``exit_code`` is minus the signal's number where a signal ended it. The
    record's ``file`` and ``changed`` are left to :meth:`probe.pairing.agent_run.scratch.Scratch.traced`.
    """
    mark = secrets.token_hex(16)
    marked = {**environment, MARKER: mark}
    agent = GuardedAgent(OutputTail(on_output), f"{MARKER}={mark}", limits.grace_seconds)
    interrupted = asyncio.Event()

    def on_interrupt() -> None:
        if interrupted.is_set():
            agent.kill()
        interrupted.set()

    with interrupts(on_interrupt):
        try:
            await agent.start(_executable(command, marked), command, marked, cwd)
        except CommandMissingError as wrong:
            return _not_started(command, str(wrong))
        except (OSError, ValueError) as wrong:
            said = getattr(wrong, "strerror", None) or str(wrong)
            return _not_started(command, f"{command[0]}: cannot be started in {cwd}: {said}")
        begun = time.monotonic()
        try:
            ending = await _ending(agent, _Clock(limits, watch, agent), stop, interrupted)
            seconds = time.monotonic() - begun
        finally:
            await agent.finish()
    if not agent.started:
        return _not_started(command, f"{command[0]}: {agent.problem}")
    return AgentRun(
        tuple(command),
        ending,
        agent.ended.result() if agent.ended.done() else None,
        seconds,
        agent.output.text(),
        output_bytes=agent.output.total,
        left_running=agent.left_running,
        problem=agent.problem,
    )


def _executable(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Absolute, for the agent runs in another folder than the command was typed in. Raises CommandMissingError."""
    if not command or not command[0]:
        raise CommandMissingError("no command was given", 2)
    return os.path.abspath(located(command[0], environment))


def _not_started(command: Sequence[str], problem: str) -> AgentRun:
    return AgentRun(tuple(command), "not_started", None, 0.0, problem=problem)


class _Clock:
    """Compares what an agent does with its limits."""

    def __init__(self, limits: Limits, watch: Callable[[], Activity] | None, agent: GuardedAgent) -> None:
        self._limits = limits
        self._watch = watch
        self._agent = agent
        self._began = self._active = self._looked = time.monotonic()
        self._seen = (0, 0)
        self._computed = 0.0
        self._busy = False

    def reached(self) -> Ending | None:
        """The ending that a limit demands by now, if one does."""
        now, limits = time.monotonic(), self._limits
        activity = self._watch() if self._watch is not None else Activity()
        seen = (self._agent.output.total, activity.requests)
        if seen != self._seen or activity.open:
            self._seen, self._active = seen, now
        if now - self._began >= limits.total_seconds:
            return "timeout"
        left = limits.silent_seconds - (now - self._active)
        if self._watch is not None and not activity.requests:
            left = min(left, limits.first_request_seconds - (now - self._began))
        # Only when its time is nearly over: to look at all processes takes milliseconds.
        if left <= _LOOK_SECONDS and now - self._looked >= _LOOK_SECONDS / 2:
            self._look(now)
        return "silent" if left <= 0 and not self._busy else None

    def _look(self, now: float) -> None:
        computed = self._agent.computed_seconds()
        self._busy = is_work(computed - self._computed, now - self._looked)
        self._computed, self._looked = computed, now


async def _ending(agent: GuardedAgent, clock: _Clock, stop: asyncio.Event | None, interrupted: asyncio.Event) -> Ending:
    """Wait for the first reason to end it."""
    while True:
        await asyncio.wait([agent.ended], timeout=_TICK_SECONDS)
        if agent.ended.done():
            return "exited"
        if interrupted.is_set():
            return "interrupted"
        if stop is not None and stop.is_set():
            return "stopped"
        reached = clock.reached()
        if reached is not None:
            return reached
