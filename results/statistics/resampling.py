"""The percentile bootstrap, and the random streams it draws from.

B. Efron, R. J. Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13. Of B = 10,000 sorted means the ends
are those at positions int(0.025 B) and int(0.975 B), counted from 0 (250 and 9750), as in the paper's own script.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import fsum
from random import Random

RESAMPLES = 10_000
PAPER_SEED = 20260630
"""Seed of the one generator that the paper's script draws all of its cells from."""

LOW, HIGH = 0.025, 0.975

Draw = Callable[[int], int]
"""`draw(n)` is an index below n."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval of rates (or of differences of rates)."""

    low: float
    high: float

    def overlaps(self, other: Interval) -> bool:
        """Whether both hold a common value (touching ends do)."""
        return self.low <= other.high and other.low <= self.high

    def text(self) -> str:
        """In per cent: `[12.5, 75.0]`."""
        return f"[{100 * self.low:.1f}, {100 * self.high:.1f}]"


def stream(key: str) -> Draw:
    """The stream of one cell: seeded with the first 8 bytes (big-endian) of the SHA-256 of its key, so that a cell
    more or less moves no other. Drawn by `random()`, the one method whose numbers Python promises to keep."""
    uniform = Random(int.from_bytes(sha256(key.encode("utf-8", "surrogatepass")).digest()[:8], "big")).random
    return lambda n: int(uniform() * n)


def paper_stream() -> Draw:
    """The paper's generator: one for all cells, in the order model x (native, native_hint, text_tools)."""
    return Random(PAPER_SEED).randrange


def percentiles(values: Sequence[float]) -> Interval:
    """The 95 % percentile interval of resampled values. Raises ValueError for none."""
    if not values:
        raise ValueError("no resampled value")
    ordered = sorted(values)
    return Interval(ordered[int(LOW * len(ordered))], ordered[int(HIGH * len(ordered))])


def bootstrap_mean(values: Sequence[float], draw: Draw, *, resamples: int = RESAMPLES) -> Interval:
    """Interval of the mean: `values` (one per seed or case) drawn with replacement, `resamples` times.

    One value gives [it, it] and draws nothing from the stream; raises ValueError for none.
    """
    count = len(values)
    if not count:
        raise ValueError("the mean of nothing has no interval")
    if count == 1:
        return Interval(values[0], values[0])
    if len(set(values)) == 1:
        for _ in range(count * resamples):
            draw(count)  # a shared stream must be as far along as if these had been drawn
        return Interval(values[0], values[0])
    return percentiles([fsum([values[draw(count)] for _ in range(count)]) / count for _ in range(resamples)])


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean, rounded once (the same on every Python). Raises ValueError for none."""
    if not values:
        raise ValueError("the mean of nothing")
    return fsum(values) / len(values)
