"""Two arms on the same cases: paired bootstrap of the difference, McNemar's exact test, Holm's correction.

The unpaired bootstrap ignores that both arms met the same cases and is wider for no reason; it is nowhere used.
Q. McNemar, Psychometrika 12 (1947) 153-157, in the exact binomial form; S. Holm, Scand. J. Statistics 6 (1979) 65-70.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import comb, fsum
from typing import Literal

from results.statistics.resampling import RESAMPLES, Interval, mean, percentiles, stream

Verdict = Literal["credible", "inconclusive", "exact agreement"]


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of a comparison: case id to outcome (or score in [0, 1]). `ecosystem` is the conversion chain or the
    like within which differences mean something (`gguf`, `mlx`)."""

    name: str
    outcomes: Mapping[str, float]
    ecosystem: str = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """Mean of (after - before) over the cases that both arms have, its percentile interval, and McNemar's p.

    `gained` and `lost` count the cases where `after` is better or worse. `credible`: 0 lies outside the closed
    interval; `inconclusive` means too few cases or no difference, never "harmless"; `exact agreement` holds for these
    cases and no others.
    """

    before: str
    after: str
    value: float
    interval: Interval
    cases: int
    gained: int
    lost: int
    p_value: float
    verdict: Verdict

    def text(self) -> str:
        """`+0.02 [-0.01, +0.05] (250 cases, 10 gained, 5 lost): inconclusive`."""
        verdict = "exact agreement on these cases" if self.verdict == "exact agreement" else self.verdict
        ends = f"[{self.interval.low:+.2f}, {self.interval.high:+.2f}]"
        return (
            f"{self.value:+.2f} {ends} ({self.cases} cases, {self.gained} gained, {self.lost} lost, "
            f"McNemar p = {self.p_value:.3g}): {verdict}"
        )


def paired_delta(
    before: Arm, after: Arm, *, key: str, only: Collection[str] | None = None, resamples: int = RESAMPLES
) -> Delta:
    """The difference that `after` makes. Case indices are drawn once per resample and applied to both arms.

    `only` keeps the named cases (those that a grammar could express, say). Raises ValueError where the arms are of
    two ecosystems, have not the same cases, or have none.
    """
    if before.ecosystem != after.ecosystem:
        raise ValueError(
            f"{before.name} ({before.ecosystem}) and {after.name} ({after.ecosystem}) are of two ecosystems: "
            "their difference would mix the conversion with the change"
        )
    cases = sorted(_cases(before, only) | _cases(after, only))
    for arm in (before, after):
        if missing := [case for case in cases if case not in arm.outcomes]:
            raise ValueError(f"{arm.name} lacks {len(missing)} of the other arm's cases, the first is {missing[0]!r}")
    if not cases:
        raise ValueError(f"{before.name} and {after.name} have no case in common")
    differences = [float(after.outcomes[case]) - float(before.outcomes[case]) for case in cases]
    interval = _interval(differences, key, resamples)
    gained, lost = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    return Delta(
        before=before.name,
        after=after.name,
        value=mean(differences),
        interval=interval,
        cases=len(cases),
        gained=gained,
        lost=lost,
        p_value=mcnemar(gained, lost),
        verdict=_verdict(interval, gained + lost),
    )


def _cases(arm: Arm, only: Collection[str] | None) -> set[str]:
    return set(arm.outcomes) if only is None else set(arm.outcomes) & set(only)


def _verdict(interval: Interval, discordant: int) -> Verdict:
    if not discordant:
        return "exact agreement"
    return "inconclusive" if interval.low <= 0 <= interval.high else "credible"


def _interval(differences: Sequence[float], key: str, resamples: int) -> Interval:
    draw, count = stream(f"{key} paired"), len(differences)
    if len(set(differences)) == 1:
        return Interval(differences[0], differences[0])
    return percentiles([fsum([differences[draw(count)] for _ in range(count)]) / count for _ in range(resamples)])


def mcnemar(gained: int, lost: int) -> float:
    """Two-sided exact p of McNemar's test: of the discordant cases, as many or more on one side by tossing a coin.

    1 where there is none. Raises ValueError for negative counts.
    """
    if gained < 0 or lost < 0:
        raise ValueError(f"{gained} gained and {lost} lost cannot be")
    discordant = gained + lost
    tail = sum(comb(discordant, count) for count in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / (1 << discordant))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, in the order given, for so many tests at once (step-down, never above 1).

    Raises ValueError for one outside [0, 1].
    """
    if wrong := [p for p in p_values if not 0 <= p <= 1]:
        raise ValueError(f"{wrong[0]} is no p-value")
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted
