"""Real, unchanged agents through the cells of a pairing on a SIMULATED Ollama (its answers are checked against captures
of real ones): opencode and mini-swe-agent, by the whole flow of `stacktap pair --url URL --disruptive`.

On a real server: `test_pair_ollama_live.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from stacks.locations import canaries_folder
from tests.support.ollama_pairing import REAL_AGENTS, Cell, check_cell, not_installed
from tests.support.simulated_ollama import library_of, simulated_ollama

pytest.importorskip("ollama")
pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
CELLS = [(name, cell) for name, agent in REAL_AGENTS.items() for cell in agent.cells()]


@pytest.mark.parametrize(("name", "cell"), CELLS, ids=[f"{name}-{cell}" for name, cell in CELLS])
async def test_agent(tmp_path: Path, name: str, cell: Cell) -> None:
    missing = not_installed(name)
    if missing:
        pytest.skip(missing)
    async with simulated_ollama(library_of(canaries_folder(), tmp_path), version="0.32.15") as server:
        await check_cell(server.url, REAL_AGENTS[name], cell, tmp_path)
        assert server.models == {}
        if "request.context_exceeded" in cell.codes and name == "opencode":
            blamed = [str(body) for body in server.generations() if "large media attachments" in str(body)]
            assert blamed, "opencode used to blame media attachments for what was too many tokens"
