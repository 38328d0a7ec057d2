"""What is counted of each configuration besides its runs: steps, calls, first failing turns, near-misses, measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from harness.dense.experiment.records import Floor
from harness.dense.failures import trace_of
from harness.dense.family import OWN_ITEMS, failing_turn, own_families
from harness.dense.navigation import missing_navigation
from harness.dense.summary import Configuration
from results.episodes import EpisodeRecord
from results.statistics.completion import excluded_as

NEAR_MISS = "right_tool_wrong_args"
_RATES = ("ttft_seconds", "prompt_rate", "generation_rate")


@dataclass(slots=True)
class Seen:
    """Of one configuration. `steps` by outcome, `calls` by verdict, of the runs that count; `peaks` in bytes."""

    steps: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    failing: Counter[str] = field(default_factory=Counter)
    near_misses: int = 0
    lost_ways: int = 0
    peaks: list[float] = field(default_factory=list)
    rates: dict[str, list[float]] = field(default_factory=dict)

    def medians(self) -> dict[str, float]:
        """The medians of what was measured, over episodes."""
        return {name: round(median(values), 6) for name, values in sorted(self.rates.items())}


def counted(episodes: Iterable[EpisodeRecord]) -> dict[Configuration, Seen]:
    """By configuration."""
    found: dict[Configuration, Seen] = {}
    for episode in episodes:
        cell = episode.cell
        one = found.setdefault((cell.model, cell.stack, cell.condition), Seen())
        if "peak_memory_bytes" in episode.measured:
            one.peaks.append(episode.measured["peak_memory_bytes"])
        for name in _RATES:
            if name in episode.measured:
                one.rates.setdefault(name, []).append(episode.measured[name])
        if excluded_as(episode) is None:
            _steps(one, episode)
    return found


def floor(task: str, episodes: Iterable[EpisodeRecord]) -> Floor:
    """Why nobody completed a task, from the runs of it that count."""
    modes, steps, failing = Counter[str](), Counter[str](), Counter[str]()
    runs = silent = 0
    for episode in episodes:
        if episode.cell.task != task or excluded_as(episode) is not None:
            continue
        runs += 1
        modes[episode.labels.get("dense", "no label")] += 1
        steps.update(step.outcome.name for step in episode.turns)
        silent += bool(episode.turns) and not any(step.calls for step in episode.turns)
        turn = failing_turn(episode.labels)
        failing.update([] if turn is None else [str(turn)])
    family = own_families().get(task.partition("-")[0])
    turns = None if family is None else len(family.item.turns)
    return Floor(task, runs, _sorted(modes), _sorted(steps), silent, _sorted(failing), turns)


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _steps(one: Seen, episode: EpisodeRecord) -> None:
    for step in episode.turns:
        one.steps[step.outcome.name] += 1
        one.calls.update(call.verdict for call in step.calls)
    turn = failing_turn(episode.labels)
    if turn is not None:
        one.failing[str(turn)] += 1
    if episode.labels.get("dense") == NEAR_MISS and turn is not None and episode.cell.task.startswith(OWN_ITEMS):
        family = own_families().get(episode.cell.task.partition("-")[0])
        if family is not None and turn < len(family.item.turns):
            one.near_misses += 1
            one.lost_ways += missing_navigation(family.item, trace_of(family.item, episode.turns), turn) is not None
