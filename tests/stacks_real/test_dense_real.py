"""Known agents on our own items through real generation in this process: every label is known before it runs."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from checklists.dense.writing import forms
from harness.dense.experiment.gathering import experiment
from harness.dense.family import own_families
from harness.dense.known_agents import BEHAVIOURS, fits
from harness.dense.own_items import own_items
from harness.dense.rules import default_rules
from harness.dense.summary import summarise
from harness.dense.summary import text as summary_text
from harness.grid import parse_grid
from harness.grid_run import GridRun, run_grid
from harness.telling import told
from results.episode_journal import EpisodeReader
from results.episodes import EpisodeRecord
from results.reader import RunReader
from stacks.locations import models_folder
from stacktap.cli import cli
from tests.stacks_real.test_inprocess_real import require
from tests.stacks_real.test_servers_real import require as require_server

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
SCHEMES = {"mlx": "mlx_inprocess", "llamacpp": "llamacpp_inprocess"}


def episodes(folder: Path, up: str, behaviour: str, **more: Any) -> list[EpisodeRecord]:
    tasks = [name for name, family in own_families().items() if fits(behaviour, family.item)]
    # Those who never stop are walked to the cap twice; one step is like the other.
    tasks = tasks[2:4] if BEHAVIOURS[behaviour].mode in ("tool_call_loop", "failure_to_stop") else tasks
    grid = {
        "targets": [{"name": "known", "up": up, "canary": behaviour}],
        "conditions": [{"name": "raw", "formats": ["hermes"]}],
        "tasks": tasks,
        "sampling": {"temperature": 0.7, "max_tokens": 256, "decoder_seed": "repeat"},
        **more,
    }
    found = asyncio.run(run_grid(parse_grid(json.dumps(grid)), folder))
    assert found.not_run == {}
    assert found.complete
    return list(EpisodeReader(folder))


def outcome(behaviour: str, name: str) -> str:
    """Making the calls of the next turn is guessing where that turn brings the value, and no restraint elsewhere."""
    if behaviour == "hurries" and own_items()[name].kind == "miss_param":
        return "task.guessed_missing_param"
    return BEHAVIOURS[behaviour].outcome


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_label_is_the_known_one(scheme: str, behaviour: str, tmp_path: Path) -> None:
    require(scheme)
    found = episodes(tmp_path / "run", SCHEMES[scheme], behaviour)
    known = BEHAVIOURS[behaviour]
    expected = {
        one.cell.task: (known.mode, outcome(behaviour, one.cell.task.removeprefix("files.")), known.counted)
        for one in found
    }
    assert {
        one.cell.task: (one.labels["dense"], one.outcome.name, one.labels.get("dense_counted", "")) for one in found
    } == expected
    assert all(one.succeeded == (known.mode == "success") for one in found)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_context_of_a_target_is_the_engines(scheme: str, tmp_path: Path) -> None:
    """A prompt that does not fit is no failure of the model, and the cell says which context it ran in."""
    require(scheme)
    targets = [
        {"name": f"of-{size}", "up": SCHEMES[scheme], "canary": "solves", "context_length": size}
        for size in (400, 4096)
    ]
    grid = {
        "targets": targets,
        "conditions": [{"name": "raw", "formats": ["hermes"]}],
        "tasks": ["files.make_folder"],
        "sampling": {"temperature": 0.7, "max_tokens": 64, "decoder_seed": "repeat"},
    }
    assert asyncio.run(run_grid(parse_grid(json.dumps(grid)), tmp_path / "run")).complete
    reader = EpisodeReader(tmp_path / "run")
    assert {one.cell.stack: one.outcome.name for one in reader} == {
        "of-400": "not_run.request.context_exceeded",
        "of-4096": "ok.task_done",
    }
    assert {key.stack: plan.facts["context_length"].value for key, plan in reader.plans.items()} == {
        "of-400": 400 if scheme == "mlx" else 512,
        "of-4096": 4096,
    }


def test_twenty_seeds_of_a_known_agent_are_one_run_and_it_is_said(tmp_path: Path) -> None:
    require("mlx")
    found = episodes(tmp_path / "run", "mlx_inprocess", "refuses", repeats=20, tasks=["files.make_folder"])
    assert [one.decoder_seed for one in sorted(found, key=lambda one: one.repeat)] == list(range(20))
    assert len({one.labels["wrote"] for one in found}) == 1
    (said,) = told(tmp_path / "run").repeated.values()
    assert said.startswith("no pass^k: the runs of each task wrote the same bytes")
    assert "no variance" in said


MODEL = models_folder() / "SmolLM2-135M-Instruct"


def real_model(folder: Path, **condition: str) -> tuple[GridRun, list[EpisodeRecord]]:
    if not (MODEL / "model.safetensors").is_file():
        pytest.skip(f"{MODEL} is not there")
    grid = {
        "targets": [{"name": "smollm2", "up": "mlx_inprocess", "path": str(MODEL)}],
        "conditions": [{"name": "raw", "formats": ["hermes"], **condition}],
        "tasks": ["files.make_folder"],
        "sampling": {"temperature": 0.7, "max_tokens": 48, "decoder_seed": "repeat"},
        "limits": {"turns": 2, "attempt_seconds": 500},
    }
    found = asyncio.run(run_grid(parse_grid(json.dumps(grid)), folder))
    return found, list(EpisodeReader(folder))


def test_a_template_that_renders_no_tools_is_said(tmp_path: Path) -> None:
    require("mlx")
    _, (episode,) = real_model(tmp_path / "run")
    assert episode.outcome.name == "not_run.template.tools_absent"
    assert "tools: prompt" in (episode.outcome.remedy or "")
    assert (episode.turns, episode.labels) == ((), {})


def test_raw_text_ids_prompt_and_measures_are_in_the_journal(tmp_path: Path) -> None:
    require("mlx")
    found, (episode,) = real_model(tmp_path / "run", tools="prompt")
    assert found.complete
    assert episode.labels["dense"] in ("success", *default_rules().precedence)
    (recording,) = (tmp_path / "run" / "recordings").iterdir()
    notes = [exchange.noted("generation") for exchange in RunReader(recording) if exchange.tag("episode", "")]
    assert len(notes) == len(episode.turns)
    for note in notes:
        assert note is not None
        assert "- mkdir: Make a folder" in note["prompt_text"]
        assert note["prompt_sha256"] == hashlib.sha256(note["prompt_text"].encode()).hexdigest()
        assert note["completion_tokens"] == len(note["token_ids"]) > 0
        assert note["ttft_seconds"] > 0
        assert note["generation_rate"] is None or note["generation_rate"] > 0
        assert note["peak_memory_bytes"] > 100e6
        assert note["sampling"]["seed"] == 0


def test_the_smoke_run_of_known_agents(tmp_path: Path) -> None:
    require("mlx")
    done = CliRunner().invoke(cli, ["dense", "smoke", "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, (done.output, done.exception)
    assert "canary-solves @ known-solves, raw/hermes  100.0 %" in done.output
    assert "right_tool_wrong_args            0        2        2" in done.output
    assert CliRunner().invoke(cli, ["dense", "validate", str(tmp_path / "run")]).exit_code == 0
    again = CliRunner().invoke(cli, ["reparse", str(tmp_path / "run")])
    assert again.exit_code == 0
    assert "of 2 right_tool_wrong_args, 2 (100 %) lacked nothing but steps of navigation" in again.output


SERVERS = {"llamacpp": ("--jinja", "--skip-chat-parsing"), "mlx_server": ()}


@pytest.mark.parametrize("stack", SERVERS)
def test_the_same_agents_through_a_server_and_in_process(stack: str, tmp_path: Path) -> None:
    """What a server leaves in the text or swallows is never the model's, and is counted by its cause."""
    require_server(stack)
    require("mlx")
    parses = stack == "mlx_server"
    agents = ("solves", "batches", "breaks", "misses")
    tasks = [name for name, family in own_families().items() if all(fits(agent, family.item) for agent in agents)][:2]
    raw, native = "raw/hermes", "native"
    targets = [
        {"name": f"{agent}-{place}", "up": up, "canary": agent, "conditions": [condition], "flags": list(flags)}
        for agent in agents
        for place, up, condition, flags in (
            ("in-process", "mlx_inprocess", raw, ()),
            ("served", stack, native, SERVERS[stack]),
        )
    ]
    grid = {
        "targets": targets,
        "conditions": [{"name": "raw", "formats": ["hermes"]}, "native"],
        "tasks": tasks,
        "sampling": {"temperature": 0.7, "max_tokens": 256, "decoder_seed": "repeat"},
    }
    found = asyncio.run(run_grid(parse_grid(json.dumps(grid)), tmp_path / "run"))
    assert (found.complete, found.not_run) == (True, {})
    ends: dict[str, set[tuple[str, str]]] = {}
    for one in EpisodeReader(tmp_path / "run"):
        without = one.rejudged.name if one.rejudged is not None else ""
        ends.setdefault(one.cell.stack, set()).add((one.outcome.name, without))
    for agent in agents:
        assert ends[f"{agent}-in-process"] == {(BEHAVIOURS[agent].outcome, "")}
    served = {agent: ends[f"{agent}-served"] for agent in agents}
    done, wrong = {("ok.task_done", "")}, {("task.wrong_args", "")}
    assert (served["solves"], served["misses"]) == (done, wrong)
    assert served["batches"] == (done if parses else {("not_run.parser.left_as_text", "ok.task_done")})
    # mlx_lm.server hands on nothing of a call that it cannot parse.
    broken = {("not_run.parser.dropped", "model.malformed_call")} if parses else {("model.malformed_call", "")}
    assert served["breaks"] == broken
    tables = summary_text(summarise(EpisodeReader(tmp_path / "run")))
    (cause,) = [line for line in tables.splitlines() if line.startswith("  parser.dropped")] if parses else [""]
    assert cause.split()[1:] == (["0"] * 5 + ["2", "0", "0"] if parses else [])
    assert "runs in which the server turned what the model wrote into something else, by cause" in tables
    assert not [said for said in told(tmp_path / "run").findings if "its turns do not give" in said]
    if parses:
        _report_shows_it(tmp_path / "run")


def _report_shows_it(folder: Path) -> None:
    """Side by side: what ran through the server and what ran here, and by which cause they differ."""
    page = forms(experiment(folder))["dense.md"].decode().replace("\\", "")
    part = page.partition("## What a server makes of it")[2].partition("\n## ")[0]
    assert "| solves-served | 100.0 % (2/2) | 100.0 % (2/2) | 0/2 | 0.0 % |" in part
    assert "| misses-served | 0.0 % (0/2) | 0.0 % (0/2) | 0/2 | 0.0 % |" in part
    assert "| breaks-served | n/r (0/0) | 0.0 % (0/2) | 2/2 | 100.0 % |" in part
    assert "| `parser.dropped` |" in part
    assert "Of 8 runs through servers, 2 (25.0 %) were." in part
