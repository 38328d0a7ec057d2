"""The whole flow of `stacktap pair --url OLLAMA --disruptive` through the cells and their remedies, with an agent of
ours on a SIMULATED server of two versions. Real agents: `tests/stacks_real/test_pair_ollama_agents.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from stacks.locations import canaries_folder
from tests.stacks_real import test_pair_ollama_live as live
from tests.support.ollama_pairing import LITTLE_AGENT, Cell, check_cell
from tests.support.replayed import VERSIONS
from tests.support.simulated_ollama import library_of, simulated_ollama

pytest.importorskip("ollama")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the agent's canary is built, once."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.slow
@pytest.mark.parametrize("cell", LITTLE_AGENT.cells(), ids=str)
@pytest.mark.parametrize("version", VERSIONS)
async def test_cell(tmp_path: Path, version: str, cell: Cell, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    async with simulated_ollama(library_of(canaries_folder(), tmp_path), version=version) as server:
        await check_cell(server.url, LITTLE_AGENT, cell, tmp_path)
        assert server.models == {}
        assert server.loaded == {}
        if "parser.server_error" in cell.codes:
            # What came after the error: silence, so the agent's retries stayed without an answer; or the same again.
            assert len(server.generations()) >= 3


@pytest.mark.slow
async def test_the_check_of_live_servers_runs_here_as_well(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    async with simulated_ollama(library_of(canaries_folder(), tmp_path), version="0.32.15") as server:
        monkeypatch.setattr(live, "URL", server.url)
        name, cell = next(each for each in live.CELLS if each[0] == "little agent" and each[1].kind == "pairs")
        await live.test_live(tmp_path, name, cell)
        assert server.models == {}
