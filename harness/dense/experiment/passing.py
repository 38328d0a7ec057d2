"""pass^k of a configuration for every k that its runs allow, or the sentence why there is none."""

from __future__ import annotations

from collections.abc import Sequence

from harness.dense.experiment.records import Pass
from results.episodes import EpisodeRecord
from results.statistics.passes import DegenerateRunsError, pass_curve, pass_hat_k, task_runs

HEADLINE_K = 5
"""The k that Dense Bench part 4 prints."""
LARGEST_K = 20


def passes(
    episodes: Sequence[EpisodeRecord], *, key: str
) -> tuple[tuple[Pass, ...], str, dict[str, float], tuple[str, ...]]:
    """The curve, why there is none (or empty), pass^k of each task at the headline k (or the largest that all tasks
    allow), and the tasks whose runs wrote the same bytes."""
    tasks = task_runs(episodes)
    identical = tuple(task.task for task in tasks if task.identical)
    try:
        curve = pass_curve(tasks, key=key, most=LARGEST_K)
    except (DegenerateRunsError, ValueError) as why:
        return (), str(why), {}, identical
    k = min(HEADLINE_K, curve[-1][0])
    of_tasks = {task.task: pass_hat_k(sum(task.succeeded), len(task.succeeded), k) for task in tasks}
    return tuple(Pass(at, value, ends.low, ends.high) for at, value, ends in curve), "", of_tasks, identical
