"""The statistics of one cell: what its seeds, its turns and its episodes say, each number with its denominator.

Definitions (S seeds; seed i produced d_i turns, v_i of them valid, and x_i non-responses):
per-seed rate: mean of v_i / d_i over the seeds with d_i > 0, with a bootstrap over seeds; pooled rate: sum v / sum d;
naive rate: sum v / sum (d + x), what a harness prints that takes every turn for the model's. Without a produced turn
a cell is undefined: `rej` where gates refused everything, else `n/r` (`none` without any turn), never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import fsum

from results.episodes import CellKey, CellPlan, EpisodeRecord
from results.rates import Rate, RateCounter, wilson
from results.statistics.completion import Completion, excluded_as
from results.statistics.owed import Owed, OwedCounter
from results.statistics.resampling import RESAMPLES, Draw, Interval, bootstrap_mean, mean, stream
from results.statistics.turns import NON_RESPONSE, PROSE, LabelSet, closes_in_prose, counted

GAP = 0.10
"""Per-seed mean and pooled rate that differ by this much are pointed out."""

ENDLESS = ("turn_cap", "tool_cap", "wallclock")
"""Ends that the harness had to make."""


@dataclass(frozen=True, slots=True)
class SeedMean:
    """Mean of the rates of the seeds that produced a turn (`values`, in the order of the seeds), out of `seeds`.

    `interval` is the bootstrap over seeds, `wilson` the score interval of the same mean. Where all values are equal
    the bootstrap has no width and says nothing (`degenerate`): Wilson's is the one to compare then.
    """

    values: tuple[float, ...]
    seeds: int
    undefined: str = ""
    interval: Interval | None = None

    @property
    def value(self) -> float | None:
        """The mean, or None."""
        return mean(self.values) if self.values else None

    @property
    def wilson(self) -> Interval | None:
        """Wilson's interval with the seeds as trials, or None."""
        return Interval(*wilson(fsum(self.values), len(self.values))) if self.values else None

    @property
    def degenerate(self) -> bool:
        """Whether the bootstrap cannot vary: one seed, or equal rates."""
        return len(set(self.values)) == 1

    @property
    def comparable(self) -> Interval | None:
        """The interval that comparisons use."""
        return self.wilson if self.degenerate else self.interval

    def text(self) -> str:
        """`43.8 % [31.2, 50.0] (8 of 8 seeds)`, or the word for an undefined rate."""
        value, interval, score = self.value, self.interval, self.wilson
        if value is None or interval is None or score is None:
            return f"{self.undefined or 'n/r'} (0 of {self.seeds} seeds)"
        said = f"{100 * value:.1f} % {interval.text()} ({len(self.values)} of {self.seeds} seeds)"
        if self.degenerate:
            reason = "one seed" if len(self.values) == 1 else "all seeds alike"
            said += f" bootstrap degenerate ({reason}), Wilson {score.text()}"
        return said


@dataclass(slots=True)
class _Seed:
    produced: int = 0
    valid: int = 0
    nonresponses: int = 0
    open: int = 0


@dataclass(frozen=True, slots=True)
class CellStatistics:
    """Everything printed of a cell. `open` rates leave out a last turn that is a final answer; `first_turn` counts
    episodes whose first produced turn is valid among those that produced one; `nonresponses` is by layer; `labels` and
    `channels` (of valid turns) count turns; `largest` is the share of the turns that the longest seed holds; `owed`
    says whose the lost success is."""

    cell: CellKey
    words: LabelSet
    seeds: int
    per_seed: SeedMean
    per_seed_open: SeedMean
    pooled: Rate
    pooled_open: Rate
    naive: Rate
    cleared: Rate
    first_turn: Rate
    completion: Completion
    produced: int
    nonresponses: dict[str, int]
    ended_by: dict[str, int]
    labels: dict[str, int]
    channels: dict[str, int]
    largest: Rate
    post_cap_turns: int
    retries: int
    undetermined: int
    owed: Owed
    warnings: tuple[str, ...] = ()

    @property
    def gap(self) -> float | None:
        """Pooled rate minus per-seed mean, or None."""
        pooled, per_seed = self.pooled.value, self.per_seed.value
        return None if pooled is None or per_seed is None else pooled - per_seed

    @property
    def endless(self) -> int:
        """Episodes that the harness had to end."""
        return sum(self.ended_by.get(name, 0) for name in ENDLESS)


@dataclass(slots=True)
class CellCounter:
    """Counts the episodes of one cell one by one; `statistics()` at any time. Episodes are not kept."""

    cell: CellKey
    words: LabelSet = "own"
    _seeds: dict[int, _Seed] = field(init=False, default_factory=dict)
    _refused: Counter[str] = field(init=False, default_factory=Counter)
    _nonresponses: Counter[str] = field(init=False, default_factory=Counter)
    _ended: Counter[str] = field(init=False, default_factory=Counter)
    _labels: Counter[str] = field(init=False, default_factory=Counter)
    _channels: Counter[str] = field(init=False, default_factory=Counter)
    _excluded: Counter[str] = field(init=False, default_factory=Counter)
    _rates: RateCounter = field(init=False, default_factory=RateCounter)
    _owed: OwedCounter = field(init=False, default_factory=OwedCounter)
    _plans: set[str] = field(init=False, default_factory=set)
    _places: set[tuple[int, int]] = field(init=False, default_factory=set)
    _runs: int = field(init=False, default=0)
    _successes: int = field(init=False, default=0)
    _first: int = field(init=False, default=0)
    _first_valid: int = field(init=False, default=0)
    _post_cap: int = field(init=False, default=0)
    _retries: int = field(init=False, default=0)

    def add(self, episode: EpisodeRecord) -> None:
        """Count one episode. Raises ValueError for one of another cell, or without the labels asked for."""
        if episode.cell != self.cell:
            raise ValueError(f"an episode of {episode.cell.title} does not belong to {self.cell.title}")
        turns = counted(episode, self.words)
        self._places.add((episode.seed, episode.repeat))
        self._plans.add(episode.plan)
        self._ended[episode.ended_by] += 1
        self._owed.add(episode)
        self._count_end(episode)
        self._count_turns(episode, [word for _, word in turns])
        for turn, word in turns:
            self._labels[word] += 1
            self._retries += turn.retries
            self._rates.add(turn.outcome, recovered=bool(turn.recovered))
            if word == "valid":
                self._channels[turn.channel] += 1
            elif word == NON_RESPONSE:
                self._nonresponses[turn.outcome.layer] += 1
        self._post_cap += sum(turn.post_cap for turn in episode.turns)
        if turns and turns[-1][1] == PROSE and closes_in_prose([turn for turn, _ in turns]):
            self._seeds[episode.seed].open -= 1

    def _count_end(self, episode: EpisodeRecord) -> None:
        excluded = excluded_as(episode)
        if excluded is None:
            self._runs += 1
            self._successes += episode.succeeded
            return
        self._excluded[excluded] += 1
        if not episode.turns:
            self._refused[excluded] += 1

    def _count_turns(self, episode: EpisodeRecord, words: Sequence[str]) -> None:
        seed = self._seeds.setdefault(episode.seed, _Seed())
        produced = [word for word in words if word != NON_RESPONSE]
        valid = produced.count("valid")
        seed.produced += len(produced)
        seed.open += len(produced)
        seed.valid += valid
        seed.nonresponses += len(words) - len(produced)
        if produced:
            self._first += 1
            self._first_valid += produced[0] == "valid"

    def statistics(
        self, plan: CellPlan | None = None, draw: Draw | None = None, *, resamples: int = RESAMPLES
    ) -> CellStatistics:
        """The statistics so far. `plan` gives the declared seeds and their order (else: sorted); `draw` another stream
        than the cell's own, for the per-seed interval."""
        order = _order(plan, self._seeds)
        tallies = [self._seeds.get(seed, _Seed()) for seed in order]
        word = self._word()
        valid, produced = sum(one.valid for one in tallies), sum(one.produced for one in tallies)
        opened, silent = sum(one.open for one in tallies), sum(one.nonresponses for one in tallies)
        rates = [one.valid / one.produced for one in tallies if one.produced]
        open_rates = [one.valid / one.open for one in tallies if one.open]
        declared = {(seed, repeat) for seed in plan.seeds for repeat in range(plan.repeats)} if plan else set()
        found = CellStatistics(
            cell=self.cell,
            words=self.words,
            seeds=len(order),
            per_seed=_seed_mean(rates, len(order), word, draw or stream(self.cell.text), resamples),
            per_seed_open=_seed_mean(
                open_rates, len(order), "none" if produced else word, stream(f"{self.cell.text} open"), resamples
            ),
            pooled=_rate(valid, produced, word),
            pooled_open=_rate(valid, opened, "none" if produced else word),
            naive=_rate(valid, produced + silent, word),
            cleared=self._rates.rates().cleared,
            first_turn=_rate(self._first_valid, self._first, word),
            completion=Completion(
                self._successes, self._runs, dict(sorted(self._excluded.items())), len(declared - self._places)
            ),
            produced=produced,
            nonresponses=dict(sorted(self._nonresponses.items())),
            ended_by=dict(sorted(self._ended.items())),
            labels=dict(sorted(self._labels.items())),
            channels=dict(sorted(self._channels.items())),
            largest=_rate(max((one.produced for one in tallies), default=0), produced, word),
            post_cap_turns=self._post_cap,
            retries=self._retries,
            undetermined=self._rates.rates().undetermined,
            owed=self._owed.owed(self.cell.text, resamples=resamples),
        )
        return _with_warnings(found, len(self._plans))

    def _word(self) -> str:
        layers = set(self._nonresponses) | set(self._refused)
        return "none" if not layers else "rej" if layers == {"gate"} else "n/r"


def _order(plan: CellPlan | None, present: dict[int, _Seed]) -> list[int]:
    declared = list(plan.seeds) if plan is not None else []
    return declared + sorted(set(present) - set(declared))


def _rate(hits: int, trials: int, word: str) -> Rate:
    return Rate(hits, trials) if trials else Rate(0, 0, word)


def _seed_mean(rates: Sequence[float], seeds: int, word: str, draw: Draw, resamples: int) -> SeedMean:
    if not rates:
        return SeedMean((), seeds, word)
    return SeedMean(tuple(rates), seeds, "", bootstrap_mean(rates, draw, resamples=resamples))


def _with_warnings(found: CellStatistics, plans: int) -> CellStatistics:
    said = []
    if found.gap is not None and round(abs(found.gap), 9) >= GAP:
        said.append(f"per-seed mean and pooled rate differ by {100 * abs(found.gap):.1f} points")
    largest = found.largest.value
    if largest is not None and largest > 0.5 and found.seeds > 1:
        said.append(f"one seed holds {found.largest.bare()} of the turns")
    if found.retries:
        said.append(f"{found.retries} retries: each is another draw, and only the last one counts")
    if plans > 1:
        said.append(f"episodes of {plans} different set-ups are mixed: run `stacktap validate`")
    return replace(found, warnings=tuple(said))
