"""Grids on Ray: a task for each cell of a server that is started, one for all cells of a server that runs already.

Ray places the tasks, on this machine or on many (`RAY_ADDRESS`). What they hand over is written by the one writer of
the run, recording first, so that a run is carried on by the same rule as with the local executor. Keys do not travel:
each machine fills a target's headers from its own environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from harness.grid import Grid, Target
from harness.places import Place
from harness.ray_worker import Part, parts
from harness.running import GridChangedError, Running, next_recording
from harness.target_run import Work
from results.episode_journal import EpisodeJournalError
from results.segments import sync_folder

OBJECT_STORE_BYTES = 200 << 20
"""Of a cluster that is started here; parts are small."""
STOP_SECONDS = 5.0
"""How long tasks that are called off have to stop their servers."""
_INCOMING = ".incoming"


class RayMissingError(Exception):
    """Ray is not there or does not start; the message says what to do."""


async def on_ray(running: Running, works: Sequence[Work]) -> None:
    """An `Executor`. Raises RayMissingError, GridChangedError."""
    ray = require_ray()
    raw = msgspec.json.encode(_at_home_anywhere(running.grid))
    shutil.rmtree(running.found.folder / _INCOMING, ignore_errors=True)
    shares = [(work, places) for work in works for places in shares_of(running, work)]
    if not shares:
        return
    with _cluster(ray):
        shares = [share for share in shares if _has_room(ray, running, share[0].target)]
        tasks = ray.remote(max_retries=0)(parts)
        try:
            async with asyncio.TaskGroup() as group:
                for work, places in shares:
                    group.create_task(_share(ray, tasks, raw, running, (work, places)))
        except* GridChangedError as changed:
            raise changed.exceptions[0] from None


def shares_of(running: Running, work: Work) -> Iterator[list[Place]]:
    """What is missing, as it is given out: a server that runs already has one caller, so that no more than its
    `concurrency` episodes meet there; one that is started may stand on several machines, a cell on each."""
    cells = [[cell] for cell in work.cells] if work.target.up else [work.cells]
    for some in cells:
        places = list(running.missing(some))
        if places:
            yield places


async def _share(ray: ModuleType, tasks: Any, raw: bytes, running: Running, share: tuple[Work, list[Place]]) -> None:
    work, places = share
    made = tasks.options(num_returns="streaming", **_needs(work.target)).remote(raw, work.target.name, places)
    try:
        async for part in _parts(made):
            if running.broken is None:
                _take(running, part)
    except ray.exceptions.RayError as failure:
        cause = getattr(failure, "cause", None) or failure
        first = str(cause).strip().splitlines() or [type(cause).__name__]
        running.give_up(work.target.name, "worker", f"{type(cause).__name__}: {first[0]}")
    except asyncio.CancelledError:
        with contextlib.suppress(ray.exceptions.RayError, ValueError):
            ray.cancel(made)
            await asyncio.wait_for(_drained(made), STOP_SECONDS)
        raise


async def _parts(made: Any) -> AsyncIterator[Part]:
    async for reference in made:
        yield await reference


async def _drained(made: Any) -> None:
    async for _ in made:
        pass


def _take(running: Running, part: Part) -> None:
    """Write a part down: its recording, then its episodes."""
    try:
        plans = {plan.digest: running.agree(plan) for plan in part.plans}
        name = _placed(running.found.folder, part.recording) if part.recording else ""
        for episode in part.episodes:
            if episode.place not in running.held:
                plan = plans[episode.plan].digest
                running.keep(msgspec.structs.replace(episode, recording=name, plan=plan))
    except EpisodeJournalError as failure:
        running.broken = failure
    except OSError as failure:
        running.broken = EpisodeJournalError(
            f"cannot write in {running.found.folder}: {failure.strerror or failure}; the episodes of this part are not "
            "kept, and will run again"
        )
    for what, why in part.not_run.items():
        code, _, words = why.partition(": ")
        running.give_up(what, code, words)


def _placed(folder: Path, files: Mapping[str, bytes]) -> str:
    """Put a recording where it belongs, whole or not at all; its name. Raises OSError."""
    incoming = folder / _INCOMING
    shutil.rmtree(incoming, ignore_errors=True)
    for name, content in files.items():
        path = incoming / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        path.chmod(0o600)
    number, place = next_recording(folder)
    incoming.rename(place)
    sync_folder(place.parent)
    return f"{number:03}"


def _has_room(ray: ModuleType, running: Running, target: Target) -> bool:
    """Whether the cluster could ever run a task on this target: Ray itself would wait for ever."""
    there = ray.cluster_resources()
    wanted = {"CPU": 1.0, **target.resources}
    lacking = [name for name, amount in wanted.items() if amount > there.get(name, 0)]
    if lacking:
        said = ", ".join(f"{wanted[name]:g} {name}, and the cluster has {there.get(name, 0):g}" for name in lacking)
        running.give_up(target.name, "resources", f"it needs {said}")
    return not lacking


def _needs(target: Target) -> dict[str, Any]:
    """What Ray must have free for a task on this target."""
    others = {name: amount for name, amount in target.resources.items() if name not in ("CPU", "GPU")}
    needs = {"num_cpus": target.resources.get("CPU", 1), "num_gpus": target.resources.get("GPU", 0)}
    return {**needs, "resources": others} if others else needs


def _at_home_anywhere(grid: Grid) -> Grid:
    """The grid with paths that do not hang on the folder of this process; `~` is each machine's own."""

    def whole(path: str) -> str:
        return path if not path or path.startswith("~") else os.path.abspath(path)

    replace = msgspec.structs.replace
    targets = tuple(replace(one, path=whole(one.path), cacert=whole(one.cacert)) for one in grid.targets)
    return replace(
        grid, targets=targets, tasks=tuple(replace(row, problems=whole(row.problems)) for row in grid.task_rows())
    )


def require_ray() -> ModuleType:
    """Ray, before anything is begun. Raises RayMissingError."""
    # Ray tells its makers of every start unless it is told not to; nothing leaves here unasked.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray  # noqa: PLC0415 - an extra that few need
    except ImportError as error:
        raise RayMissingError(f"Ray cannot be imported ({error})\n  -> pip install ray") from None
    module: ModuleType = ray
    return module


@contextlib.contextmanager
def _cluster(ray: ModuleType) -> Iterator[None]:
    """The cluster at `RAY_ADDRESS`, or one of this machine alone for as long as it is needed."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if not os.environ.get("RAY_ADDRESS"):
        quiet |= {"address": "local", "include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
        quiet["_node_ip_address"] = "127.0.0.1"
    try:
        ray.init(**quiet)
    except (ConnectionError, OSError, RuntimeError, TimeoutError, ValueError) as error:
        where = os.environ.get("RAY_ADDRESS") or "this machine"
        raise RayMissingError(
            f"Ray does not start on {where}: {error}\n  -> look at `ray status`, or unset RAY_ADDRESS"
        ) from None
    try:
        yield
    finally:
        ray.shutdown()
