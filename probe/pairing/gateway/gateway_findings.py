"""Findings against a gateway, out of the differences between its two sides. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from probe.pairing.gateway.side_difference import SideDifference
from probe.pairing.records import Finding, StepName
from results.outcomes import Outcome
from results.taxonomy import info

GATEWAY = "the gateway"


def gateway_findings(
    differences: Sequence[SideDifference], who: str = GATEWAY, steps: Mapping[int, StepName] | None = None
) -> list[Finding]:
    """One finding for each kind of thing that the gateway did, in order of the wire: at the first exchange it did it
    to, with the number of the others. `steps` says which step an exchange in front of the gateway carried."""
    known = steps or {}
    by_code: dict[str, list[SideDifference]] = {}
    for difference in differences:
        by_code.setdefault(difference.code, []).append(difference)
    return [_finding(found, who, known.get(found[0].attempt)) for found in by_code.values()]


def _finding(found: Sequence[SideDifference], who: str, step: StepName | None) -> Finding:
    first = found[0]
    attempts = {difference.attempt for difference in found}
    more = f" (and so in {len(attempts) - 1} more of its answers)" if len(attempts) > 1 else ""
    return Finding(
        code=first.code,
        at_fault="network",
        who=who,
        said=f"{who}: {first.said}{more}",
        step=step,
        attempt=first.attempt,
        direction=first.direction,
        wire=first.wire,
        quote=first.front.quote,
        remedy=first.remedy,
        outcome=outcome_of_difference(first),
    )


def outcome_of_difference(difference: SideDifference) -> Outcome:
    """The outcome that a difference is: grade differential, with the bytes of both sides as evidence."""
    layer, _, code = difference.code.partition(".")
    reached = difference.behind is not None
    usual = info(difference.code).model_ran
    return Outcome(
        layer=layer,
        code=code,
        at_fault="network",
        model_ran="no" if not reached else "unknown" if usual == "no" else "yes",
        grade="differential",
        delivery="unknown",
        evidence=tuple(cited for cited in (difference.front, difference.behind) if cited is not None),
        remedy=difference.remedy or None,
        detail=difference.said,
    )
