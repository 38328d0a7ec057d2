"""The gate probe, on simulated servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from probe.probes import gate
from results.manifest import known
from stacks.serving.base import ModelIdentity
from tests.support.simulated import by_name, call, completion, error, evidence_reads_back, simulated_target


def gated(body: dict[str, Any]) -> Any:
    return error("m does not support tools") if body.get("tools") else completion("Hello.")


async def test_tools_that_are_refused_are_told_from_a_server_that_refuses_all(tmp_path: Path) -> None:
    async with simulated_target(gated, tmp_path) as target:
        results = await gate.probe(target)
    found = by_name(results)
    assert (found["plain"].support, found["tools"].support) == ("yes", "refused")
    assert found["tools"].outcome == "gate.tools_unsupported"
    assert "does not support tools" in found["tools"].why
    assert found["metadata"].support == "unknown"
    assert evidence_reads_back(tmp_path, results) >= 3


async def test_a_server_that_refuses_all_says_nothing_of_tools(tmp_path: Path) -> None:
    async with simulated_target(lambda body: error("model not found", 404), tmp_path) as target:
        found = by_name(await gate.probe(target))
    assert (found["tools"].status, found["tools"].support) == ("failed", "unknown")
    assert "without them fails too" in found["tools"].why
    assert found["plain"].support == "refused"


async def test_a_server_that_crashes_on_tools_does_not_refuse_them(tmp_path: Path) -> None:
    def crashes(body: dict[str, Any]) -> Any:
        return error("segmentation fault in slot 0", 500) if body.get("tools") else completion("Hello.")

    async with simulated_target(crashes, tmp_path) as target:
        found = by_name(await gate.probe(target))
    assert found["tools"].support == "no"


async def test_metadata_that_contradict_what_the_server_does_are_told(tmp_path: Path) -> None:
    async with simulated_target(lambda body: completion(None, call()), tmp_path) as target:
        target.identity = ModelIdentity("m", tools=known(False, "/api/show"))
        found = by_name(await gate.probe(target))
        assert target.asker.budget.spent == 2
    assert found["tools"].support == "yes"
    assert (found["metadata"].support, found["metadata"].value) == ("no", {"says": False, "does": True})
    assert "answered" in found["metadata"].why
