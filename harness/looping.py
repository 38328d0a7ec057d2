"""Whether an episode went in circles. Rule (seeds, section 6.3): the same call three times running, or a cycle of at
most three calls three times over, or many calls of which none is new (a world that stands still)."""

from __future__ import annotations

from collections.abc import Sequence

TIMES = 3
LONGEST_CYCLE = 3
STANDSTILL = 12
"""Calls in a row of which none is new. The sources give no number; this one is ours."""


def goes_in_circles(calls: Sequence[tuple[str, str]]) -> bool:
    """`calls` are (tool, canonical arguments) of one episode, in order."""
    for length in range(1, LONGEST_CYCLE + 1):
        size = length * TIMES
        for start in range(len(calls) - size + 1):
            cycle = calls[start : start + length]
            if all(calls[start + at] == cycle[at % length] for at in range(size)):
                return True
    seen: set[tuple[str, str]] = set()
    still = 0
    for call in calls:
        still = still + 1 if call in seen else 0
        seen.add(call)
        if still >= STANDSTILL:
            return True
    return False
