"""How many runs reached their goal, and which runs are no evidence about that: infrastructure is taken out and listed.

The rule is tau2-bench's (runs that infrastructure ended leave the denominator and are counted) with the layer named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from results.episodes import EpisodeRecord
from results.rates import Rate

JUDGED_LAYERS = ("ok", "model", "task")
"""Layers of outcomes that say something about the model's work on the task."""


@dataclass(frozen=True, slots=True)
class Completion:
    """`successes` of `runs`; `excluded` counts runs outside, by layer; `missing` runs are declared and not there."""

    successes: int
    runs: int
    excluded: Mapping[str, int] = field(default_factory=dict)
    missing: int = 0

    @property
    def rate(self) -> Rate:
        """With its Wilson interval (runs are independent); undefined where no run is left."""
        word = "none" if not self.excluded else "rej" if set(self.excluded) == {"gate"} else "n/r"
        return Rate(self.successes, self.runs, word)

    def text(self) -> str:
        """`50.0 % [15.0, 85.0] (2/4); not run: gate x12; missing: 3`."""
        said = [self.rate.text()]
        if self.excluded:
            said.append("not run: " + ", ".join(f"{layer} x{count}" for layer, count in sorted(self.excluded.items())))
        if self.missing:
            said.append(f"missing: {self.missing}")
        return "; ".join(said)


def excluded_as(episode: EpisodeRecord) -> str | None:
    """Why an episode is outside of completion: the layer that ended it, or the harness's own word (`cancelled`).

    None where it counts.
    """
    outcome = episode.outcome
    if outcome.layer in JUDGED_LAYERS:
        return None
    if outcome.layer != "not_run":
        return outcome.layer
    return outcome.code.partition(".")[0]
