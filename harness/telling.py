"""A run of a grid told for people and as data: its cells, what did not run and why, what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness.abandoned import recordings_of
from harness.dense.again import contradictions
from harness.dense.comparable import unequal
from harness.grid_run import GridRun
from harness.reading import IGNORED
from results.episode_journal import EpisodeReader
from results.episodes import CellKey, CellPlan, EpisodeRecord
from results.statistics.cells import CellStatistics
from results.statistics.grid import GridCounter, RandomNumbers
from results.statistics.passes import DegenerateRunsError, pass_rate, task_runs
from results.statistics.turns import LabelSet
from results.tables.cells import cell_json, cell_table
from results.validation import violations


@dataclass(slots=True)
class Told:
    """A run as it stands on disk. `findings` are sentences: cells under their n, mixed set-ups, damaged lines."""

    folder: Path
    run: str
    cells: list[CellStatistics]
    plans: dict[CellKey, CellPlan]
    findings: list[str]
    ignored: dict[str, int] = field(default_factory=dict)
    repeated: dict[str, str] = field(default_factory=dict)
    """pass^k of each cell whose tasks are run several times, or the sentence why there is none."""


def told(folder: Path, *, words: LabelSet = "own", rng: RandomNumbers = "cell", models: tuple[str, ...] = ()) -> Told:
    """Read a run and count it. Raises EpisodeJournalError; ValueError where labels asked for were not recorded."""
    reader = EpisodeReader(folder)
    counter = GridCounter(words)
    ignored: dict[str, int] = {}
    runs: list[EpisodeRecord] = []
    for episode in reader:
        counter.add(episode)
        runs.append(msgspec.structs.replace(episode, turns=(), answer=None))
        count = sum(IGNORED in turn.labels for turn in episode.turns)
        if count:
            ignored[episode.cell.title] = ignored.get(episode.cell.title, 0) + count
    plans = dict(reader.plans)
    found = violations(EpisodeReader(folder), plans, reader.earlier_plans) + reader.problems.said()
    if not plans and not runs:
        found.append("no cell was begun: nothing was run")
    missing = [entry.name for entry in recordings_of(folder) if not (entry / "run.json").is_file()]
    found += [f"recording {name} has no manifest (run.json)" for name in missing]
    found += contradictions(folder) + unequal(plans)
    cells = counter.statistics(plans, rng=rng, models=models)
    return Told(folder, reader.run, cells, plans, found, ignored, _repeated(plans, runs))


def _repeated(plans: dict[CellKey, CellPlan], runs: list[EpisodeRecord]) -> dict[str, str]:
    """For every k up to the smallest number of runs that a task has left."""
    said = {}
    for cell, plan in sorted(plans.items()):
        tasks = task_runs(one for one in runs if one.cell == cell) if plan.repeats > 1 else []
        if not tasks:
            continue
        most = min(len(task.succeeded) for task in tasks)
        try:
            rates = [pass_rate(tasks, k, key=cell.text).text() for k in sorted({1, most} & set(range(1, most + 1)))]
            said[cell.title] = "; ".join(rates) or "pass^k is undefined: a task has no run left"
        except DegenerateRunsError as why:
            said[cell.title] = f"no pass^k: {why}"
    return said


def ignored_lines(found: Told) -> list[str]:
    """One line a cell whose stack did not enforce the schema that it was given."""
    return [
        f"{title}: ignored by evidence: {count} answers do not follow the schema that the stack was given"
        for title, count in sorted(found.ignored.items())
    ]


def text(found: Told, run: GridRun | None = None) -> str:
    """The table, what did not run, and what is wrong."""
    lines = [cell_table(found.cells)]
    lines += _block("runs of the same task", [f"{title}: {rate}" for title, rate in found.repeated.items()])
    lines += _block("constrained", ignored_lines(found))
    if run is not None:
        lines += _block("did not run", [f"{what}: {why}" for what, why in run.not_run.items()])
        short = [f"{title}: {done} of {declared} episodes" for title, (done, declared) in run.short.items()]
        lines += _block("under their declared n", short)
        abandoned = [f"recording {name}: {len(attempts)} attempts" for name, attempts in run.abandoned.items()]
        lines += _block("of episodes that never ended, outside every count", abandoned)
    lines += _block("findings", found.findings)
    return "\n".join(lines)


def _block(title: str, rows: list[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {row}" for row in rows)] if rows else []


def facts(found: Told, run: GridRun | None = None) -> dict[str, Any]:
    """The same as data."""
    said: dict[str, Any] = {
        "version": 1,
        "folder": str(found.folder),
        "run": found.run,
        "cells": [cell_json(one) for one in found.cells],
        "schema_ignored": found.ignored,
        "repeated": found.repeated,
        "findings": found.findings,
    }
    if run is not None:
        short = {title: {"done": done, "declared": declared} for title, (done, declared) in run.short.items()}
        said |= {
            "complete": run.complete,
            "declared": run.declared,
            "done": run.done,
            "not_run": run.not_run,
            "short": short,
            "abandoned": run.abandoned,
        }
    return said
