"""Statistics of the benchmark: pure functions over lists of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0..1) of the values lie, linear between neighbours (Hyndman and Fan's type 7).

    Raises:
        ValueError: without values, or with a share outside 0..1.
    """
    if not values or not 0 <= share <= 1:
        raise ValueError(f"no quantile {share} of {len(values)} values")
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, smallest and largest of the rounds' values."""
    return {"median": quantile(values, 0.5), "min": min(values), "max": max(values)}


def latency(nanoseconds: Sequence[float]) -> dict[str, float]:
    """p50, p99 and largest in microseconds, and how many there were."""
    if not nanoseconds:
        return {"n": 0}
    in_us = [value / 1000 for value in nanoseconds]
    return {
        "n": len(in_us),
        "p50": round(quantile(in_us, 0.5), 1),
        "p99": round(quantile(in_us, 0.99), 1),
        "max": round(max(in_us), 1),
    }


def by_round(rounds: Sequence[dict[str, Any]], target: str, figure: str) -> list[float | None]:
    """One figure (`phase.name` or `phase.name.part`) of a target in every round; None where it was not measured."""
    return [_reach(one.get(target), figure) for one in rounds]


def _reach(tree: Any, path: str) -> float | None:
    for key in path.split("."):
        if not isinstance(tree, dict) or key not in tree:
            return None
        tree = tree[key]
    return float(tree) if isinstance(tree, int | float) else None


def pairs(first: Sequence[float | None], second: Sequence[float | None]) -> list[tuple[float, float]]:
    """The rounds in which both were measured."""
    return [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]


def ratio(rounds: Sequence[dict[str, Any]], above: str, below: str, figure: str) -> dict[str, float] | None:
    """How `above` compares with `below` in one figure: the ratio of their medians, and of each round's pair.

    Returns None when there is no round with both.
    """
    both = [(a, b) for a, b in pairs(by_round(rounds, above, figure), by_round(rounds, below, figure)) if b > 0]
    if not both:
        return None
    each = [a / b for a, b in both]
    medians = quantile([a for a, _ in both], 0.5) / quantile([b for _, b in both], 0.5)
    return {"ratio": medians, "min": min(each), "max": max(each), "rounds": len(both)}


def flat(samples: Sequence[float], *, slack: float = 0.05) -> bool:
    """True when memory did not grow: the second half's highest is at most the first half's highest plus `slack`.

    The first sixth is left out of the first half: buffers and pools fill while the streams start.
    """
    if len(samples) < 6:
        return False
    start, half = len(samples) // 6, len(samples) // 2
    return max(samples[half:]) <= max(samples[start:half]) * (1 + slack)
