"""A sweep in a process of its own that can be killed: forked from a server that has everything imported already."""

from __future__ import annotations

import asyncio
import multiprocessing
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from harness.grid import parse_grid
from harness.grid_run import run_grid


def sweep(grid: str, folder: str) -> None:
    """Run what is missing of a grid."""
    asyncio.run(run_grid(parse_grid(grid), Path(folder)))


def started(grid: str, folder: Path) -> ForkServerProcess:
    """The process, running."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=sweep, args=(grid, str(folder)), daemon=True)
    process.start()
    return process
