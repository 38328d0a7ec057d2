"""What a run of packs measured: for each model and pack the mean over tasks, what stood outside of it, and why. Pure.

A task's value is the mean of its repetitions' shares of points; a pack's is the mean over its tasks, with a bootstrap
over tasks (the tasks are what could have been others). A repetition that has no score is in none of these, and is
counted under its outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from harness.packs.family import PACKS
from results.episodes import EpisodeRecord
from results.rates import Rate
from results.statistics.cells import SeedMean
from results.statistics.resampling import bootstrap_mean, mean, stream

Who = tuple[str, str, str]
"""Model, stack (the model's key in the registry), condition."""


@dataclass(slots=True)
class TaskResult:
    """One task on one model. `shares` of points in [0, 1] and `seconds` by repetition; `outside` counts repetitions
    without a score by outcome, `checker` those whose checks were at fault; `failed` counts failed checks; `aqbe` is
    what AQBE's code would have printed, in per cent."""

    name: str
    category: str = ""
    shares: list[float] = field(default_factory=list)
    full: int = 0
    hard_fails: int = 0
    outside: Counter[str] = field(default_factory=Counter)
    remedies: dict[str, str] = field(default_factory=dict)
    failed: Counter[str] = field(default_factory=Counter)
    broken: dict[str, str] = field(default_factory=dict)
    thinking: Counter[str] = field(default_factory=Counter)
    aqbe: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    tokens: int = 0
    runs: int = 0

    @property
    def value(self) -> float | None:
        """Mean share of points, or None."""
        return mean(self.shares) if self.shares else None

    @property
    def complete(self) -> Rate:
        """Repetitions with all points, of those that have a score."""
        return Rate(self.full, len(self.shares), "n/r" if self.outside else "none")


@dataclass(slots=True)
class PackResult:
    """One pack on one model. `declared` tasks may be more than those that were run."""

    who: Who
    pack: str
    declared: int = 0
    tasks: dict[str, TaskResult] = field(default_factory=dict)

    def values(self, category: str | None = None) -> list[float]:
        """Of every task (of a category) that has a value."""
        found = (one for one in self.tasks.values() if category in (None, one.category))
        return [one.value for one in found if one.value is not None]

    def score(self, category: str | None = None) -> SeedMean:
        """The mean over tasks with its interval; undefined where no task has a value."""
        values = self.values(category)
        every = len(self.tasks) if category is None else sum(one.category == category for one in self.tasks.values())
        total = max(every, self.declared) if category is None else every
        if not values:
            return SeedMean((), total, self.word)
        key = " ".join(("pack", *self.who, self.pack, category or ""))
        return SeedMean(tuple(values), total, "", bootstrap_mean(values, stream(key)))

    @property
    def word(self) -> str:
        """Why there is no value: `rej` where gates refused everything, `n/r` where nothing usable came."""
        layers = {name.removeprefix("not_run.").partition(".")[0] for name in self.outside}
        return "none" if not layers else "rej" if layers == {"gate"} else "n/r"

    @property
    def outside(self) -> Counter[str]:
        """Repetitions without a score, by outcome."""
        return sum((one.outside for one in self.tasks.values()), Counter())

    @property
    def thinking(self) -> Counter[str]:
        """Repetitions by what became of thinking."""
        return sum((one.thinking for one in self.tasks.values()), Counter())

    @property
    def hard_fails(self) -> list[str]:
        """Tasks worth nothing in every repetition that has a score."""
        return [one.name for one in self.tasks.values() if one.shares and not any(one.shares)]

    @property
    def aqbe(self) -> float | None:
        """The average that AQBE's code would have printed, in per cent; None where a task has no such number."""
        numbers = [mean(one.aqbe) for one in self.tasks.values() if one.aqbe]
        return mean(numbers) if numbers and len(numbers) == len(self.tasks) else None

    @property
    def seconds(self) -> float | None:
        """Mean time of an answer, for what it costs only."""
        every = [one for task in self.tasks.values() for one in task.seconds]
        return mean(every) if every else None


@dataclass(slots=True)
class PackResults:
    """A whole run: `results` by pack, then by model, in the order that they were run in."""

    results: dict[str, dict[Who, PackResult]] = field(default_factory=dict)

    def overlapping(self, pack: str) -> list[tuple[Who, Who]]:
        """Models whose intervals share a point: their order is not shown by these tasks."""
        comparable = {who: one.score().comparable for who, one in self.results[pack].items()}
        known = {who: interval for who, interval in comparable.items() if interval is not None}
        return [(one, other) for one, other in combinations(known, 2) if known[one].overlaps(known[other])]

    def categories(self, pack: str) -> list[str]:
        """In the order of their first task."""
        found = (task.category for one in self.results[pack].values() for task in one.tasks.values())
        return list(dict.fromkeys(found))


def summarise(
    episodes: Iterable[EpisodeRecord],
    categories: Mapping[str, str],
    declared: Mapping[str, int],
    models: Sequence[Who] = (),
) -> PackResults:
    """Count the episodes of packs; others are left aside. `categories` by cell's task, `declared` tasks by pack.

    The result stands in the order of `declared`, `models` and `categories`, whatever the order of the episodes was.
    """
    found = PackResults()
    for episode in episodes:
        cell = episode.cell
        if not cell.task.startswith(PACKS):
            continue
        pack, _, name = cell.task.removeprefix(PACKS).partition("/")
        who = (cell.model, cell.stack, cell.condition)
        result = found.results.setdefault(pack, {}).setdefault(who, PackResult(who, pack, declared.get(pack, 0)))
        task = result.tasks.setdefault(name, TaskResult(name, categories.get(cell.task, "")))
        _add(task, episode)
    return _in_order(found, list(categories), list(declared), list(models))


def _in_order(found: PackResults, tasks: list[str], packs: list[str], models: list[Who]) -> PackResults:
    """What the lists do not name comes last, by its name."""
    ordered = PackResults()
    for pack in sorted(found.results, key=lambda name: _at(packs, name)):
        by_model = found.results[pack]
        ordered.results[pack] = {who: by_model[who] for who in sorted(by_model, key=lambda who: _at(models, who))}
        for one in by_model.values():
            names = sorted(one.tasks, key=lambda name: _at(tasks, f"{PACKS}{pack}/{name}"))
            one.tasks = {name: one.tasks[name] for name in names}
    return ordered


def _at(order: list[Any], value: Any) -> tuple[int, Any]:
    return (order.index(value) if value in order else len(order)), value


def _add(task: TaskResult, episode: EpisodeRecord) -> None:
    kept: Mapping[str, Any] = episode.answer if isinstance(episode.answer, dict) else {}
    task.runs += 1
    seconds, tokens = kept.get("seconds"), kept.get("completion_tokens")
    if isinstance(seconds, int | float):
        task.seconds.append(float(seconds))
    task.tokens += tokens if isinstance(tokens, int) else 0
    task.thinking[episode.labels.get("thinking", "none")] += 1
    won, slash, most = episode.labels.get("aqbe", "").partition("/")
    if slash:
        task.aqbe.append(_percent(won, most))
    for check in _checks(kept):
        if check.get("passed") is None:
            task.broken[str(check.get("name"))] = str(check.get("detail", ""))
    outcome = episode.outcome
    if outcome.layer in ("not_run", "checker") or episode.score is None:
        task.outside[outcome.name] += 1
        if outcome.remedy:
            task.remedies[outcome.name] = outcome.remedy
        return
    task.shares.append(episode.score)
    task.full += episode.score >= 1
    task.hard_fails += bool(kept.get("hard_fail"))
    task.failed.update(str(check.get("name")) for check in _checks(kept) if check.get("passed") is False)


def _checks(kept: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows = kept.get("checks")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _percent(won: str, most: str) -> int:
    try:
        return round(float(won) / float(most) * 100) if float(most) else 0
    except ValueError:
        return 0


def facts(found: PackResults) -> list[dict[str, Any]]:
    """As data: JSON values only, rates in [0, 1]."""
    return [
        {
            "pack": pack,
            "models": [_result_facts(one) for one in by_model.values()],
            "not_told_apart": [[list(one), list(other)] for one, other in found.overlapping(pack)],
        }
        for pack, by_model in found.results.items()
    ]


def _result_facts(one: PackResult) -> dict[str, Any]:
    categories = dict.fromkeys(task.category for task in one.tasks.values())
    return {
        "model": one.who[0],
        "stack": one.who[1],
        "condition": one.who[2],
        "score": _mean_facts(one.score()),
        "categories": {name: _mean_facts(one.score(name)) for name in categories},
        "outside": dict(sorted(one.outside.items())),
        "thinking": dict(sorted(one.thinking.items())),
        "hard_fails": one.hard_fails,
        "aqbe_compat": one.aqbe,
        "seconds": one.seconds,
        "tasks": [_task_facts(task) for task in one.tasks.values()],
    }


def _mean_facts(found: SeedMean) -> dict[str, Any]:
    interval = found.comparable
    return {
        "value": found.value,
        "interval": None if interval is None else [interval.low, interval.high],
        "interval_kind": "wilson" if found.degenerate else "bootstrap",
        "tasks_used": len(found.values),
        "tasks": found.seeds,
        "undefined": found.undefined or None,
    }


def _task_facts(task: TaskResult) -> dict[str, Any]:
    return {
        "task": task.name,
        "category": task.category,
        "value": task.value,
        "runs": task.runs,
        "shares": list(task.shares),
        "complete": [task.complete.hits, task.complete.trials],
        "hard_fails": task.hard_fails,
        "outside": dict(sorted(task.outside.items())),
        "failed_checks": dict(sorted(task.failed.items())),
        "checks_at_fault": dict(sorted(task.broken.items())),
        "thinking": dict(sorted(task.thinking.items())),
        "aqbe_compat": list(task.aqbe),
        "seconds": list(task.seconds),
        "completion_tokens": task.tokens,
    }
