"""The template probe, on simulated servers that render, and on ones that only count tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probe.probes import template
from probe.probes.template import compared_prompts, rendered_here
from results.manifest import known
from stacks.serving.base import ModelIdentity
from tests.support.simulated import by_name, completion, evidence_reads_back, simulated_target

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if tools %}{{ tools | tojson }}{% endif %}<|im_start|>assistant\n"
)


def whole(body: dict[str, Any]) -> str:
    return rendered_here(CHATML, body)


def without_tools(body: dict[str, Any]) -> str:
    return rendered_here(CHATML, {**body, "tools": None})


def names_alone(body: dict[str, Any]) -> str:
    names = [tool["function"]["name"] for tool in body.get("tools", [])]
    return f"tools: {names}\n" + without_tools(body)


def users_alone(body: dict[str, Any]) -> str:
    return "\n".join(str(message["content"]) for message in body["messages"] if message["role"] == "user")


def backwards(body: dict[str, Any]) -> str:
    return rendered_here(CHATML, {**body, "messages": body["messages"][::-1]})


@pytest.mark.parametrize(
    ("render", "tools", "system", "roles"),
    [
        (whole, "yes", "yes", "yes"),
        (without_tools, "no", "yes", "yes"),
        (names_alone, "partial", "yes", "yes"),
        (users_alone, "no", "no", "partial"),
        (backwards, "yes", "yes", "no"),
    ],
)
async def test_what_stands_in_the_rendered_prompt(
    tmp_path: Path, render: Any, tools: str, system: str, roles: str
) -> None:
    async with simulated_target(lambda body: completion("x"), tmp_path, render=render) as target:
        results = await template.probe(target)
        assert target.asker.budget.generations == 0
    found = by_name(results)
    assert (found["tools"].support, found["system"].support, found["roles"].support) == (tools, system, roles)
    assert (found["tools"].outcome == "template.tools_absent") == (tools == "no")
    assert (found["system"].outcome == "template.system_dropped") == (system == "no")
    assert len(found["hash"].value["sha256"]) == 64
    assert found["tools"].source == "/render"
    assert evidence_reads_back(tmp_path, results) >= 4


def counting(tokens_of_tools: int, tokens_of_system: int = 12) -> Any:
    def answer(body: dict[str, Any]) -> Any:
        prompt = 20 + (tokens_of_tools if body.get("tools") else 0)
        prompt += tokens_of_system * (len(body["messages"]) - 1)
        return completion("x", prompt=prompt)

    return answer


@pytest.mark.parametrize(("growth", "support"), [(70, "yes"), (26, "yes"), (12, "partial"), (0, "no")])
async def test_tokens_tell_whether_the_tools_are_in_the_prompt(tmp_path: Path, growth: int, support: str) -> None:
    async with simulated_target(counting(growth), tmp_path) as target:
        results = await template.probe(target)
    found = by_name(results)
    assert (found["tools"].support, found["tools"].source) == (support, "prompt_tokens")
    assert found["tools"].value["growth"] == growth
    assert found["system"].support == "yes"
    assert found["hash"].support == found["roles"].support == found["drift"].support == "unknown"
    assert evidence_reads_back(tmp_path, results) >= 4


async def test_a_system_text_that_takes_a_default_ones_place_is_not_called_dropped(tmp_path: Path) -> None:
    async with simulated_target(counting(50, 0), tmp_path) as target:
        assert by_name(await template.probe(target))["system"].support == "unknown"


async def test_without_any_counts_nothing_is_said(tmp_path: Path) -> None:
    def silent(body: dict[str, Any]) -> Any:
        answer = completion("x")
        del answer["usage"]
        return answer

    async with simulated_target(silent, tmp_path) as target:
        assert by_name(await template.probe(target))["tools"].support == "unknown"


@pytest.mark.parametrize(
    ("text", "support", "words"),
    [
        (CHATML, "yes", "what the model's own template says"),
        (CHATML.replace("<|im_end|>\n", "<|im_end|>"), "partial", "only blanks differ"),
        (CHATML.replace("<|im_start|>", "<|start|>"), "no", "at character"),
        ("{{ raise_exception('roles must alternate') }}", "unknown", "roles must alternate"),
        ("{{- if .Tools }}{{ .Tools }}{{ end }}", "unknown", "cannot be rendered here"),
    ],
)
async def test_drift_against_the_models_own_template(tmp_path: Path, text: str, support: str, words: str) -> None:
    async with simulated_target(lambda body: completion("x"), tmp_path, render=whole) as target:
        target.identity = ModelIdentity("m", template=known(text, "the GGUF"))
        drift = by_name(await template.probe(target))["drift"]
    assert drift.support == support
    assert words in drift.why
    assert (drift.outcome == "template.drift") == (support == "no")


def test_a_begin_mark_that_one_side_lacks_is_no_drift() -> None:
    assert compared_prompts("<s>[INST] hi [/INST]", "[INST] hi [/INST]")[0] == "yes"
    assert compared_prompts("[INST] hi", "<|begin_of_text|>[INST] hi")[0] == "yes"
    assert compared_prompts("You are good. [INST] hi", "[INST] hi")[0] == "no"
    assert compared_prompts("", "")[0] == "yes"


def test_the_tools_of_the_probe_are_as_long_as_it_says() -> None:
    assert len(template._TOOLS_TEXT) == len(json.dumps(json.loads(template._TOOLS_TEXT)))
