"""Does the server still answer after a call went wrong? Every request may wedge a model, so all need consent."""

from __future__ import annotations

from typing import Any

from probe.probes.items import no_turn, not_applicable, ran, run_items
from probe.probes.requests import QUESTION, asked, body_of, chat, script
from probe.result import ProbeResult
from probe.target import Target

_SECONDS = 20.0
_CUT_AFTER = 6


async def probe(target: Target) -> list[ProbeResult]:
    """`recovery.after_cut` and, on a canary, `recovery.after_malformed`. Six requests that may wedge the model."""
    return await run_items(target, {"recovery.after_cut": _after_cut, "recovery.after_malformed": _after_malformed})


async def _after_cut(name: str, target: Target) -> ProbeResult:
    """A call that the output limit cuts is malformed whatever the model."""
    return await _again(name, target, body_of(target, QUESTION, max_tokens=_CUT_AFTER))


async def _after_malformed(name: str, target: Target) -> ProbeResult:
    if script(target, "single") is None:
        return not_applicable(name, "a user's own model cannot be made to write a malformed call")
    return await _again(name, target, body_of(target, asked(target, QUESTION, "single")))


async def _again(name: str, target: Target, spoiling: dict[str, Any]) -> ProbeResult:
    """The usual question before and after a spoiling one."""
    usual = body_of(target, QUESTION)
    before = await chat(target, usual, name, changes=True, again=True, seconds=_SECONDS)
    if not before.arrived:
        return no_turn(name, before)
    spoilt = await chat(target, spoiling, name, changes=True, again=True, seconds=_SECONDS)
    after = await chat(target, usual, name, changes=True, again=True, seconds=_SECONDS)
    value = {"before": before.shown(), "between": spoilt.outcome, "after": after.shown()}
    evidence = before.cite_turn() + spoilt.cite_error() + after.cite_error()
    if not after.arrived:
        outcome = "engine.wedged" if after.answer.failure == "timeout" else after.outcome
        why = f"answered before, and after a broken call: {after.error}"
        return ran(name, "no", why, reply=after, value=value, outcome=outcome, evidence=evidence)
    if value["before"] == value["after"]:
        return ran(name, "yes", "the same answer before and after", reply=after, value=value, evidence=evidence)
    if target.known_text is None:
        why = "it answers; the answer is another one, as a model's may be"
        return ran(name, "yes", why, reply=after, value=value, evidence=evidence)
    return ran(name, "partial", "it answers, but not as before", reply=after, value=value, evidence=evidence)
