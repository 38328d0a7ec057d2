"""A grid on the replayed Ollama (true captures): a gate in front of a model whose call is known to be perfect."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.grid import parse_grid
from harness.grid_run import run_grid
from harness.telling import text, told
from results.episode_journal import EpisodeReader
from tests.support.replayed import VERSIONS, replayed_ollama


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("api", ["openai", "ollama"])
async def test_a_gated_target_prints_rej(version: str, api: str, tmp_path: Path) -> None:
    async with replayed_ollama(version, "bare") as server:
        grid = parse_grid(
            f"targets: [{{name: gated, url: '{server.url}', model: {server.model}, api: {api}}}]\n"
            "conditions: [native]\ntasks: [{family: aggregation, size: 1}]\nseeds: [1, 2, 3, 4, 5, 6, 7, 8]"
        )
        found = await run_grid(grid, tmp_path / "run")
    assert found.complete
    said = told(tmp_path / "run")
    (cell,) = said.cells
    assert (cell.per_seed.value, cell.per_seed.undefined) == (None, "rej")
    assert cell.pooled.value is None
    assert (cell.naive.hits, cell.naive.trials) == (0, 8)
    assert cell.nonresponses == {"gate": 8}
    assert cell.completion.rate.value is None
    assert "rej" in text(said, found).splitlines()[1]
    for episode in EpisodeReader(tmp_path / "run"):
        assert episode.outcome.name == "not_run.gate.tools_unsupported"
        assert episode.ended_by == "nonresponse"
    assert {plan.facts["version"].value for plan in said.plans.values()} == {version}
    assert not said.findings
