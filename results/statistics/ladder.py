"""Choosing a rung on one half of the cases and confirming it on the other: MicroAnt's prescribe and confirm.

A rung is a configuration, in the order in which one would rather have them (the cheapest first).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from results.statistics.resampling import Interval


@dataclass(frozen=True, slots=True)
class Rung:
    """A configuration, its rate on the cases of one half, the interval of it, and how many cases these were."""

    name: str
    value: float
    interval: Interval
    cases: int


@dataclass(frozen=True, slots=True)
class Prescription:
    """The first rung whose rate reaches the threshold. `firm`: the whole interval does; `tentative`: not; `none`: no
    rung reaches it (`rung` is None then)."""

    rung: Rung | None
    threshold: float
    strength: Literal["firm", "tentative", "none"]

    def text(self) -> str:
        """One line for a report."""
        if self.rung is None:
            return f"none: no rung reaches {self.threshold:.2f}"
        return (
            f"{self.rung.name} ({self.strength}): {self.rung.value:.2f} "
            f"[{self.rung.interval.low:.2f}, {self.rung.interval.high:.2f}] on {self.rung.cases} cases, "
            f"threshold {self.threshold:.2f}"
        )


def prescribe(rungs: Sequence[Rung], threshold: float) -> Prescription:
    """Choose on the development half. Raises ValueError without rungs."""
    if not rungs:
        raise ValueError("no rung to choose from")
    for rung in rungs:
        if rung.value >= threshold:
            return Prescription(rung, threshold, "firm" if rung.interval.low >= threshold else "tentative")
    return Prescription(None, threshold, "none")


def held(measured_again: Rung, threshold: float) -> bool:
    """Whether the prescribed rung, measured on the test half, clears the threshold with its whole interval."""
    return measured_again.interval.low >= threshold
