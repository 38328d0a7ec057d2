"""Probes on a replayed Ollama: true captures of two versions. What the captures do not hold is a failed probe, never a
finding."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from probe.asking import Budget
from probe.differential import differential
from probe.probes import gate, load_order, manners, parallel, recovery, streaming, tool_choice
from probe.target import Target
from stacks.serving.registry import serving_stack
from tests.support.replayed import VERSIONS, replayed_ollama
from tests.support.simulated import GOOD, asking, by_name, evidence_reads_back

SCRIPTS = ("good", "prose", "two", "answer", "think", "trunc", "single")


@contextlib.asynccontextmanager
async def target_on(version: str, mode: str, folder: Path) -> AsyncIterator[Target]:
    async with (
        replayed_ollama(version, mode) as server,
        asking(server.url, folder, Budget(requests=200, disruptive=True)) as asker,
    ):
        stack = serving_stack("ollama")
        asker.identify("ollama", version)
        identity = await asker.follow(stack.identity(server.model))
        texts = {name: text for name in SCRIPTS if (text := server.known_text(name)) is not None}
        yield Target(asker, stack, server.model, identity=identity, known_text=GOOD, scripts=texts)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", ["bare", "nogate"])
async def test_the_gate_is_the_servers_whatever_the_model(tmp_path: Path, version: str, mode: str) -> None:
    async with target_on(version, mode, tmp_path) as target:
        results = await gate.probe(target)
        compared = await differential(target)
    found = by_name(results)
    assert (found["tools"].support, found["tools"].outcome) == ("refused", "gate.tools_unsupported")
    assert found["metadata"].value == {"says": False, "does": False}
    assert (compared.result.support, compared.wrote) == ("refused", None)
    assert compared.outcome is not None
    assert compared.outcome.model_ran == "no"
    assert evidence_reads_back(tmp_path, [*results, compared.result]) >= 3


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("mode", "expected"),
    [("native", "yes ignored ignored yes ignored yes"), ("gotools", "no yes ignored no unknown yes")],
)
async def test_the_same_model_by_two_templates(tmp_path: Path, version: str, mode: str, expected: str) -> None:
    async with target_on(version, mode, tmp_path) as target:
        choice = by_name(await tool_choice.probe(target))
        both = by_name(await parallel.probe(target))
        stream = by_name(await streaming.probe(target))
        compared = await differential(target)
    found = [choice["auto"], choice["none"], choice["required"], both["two"], both["off"], stream["same"]]
    assert [result.support for result in found] == expected.split()
    assert (choice["named"].status, choice["named"].outcome) == ("failed", "")
    assert compared.lost == (mode == "gotools")
    assert compared.result.outcome == ("ok.native_call" if mode == "native" else "parser.left_as_text")


@pytest.mark.parametrize("version", VERSIONS)
async def test_manners(tmp_path: Path, version: str) -> None:
    async with target_on(version, "native", tmp_path) as target:
        found = by_name(await manners.probe(target))
    assert (found["invalid_json"].support, found["invalid_json"].outcome) == ("yes", "request.invalid_json")
    assert (found["unknown_model"].support, found["unknown_model"].outcome) == ("yes", "gate.model_not_found")
    assert found["survives"].support == "yes"
    assert {result.status for result in found.values()} <= {"ran", "failed"}


async def test_a_parser_that_fails_on_the_first_answer_leaves_nothing_to_recover(tmp_path: Path) -> None:
    """RENDERER/PARSER qwen3-coder fails on a Hermes call."""
    async with target_on("0.30.8", "qwen3coder", tmp_path) as target:
        after_cut, _ = await recovery.probe(target)
    assert (after_cut.status, after_cut.support) == ("failed", "unknown")
    assert "EOF" in after_cut.why


@pytest.mark.parametrize(("version", "support"), [("0.30.8", "no"), ("0.32.15", "no")])
async def test_the_name_that_was_loaded_first_decides(tmp_path: Path, version: str, support: str) -> None:
    async with target_on(version, "native", tmp_path) as target:
        (result,) = await load_order.probe(target)
    assert result.support == support
    assert "--jinja" in result.why
    assert result.value["other"].startswith("canary-go")
    assert evidence_reads_back(tmp_path, [result]) == 2
