"""From a run folder to the numbers of a report: a function of the folder and the version, without clock or machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.dense.comparable import unequal
from harness.dense.experiment.comparing import families, family_name, resolvable, width
from harness.dense.experiment.counting import Seen, counted, floor
from harness.dense.experiment.facts import engine_of, made_of, manifests_of, settings_of, weights_of
from harness.dense.experiment.passing import passes
from harness.dense.experiment.records import Configuration, Experiment, Memory, Share, Weights
from harness.dense.family import BFCL_ITEMS, OWN_ITEMS
from harness.dense.summary import Configuration as Key
from harness.dense.summary import Counted, summarise
from results.episode_journal import EpisodeReader
from results.episodes import CellPlan, EpisodeRecord
from results.rates import Rate
from results.validation import violations
from results.version import VERSION

ENOUGH_RUNS = 20
"""Runs of a cell below which it is marked as underpowered: the number of Dense Bench part 4."""


_Own = tuple[Sequence[EpisodeRecord], Sequence[CellPlan]]
"""The episodes and plans of one configuration."""


class NoItemsError(Exception):
    """The run holds no episode of an item, so that there is nothing to report here."""


def experiment(folder: Path, budget: int | None = None) -> Experiment:
    """The numbers of a run; `budget` is the memory in bytes that a configuration has to fit into.

    Raises EpisodeJournalError, NoItemsError, OSError.
    """
    reader = EpisodeReader(folder)
    episodes = sorted((one for one in reader if _is_item(one.cell.task)), key=lambda one: one.place)
    plans = {key: plan for key, plan in sorted(reader.plans.items()) if _is_item(key.task)}
    if not episodes:
        raise NoItemsError(f"{folder} holds no episode of an item (tasks files.NAME or bfcl.NAME)")
    findings = violations(EpisodeReader(folder), dict(reader.plans), reader.earlier_plans) + reader.problems.said()
    found = experiment_of(episodes, list(plans.values()), run=reader.run, budget=budget)
    host, tools = manifests_of(folder)
    return _with(found, host=host, tools=tools, findings=(*findings, *unequal(plans)))


def experiment_of(
    episodes: Sequence[EpisodeRecord], plans: Sequence[CellPlan], *, run: str = "", budget: int | None = None
) -> Experiment:
    """The same from episodes in memory. `plans` may be empty: then nothing is known of weights and settings."""
    summary = summarise(episodes)
    seen = counted(episodes)
    names = _names(list(summary.configurations))
    own = {key: [one for one in episodes if _key(one) == key] for key in names}
    plan_of = {key: [one for one in plans if _key(one) == key] for key in names}
    rows = tuple(
        _row(key, names[key], summary.tasks, summary.configurations[key], seen[key], of=(own[key], plan_of[key]))
        for key in names
    )
    rows = tuple(sorted(rows, key=lambda row: (family_name(row), -(width(row) or 0.0), row.name)))
    each = [share.runs for row in rows for share in row.tasks.values()]
    defined = [row for row in rows if row.completion.value is not None]
    shared = {frozenset((names[one], names[other])) for one, other in summary.overlapping}
    pairs = [(one.name, other.name) for at, one in enumerate(defined) for other in defined[at + 1 :]]
    return Experiment(
        run=run,
        stacktap=VERSION,
        configurations=rows,
        tasks=tuple(summary.tasks),
        floors=tuple(floor(task, episodes) for task in summary.floors),
        overlapping=tuple(pair for pair in pairs if frozenset(pair) in shared),
        apart=tuple(pair for pair in pairs if frozenset(pair) not in shared),
        runs_each=(min(each, default=0), max(each, default=0)),
        families=families(rows),
        resolves=resolvable(min((row.completion.runs for row in defined), default=0)),
        underpowered=min(each, default=0) < ENOUGH_RUNS,
        baselines=tuple(sorted({said for one in plans if (said := str(made_of(one).get("baseline") or ""))})),
        settings=settings_of(plans),
        budget=budget,
    )


def _with(found: Experiment, **changes: Any) -> Experiment:
    return Experiment(**{name: getattr(found, name) for name in found.__struct_fields__} | changes)


def _is_item(task: str) -> bool:
    return task.startswith((OWN_ITEMS, BFCL_ITEMS))


def _key(plan: CellPlan | EpisodeRecord) -> Key:
    return plan.cell.model, plan.cell.stack, plan.cell.condition


def _names(keys: Sequence[Key]) -> dict[Key, str]:
    """The shortest name that tells each from the others: of model, stack and condition what differs."""
    if len(keys) < 2:
        return {key: key[0] for key in keys}
    for parts in ((0,), (1,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        found = {key: " @ ".join(key[part] for part in parts) for key in keys}
        if len(set(found.values())) == len(keys):
            return found
    return {key: " @ ".join(key) for key in keys}


def _row(key: Key, name: str, tasks: Sequence[str], found: Counted, seen: Seen, *, of: _Own) -> Configuration:
    own, plans = of
    curve, refused, of_tasks, identical = passes(own, key=" @ ".join(key))
    engine = engine_of(plans)
    weights = weights_of(plans)
    return Configuration(
        name=name,
        model=key[0],
        stack=key[1],
        condition=key[2],
        engine=engine,
        in_process=key[2].startswith("raw") or engine.endswith("_inprocess"),
        completion=share(found.completion),
        weights=weights,
        tasks={task: share(_of_task(found, task)) for task in tasks},
        declared=sum(len(plan.seeds) * plan.repeats for plan in plans),
        episodes=found.episodes,
        modes=dict(sorted(found.modes.items())),
        apart=dict(sorted(found.apart.items())),
        not_run=dict(sorted(found.not_run.items())),
        served=dict(sorted(found.served.items())),
        steps=dict(sorted(seen.steps.items())),
        calls=dict(sorted(seen.calls.items())),
        failing=dict(sorted(seen.failing.items())),
        near_misses=(seen.near_misses, seen.lost_ways),
        memory=_memory(seen, weights),
        rates=seen.medians(),
        passes=curve,
        no_passes=refused,
        task_passes=of_tasks,
        identical=identical,
    )


def share(rate: Rate) -> Share:
    """A rate as data."""
    low, high = rate.interval or (None, None)
    return Share(rate.hits, rate.trials, rate.value, low, high, "" if rate.trials else rate.undefined or "n/r")


def _of_task(found: Counted, task: str) -> Rate:
    good, runs = found.tasks.get(task, (0, 0))
    return Rate(good, runs, "n/r" if found.not_run else "none")


def _memory(seen: Seen, weights: Weights) -> Memory | None:
    if not seen.peaks:
        return None
    peak = int(max(seen.peaks))
    estimate = None
    if weights.fake and weights.tensor_bytes is not None and weights.held_bytes is not None:
        estimate = max(0, peak - weights.held_bytes) + weights.tensor_bytes
    return Memory(peak, len(seen.peaks), estimate)
