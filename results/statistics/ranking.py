"""A ranking, or the sentence that says why there is none.

Rates whose intervals overlap are not separable at this precision; neither are rates that were taken under different
conditions, nor is an undefined rate lower than a defined one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import msgspec

from results.episodes import CellKey
from results.statistics.cells import CellStatistics
from results.statistics.resampling import Interval


@dataclass(frozen=True, slots=True)
class Contender:
    """A cell with its rate and 95 % interval (both None where undefined, `word` says why) and the seeds behind it."""

    cell: CellKey
    value: float | None
    interval: Interval | None
    seeds: int
    word: str = ""


@dataclass(frozen=True, slots=True)
class Ranking:
    """`order`: names from the highest rate down, None where a ranking is refused. `sentence` says it, or why not.
    `overlapping`: the pairs that cannot be told apart."""

    order: tuple[str, ...] | None
    sentence: str
    overlapping: tuple[tuple[str, str], ...] = ()

    @property
    def refused(self) -> bool:
        """Whether there is no ranking."""
        return self.order is None


def contender(statistics: CellStatistics) -> Contender:
    """A cell's per-seed rate as a contender; Wilson's interval stands in for a bootstrap without width."""
    rate = statistics.per_seed
    return Contender(statistics.cell, rate.value, rate.comparable, len(rate.values), rate.undefined)


def rank(contenders: Sequence[Contender]) -> Ranking:
    """Rank contenders that differ in one thing only (the model, say) and whose intervals are all apart."""
    if len(contenders) < 2:
        return Ranking(None, "No ranking: there is nothing to compare with.")
    differing = _differing(contenders)
    if len(differing) != 1:
        what = " and ".join(differing) or "nothing: they are one cell"
        return Ranking(None, f"No ranking: the cells differ in {what}, so that a difference has no single cause.")
    names = {id(one): str(getattr(one.cell, differing[0])) for one in contenders}
    if undefined := [one for one in contenders if one.value is None or one.interval is None]:
        said = ", ".join(f"{names[id(one)]} ({one.word or 'n/r'})" for one in undefined)
        return Ranking(None, f"No ranking: the rate is undefined, not 0, for {said}.")
    pairs = [(a, b) for a, b in combinations(contenders, 2) if _overlap(a, b)]
    if pairs:
        first, second = pairs[0]
        more = f", and {len(pairs) - 1} more pairs" if len(pairs) > 1 else ""
        return Ranking(
            None,
            f"No ranking: the 95 % intervals of {_said(first, names)} and {_said(second, names)} overlap{more}; "
            "at this number of seeds they are not separable.",
            tuple((names[id(a)], names[id(b)]) for a, b in pairs),
        )
    ordered = sorted(contenders, key=lambda one: -(one.value or 0.0))
    order = tuple(names[id(one)] for one in ordered)
    said = " > ".join(_said(one, names) for one in ordered)
    return Ranking(order, f"{said}: no two 95 % intervals overlap.")


def _differing(contenders: Sequence[Contender]) -> list[str]:
    cells = [msgspec.structs.asdict(one.cell) for one in contenders]
    if len({one.cell for one in contenders}) < len(cells):
        return []
    return [name for name in cells[0] if len({cell[name] for cell in cells}) > 1]


def _overlap(first: Contender, second: Contender) -> bool:
    return first.interval is not None and second.interval is not None and first.interval.overlaps(second.interval)


def _said(one: Contender, names: dict[int, str]) -> str:
    ends = one.interval.text() if one.interval else ""
    return f"{names[id(one)]} ({100 * (one.value or 0.0):.1f} % {ends}, {one.seeds} seeds)"
