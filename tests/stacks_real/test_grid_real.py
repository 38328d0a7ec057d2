"""Known-answer agents in a grid on real servers: every label and every rate is known before the first request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.canary_agents import BEHAVIOURS, build_agents
from harness.grid import parse_grid
from harness.grid_run import run_grid
from harness.tasks import FAMILIES
from harness.telling import Told, told
from probe.canary import BuiltCanary
from results.episode_journal import EpisodeReader
from stacks.launching.launch import LaunchOptions, running_server
from tests.stacks_real.test_inprocess_real import require as require_engine
from tests.stacks_real.test_servers_real import require

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

SEEDS = (42, 123, 456, 789, 2024, 7, 99, 2025)
TASKS = ("aggregation", "chain")
TURNS = 4
END = {
    "does": ("ok.task_done", "done_tool"),
    "loops": ("model.loop", "turn_cap"),
    "stops": ("task.missing_step", "final_answer"),
    "never": ("task.premature_done", "prose"),
    "once": ("not_run.nonresponse.empty", "nonresponse"),
}
FORCED = {
    **END,
    "stops": ("task.missing_step", "done_tool"),
    "never": ("task.premature_done", "done_tool"),
    "once": ("task.missing_step", "done_tool"),
}
"""Under a schema that the stack enforces, a call stands where the agent would have stopped in words or in silence."""
NOT_FORCED = {**END, "stops": ("task.missing_step", "done_tool")}

TURN_NAMES = {
    "does": ["call", "call", "call"],
    "loops": ["call"] * TURNS,
    "stops": ["call", "ok.final_answer"],
    "never": ["model.no_call"],
    "once": ["call", "nonresponse.empty"],
}
FORCED_NAMES = {**TURN_NAMES, "stops": ["call", "call"], "never": ["call"], "once": ["call", "call"]}
NOT_FORCED_NAMES = {**TURN_NAMES, "stops": ["call", "call"]}


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> BuiltCanary:
    tasks = [FAMILIES[family].task(seed, 1) for family in TASKS for seed in SEEDS]
    return build_agents(tasks, tmp_path_factory.mktemp("agents") / "model")


def grid(targets: Sequence[dict[str, Any]], seeds: Sequence[int], conditions: Sequence[str]) -> str:
    return json.dumps(
        {
            "targets": list(targets),
            "conditions": list(conditions),
            "tasks": [{"family": family, "size": 1} for family in TASKS],
            "seeds": list(seeds),
            "sampling": {"max_tokens": 200},
            "limits": {"turns": TURNS},
        }
    )


def measured(text: str, folder: Path) -> Told:
    found = asyncio.run(run_grid(parse_grid(text), folder))
    assert found.complete, (found.not_run, found.short)
    return told(folder)


def check(found: Told, seeds: int, *, native: str, enforced: bool) -> None:
    """Every episode, every turn and every rate. `native`: the outcome of a turn whose call came as such."""
    for one in EpisodeReader(found.folder):
        behaviour, condition = one.cell.stack, one.cell.condition
        forced = condition == "constrained"
        ends = (FORCED if enforced else NOT_FORCED) if forced else END
        names = (FORCED_NAMES if enforced else NOT_FORCED_NAMES) if forced else TURN_NAMES
        call = native if condition.startswith("native") else "ok.text_call"
        wanted = [call if name == "call" else name for name in names[behaviour]]
        where = (one.cell.title, one.seed)
        assert [turn.outcome.name for turn in one.turns] == wanted, where
        assert (one.outcome.name, one.ended_by) == ends[behaviour], where
        assert one.progress == (0 if behaviour == "never" else 1 if one.cell.task.startswith("agg") else 0.25), where
        assert one.score == (1 if behaviour == "does" else 0), where
    for cell in found.cells:
        behaviour, forced = cell.cell.stack, cell.cell.condition == "constrained"
        names = (FORCED_NAMES if enforced else NOT_FORCED_NAMES) if forced else TURN_NAMES
        valid = seeds * names[behaviour].count("call")
        every = seeds * len(names[behaviour])
        silent = seeds * names[behaviour].count("nonresponse.empty")
        assert (cell.pooled.hits, cell.pooled.trials) == (valid, every - silent), cell.cell
        assert (cell.naive.hits, cell.naive.trials) == (valid, every), cell.cell
        assert cell.per_seed.value == valid / (every - silent), cell.cell
        assert sum(cell.nonresponses.values()) == silent, cell.cell
        if behaviour == "once" and not (forced and enforced):
            assert (cell.pooled.value, cell.naive.value, cell.completion.rate.value) == (1.0, 0.5, None)
        elif behaviour == "does":
            assert (cell.completion.successes, cell.completion.runs) == (seeds, seeds)
        else:
            assert (cell.completion.successes, cell.completion.runs) == (0, seeds)


SERVERS = {"llamacpp": ("--jinja", "--parallel", "2"), "mlx_server": ()}


@pytest.mark.parametrize("stack", SERVERS)
def test_all_agents_in_all_conditions(stack: str, agents: BuiltCanary, tmp_path: Path) -> None:
    require(stack)
    model = agents.folder if stack == "mlx_server" else agents.gguf
    with running_server(stack, model, LaunchOptions(flags=SERVERS[stack], log_folder=tmp_path)) as server:
        targets = [{"name": name, "url": server.url, "canary": name, "concurrency": 2} for name in BEHAVIOURS]
        every = ("native", "native+hint", "text-tools", "constrained")
        found = measured(grid(targets, SEEDS, every), tmp_path / "run")
    assert len(found.cells) == 5 * 4 * 2
    check(found, len(SEEDS), native="ok.native_call", enforced=stack == "llamacpp")
    ignored = {
        f"canary-never @ never, constrained, {family}/1": len(SEEDS) for family in TASKS if stack == "mlx_server"
    }
    assert found.ignored == ignored


@pytest.mark.parametrize("stack", SERVERS)
def test_single_steps_and_submits(stack: str, tmp_path: Path) -> None:
    """The paper's constrained probe of 8 trials, and both verdicts of a submit: nothing submitted is executed."""
    require(stack)
    rows = [{"family": "single_step", "seeds": list(range(8))}, {"family": "submit", "seeds": list(range(6))}]
    tasks = [FAMILIES[row["family"]].task(seed) for row in rows for seed in row["seeds"]]
    built = build_agents(tasks, tmp_path / "model")
    model = built.folder if stack == "mlx_server" else built.gguf
    with running_server(stack, model, LaunchOptions(flags=SERVERS[stack], log_folder=tmp_path)) as server:
        value = json.loads(grid([{"name": n, "url": server.url, "canary": n} for n in ("does", "never")], (0,), ()))
        value |= {"tasks": rows, "conditions": ["native", "text-tools", "constrained"]}
        found = measured(json.dumps(value), tmp_path / "run")
    forced = stack == "llamacpp"
    for cell in found.cells:
        trials = 8 if cell.cell.task == "single_step" else 6
        called = cell.cell.stack == "does" or (forced and cell.cell.condition == "constrained")
        assert (cell.first_turn.hits, cell.first_turn.trials) == (trials if called else 0, trials), cell.cell
        assert (cell.completion.successes, cell.completion.runs) == (trials if called else 0, trials), cell.cell
        assert cell.ended_by == {"single_turn": trials}
    verdicts = {(one.cell.stack, one.answer) for one in EpisodeReader(tmp_path / "run") if one.cell.task == "submit"}
    assert ("does", "json_valid yes, name_regex yes") in verdicts
    assert ("never", "json_valid no, name_regex no") in verdicts
    assert bool(found.ignored) == (not forced)


def test_a_started_server_has_the_agents_by_their_name(tmp_path: Path) -> None:
    require("llamacpp")
    targets = [{"name": "does", "up": "llama-server", "canary": "does", "flags": ["--jinja"]}]
    found = measured(grid(targets, SEEDS[:2], ["native"]), tmp_path / "run")
    check(found, 2, native="ok.native_call", enforced=True)
    (plan, *_) = found.plans.values()
    assert len(str(plan.facts["model_digest"].value)) == 64
    assert plan.facts["stack"].value == "llamacpp"


def test_calls_left_in_the_text_are_recovered_and_count_with_their_channel(agents: BuiltCanary, tmp_path: Path) -> None:
    """llama-cpp-python never parses with the default template."""
    require("llamacpp_python")
    with running_server(
        "llamacpp_python", agents.gguf, LaunchOptions(context_length=8192, log_folder=tmp_path)
    ) as server:
        targets = [{"name": name, "url": server.url, "canary": name} for name in BEHAVIOURS]
        found = measured(grid(targets, SEEDS[:1], ["native", "text-tools"]), tmp_path / "run")
    check(found, 1, native="parser.left_as_text", enforced=False)
    for cell in found.cells:
        if cell.cell.stack != "never":
            assert cell.channels == {"text": cell.pooled.hits}


def test_in_process_mlx_hands_over_the_text_as_it_is(tmp_path: Path) -> None:
    require_engine("mlx")
    targets = [{"name": name, "up": "mlx_inprocess", "canary": name} for name in ("does", "once")]
    found = measured(grid(targets, SEEDS[:1], ["native", "text-tools"]), tmp_path / "run")
    check(found, 1, native="parser.left_as_text", enforced=False)
    assert all(plan.facts["stack"].value == "mlx_inprocess" for plan in found.plans.values())
