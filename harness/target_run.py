"""Runs cells on one server: starts or finds it, records everything, and keeps each finished episode at once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from harness.dense.episode import run_dense
from harness.dense.family import DenseTask
from harness.episode import RecordLostError, run_episode
from harness.grid import Target
from harness.grid_cells import Cell, endpoint_of, plan_of, setting_of
from harness.grid_servers import identified, start_target
from harness.packs.episode import run_pack_item
from harness.packs.family import PackItem
from harness.places import Place
from harness.running import Running, next_recording
from probe.asking import Asker, Budget
from probe.canary.spec import CanaryError
from probe.fingerprinting import Server
from proxy.relay.server import RelayConfig
from proxy.session import RecordingSession, SessionError, SessionOptions
from results.episode_journal import EpisodeJournalError
from results.episodes import CellPlan, EpisodeRecord
from results.manifest import Fact
from stacks.engine import EngineError
from stacks.launching.launch import LaunchError

NOTHING_THERE = frozenset(
    {"transport.connect", "transport.auth", "transport.wrong_route", "transport.loading", "gate.model_not_found"}
)
_ENDLESS = Budget(requests=10**12, seconds=10.0**9)


@dataclass(frozen=True, slots=True)
class Work:
    """The cells of one target, and its headers with what in them is secret."""

    target: Target
    cells: list[Cell]
    headers: Mapping[str, str]
    secrets: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Standing:
    """A server that answers: who asks it, what it is, and the recording that its traffic goes to."""

    asker: Asker
    server: Server
    facts: Mapping[str, Fact]
    recording: str


async def run_target(running: Running, work: Work) -> None:
    """Start or find the target's server and run its cells there; what stops that is said, and the run goes on."""
    target = work.target
    try:
        async with AsyncExitStack() as standing:
            upstream, facts = await start_target(target, work.cells, standing)
            await record_on(running, work, upstream, facts)
    except (LaunchError, CanaryError) as failure:
        running.give_up(target.name, "launch", str(failure))


async def record_on(running: Running, work: Work, upstream: str, stated: Mapping[str, Fact]) -> Mapping[str, Fact]:
    """Run the missing episodes of cells on a server that stands at `upstream`, into one recording; what was found out
    of the server (`stated` is known before)."""
    target = work.target
    found: Mapping[str, Fact] = stated
    try:
        async with AsyncExitStack() as standing:
            number, place = next_recording(running.found.folder)
            options = SessionOptions(
                upstreams=(f"{target.name}={upstream}",),
                out=place,
                relay=RelayConfig(upstreams=(), cacert=target.cacert or None),
                redact_patterns=tuple(re.escape(secret) for secret in work.secrets),
                command=("stacktap", "run"),
                context_length=target.context_length,
            )
            session = await standing.enter_async_context(RecordingSession(options))
            for engine in session.loading.values():
                # A cell is bound to what the loaded model says of itself: asked earlier, it would say less.
                await engine
            asker = await standing.enter_async_context(
                Asker(session, target.name, budget=_ENDLESS, headers=work.headers)
            )
            server, found = await identified(asker, session, target, stated)
            if server.fingerprint.state == "unreachable":
                running.give_up(target.name, "transport.connect", server.fingerprint.what)
                return found
            session.learn(target.name, found)
            there = _Standing(asker, server, found, f"{number:03}")
            for cell in work.cells:
                if not await _run_cell(running, cell, there):
                    break
    except SessionError as failure:
        running.give_up(target.name, "recording", str(failure))
    except EngineError as failure:
        running.give_up(target.name, "launch", str(failure))
    return found


async def _run_cell(running: Running, cell: Cell, there: _Standing) -> bool:
    """Run a cell's missing episodes, several at once where the target allows. False: nothing more can be run there."""
    if not running.lacks([cell]):
        return True
    missing = running.missing([cell])
    plan = running.agree(plan_of(running.grid, cell, there.facts))
    gone = asyncio.Event()

    async def worker() -> None:
        for place in missing:
            if gone.is_set():
                return
            if not await _run_place(running, cell, plan, there, place):
                gone.set()

    async with asyncio.TaskGroup() as group:
        for _ in range(min(cell.target.concurrency, cell.declared)):
            group.create_task(worker())
    return not gone.is_set()


async def _run_place(running: Running, cell: Cell, plan: CellPlan, there: _Standing, place: Place) -> bool:
    """Run one episode and keep it. False: no further one can be run on this server, or written down."""
    try:
        episode = await _episode(running, cell, plan, there, place)
        if episode is None:
            return True
        if _never_began(episode):
            said = episode.turns[0].outcome
            running.give_up(cell.target.name, said.name, said.detail or "the first request of an episode ended so")
            return False
        running.keep(episode)
    except RecordLostError as failure:
        running.give_up(cell.target.name, "record_lost", str(failure))
        return False
    except EpisodeJournalError as failure:
        running.broken = failure
        return False
    return True


async def _episode(
    running: Running, cell: Cell, plan: CellPlan, there: _Standing, place: Place
) -> EpisodeRecord | None:
    """One episode; None where the task itself failed, which is said and never counted. Raises RecordLostError."""
    _, seed, repeat = place
    endpoint = endpoint_of(cell, there.server.fingerprint.stack, there.server.model)
    try:
        task = cell.family.task(seed, cell.row.size)
        setting = setting_of(running.grid, cell, plan, endpoint, task, repeat=repeat)
        setting, name = replace(setting, recording=there.recording), f"{cell.key.task}-{seed}-{repeat}"
        if isinstance(task, PackItem):
            return await run_pack_item(there.asker, setting, task, repeat=repeat, name=name)
        if isinstance(task, DenseTask):
            return await run_dense(there.asker, setting, task, repeat=repeat, name=name)
        return await run_episode(there.asker, setting, task, repeat=repeat, name=name)
    except RecordLostError:
        raise
    except Exception as failure:
        # A task family is code of others: its fault must not end the run.
        running.give_up(cell.key.title, "task_error", f"{type(failure).__name__}: {failure}")
    return None


def _never_began(episode: EpisodeRecord) -> bool:
    """Whether its first request already shows that nothing can be measured here: no server, no such route or model, no
    permission. That is no result of a cell, and once it is put right the episode can still be run."""
    return len(episode.turns) == 1 and episode.turns[0].outcome.name in NOTHING_THERE
