"""Whether an episode went in circles. Rule (seeds, section 6.3): the same call three times running, or a cycle of at
most three calls three times over, or many calls of which none is new (a world that stands still)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoopRule:
    """`times` is how often a cycle of at most `longest_cycle` calls comes; `standstill` is how many calls in a row are
    none of them new. The sources give no number for the last one; this one is ours."""

    times: int = 3
    longest_cycle: int = 3
    standstill: int = 12


RULE = LoopRule()


def goes_in_circles(calls: Sequence[tuple[str, str]], rule: LoopRule = RULE) -> bool:
    """`calls` are (tool, canonical arguments) of one episode, in order."""
    for length in range(1, rule.longest_cycle + 1):
        size = length * rule.times
        for start in range(len(calls) - size + 1):
            cycle = calls[start : start + length]
            if all(calls[start + at] == cycle[at % length] for at in range(size)):
                return True
    seen: set[tuple[str, str]] = set()
    still = 0
    for call in calls:
        still = still + 1 if call in seen else 0
        seen.add(call)
        if still >= rule.standstill:
            return True
    return False
