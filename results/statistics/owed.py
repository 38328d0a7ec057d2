"""Of the success that was lost, how much is owed to the stack and how much to the model.

Let a be the rate of success as measured (what a careless harness prints: infrastructure counts as failure), and c the
rate among episodes that no serving fault touched, or whose faults could be completed by the known raw text and judged
again. Lost is 1 - a; owed to the stack is (c - a) / (1 - a), owed to the model (1 - c) / (1 - a). The interval
resamples seeds. The point assumes that faults strike good and bad episodes alike; `lowest` and `highest` assume nothing
but that taking a fault away does no harm: every episode whose outcome without the fault is unknown fails, or succeeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np

from results.episodes import EpisodeRecord
from results.statistics.completion import JUDGED_LAYERS
from results.statistics.resampling import RESAMPLES, Interval, percentiles, stream

SERVING_FAULTS = ("stack", "config", "network")
"""Faults that belong to the stack's side; `client` and `undetermined` are neither the stack's nor the model's."""

_DRAWS_AT_ONCE = 1 << 18
ENOUGH = 0.5
"""An interval is given where the share is defined in at least this part of the resamples."""


@dataclass(frozen=True, slots=True)
class Owed:
    """Shares of the lost success, in [0, 1]; None where nothing was lost or no episode shows the model alone.

    `episodes` were measured, `lost` of them failed; `shown` show the model alone (`shown_successes` succeeded there),
    `rejudged` of them because their fault was completed by what the model is known to have written; `unknown` are lost
    episodes whose outcome without their fault is not known, counted by whose fault in `faults`; `excluded` were left
    out (ended by the user or by stacktap itself), by word.
    """

    episodes: int
    lost: int
    shown: int
    shown_successes: int
    unknown: int
    rejudged: int
    stack: float | None
    interval: Interval | None
    lowest: float | None
    highest: float | None
    faults: dict[str, int] = field(default_factory=dict)
    excluded: dict[str, int] = field(default_factory=dict)

    @property
    def model(self) -> float | None:
        """The model's share: the rest."""
        return None if self.stack is None else 1 - self.stack

    @property
    def model_interval(self) -> Interval | None:
        """The same interval, seen from the model's side."""
        return None if self.interval is None else Interval(1 - self.interval.high, 1 - self.interval.low)

    def text(self) -> str:
        """One sentence, every number with its denominator."""
        if not self.episodes:
            return "no episode was measured"
        if not self.lost:
            return f"nothing was lost: {self.episodes} of {self.episodes} episodes succeeded"
        lost = f"{self.lost} of {self.episodes} episodes were lost"
        if self.lowest is None or self.highest is None:
            return lost
        bounds = f"between {100 * self.lowest:.1f} % and {100 * self.highest:.1f} % whatever the model would have done"
        faults = f" ({self.unknown} lost to faults: {_listed(self.faults)})" if self.unknown else ""
        if self.stack is None:
            return (
                f"{lost}; no episode shows the model without a serving fault, so that the shares are open: "
                f"the stack's is {bounds}{faults}"
            )
        owed_to = f"{100 * self.stack:.1f} %{self._ends()}, to the model: {100 * (1 - self.stack):.1f} %"
        shown = f"without serving faults {self.shown_successes}/{self.shown} succeed"
        shown += f", {self.rejudged} of these judged again by the known text" if self.rejudged else ""
        return f"{lost}; owed to the stack: {owed_to} ({shown}); the stack's share is {bounds}{faults}"

    def _ends(self) -> str:
        if self.interval is None:
            return " (too few resamples for an interval)"
        degenerate = " bootstrap degenerate" if self.interval.low == self.interval.high else ""
        return f" {self.interval.text()}{degenerate}"


@dataclass(slots=True)
class _Tally:
    """Counts of one seed, or of a resample of seeds."""

    episodes: int = 0
    lost: int = 0
    shown: int = 0
    shown_successes: int = 0
    regained: int = 0
    unknown: int = 0
    rejudged: int = 0

    def add(self, other: _Tally) -> None:
        self.episodes += other.episodes
        self.lost += other.lost
        self.shown += other.shown
        self.shown_successes += other.shown_successes
        self.regained += other.regained
        self.unknown += other.unknown
        self.rejudged += other.rejudged

    def bounds(self) -> tuple[float, float]:
        return self.regained / self.lost, (self.regained + self.unknown) / self.lost

    def stack(self) -> float | None:
        """The stack's share of what was lost, kept within its bounds."""
        if not self.lost or not self.shown:
            return None
        measured = 1 - self.lost / self.episodes
        share = (self.shown_successes / self.shown - measured) / (1 - measured)
        lowest, highest = self.bounds()
        return min(highest, max(lowest, share))


@dataclass(slots=True)
class OwedCounter:
    """Counts episodes of one cell, or of several; `owed()` at any time. Episodes are not kept."""

    _seeds: dict[tuple[str, int], _Tally] = field(default_factory=dict)
    _faults: Counter[str] = field(default_factory=Counter)
    _excluded: Counter[str] = field(default_factory=Counter)

    def add(self, episode: EpisodeRecord) -> None:
        """Count one episode."""
        fault = serving_fault(episode)
        if fault in ("excluded", "client") and not episode.succeeded:
            self._excluded[episode.outcome.code if episode.outcome.layer == "not_run" else "client"] += 1
            return
        self._seeds.setdefault((episode.cell.text, episode.seed), _Tally()).add(_of(episode, fault))
        if not episode.succeeded and fault and episode.rejudged is None:
            self._faults[fault] += 1

    def owed(self, key: str, *, resamples: int = RESAMPLES) -> Owed:
        """The shares so far; `key` names the random stream."""
        seeds = [self._seeds[place] for place in sorted(self._seeds)]
        total = _sum(seeds)
        bounds = total.bounds() if total.lost else (None, None)
        return Owed(
            episodes=total.episodes,
            lost=total.lost,
            shown=total.shown,
            shown_successes=total.shown_successes,
            unknown=total.unknown,
            rejudged=total.rejudged,
            stack=total.stack(),
            interval=_interval(seeds, key, resamples) if total.stack() is not None else None,
            lowest=bounds[0],
            highest=bounds[1],
            faults=dict(sorted(self._faults.items())),
            excluded=dict(sorted(self._excluded.items())),
        )


def owed(episodes: Iterable[EpisodeRecord], *, key: str, resamples: int = RESAMPLES) -> Owed:
    """`OwedCounter` over all of them."""
    counter = OwedCounter()
    for episode in episodes:
        counter.add(episode)
    return counter.owed(key, resamples=resamples)


def _of(episode: EpisodeRecord, fault: str) -> _Tally:
    lost = not episode.succeeded
    one = _Tally(episodes=1, lost=lost)
    if episode.rejudged is not None:
        good = episode.succeeded or episode.rejudged.name == "ok.task_done"
        one.shown, one.shown_successes, one.regained, one.rejudged = 1, int(good), int(good and lost), 1
    elif not fault:
        one.shown, one.shown_successes = 1, int(episode.succeeded)
    else:
        one.unknown = int(lost)
    return one


def _sum(seeds: Iterable[_Tally]) -> _Tally:
    total = _Tally()
    for one in seeds:
        total.add(one)
    return total


def _interval(seeds: Sequence[_Tally], key: str, resamples: int) -> Interval | None:
    draw, count = stream(f"{key} owed"), len(seeds)
    counted = np.array([astuple(one) for one in seeds], dtype=np.float64)
    shares: list[float] = []
    at_once = max(1, _DRAWS_AT_ONCE // count)
    for done in range(0, resamples, at_once):
        size = min(at_once, resamples - done)
        drawn = np.fromiter((draw(count) for _ in range(size * count)), dtype=np.intp, count=size * count)
        shares += _stack_shares(counted[drawn].reshape(size, count, -1).sum(axis=1))
    return percentiles(shares) if len(shares) >= max(1, ENOUGH * resamples) else None


def _stack_shares(totals: np.ndarray[Any, np.dtype[np.float64]]) -> list[float]:
    """`_Tally.stack` of many tallies at once (rows in the order of its fields), without those that have none."""
    episodes, lost, shown, good, regained, unknown, _ = totals[(totals[:, 1] > 0) & (totals[:, 2] > 0)].T
    measured = 1 - lost / episodes
    share = (good / shown - measured) / (1 - measured)
    found: list[float] = np.minimum((regained + unknown) / lost, np.maximum(regained / lost, share)).tolist()
    return found


def serving_fault(episode: EpisodeRecord) -> str:
    """Whose fault touched the episode, besides the model's: the first turn's that no fault-free reading explains.

    Empty where none did; `excluded` where the harness itself or the user ended the episode. Turns past the cap do not
    count.
    """
    touched = [turn.outcome.at_fault for turn in episode.turns if not turn.post_cap and not turn.clean]
    if touched:
        return touched[0]
    if episode.outcome.layer in JUDGED_LAYERS:
        return ""
    return episode.outcome.at_fault if episode.outcome.at_fault in SERVING_FAULTS else "excluded"


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} x{count}" for name, count in counts.items())
