"""Known-answer agents: what their models hold, proved by a forward pass of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.canary_agents import BEHAVIOURS, agents_spec, build_agents, form_of, marks_of
from harness.conditions import Condition
from harness.tasks import FAMILIES, Ended
from probe.canary import verify


@pytest.mark.parametrize("family", FAMILIES)
def test_the_walk_solves_its_task(family: str) -> None:
    task = FAMILIES[family].task(1)
    world, calls = task.world(), task.walk
    results = [world.call(name, given) for name, given in calls]
    assert not any(result.failed for result in results)
    assert task.judge(world, Ended("", calls)).name == "ok.task_done"


def test_every_mark_leads_to_a_script_and_forms_differ() -> None:
    tasks = [FAMILIES["aggregation"].task(seed, 1) for seed in (1, 2)]
    spec = agents_spec(tasks)
    native, text, forced = (Condition(name) for name in ("native", "text-tools", "constrained"))
    assert [form_of(each) for each in (native, Condition("native+hint"), text, forced)] == [
        "hermes",
        "hermes",
        "fenced",
        "bare",
    ]
    for behaviour in BEHAVIOURS:
        for condition in (native, text, forced):
            mark = marks_of(behaviour, condition, tasks[1]).replace("{n}", "0")
            assert mark in spec.triggers
    written = [
        spec.script(spec.triggers[marks_of("does", condition, tasks[1]).replace("{n}", "1")]).text
        for condition in (native, text, forced)
    ]
    assert written[0].startswith("<tool_call>\n")
    assert written[1].startswith("```json\n")
    call = json.loads(written[2])
    assert json.loads(call["arguments"]["content"]) == tasks[1].answers


def test_the_model_writes_what_its_specification_says(tmp_path: Path) -> None:
    built = build_agents([FAMILIES["chain"].task(seed, 1) for seed in (42, 123)], tmp_path / "agents")
    found = verify(built.folder)
    assert found.ok
    assert min(check.margin for check in found.scripts) > 15
