"""Many yes/no series over the same cases, resampled together: intervals of rates and of paired differences.

One draw of case indices serves every series, so that any difference of two series is paired (the percentile bootstrap
of `results.statistics.resampling`; a paired difference resamples cases once and applies them to both arms). The stream
is keyed by the set of cases: a series more or less moves no other number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from results.statistics.pairs import Delta, mcnemar
from results.statistics.resampling import RESAMPLES, Interval, percentiles, stream

_Z_TWO_SIDED_5, _Z_POWER_80 = 1.959964, 0.841621


@dataclass(frozen=True, slots=True)
class CaseRate:
    """A share of cases, its interval, and of how many cases."""

    value: float
    interval: Interval
    cases: int

    @property
    def width(self) -> float:
        """Of the interval."""
        return self.interval.high - self.interval.low


class CaseBootstrap:
    """Series of 0 and 1 over the same cases, in the same order, resampled together."""

    def __init__(self, series: Mapping[str, Sequence[bool]], key: str, resamples: int = RESAMPLES) -> None:
        """`key` names the set of cases. Raises ValueError without a case, or for series of different lengths."""
        lengths = {len(values) for values in series.values()}
        if len(lengths) != 1 or not min(lengths):
            raise ValueError(f"series over the same cases, at least one, are wanted, not of lengths {sorted(lengths)}")
        self.cases = lengths.pop()
        self._series = {name: [bool(value) for value in values] for name, values in series.items()}
        self._lane = self.cases.bit_length()
        self._place = {name: at * self._lane for at, name in enumerate(self._series)}
        self._sums = self._resampled(f"{key} cases", resamples)

    def _resampled(self, key: str, resamples: int) -> list[int]:
        """One sum for each draw, every series in bits of its own: adding adds them all."""
        packed = [
            sum(values[at] << self._place[name] for name, values in self._series.items()) for at in range(self.cases)
        ]
        draw, count = stream(key), self.cases
        return [sum([packed[draw(count)] for _ in range(count)]) for _ in range(resamples)]

    def _counts(self, name: str) -> list[int]:
        place, mask = self._place[name], (1 << self._lane) - 1
        return [one >> place & mask for one in self._sums]

    def rate(self, name: str) -> CaseRate:
        """The share of cases in which a series is 1. Raises KeyError."""
        value = sum(self._series[name]) / self.cases
        interval = percentiles([count / self.cases for count in self._counts(name)])
        return CaseRate(value, interval, self.cases)

    def delta(self, before: str, after: str) -> Delta:
        """What `after` has more than `before`, paired. Raises KeyError."""
        old, new = self._series[before], self._series[after]
        gained = sum(b > a for a, b in zip(old, new, strict=True))
        lost = sum(b < a for a, b in zip(old, new, strict=True))
        pairs = zip(self._counts(before), self._counts(after), strict=True)
        interval = percentiles([(b - a) / self.cases for a, b in pairs])
        inside = interval.low <= 0 <= interval.high
        return Delta(
            before=before,
            after=after,
            value=(gained - lost) / self.cases,
            interval=interval,
            cases=self.cases,
            gained=gained,
            lost=lost,
            p_value=mcnemar(gained, lost),
            verdict="exact agreement" if not gained + lost else "inconclusive" if inside else "credible",
        )


def detectable(cases: int, discordant: float = 0.2) -> float:
    """The smallest paired difference that so many cases show with a power of 80 % (two-sided 5 %), where a share
    `discordant` of them comes out differently: (z1 sqrt(d) + z2 sqrt(d - x^2)) / sqrt(n) = x, solved for x.

    J. T. Connett, J. A. Smith, R. B. McHugh, Statistics in Medicine 6 (1987) 581-588 (sample size of McNemar's test).
    Raises ValueError for no cases, or a share outside (0, 1].
    """
    if cases < 1 or not 0 < discordant <= 1:
        raise ValueError(f"{cases} cases with a share of {discordant} that differs")
    low, high = 0.0, discordant
    for _ in range(60):
        middle = (low + high) / 2
        needed = _Z_TWO_SIDED_5 * sqrt(discordant) + _Z_POWER_80 * sqrt(max(0.0, discordant - middle**2))
        low, high = (low, middle) if needed <= middle * sqrt(cases) else (middle, high)
    return high


def cases_needed(difference: float, discordant: float = 0.2) -> int:
    """How many cases show a paired difference with a power of 80 % (two-sided 5 %). Raises ValueError for a difference
    outside (0, `discordant`]."""
    if not 0 < difference <= discordant <= 1:
        raise ValueError(f"a difference of {difference} with a share of {discordant} that differs")
    needed = _Z_TWO_SIDED_5 * sqrt(discordant) + _Z_POWER_80 * sqrt(discordant - difference**2)
    return ceil((needed / difference) ** 2)
