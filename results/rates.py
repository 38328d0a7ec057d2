"""Rates that say what their denominator is: fidelity, cleared and naive, with Wilson intervals.

All three count attempts. A rate without a denominator is undefined and is printed as a word, never as 0.
Wilson score interval: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22
(1927) 209-212; z = 1.96. It holds for independent trials; turns of one episode are not, and the tables say so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import sqrt

from results.outcomes import Outcome

Z = 1.96

VALID_NAMES = frozenset({"ok.native_call", "ok.text_call"})
LEFT_AS_TEXT = "parser.left_as_text"
"""Valid too where the client declares a parser of its own for calls in text."""


@dataclass(frozen=True, slots=True)
class Rate:
    """`hits` of `trials`; `value`, `low` and `high` (Wilson, 95 %) are None where `trials` is 0, and `undefined` then
    says why: `rej` (every attempt was refused by a gate), `n/r` (no model output reached the harness) or `none`
    (there was no attempt at all)."""

    hits: int
    trials: int
    undefined: str = ""

    @property
    def value(self) -> float | None:
        """hits / trials, or None."""
        return self.hits / self.trials if self.trials else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson interval, or None."""
        return wilson(self.hits, self.trials) if self.trials else None

    def bare(self) -> str:
        """Without an interval, for trials that are not independent (turns of one episode): `62.5 % (5/8)`."""
        value = self.value
        return self.undefined or "n/r" if value is None else f"{100 * value:.1f} % ({self.hits}/{self.trials})"

    def text(self) -> str:
        """For a table: `62.5 % [30.6, 86.3] (5/8)`, or the word for an undefined rate."""
        value, interval = self.value, self.interval
        if value is None or interval is None:
            return self.undefined or "n/r"
        low, high = interval
        return f"{100 * value:.1f} % [{100 * low:.1f}, {100 * high:.1f}] ({self.hits}/{self.trials})"


@dataclass(frozen=True, slots=True)
class Rates:
    """The three named rates of a set of attempts, and what stayed outside of them, by layer.

    fidelity: valid in-schema calls over attempts in which model output reached the harness (every text turn counts as
    a turn that is no call; `fidelity_open` leaves out the answers that were fine as text).
    cleared: the same with serving faults taken out: attempts whose raw text is known are judged on that text.
    cleared_open: cleared without the answers that were fine as text and those that a limit cut off before a call was
    complete: what the model wrote where a call was due and could be written.
    naive: valid calls over everything, what a careless harness prints.

    `without_tools` attempts are in none of this: their requests offered no tool while others of the set did (a client
    that has a title written beside its task).
    """

    fidelity: Rate
    fidelity_open: Rate
    cleared: Rate
    naive: Rate
    outside: dict[str, int] = field(default_factory=dict)
    attempts: int = 0
    undetermined: int = 0
    without_tools: int = 0
    cleared_open: Rate = Rate(0, 0, "none")


def wilson(hits: float, trials: int, z: float = Z) -> tuple[float, float]:
    """Wilson score interval of hits/trials, clipped to [0, 1]. Raises ValueError where it is undefined.

    `hits` may be a sum of rates between 0 and 1: their variance is at most that of hits and misses, so that the
    interval is then rather too wide than too narrow.
    """
    if trials <= 0 or not 0 <= hits <= trials:
        raise ValueError(f"no interval for {hits:g} of {trials}")
    p = hits / trials
    divisor = 1 + z * z / trials
    centre = (p + z * z / (2 * trials)) / divisor
    half = z / divisor * sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    return max(0.0, centre - half), min(1.0, centre + half)


def is_valid(outcome: Outcome, *, recovered: bool = False) -> bool:
    """Whether an attempt brought a valid call to the harness; `recovered`: the client's own parser found the one that
    the server had left somewhere else."""
    return outcome.name in VALID_NAMES or (recovered and outcome.layer == "parser" and outcome.reached)


class RateCounter:
    """Counts outcomes one by one in constant memory; `rates()` at any time.

    `recovers_text`: the client declares a parser of its own for calls in text, so a valid call left in text counts as
    a valid turn. Requests that ask for no generation (`ok.service`) are not counted at all. Where any request offered
    tools, those that offered none are left out of the rates: no call could have come of them.
    """

    def __init__(self, *, recovers_text: bool = False) -> None:
        valid = VALID_NAMES | {LEFT_AS_TEXT} if recovers_text else VALID_NAMES
        self._with_tools, self._without = _Counts(valid), _Counts(valid)
        self.offered = 0
        """Attempts whose requests are known to have offered tools."""

    def add(self, outcome: Outcome, *, recovered: bool = False, tools: int | None = None) -> None:
        """Count one attempt; `recovered`: the client's parser found the call of just this one in its text. `tools` is
        how many its request offered, None where that is not known or calls are asked for in another way."""
        if outcome.name == "ok.service":
            return
        self.offered += bool(tools)
        (self._without if tools == 0 else self._with_tools).add(outcome, recovered=recovered)

    def rates(self, *, offering: bool | None = None) -> Rates:
        """The rates of what was counted so far. `offering` says whether requests without tools are left out, for a
        part of a run (one server of several) that goes by the whole; by itself: where any request offered tools."""
        without = self._without
        if self.offered > 0 if offering is None else offering:
            return self._with_tools.rates(without.attempts)
        return (self._with_tools + without).rates(0)


@dataclass(slots=True)
class _Counts:
    valid_names: frozenset[str]
    attempts: int = 0
    reached: int = 0
    hits: int = 0
    open: int = 0
    gates: int = 0
    cleared: int = 0
    cleared_hits: int = 0
    cleared_open: int = 0
    undetermined: int = 0
    outside: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome, *, recovered: bool) -> None:
        self.attempts += 1
        self.undetermined += outcome.undetermined
        self.gates += outcome.layer == "gate"
        valid = outcome.name in self.valid_names or is_valid(outcome, recovered=recovered)
        if outcome.reached:
            self.reached += 1
            self.hits += valid
            self.open += not (outcome.layer == "ok" and not valid)
        else:
            self.outside[outcome.layer] += 1
        if outcome.wrote != "unknown" or outcome.reached:
            wrote = outcome.wrote == "valid_call" if outcome.wrote != "unknown" else valid
            self.cleared += 1
            self.cleared_hits += wrote
            self.cleared_open += wrote or outcome.layer not in ("ok", "truncation")

    def __add__(self, other: _Counts) -> _Counts:
        numbers = ("attempts", "reached", "hits", "open", "gates", "undetermined")
        judged = ("cleared", "cleared_hits", "cleared_open")
        sums = {name: getattr(self, name) + getattr(other, name) for name in (*numbers, *judged)}
        return _Counts(self.valid_names, **sums, outside=self.outside + other.outside)

    def rates(self, without_tools: int) -> Rates:
        word = "none" if not self.attempts else "rej" if self.gates == self.attempts else "n/r"
        return Rates(
            fidelity=Rate(self.hits, self.reached, word),
            fidelity_open=Rate(self.hits, self.open, word),
            cleared=Rate(self.cleared_hits, self.cleared, word),
            cleared_open=Rate(self.cleared_hits, self.cleared_open, word),
            naive=Rate(self.hits, self.attempts, word),
            outside=dict(sorted(self.outside.items())),
            attempts=self.attempts,
            undetermined=self.undetermined,
            without_tools=without_tools,
        )


def rates(outcomes: Iterable[Outcome], *, recovers_text: bool = False) -> Rates:
    """The three rates of a set of attempts."""
    counter = RateCounter(recovers_text=recovers_text)
    for outcome in outcomes:
        counter.add(outcome)
    return counter.rates()
