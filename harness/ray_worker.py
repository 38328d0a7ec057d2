"""What a Ray task does on its machine: episodes of a grid on one target, recorded there, handed over in parts.

It is the local executor on a folder of its own. A part holds finished episodes together with the recording that their
attempts stand in, so that whoever writes the run has both or neither. Nothing here needs Ray.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.abandoned import recordings_of
from harness.grid import Grid, filled_headers
from harness.grid_cells import cells_of
from harness.grid_servers import start_target
from harness.places import Place, Places
from harness.running import GridRun, Running
from harness.target_run import Work, record_on
from probe.canary.spec import CanaryError
from proxy.event_loop import loop_factory
from results.episode_journal import EpisodeReader, EpisodeWriter
from results.episodes import CellPlan, EpisodeRecord
from results.locks import LOCK_NAME
from results.manifest import Fact
from results.runs import new_run_id
from stacks.launching.launch import LaunchError

AT_ONCE = 16
"""Episodes of a part: what a worker that dies may lose, and run again."""


@dataclass(frozen=True, slots=True)
class Part:
    """Episodes that ended, the plans of their cells, the files of their recording (path below it -> bytes), and what
    was not run (`code: words` by target or cell title)."""

    episodes: tuple[EpisodeRecord, ...] = ()
    plans: tuple[CellPlan, ...] = ()
    recording: Mapping[str, bytes] = field(default_factory=dict)
    not_run: Mapping[str, str] = field(default_factory=dict)


def parts(grid: bytes, target: str, places: Sequence[Place], at_once: int = AT_ONCE) -> Iterator[Part]:
    """Run these places of one target of a grid (as JSON), part by part. A target that is started here is started once.

    Raises GridError where a variable of its headers is not set on this machine, OSError where nothing can be written.
    """
    parsed = msgspec.json.decode(grid, type=Grid)
    cells = [cell for cell in cells_of(parsed) if cell.target.name == target]
    work = Work(cells[0].target, cells, *filled_headers(cells[0].target))
    standing = AsyncExitStack()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        try:
            upstream, started = runner.run(start_target(work.target, cells, standing))
        except (LaunchError, CanaryError) as failure:
            yield Part(not_run={target: f"launch: {failure}"})
            return
        stated: Mapping[str, Fact] = started
        try:
            waiting = iter(places)
            while chunk := list(itertools.islice(waiting, at_once)):
                part, stated = _part(runner, parsed, work, chunk, (upstream, stated))
                yield part
                if target in part.not_run:
                    return
        finally:
            runner.run(standing.aclose())


def _part(
    runner: asyncio.Runner, grid: Grid, work: Work, places: Iterable[Place], server: tuple[str, Mapping[str, Fact]]
) -> tuple[Part, Mapping[str, Fact]]:
    with tempfile.TemporaryDirectory(prefix="stacktap-part-") as scratch:
        folder = Path(scratch)
        writer = EpisodeWriter(folder, new_run_id())
        running = Running(grid, GridRun(folder), writer, {}, Places(), _silent, only=Places(places))
        try:
            found = runner.run(record_on(running, work, *server))
        finally:
            writer.close()
        if running.broken is not None:
            raise running.broken
        reader = EpisodeReader(folder)
        episodes = tuple(reader)
        files = _files(folder)
    said = {what: why.removeprefix("not_run:") for what, why in running.found.not_run.items()}
    return Part(episodes, tuple(reader.plans.values()), files, said), found


def _files(folder: Path) -> dict[str, bytes]:
    """Of the one recording that was made; empty where none could be."""
    found = {}
    for recording in recordings_of(folder):
        for path in sorted(recording.rglob("*")):
            if path.is_file() and path.name != LOCK_NAME:
                found[path.relative_to(recording).as_posix()] = path.read_bytes()
    return found


def _silent(line: str) -> None:
    return None
