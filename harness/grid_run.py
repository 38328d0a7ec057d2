"""Runs a grid: starts or finds its servers, records everything, keeps each finished episode at once, and resumes.

A run folder holds `episodes.jsonl` and `recordings/NNN`, one recorded run for each time that it was carried on.
Attempts that belong to no finished episode (a kill, an interruption) stay in their recording, outside every count.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from harness.abandoned import mark_abandoned
from harness.grid import Grid, filled_headers
from harness.grid_cells import cells_of
from harness.running import GridChangedError, GridRun, Running, so_far
from harness.target_run import Work, run_target
from results.episode_journal import EpisodeJournalError, EpisodeReader, EpisodeWriter

Executor = Callable[[Running, Sequence[Work]], Awaitable[None]]
"""Runs what is missing of several targets, keeping what ends; `running.broken` is set where that cannot be written."""


async def local(running: Running, works: Sequence[Work]) -> None:
    """One target after the other, on this machine; several episodes at once where a target allows it."""
    for work in works:
        if running.lacks(work.cells) and running.broken is None:
            await run_target(running, work)


async def run_grid(
    grid: Grid, folder: Path, tell: Callable[[str], None] = lambda line: None, executor: Executor = local
) -> GridRun:
    """Run what is missing. Raises GridError, GridChangedError, EpisodeJournalError; cancelled, it can be carried on."""
    cells = cells_of(grid)
    works = [
        Work(target, [cell for cell in cells if cell.target is target], *filled_headers(target))
        for target in grid.targets
    ]
    run, plans, held = so_far(folder)
    found = GridRun(folder, declared=sum(cell.declared for cell in cells))
    writer = EpisodeWriter(folder, run)
    running = Running(grid, found, writer, plans, held, tell)
    found.done = found.declared - sum(1 for _ in running.missing(cells))
    try:
        found.abandoned = mark_abandoned(folder, EpisodeReader(folder))
        await executor(running, works)
        if running.broken is not None:
            raise running.broken
    except OSError as error:
        raise EpisodeJournalError(f"cannot write in {folder}: {error.strerror or error}") from error
    finally:
        writer.close()
    found.short = running.short(cells)
    return found


__all__ = ["Executor", "GridChangedError", "GridRun", "local", "run_grid"]
