"""Percentiles of many numbers in memory that does not grow with them."""

from __future__ import annotations

from collections import Counter

from checklists.facts.records import Spread

DIGITS = 3
"""Significant digits that are kept of a value: at most 900 different ones for each power of ten."""


class Spreads:
    """Counts non-negative whole numbers, rounded to `DIGITS` significant digits."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, value: int | None) -> None:
        """Count one value; None and negative ones are none."""
        if value is not None and value >= 0:
            self._counts[rounded(value)] += 1

    def spread(self) -> Spread | None:
        """What was counted, or None. Percentiles by nearest rank: the smallest value that at least that part of the
        values does not exceed."""
        total = self._counts.total()
        if not total:
            return None
        ordered = sorted(self._counts.items())
        ranks = {50: -(-total * 50 // 100), 90: -(-total * 90 // 100), 99: -(-total * 99 // 100)}
        found, seen = {}, 0
        for value, count in ordered:
            seen += count
            for percent, rank in ranks.items():
                if percent not in found and seen >= rank:
                    found[percent] = value
        return Spread(total, ordered[0][0], found[50], found[90], found[99], ordered[-1][0])


def rounded(value: int) -> int:
    """A whole number to `DIGITS` significant digits, halves upwards."""
    excess: int = 10 ** max(0, len(str(value)) - DIGITS)
    return (value + excess // 2) // excess * excess
