"""pass^k: how likely k runs of one task all succeed; and pass@k, that at least one of k does.

The unbiased estimators C(c, k) / C(n, k) and 1 - C(n - c, k) / C(n, k) of c successes in n runs: tau-bench (Yao et al.
2024, arXiv 2406.12045) and Chen et al. 2021 (arXiv 2107.03374). (c/n)^k is biased upwards and is nowhere printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb

from results.episodes import WROTE, CellKey, EpisodeRecord
from results.statistics.completion import excluded_as
from results.statistics.resampling import RESAMPLES, Interval, mean, percentiles, stream


class DegenerateRunsError(ValueError):
    """The runs are copies of one another, so that nothing can be said about repeating them."""


def pass_hat_k(successes: int, runs: int, k: int) -> float:
    """Chance that k runs drawn without replacement out of `runs` are all among the `successes`.

    Raises ValueError where fewer than k runs are there: the rate is undefined then, not 0.
    """
    _check(successes, runs, k)
    return comb(successes, k) / comb(runs, k)


def pass_at_k(successes: int, runs: int, k: int) -> float:
    """Chance that at least one of k runs is a success. Raises ValueError as `pass_hat_k`; print it only under its name:
    it answers another question."""
    _check(successes, runs, k)
    return (comb(runs, k) - comb(runs - successes, k)) / comb(runs, k)


def _check(successes: int, runs: int, k: int) -> None:
    if not 0 <= successes <= runs:
        raise ValueError(f"{successes} successes of {runs} runs cannot be")
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    if runs < k:
        raise ValueError(f"{runs} runs are too few for k = {k}: the rate is undefined, not 0")


@dataclass(frozen=True, slots=True)
class TaskRuns:
    """The runs of one task instance under one configuration. `excluded` counts runs that infrastructure ended, by
    layer; `temperature` is None where it is not known; `identical`: all runs wrote the same bytes, as far as recorded.
    """

    task: str
    succeeded: tuple[bool, ...]
    temperature: float | None = None
    excluded: Mapping[str, int] = field(default_factory=dict)
    identical: bool = False


def task_runs(episodes: Iterable[EpisodeRecord]) -> list[TaskRuns]:
    """The repeated runs of each task instance (cell and seed), in order. Where the runs of one were not all sampled at
    the same temperature it is not known, unless 0 is among them."""
    found: dict[tuple[CellKey, int], list[EpisodeRecord]] = {}
    for episode in episodes:
        found.setdefault((episode.cell, episode.seed), []).append(episode)
    return [_runs(cell, seed, found[cell, seed]) for cell, seed in sorted(found)]


def _runs(cell: CellKey, seed: int, episodes: list[EpisodeRecord]) -> TaskRuns:
    counted = [one for one in sorted(episodes, key=lambda one: one.repeat) if excluded_as(one) is None]
    temperatures = {one.temperature for one in episodes}
    common = temperatures.pop() if len(temperatures) == 1 else 0.0 if 0 in temperatures else None
    left_out = Counter(word for one in episodes if (word := excluded_as(one)) is not None)
    wrote = {one.labels.get(WROTE) for one in counted}
    identical = len(counted) > 1 and len(wrote) == 1 and None not in wrote
    return TaskRuns(
        f"{cell.task} seed {seed}", tuple(one.succeeded for one in counted), common, dict(left_out), identical
    )


@dataclass(frozen=True, slots=True)
class PassRate:
    """pass^k of a configuration: the unweighted mean over its tasks, with the runs of each task resampled.

    `largest_k` is the smallest number of runs that a task has left; `floors` counts tasks without one success;
    `excluded` the runs left out, by layer; `note` is what a reader must know besides (or empty).
    """

    k: int
    value: float
    interval: Interval
    tasks: int
    runs: int
    largest_k: int
    floors: int
    excluded: dict[str, int]
    note: str = ""

    def text(self) -> str:
        """For a table: `pass^5 = 34.5 % [20.1, 48.0] (3 tasks, 60 runs; 1 task without a success)`."""
        floors = f"; {self.floors} without a success" if self.floors else ""
        left_out = "".join(f"; not run: {layer} x{count}" for layer, count in sorted(self.excluded.items()))
        note = f"; {self.note}" if self.note else ""
        return (
            f"pass^{self.k} = {100 * self.value:.1f} % {self.interval.text()} "
            f"({self.tasks} tasks, {self.runs} runs{floors}{left_out}{note})"
        )


def pass_rate(tasks: Sequence[TaskRuns], k: int, *, key: str, resamples: int = RESAMPLES) -> PassRate:
    """pass^k over tasks; `key` names the random stream (the cell's key).

    Raises DegenerateRunsError for repeated runs at temperature 0, and ValueError where no task is given or one has
    fewer than k runs left.
    """
    _check_tasks(tasks)
    smallest = min(tasks, key=lambda task: len(task.succeeded))
    largest_k = len(smallest.succeeded)
    if k > largest_k:
        raise ValueError(f"{smallest.task} has {largest_k} runs left: k = {k} is undefined, at most {largest_k} is not")
    excluded: dict[str, int] = {}
    for task in tasks:
        for layer, count in task.excluded.items():
            excluded[layer] = excluded.get(layer, 0) + count
    return PassRate(
        k=k,
        value=mean([pass_hat_k(sum(task.succeeded), len(task.succeeded), k) for task in tasks]),
        interval=_interval(tasks, k, key, resamples),
        tasks=len(tasks),
        runs=sum(len(task.succeeded) for task in tasks),
        largest_k=largest_k,
        floors=sum(not any(task.succeeded) for task in tasks),
        excluded=excluded,
        note="temperature not known" if any(task.temperature is None for task in tasks) else "",
    )


def _check_tasks(tasks: Sequence[TaskRuns]) -> None:
    if not tasks:
        raise ValueError("pass^k of no task")
    for task in tasks:
        if task.temperature == 0 and len(task.succeeded) > 1:
            raise DegenerateRunsError(
                f"{task.task}: {len(task.succeeded)} runs at temperature 0 are one run, {len(task.succeeded)} times: "
                "pass^k would only repeat the rate of success. Sample at a temperature above 0"
            )
    if all(task.identical for task in tasks):
        raise DegenerateRunsError(
            f"the runs of each task wrote the same bytes ({tasks[0].task}: {len(tasks[0].succeeded)} runs, temperature "
            f"{tasks[0].temperature}): they are one run, and there is no variance to speak of"
        )


def pass_curve(
    tasks: Sequence[TaskRuns], *, key: str, most: int, resamples: int = RESAMPLES
) -> list[tuple[int, float, Interval]]:
    """(k, pass^k, interval) for every k up to `most` that all tasks allow, from one set of resampled runs.

    Raises as `pass_rate`; ValueError where a task has no run left.
    """
    _check_tasks(tasks)
    largest = min(most, *(len(task.succeeded) for task in tasks))
    if largest < 1:
        raise ValueError(f"{next(task.task for task in tasks if not task.succeeded)} has no run left: no k is defined")
    sizes = [len(task.succeeded) for task in tasks]
    chances = {k: [[pass_hat_k(c, size, k) for c in range(size + 1)] for size in sizes] for k in range(1, largest + 1)}
    draw = stream(f"{key} pass curve")
    means: dict[int, list[float]] = {k: [] for k in chances}
    for _ in range(resamples):
        counts = [sum(task.succeeded[draw(size)] for _ in range(size)) for task, size in zip(tasks, sizes, strict=True)]
        for k, chance in chances.items():
            means[k].append(mean([of[count] for of, count in zip(chance, counts, strict=True)]))
    true = [sum(task.succeeded) for task in tasks]
    return [
        (k, mean([of[count] for of, count in zip(chance, true, strict=True)]), percentiles(means[k]))
        for k, chance in chances.items()
    ]


def _interval(tasks: Sequence[TaskRuns], k: int, key: str, resamples: int) -> Interval:
    draw = stream(f"{key} pass^{k}")
    chances = [[pass_hat_k(c, len(task.succeeded), k) for c in range(len(task.succeeded) + 1)] for task in tasks]
    means = []
    for _ in range(resamples):
        drawn = []
        for task, chance in zip(tasks, chances, strict=True):
            runs = len(task.succeeded)
            drawn.append(chance[sum(task.succeeded[draw(runs)] for _ in range(runs))])
        means.append(mean(drawn))
    return percentiles(means)
