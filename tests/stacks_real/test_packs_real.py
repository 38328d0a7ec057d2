"""Packs on real servers with models whose answer is known: thinking that uses the budget up, and what cures it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.packs.family import Asking
from harness.packs.plan import select
from harness.packs.record import read_record
from harness.packs.registry import RegistryModel, models_of_targets
from harness.packs.running import run_packs
from harness.packs.summary import summarise
from probe.canary import CanarySpec, Script, ensure_built
from probe.canary.members import hermes_template
from probe.known_answer import model_for
from results.episode_journal import EpisodeReader
from stacks.locations import canaries_folder
from tests.stacks_real.test_servers_real import require

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
BUDGET = 96
TASKS = {"endless": "What is 2 + 2?", "ends": "[[ends]] What is 2 + 2?", "says": "[[says]] What is 2 + 2?"}
SWITCHED_OFF = "[[brief]]"


def thinker() -> CanarySpec:
    """A model that thinks for ever, thinks and stops, or thinks and answers; that obeys `/no_think` and, by its
    template, `enable_thinking: false`."""
    scripts = (
        Script("endless", "<think>\n", loop="I go on and on. "),
        Script("ends", "<think>\nIt is four, I think.\n</think>\n\n"),
        Script("says", "<think>\nTwo and two.\n</think>\n\nIt is 4."),
        Script("brief", "It is 4."),
    )
    switch = "{%- if enable_thinking is defined and not enable_thinking -%}" + SWITCHED_OFF + "{%- endif -%}"
    opening = "{%- if add_generation_prompt -%}"
    template = hermes_template()
    assert opening in template
    return CanarySpec(
        "canary-thinker",
        scripts,
        template.replace(opening, switch + opening),
        default="endless",
        triggers={"/no_think": "brief"},
        tags=("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"),
    )


def pack(folder: Path) -> Path:
    tasks = [
        {
            "id": name,
            "category": "reasoning",
            "prompt": prompt,
            "eval": "regex_checks",
            "checks": [{"name": "four", "pattern": "\\b4\\b"}],
        }
        for name, prompt in TASKS.items()
    ]
    path = folder / "thinking.json"
    path.write_text(json.dumps({"format": 1, "pack": "thinking", "version": "1", "tasks": tasks}))
    return path


def asked(stack: str, **more: Any) -> RegistryModel:
    spec = thinker()
    built = ensure_built(spec, canaries_folder() / f"thinker-{spec.digest()[:12]}")
    (found,) = models_of_targets([f"m=up:{stack}:{model_for(stack, built.folder, built.gguf)}"])
    if stack == "llamacpp":
        # llama-server tells a template that it does not take for a thinking model's `enable_thinking: false`.
        thinks = ("--chat-template-kwargs", '{"enable_thinking": true}')
        found = msgspec.structs.replace(found, target=msgspec.structs.replace(found.target, flags=thinks))
    return msgspec.structs.replace(found, max_tokens=BUDGET, temperature=0.0, **more)


def measured(folder: Path, model: RegistryModel) -> dict[str, tuple[float | None, list[str], list[str]]]:
    """By task: its value, the outcomes outside of it, and what became of thinking."""
    found = asyncio.run(run_packs([model], select([pack(folder)]), folder / "run"))
    assert found.not_run == {}
    assert found.complete
    record = read_record(folder / "run")
    results = summarise(EpisodeReader(folder / "run"), record.categories, {"thinking": 3})
    (one,) = results.results["thinking"].values()
    return {name: (task.value, list(task.outside), list(task.thinking)) for name, task in one.tasks.items()}


EXHAUSTED = (None, ["not_run.truncation.output_budget"], ["exhausted"])
ENDED = (None, ["not_run.nonresponse.reasoning_only"], ["only"])
ANSWERED, SWITCHED = (1.0, [], ["answered"]), (1.0, [], ["none"])
EXPECTED = {
    "default": {"endless": EXHAUSTED, "ends": ENDED, "says": ANSWERED},
    "no_think": {"endless": SWITCHED, "ends": ENDED, "says": ANSWERED},
    "off": {"endless": SWITCHED, "ends": SWITCHED, "says": SWITCHED},
}


@pytest.mark.parametrize("thinking", EXPECTED)
@pytest.mark.parametrize("stack", ["llamacpp", "mlx_server"])
def test_thinking_that_uses_the_budget_up_and_its_cure(tmp_path: Path, stack: str, thinking: Any) -> None:
    require(stack)
    assert measured(tmp_path, asked(stack, asking=Asking(thinking=thinking))) == EXPECTED[thinking]
