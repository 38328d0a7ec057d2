"""Pairing on a live Ollama: `STACKTAP_OLLAMA=URL pytest tests/stacks_real/test_pair_ollama_live.py`.

The cells and the check are those that run on the simulated server (`test_pair_on_simulated_ollama.py`,
`test_pair_ollama_agents.py`), with an agent of ours and every real one that is installed. Models are created under
names of their own and removed again; none of the user's is asked, unloaded by us or removed (Ollama itself may take a
loaded one out of memory to make room for ours).
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from probe.ollama_models import PREFIX, OllamaModels
from probe.pairing.serving.on_ollama import PAIR_PREFIX
from tests.support.ollama_pairing import LITTLE_AGENT, REAL_AGENTS, Agent, Cell, check_cell, not_installed

URL = os.environ.get("STACKTAP_OLLAMA", "").rstrip("/")
AGENTS: dict[str, Agent] = {"little agent": LITTLE_AGENT, **REAL_AGENTS}
CELLS = [(name, cell) for name, agent in AGENTS.items() for cell in agent.cells(named=True)]

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not URL, reason="pairing on Ollama (live): set STACKTAP_OLLAMA to the URL of a running server"),
]


def models_on(url: str) -> set[str]:
    """The names of the models on the server."""
    with OllamaModels(url) as models:
        return set(models.names())


@pytest.mark.parametrize(("name", "cell"), CELLS, ids=[f"{name}-{cell}" for name, cell in CELLS])
async def test_live(tmp_path: Path, name: str, cell: Cell) -> None:
    missing = not_installed(name) if name in REAL_AGENTS else ""
    if missing:
        pytest.skip(f"pairing on Ollama (live): {missing}")
    before = await asyncio.to_thread(models_on, URL)
    await check_cell(URL, AGENTS[name], cell, tmp_path)
    after = await asyncio.to_thread(models_on, URL)
    ours = (PREFIX, PAIR_PREFIX)
    assert {name for name in before if not name.startswith(ours)} <= after, "a model that was there before is gone"
    assert not {name for name in after - before if name.startswith(ours)}, "a model of this run is still there"
