"""The limits probe, on simulated servers that refuse, cut silently, or take everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probe.probes import limits
from probe.probes.limits import context_told
from results.manifest import known
from stacks.serving.base import ModelIdentity
from tests.support.simulated import by_name, completion, error, evidence_reads_back, simulated_target


def tokens_of(body: dict[str, Any]) -> int:
    tools = sum(10 + 8 * len(tool["function"]["parameters"]["properties"]) for tool in body.get("tools", []))
    return 10 + 2 * len(body["messages"][0]["content"].split()) + tools


def refusing(limit: int, words: str) -> Any:
    def answer(body: dict[str, Any]) -> Any:
        have = tokens_of(body)
        return completion("x", prompt=have, spent=1) if have <= limit else error(words.format(have=have, limit=limit))

    return answer


TELLS = "request ({have} tokens) exceeds the available context size ({limit} tokens), try increasing it"
SILENT = "the prompt is too long"


def cutting(limit: int) -> Any:
    return lambda body: completion("x", prompt=min(limit, tokens_of(body)), spent=1)


@pytest.mark.parametrize("limit", [777, 3000, 8000])
async def test_a_limit_that_the_error_names(tmp_path: Path, limit: int) -> None:
    async with simulated_target(refusing(limit, TELLS), tmp_path) as target:
        results = await limits.probe(target)
    context = by_name(results)["context"]
    assert (context.support, context.value, context.source) == ("yes", limit, "error answer")
    assert context.outcome == "request.context_exceeded"
    assert evidence_reads_back(tmp_path, results) >= 1


@pytest.mark.parametrize("limit", [777, 3000, 8000])
async def test_a_limit_that_is_not_named_is_found_by_bisection(tmp_path: Path, limit: int) -> None:
    async with simulated_target(refusing(limit, SILENT), tmp_path) as target:
        (context, *_) = await limits.probe(target)
    assert (context.support, context.source) == ("yes", "bisection")
    assert limit * 0.6 <= context.value <= limit


async def test_a_prompt_that_is_cut_without_a_word(tmp_path: Path) -> None:
    async with simulated_target(cutting(1500), tmp_path) as target:
        results = await limits.probe(target)
    context = by_name(results)["context"]
    assert (context.support, context.value) == ("no", 1500)
    assert context.outcome == "truncation.context_cut_silently"
    assert evidence_reads_back(tmp_path, results) >= 2


async def test_what_the_metadata_tell_is_tried_once(tmp_path: Path) -> None:
    async with simulated_target(refusing(4096, SILENT), tmp_path) as target:
        target.identity = ModelIdentity("m", context_length=known(4096, "/props"))
        (context, *_) = await limits.probe(target)
    assert (context.support, context.value) == ("yes", 4096)
    async with simulated_target(cutting(4096), tmp_path / "cut") as target:
        target.identity = ModelIdentity("m", context_length=known(4096, "/props"))
        (context, *_) = await limits.probe(target)
    assert (context.support, context.value) == ("no", 4096)


async def test_a_context_too_long_to_try_is_told_and_left_alone(tmp_path: Path) -> None:
    async with simulated_target(cutting(10**9), tmp_path) as target:
        target.identity = ModelIdentity("m", context_length=known(131072, "/props"))
        (context, *_) = await limits.probe(target)
        longest = max(len(key) for key in target.replies)
    assert (context.support, context.value) == ("unknown", 131072)
    assert longest < 40_000


async def test_no_limit_is_no_finding(tmp_path: Path) -> None:
    async with simulated_target(cutting(10**9), tmp_path) as target:
        found = by_name(await limits.probe(target))
        assert target.asker.budget.spent == 8
    assert (found["context"].support, found["context"].value) == ("unknown", None)
    assert found["schema"].value == {"taken": 256}
    assert found["tools"].value == {"taken": 128}


async def test_edges_of_schema_and_tools_are_found_by_bisection(tmp_path: Path) -> None:
    def narrow(body: dict[str, Any]) -> Any:
        tools = body.get("tools", [])
        if len(tools) > 64:
            return error("tools: array too long, at most 64 items")
        if any(len(tool["function"]["parameters"]["properties"]) > 100 for tool in tools):
            return error("invalid schema for function 'get_weather': too many properties, at most 100")
        return completion("x", prompt=tokens_of(body), spent=1)

    async with simulated_target(narrow, tmp_path) as target:
        found = by_name(await limits.probe(target))
    schema, tools = found["schema"], found["tools"]
    assert (schema.support, tools.support) == ("partial", "partial")
    assert schema.value["taken"] <= 100 < schema.value["refused"]
    assert tools.value["taken"] <= 64 < tools.value["refused"]
    assert schema.value["refused"] - schema.value["taken"] <= 28


async def test_the_context_is_not_taken_for_a_limit_of_tools(tmp_path: Path) -> None:
    async with simulated_target(refusing(1200, TELLS), tmp_path) as target:
        tools = by_name(await limits.probe(target))["tools"]
    assert (tools.support, tools.value) == ("yes", {"taken": 16, "beyond_context": 128})


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("request (9 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096),
        ("This model's maximum context length is 2048 tokens. However, you requested 9", 2048),
        ('{\\"error\\":{\\"n_prompt_tokens\\":9000,\\"n_ctx\\":4096}}', 4096),
        ("The input (9 tokens) is longer than the model's context length (8192 tokens).", 8192),
        ("too long", None),
    ],
)
def test_the_number_that_an_error_names(text: str, number: int | None) -> None:
    assert context_told(text) == number
