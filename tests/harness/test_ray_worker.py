"""The shares of a grid as tasks elsewhere run them, without Ray: what they hand over, what the writer makes of it."""

from __future__ import annotations

import asyncio
import importlib.util
import pickle
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from harness.abandoned import MARK, recordings_of
from harness.grid import GridError, parse_grid
from harness.grid_cells import cells_of
from harness.grid_run import GridChangedError, GridRun, run_grid
from harness.ray_executor import RayMissingError, _take, on_ray, shares_of
from harness.ray_worker import Part, parts
from harness.running import Running
from harness.target_run import Work
from harness.telling import told
from results.episode_journal import EpisodeReader
from results.episodes import CellPlan
from results.manifest import known
from results.reader import RunReader
from results.tables.cells import cell_table
from tests.harness.test_grid_run import carry, grid_of, outcomes
from tests.support.known_server import KnownServer, known_server


async def elsewhere(running: Running, works: Sequence[Work]) -> None:
    """An executor: every share in a thread with a loop of its own, parts pickled on their way."""
    raw = msgspec.json.encode(running.grid)
    for work in works:
        for places in shares_of(running, work):
            done = await asyncio.to_thread(lambda at=work, some=places: list(parts(raw, at.target.name, some, 3)))
            for part in done:
                _take(running, pickle.loads(pickle.dumps(part)))


def carry_elsewhere(grid_text: object, folder: Path) -> GridRun:
    return asyncio.run(run_grid(grid_text, folder, executor=elsewhere))  # type: ignore[arg-type]


def test_the_same_comes_out_as_here(tmp_path: Path) -> None:
    with known_server(KnownServer()) as url:
        grid = grid_of(url, ("does", "once"), conditions=["native", "constrained"])
        here, there = carry(grid, tmp_path / "here"), carry_elsewhere(grid, tmp_path / "there")
    assert (there.done, there.declared, there.complete) == (here.done, here.declared, True)
    assert outcomes(tmp_path / "there") == outcomes(tmp_path / "here")
    assert cell_table(told(tmp_path / "there").cells) == cell_table(told(tmp_path / "here").cells)
    assert told(tmp_path / "there").findings == told(tmp_path / "here").findings
    recordings = recordings_of(tmp_path / "there")
    assert [each.name for each in recordings] == [f"{number:03}" for number in range(1, 7)]
    for recording in recordings:
        kept = [one for one in EpisodeReader(tmp_path / "there") if one.recording == recording.name]
        assert 0 < len(kept) <= 3
        attempts = {each.attempt for one in kept for turn in one.turns for each in turn.attempts}
        assert attempts == {one.attempt for one in RunReader(recording) if one.tag("episode")}
        assert not (recording / MARK).exists()
        assert (recording / "run.json").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "there" / ".incoming").exists()


def test_what_is_there_is_not_run_again_by_whichever_executor(tmp_path: Path) -> None:
    server = KnownServer()
    with known_server(server) as url:
        carry(grid_of(url, conditions=["native"]), tmp_path)
        more = carry_elsewhere(grid_of(url, seeds=3, conditions=["native"]), tmp_path)
        asked = server.chats
        assert (more.done, more.declared) == (6, 6)
        carry_elsewhere(grid_of(url, seeds=3, conditions=["native"]), tmp_path)
        assert carry(grid_of(url, seeds=3, conditions=["native"]), tmp_path).complete
        assert server.chats == asked
    places = [one.place for one in EpisodeReader(tmp_path)]
    assert len(set(places)) == len(places) == 6


def test_a_machine_with_another_server_is_refused(tmp_path: Path) -> None:
    with known_server(KnownServer()) as url:
        grid = grid_of(url, conditions=["native"])
        (cell, *_) = cells_of(grid)
        done = asyncio.run(_parts_of(grid, cell.target.name, list(cell.places())))
        carry(grid, tmp_path)

        async def other(running: Running, works: Sequence[Work]) -> None:
            plans = tuple(_other(plan) for plan in done[0].plans)
            _take(running, Part(plans=plans))

        with pytest.raises(GridChangedError, match=r'version: .* -> "another build"'):
            asyncio.run(run_grid(grid, tmp_path, executor=other))


def _other(plan: CellPlan) -> CellPlan:
    return msgspec.structs.replace(plan, facts={**plan.facts, "version": known("another build", "a test")})


async def _parts_of(grid: object, target: str, places: list[object]) -> list[Part]:
    raw = msgspec.json.encode(grid)
    return await asyncio.to_thread(lambda: list(parts(raw, target, places)))  # type: ignore[arg-type]


def test_a_target_that_does_not_start_is_one_part_that_says_so(tmp_path: Path) -> None:
    grid = parse_grid("targets: [{name: a, up: llamacpp, path: /nonexistent/m.gguf}]\ntasks: [chain]")
    found = carry_elsewhere(grid, tmp_path)
    assert found.not_run["a"].startswith("not_run:launch: ")
    assert found.short == {"m @ a, native, chain": (0, 1)}


def test_resources_are_amounts() -> None:
    with pytest.raises(GridError, match="resources are amounts"):
        parse_grid("targets: [{name: a, url: 'http://h', resources: {GPU: -1}}]\ntasks: [chain]")
    assert parse_grid("targets: [{name: a, url: 'http://h', resources: {GPU: 1}}]\ntasks: [chain]")


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed here")
def test_without_ray_it_says_how_to_get_it(tmp_path: Path) -> None:
    with known_server(KnownServer()) as url, pytest.raises(RayMissingError, match=r"pip install ray"):
        asyncio.run(run_grid(grid_of(url), tmp_path, executor=on_ray))
