"""The tables of an experiment on items: completion by configuration and by task, failure modes, and what is no result.

A configuration is a model on a stack under a condition. Rates are of runs, with Wilson's interval; runs that
infrastructure ended are outside and listed; a task that no configuration ever does is a floor, and is shown as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

from harness.dense.family import BFCL_ITEMS, OWN_ITEMS
from harness.dense.rules import MODES
from results.episodes import EpisodeRecord
from results.rates import Rate
from results.statistics.completion import excluded_as

Configuration = tuple[str, str, str]
"""Model, stack, condition."""


@dataclass(slots=True)
class Counted:
    """The runs of one configuration: (successes, runs) by task, and how the others are called."""

    tasks: dict[str, tuple[int, int]] = field(default_factory=dict)
    modes: Counter[str] = field(default_factory=Counter)
    apart: Counter[str] = field(default_factory=Counter)
    not_run: Counter[str] = field(default_factory=Counter)
    served: Counter[str] = field(default_factory=Counter)
    """Runs in which the stack handed on something else than the model wrote, by the first cause; those included that
    the client made up for."""
    episodes: int = 0

    @property
    def completion(self) -> Rate:
        """Over all runs."""
        good, runs = (sum(numbers) for numbers in zip((0, 0), *self.tasks.values(), strict=True))
        return Rate(good, runs, "n/r" if self.not_run else "none")


@dataclass(slots=True)
class Summary:
    """All configurations of a run, in their order."""

    configurations: dict[Configuration, Counted] = field(default_factory=dict)

    @property
    def tasks(self) -> list[str]:
        """Every task that was run."""
        return list(dict.fromkeys(task for one in self.configurations.values() for task in one.tasks))

    @property
    def floors(self) -> list[str]:
        """Tasks that no run of any configuration completed."""
        return [task for task in self.tasks if not any(one.tasks.get(task, (0, 0))[0] for one in self._all())]

    @property
    def overlapping(self) -> list[tuple[Configuration, Configuration]]:
        """Pairs of configurations whose intervals share a point: their order is not shown by these runs."""
        return [
            (one, other)
            for one, other in combinations(self.configurations, 2)
            if _overlap(self.configurations[one].completion, self.configurations[other].completion)
        ]

    def _all(self) -> Iterable[Counted]:
        return self.configurations.values()


def _overlap(one: Rate, other: Rate) -> bool:
    mine, theirs = one.interval, other.interval
    if mine is None or theirs is None:
        return False
    return mine[0] <= theirs[1] and theirs[0] <= mine[1]


def summarise(episodes: Iterable[EpisodeRecord]) -> Summary:
    """Count the episodes of items; others are left aside."""
    found = Summary()
    for episode in episodes:
        cell = episode.cell
        if not cell.task.startswith((OWN_ITEMS, BFCL_ITEMS)):
            continue
        one = found.configurations.setdefault((cell.model, cell.stack, cell.condition), Counted())
        one.episodes += 1
        cause = _served(episode)
        if cause:
            one.served[cause] += 1
        layer = excluded_as(episode)
        if layer is not None:
            one.not_run[layer] += 1
            continue
        good, runs = one.tasks.get(cell.task, (0, 0))
        one.tasks[cell.task] = good + episode.succeeded, runs + 1
        one.modes[episode.labels.get("dense", "no label")] += 1
        if "dense_counted" in episode.labels:
            one.apart[episode.labels["dense_counted"]] += 1
    return found


def _served(episode: EpisodeRecord) -> str:
    """By which outcome a run was first touched on its way from the model to the client, besides what is open."""
    names = [turn.outcome.name for turn in episode.turns if turn.outcome.at_fault not in ("none", "model")]
    stopped = episode.outcome.code if episode.outcome.layer == "not_run" else ""
    return next((name for name in names if not name.startswith(("ok.", "model."))), stopped)


def text(found: Summary) -> str:
    """The tables as text, and what must not be read out of them."""
    names = {key: f"{key[0]} @ {key[1]}, {key[2]}" for key in found.configurations}
    wide = max((len(name) for name in names.values()), default=0)
    lines = [f"{'completed':{wide}}  of all runs"]
    lines += [f"{name:{wide}}  {found.configurations[key].completion.text()}" for key, name in names.items()]
    lines += ["", "by task (completed/runs)"]
    for task in found.tasks:
        cells = [one.tasks.get(task, (0, 0)) for one in found.configurations.values()]
        floor = "   floor: no run of any configuration" if task in found.floors else ""
        lines.append(f"  {task:28} " + "  ".join(f"{good:3}/{runs:<3}" for good, runs in cells) + floor)
    lines += ["", "runs that failed, by mode"]
    for mode in MODES:
        counts = [one.modes[mode] for one in found.configurations.values()]
        if any(counts):
            lines.append(f"  {mode:28} " + "  ".join(f"{count:5}  " for count in counts).rstrip())
    for word in ("no_action", "premature_done"):
        counts = [one.apart[word] for one in found.configurations.values()]
        if any(counts):
            lines.append(f"    of these {word:17} " + "  ".join(f"{count:5}  " for count in counts).rstrip())
    return "\n".join([*lines, *_by_cause(found), *_notes(found, names)])


def _by_cause(found: Summary) -> list[str]:
    """What stood between the model and the client, in how many runs; nothing where nothing did."""
    every = list(found.configurations.values())
    causes = sorted({cause for one in every for cause in one.served})
    if not causes:
        return []
    lines = ["", "runs in which the server turned what the model wrote into something else, by cause"]
    lines += [f"  {cause:28} " + "  ".join(f"{one.served[cause]:5}  " for one in every).rstrip() for cause in causes]
    shares = [f"{100 * sum(one.served.values()) / one.episodes:5.1f} %" for one in every]
    return [*lines, f"  {'share of all runs':28} " + "  ".join(shares)]


def _notes(found: Summary, names: dict[Configuration, str]) -> list[str]:
    said = [
        f"not run, outside every rate: {names[key]}: {_listed(one.not_run)}"
        for key, one in found.configurations.items()
        if one.not_run
    ]
    said += [
        f"not told apart by these runs (intervals overlap): {names[one]} | {names[other]}"
        for one, other in found.overlapping
    ]
    if found.tasks and len(found.floors) == len(found.tasks):
        said.append("every task is a floor: nothing is ranked")
    elif found.floors:
        said.append(f"{len(found.floors)} of {len(found.tasks)} tasks are floors: differences rest on the others")
    return ["", *said] if said else []


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{word} x{count}" for word, count in sorted(counts.items()))
