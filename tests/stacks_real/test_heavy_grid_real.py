"""Known-answer agents in a grid on vLLM and SGLang: every label known in advance, and vLLM's gate without its flags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.canary_agents import build_agents
from harness.tasks import FAMILIES
from probe.canary import BuiltCanary
from results.episode_journal import EpisodeReader
from stacks.launching.launch import LaunchOptions, running_server
from tests.stacks_real.test_grid_real import AGENTS, SEEDS, TASKS, check, grid, measured
from tests.stacks_real.test_heavy_servers_real import STACKS, WITH_PARSER, require

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    tasks = [FAMILIES[family].task(seed, 1) for family in TASKS for seed in SEEDS[:2]]
    return build_agents(tasks, tmp_path_factory.mktemp("agents") / "model")


@pytest.mark.parametrize("stack", STACKS)
def test_all_agents_in_all_conditions(stack: str, agents: BuiltCanary, tmp_path: Path) -> None:
    require(stack)
    with running_server(stack, agents.folder, LaunchOptions(flags=WITH_PARSER[stack], log_folder=tmp_path)) as server:
        targets: list[dict[str, Any]] = [{"name": name, "url": server.url, "canary": name} for name in AGENTS]
        every = ("native", "native+hint", "text-tools", "constrained")
        for target in targets:
            if target["name"] == "never":
                # What prose becomes under their grammar is drawn, not known: the canary has no choice prepared there.
                target["conditions"] = every[:3]
        found = measured(grid(targets, SEEDS[:2], every), tmp_path / "run")
    check(found, 2, native="ok.native_call", enforced=True)
    assert found.ignored == {}


def test_vllm_without_its_flags_prints_rej(agents: BuiltCanary, tmp_path: Path) -> None:
    require("vllm")
    with running_server("vllm", agents.folder, LaunchOptions(log_folder=tmp_path)) as server:
        targets = [{"name": "does", "url": server.url, "canary": "does"}]
        found = measured(grid(targets, SEEDS[:2], ("native", "text-tools")), tmp_path / "run")
    cells = {(cell.cell.condition, cell.cell.task): cell for cell in found.cells}
    for family in TASKS:
        refused = cells["native", f"{family}/1"]
        assert (refused.per_seed.value, refused.per_seed.undefined) == (None, "rej")
        assert refused.nonresponses == {"gate": 2}
        assert cells["text-tools", f"{family}/1"].pooled.value == 1.0
    names = {one.outcome.name for one in EpisodeReader(tmp_path / "run") if one.cell.condition == "native"}
    assert names == {"not_run.gate.parser_not_configured"}
