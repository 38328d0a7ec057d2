"""Known-answer agents in a grid on real servers: every label and every rate is known before the first request."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.abandoned import MARK, recordings_of
from harness.canary_agents import build_agents
from harness.grid import parse_grid
from harness.grid_run import run_grid
from harness.tasks import FAMILIES
from harness.telling import Told, text, told
from probe.canary import BuiltCanary
from results.episode_journal import EpisodeReader
from results.reader import RunReader
from results.tables.cells import cell_table
from stacks.launching.launch import LaunchOptions, running_server
from tests.harness.test_grid_run import outcomes
from tests.stacks_real.test_inprocess_real import require as require_engine
from tests.stacks_real.test_servers_real import require
from tests.support.servers import ROOT, command_line, environment

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
AGENTS = tuple(END)
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
        targets = [{"name": name, "url": server.url, "canary": name, "concurrency": 2} for name in AGENTS]
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
    measured(grid(targets, SEEDS[:1], ["native"]), tmp_path / "run")
    # With a seed more the agents' file is another one, and the agents are the same.
    found = measured(grid(targets, SEEDS[:2], ["native"]), tmp_path / "run")
    check(found, 2, native="ok.native_call", enforced=True)
    assert not found.findings
    (plan, *_) = found.plans.values()
    assert len(str(plan.facts["model_digest"].value)) == 64
    assert plan.facts["stack"].value == "llamacpp"


@pytest.mark.parametrize("stack", SERVERS)
def test_the_paper_s_sixteen_tools(stack: str, tmp_path: Path) -> None:
    require(stack)
    targets = [{"name": name, "up": stack, "canary": name, "flags": list(SERVERS[stack])} for name in ("does", "stops")]
    value = json.loads(grid(targets, SEEDS[:2], ("native", "text-tools", "constrained")))
    value["tasks"] = [{**row, "tools": "paper-compat"} for row in value["tasks"]]
    found = measured(json.dumps(value), tmp_path / "run")
    check(found, 2, native="ok.native_call", enforced=stack == "llamacpp")
    assert {plan.facts["tools"].value for plan in found.plans.values()} == {16}
    names = {call.name for one in EpisodeReader(tmp_path / "run") for turn in one.turns for call in turn.calls}
    assert names == {"filesystem_read_file", "filesystem_write_file", "claim_done_claim_done"}


def test_calls_left_in_the_text_are_recovered_and_count_with_their_channel(agents: BuiltCanary, tmp_path: Path) -> None:
    """llama-cpp-python never parses with the default template."""
    require("llamacpp_python")
    with running_server(
        "llamacpp_python", agents.gguf, LaunchOptions(context_length=8192, log_folder=tmp_path)
    ) as server:
        targets = [{"name": name, "url": server.url, "canary": name} for name in AGENTS]
        found = measured(grid(targets, SEEDS[:1], ["native", "text-tools"]), tmp_path / "run")
    check(found, 1, native="parser.left_as_text", enforced=False)
    for cell in found.cells:
        if cell.cell.stack != "never":
            assert cell.channels == {"text": cell.pooled.hits}


def test_success_that_a_stack_loses_is_owed_to_it_and_none_of_it_to_the_model(tmp_path: Path) -> None:
    """llama-server that parses nothing: two calls in one turn are beyond the client's parser, one call is not."""
    require("llamacpp")
    flags = ["--jinja", "--skip-chat-parsing"]
    targets = [{"name": name, "up": "llamacpp", "canary": name, "flags": flags} for name in ("does", "never", "pairs")]
    found = measured(grid(targets, SEEDS, ["native", "text-tools"]), tmp_path / "run")
    for cell in found.cells:
        agent, owed = cell.cell.stack, cell.owed
        if agent == "pairs" and cell.cell.condition == "native":
            assert (owed.lost, owed.episodes, owed.rejudged) == (8, 8, 8), cell.cell
            assert (owed.shown_successes, owed.shown, owed.stack, owed.model) == (8, 8, 1.0, 0.0), cell.cell
            assert owed.lowest == owed.highest == 1.0, cell.cell
            assert cell.completion.excluded == {"parser": 8}, cell.cell
        elif agent == "never":
            assert (owed.lost, owed.shown_successes, owed.shown, owed.stack) == (8, 0, 8, 0.0), cell.cell
        else:
            assert (owed.lost, owed.episodes) == (0, 8), cell.cell
    assert "without serving faults 8/8 succeed, 8 of these judged again by the known text" in text(found)


def test_killed_five_times_on_a_real_server_and_resumed_gives_the_same(agents: BuiltCanary, tmp_path: Path) -> None:
    require("llamacpp")
    chance = random.Random(11)
    folder, whole = tmp_path / "killed", tmp_path / "whole"
    began = time.monotonic()
    with running_server(
        "llamacpp", agents.gguf, LaunchOptions(flags=SERVERS["llamacpp"], log_folder=tmp_path)
    ) as server:
        targets = [{"name": name, "url": server.url, "canary": name, "concurrency": 2} for name in ("does", "once")]
        said = grid(targets, SEEDS[:4], ("native", "text-tools"))
        measured(said, whole)
        (tmp_path / "grid.yaml").write_text(said)
        command = command_line("run", str(tmp_path / "grid.yaml"), "--out", str(folder))
        episodes = len(list(EpisodeReader(whole)))
        for kill in range(1, 6):
            _run_until(command, tmp_path, folder, kill * episodes // 7, chance.random() * 0.3)
        resumed = subprocess.run(
            command, check=False, cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, timeout=200
        )
    took = time.monotonic() - began
    assert resumed.returncode in (0, 1), resumed.stderr
    assert outcomes(folder) == outcomes(whole)
    assert cell_table(told(folder).cells) == cell_table(told(whole).cells)
    places = [one.place for one in EpisodeReader(folder)]
    assert len(set(places)) == len(places) == episodes
    _nothing_lost_nothing_twice(folder)
    if os.getloadavg()[0] < 2:
        assert took < 60, took


def _run_until(command: list[str], home: Path, folder: Path, episodes: int, more: float) -> None:
    """Run, and kill it a moment after so many episodes are there."""
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and _kept(folder) < episodes:
        time.sleep(0.005)
    time.sleep(more)
    assert process.poll() is None, "it ended before it was killed"
    process.kill()
    process.wait()


def _kept(folder: Path) -> int:
    journal = folder / "episodes.jsonl"
    return journal.read_bytes().count(b'"event":"episode"') if journal.exists() else 0


def _nothing_lost_nothing_twice(folder: Path) -> None:
    """Every attempt of a finished episode stands in its recording; every other one is marked."""
    kept = Counter(
        (one.recording, each.attempt) for one in EpisodeReader(folder) for turn in one.turns for each in turn.attempts
    )
    assert set(kept.values()) == {1}
    abandoned = 0
    for recording in recordings_of(folder):
        recorded = {one.attempt for one in RunReader(recording) if one.tag("episode")}
        mark = recording / MARK
        marked = set(json.loads(mark.read_text())["attempts"]) if mark.exists() else set()
        assert recorded == marked | {attempt for name, attempt in kept if name == recording.name}
        abandoned += len(marked)
    assert abandoned


def test_in_process_mlx_hands_over_the_text_as_it_is(tmp_path: Path) -> None:
    require_engine("mlx")
    targets = [{"name": name, "up": "mlx_inprocess", "canary": name} for name in ("does", "once")]
    found = measured(grid(targets, SEEDS[:1], ["native", "text-tools"]), tmp_path / "run")
    check(found, 1, native="parser.left_as_text", enforced=False)
    assert all(plan.facts["stack"].value == "mlx_inprocess" for plan in found.plans.values())
