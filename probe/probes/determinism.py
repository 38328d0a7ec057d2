"""Is the same request answered the same? At temperature 0, and seeded at temperature 1."""

from __future__ import annotations

from typing import Any

from probe.probes.items import no_turn, ran, run_items
from probe.probes.requests import QUESTION, body_of, chat
from probe.result import ProbeResult
from probe.target import Target


async def probe(target: Target) -> list[ProbeResult]:
    """`determinism.greedy` and `determinism.seeded`. Four requests, one of them shared with other probes."""
    return await run_items(target, {"determinism.greedy": _greedy, "determinism.seeded": _seeded})


async def _greedy(name: str, target: Target) -> ProbeResult:
    return await _twice(name, target, body_of(target, QUESTION))


async def _seeded(name: str, target: Target) -> ProbeResult:
    return await _twice(name, target, body_of(target, QUESTION, temperature=1, seed=7))


async def _twice(name: str, target: Target, body: dict[str, Any]) -> ProbeResult:
    first = await chat(target, body, name)
    if not first.arrived:
        return no_turn(name, first)
    second = await chat(target, body, name, again=True)
    if not second.arrived:
        return no_turn(name, second)
    value = {"first": first.shown(), "second": second.shown()}
    evidence = first.cite_turn() + second.cite_turn()
    if value["first"] == value["second"]:
        known = " (a known answer does not depend on sampling)" if target.known_text is not None else ""
        return ran(name, "yes", f"the same turn twice{known}", reply=second, value=value, evidence=evidence)
    return ran(name, "no", "two answers to one request differ", reply=second, value=value, evidence=evidence)
