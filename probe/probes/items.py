"""What every probe is made of: items that are run one by one, and the forms their results take."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from probe.asking import BudgetSpentError, NotAllowedError
from probe.probes.requests import QUESTION, body_of
from probe.reply import Reply, cited
from probe.result import ProbeEvidence, ProbeResult, Support
from probe.target import Target
from stacks.serving.base import Answer, Ask, Rendered

Item = Callable[[str, Target], Awaitable[ProbeResult]]
"""One finding of a probe: takes its name, asks what it needs, returns its result."""


async def run_items(target: Target, items: Mapping[str, Item]) -> list[ProbeResult]:
    """Run items in order. What the budget or the user does not allow is `skipped`; what was found before stays."""
    found = []
    for name, item in items.items():
        try:
            found.append(await item(name, target))
        except BudgetSpentError as spent:
            found.append(ProbeResult(name, "skipped", why=str(spent)))
        except NotAllowedError as refused:
            found.append(ProbeResult(name, "skipped", why=f"needs --disruptive: {refused}"))
    return found


def ran(
    name: str,
    support: Support,
    why: str = "",
    *,
    reply: Reply | None = None,
    value: Any = None,
    source: str = "chat answer",
    outcome: str | None = None,
    evidence: tuple[ProbeEvidence, ...] | None = None,
) -> ProbeResult:
    """A finding; its evidence is the turn of `reply` where nothing else is given."""
    if evidence is None:
        evidence = reply.cite_turn() if reply is not None else ()
    if outcome is None:
        outcome = reply.outcome if reply is not None else ""
    return ProbeResult(name, "ran", support, value, source, why, outcome, evidence)


def not_applicable(name: str, why: str) -> ProbeResult:
    """The question does not arise here."""
    return ProbeResult(name, "not_applicable", "not_applicable", why=why)


def no_turn(name: str, reply: Reply, *, value: Any = None) -> ProbeResult:
    """The request brought no turn: `refused` where the server turned it down, else the probe itself failed."""
    if reply.refused:
        return ProbeResult(
            name, "ran", "refused", value, "error answer", reply.error, reply.outcome, reply.cite_error()
        )
    outcome = "" if reply.unrecorded else reply.outcome
    return ProbeResult(name, "failed", "unknown", value, "", reply.error, outcome, reply.cite_error())


async def cite_asks(target: Target, *asks: int) -> tuple[ProbeEvidence, ...]:
    """Evidence at the bodies of answers, by the numbers of their asks."""
    found: list[ProbeEvidence] = []
    for number in asks:
        judged = await target.asker.judged(Answer(Ask("", ""), number=number))
        if judged is not None:
            found += cited(judged.facts.cite_body())
    return tuple(found)


async def rendered(target: Target, body: Mapping[str, Any]) -> Rendered:
    """The prompt that a request becomes, by the server's own rendering. Raises as `Asker.ask`.

    Where the probes' usual question (with tools or without, as here) brings no text, nothing else is tried.
    """
    usual = await _rendered(target, body_of(target, QUESTION, **({} if body.get("tools") else {"tools": None})))
    return usual if usual.text is None else await _rendered(target, body)


async def _rendered(target: Target, body: Mapping[str, Any]) -> Rendered:
    key = json.dumps(body, sort_keys=True)
    if key not in target.renders:
        target.renders[key] = await target.asker.follow(target.stack.render(body), probe="render")
    return target.renders[key]
