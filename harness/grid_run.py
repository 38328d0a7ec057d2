"""Runs a grid: starts or finds its servers, records everything, keeps each finished episode at once, and resumes.

A run folder holds `episodes.jsonl` and `recordings/NNN`, one recorded run for each time that it was carried on.
Attempts that belong to no finished episode (a kill, an interruption) stay in their recording, outside every count.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.abandoned import mark_abandoned
from harness.episode import RecordLostError, run_episode
from harness.grid import Grid, Target, filled_headers
from harness.grid_cells import Cell, cells_of, endpoint_of, plan_of, setting_of
from harness.grid_servers import server_facts, start_target
from probe.asking import Asker, Budget
from probe.canary.spec import CanaryError
from probe.fingerprinting import Server, look_at
from proxy.relay.server import RelayConfig
from proxy.session import RecordingSession, SessionError, SessionOptions
from results.episode_journal import EpisodeJournalError, EpisodeReader, EpisodeWriter
from results.episodes import CellKey, CellPlan, EpisodeRecord, changed_facts
from results.manifest import Fact
from results.runs import RECORDINGS, new_run_id
from stacks.launching.launch import LaunchError

NOTHING_THERE = frozenset(
    {"transport.connect", "transport.auth", "transport.wrong_route", "transport.loading", "gate.model_not_found"}
)
_ENDLESS = Budget(requests=10**12, seconds=10.0**9)
Place = tuple[CellKey, int, int]


class GridChangedError(Exception):
    """A cell that has episodes is bound to something else now; the message lists what changed."""


@dataclass(slots=True)
class GridRun:
    """What became of a run: `folder`, episodes `done` of `declared`, what was `not_run` with its reason
    (`not_run:code: words`) by cell title or target, the cells that lack episodes (`short`: title -> done, declared),
    and the attempts of episodes that never ended, by recording."""

    folder: Path
    declared: int = 0
    done: int = 0
    not_run: dict[str, str] = field(default_factory=dict)
    short: dict[str, tuple[int, int]] = field(default_factory=dict)
    abandoned: dict[str, list[int]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every declared episode is there."""
        return self.done == self.declared and not self.not_run


@dataclass(slots=True)
class _Running:
    grid: Grid
    found: GridRun
    writer: EpisodeWriter
    plans: dict[CellKey, CellPlan]
    held: set[Place]
    tell: Callable[[str], None]
    began: float = field(default_factory=time.monotonic)
    fresh: int = 0
    broken: EpisodeJournalError | None = None

    def missing(self, cells: list[Cell]) -> list[tuple[Cell, Place]]:
        return [(cell, place) for cell in cells for place in cell.places() if place not in self.held]

    def give_up(self, what: str, code: str, why: str) -> None:
        """Say what is not run, and why; the first reason stays."""
        reason = f"not_run:{code.removeprefix('not_run.')}: {why}"
        self.found.not_run.setdefault(what, reason)
        self.tell(f"{what}: {reason}")

    def keep(self, episode: EpisodeRecord) -> None:
        """Write a finished episode and say how far it is."""
        self.writer.append(episode)
        self.held.add(episode.place)
        self.found.done += 1
        self.fresh += 1
        each = (time.monotonic() - self.began) / self.fresh
        left = each * (self.found.declared - self.found.done)
        self.tell(
            f"{self.found.done}/{self.found.declared} {episode.cell.title}, seed {episode.seed}: "
            f"{episode.outcome.name} ({episode.ended_by}, {len(episode.turns)} turns); "
            f"{60 / each:.0f} a minute, {left:.0f} s left"
        )


@dataclass(frozen=True, slots=True)
class _Standing:
    """A server that answers: who asks it, what it is, and the recording that its traffic goes to."""

    asker: Asker
    server: Server
    facts: Mapping[str, Fact]
    recording: str


async def run_grid(grid: Grid, folder: Path, tell: Callable[[str], None] = lambda line: None) -> GridRun:
    """Run what is missing. Raises GridError, GridChangedError, EpisodeJournalError; cancelled, it can be carried on."""
    cells = cells_of(grid)
    secrets = {target.name: filled_headers(target) for target in grid.targets}
    run, plans, held = _so_far(folder)
    found = GridRun(folder, declared=sum(len(cell.seeds) * cell.repeats for cell in cells))
    writer = EpisodeWriter(folder, run)
    running = _Running(grid, found, writer, plans, held, tell)
    found.done = found.declared - len(running.missing(cells))
    try:
        found.abandoned = mark_abandoned(folder, EpisodeReader(folder))
        for target in grid.targets:
            mine = [cell for cell in cells if cell.target is target]
            if running.missing(mine):
                await _run_target(running, target, mine, *secrets[target.name])
            if running.broken is not None:
                raise running.broken
    except OSError as error:
        raise EpisodeJournalError(f"cannot write in {folder}: {error.strerror or error}") from error
    finally:
        writer.close()
    found.short = _short(running, cells)
    return found


def _short(running: _Running, cells: list[Cell]) -> dict[str, tuple[int, int]]:
    said = {}
    for cell in cells:
        places = list(cell.places())
        there = sum(place in running.held for place in places)
        if there < len(places):
            said[cell.key.title] = (there, len(places))
    return said


def _so_far(folder: Path) -> tuple[str, dict[CellKey, CellPlan], set[Place]]:
    """The run's id, the plans of its cells and the episodes that are there."""
    reader = EpisodeReader(folder)
    if not reader.path.exists() or not reader.path.stat().st_size:
        return new_run_id(), {}, set()
    held = {episode.place for episode in reader}
    return reader.run, dict(reader.plans), held


async def _run_target(
    running: _Running, target: Target, cells: list[Cell], headers: Mapping[str, str], secrets: list[str]
) -> None:
    """Start or find the target's server and run its cells there; what stops that is said, and the run goes on."""
    try:
        async with AsyncExitStack() as standing:
            upstream, facts = await start_target(target, cells, standing)
            number, place = _next_recording(running.found.folder)
            options = SessionOptions(
                upstreams=(f"{target.name}={upstream}",),
                out=place,
                relay=RelayConfig(upstreams=(), cacert=target.cacert or None),
                redact_patterns=tuple(re.escape(secret) for secret in secrets),
                command=("stacktap", "run"),
            )
            session = await standing.enter_async_context(RecordingSession(options))
            asker = await standing.enter_async_context(Asker(session, target.name, budget=_ENDLESS, headers=headers))
            server = await look_at(asker, target.model or None)
            if server.fingerprint.state == "unreachable":
                running.give_up(target.name, "transport.connect", server.fingerprint.what)
                return
            there = _Standing(asker, server, {**server_facts(server), **facts}, f"{number:03}")
            for cell in cells:
                if not await _run_cell(running, cell, there):
                    return
    except (LaunchError, CanaryError) as failure:
        running.give_up(target.name, "launch", str(failure))
    except SessionError as failure:
        running.give_up(target.name, "recording", str(failure))


async def _run_cell(running: _Running, cell: Cell, there: _Standing) -> bool:
    """Run a cell's missing episodes, several at once where the target allows. False: nothing more can be run there."""
    missing = [place for _, place in running.missing([cell])]
    if not missing:
        return True
    plan = plan_of(running.grid, cell, there.facts)
    _agree(running, plan)
    gate = asyncio.Semaphore(cell.target.concurrency)
    gone = asyncio.Event()

    async def one(place: Place) -> None:
        async with gate:
            if not gone.is_set() and not await _run_place(running, cell, plan, there, place):
                gone.set()

    async with asyncio.TaskGroup() as group:
        for place in missing:
            group.create_task(one(place))
    return not gone.is_set()


async def _run_place(running: _Running, cell: Cell, plan: CellPlan, there: _Standing, place: Place) -> bool:
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
    running: _Running, cell: Cell, plan: CellPlan, there: _Standing, place: Place
) -> EpisodeRecord | None:
    """One episode; None where the task itself failed, which is said and never counted. Raises RecordLostError."""
    _, seed, repeat = place
    endpoint = endpoint_of(cell, there.server.fingerprint.stack, there.server.model)
    setting = replace(setting_of(running.grid, cell, plan, endpoint, seed), recording=there.recording)
    try:
        task = cell.family.task(seed, cell.row.size)
        return await run_episode(there.asker, setting, task, repeat=repeat, name=f"{cell.key.task}-{seed}-{repeat}")
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


def _agree(running: _Running, plan: CellPlan) -> None:
    """Put the plan on record; refuse where the cell's episodes belong to another one. Raises GridChangedError."""
    before = running.plans.get(plan.cell)
    has_episodes = any(place[0] == plan.cell for place in running.held)
    if before is not None and has_episodes and before.digest != plan.digest:
        changed = "\n  ".join(changed_facts(before, plan))
        raise GridChangedError(
            f"{plan.cell.title} has episodes under other conditions, which must not be mixed:\n  {changed}\n"
            "  -> choose another --out, or change it back"
        )
    if before != plan:
        running.writer.append(plan)
        running.plans[plan.cell] = plan


def _next_recording(folder: Path) -> tuple[int, Path]:
    base = folder / RECORDINGS
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    numbers = [int(entry.name) for entry in base.iterdir() if entry.name.isdigit()]
    number = max(numbers, default=0) + 1
    return number, base / f"{number:03}"
