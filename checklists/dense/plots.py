"""The plots of an experiment, by the names of their files. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from checklists.dense.words import MODES
from checklists.markup import Tag
from checklists.pictures.plots.completion_memory import Point, completion_memory
from checklists.pictures.plots.matrix import matrix
from checklists.pictures.plots.pass_curves import pass_curves
from checklists.pictures.plots.stacked import series, stacked
from harness.dense.experiment.records import Configuration, Experiment
from harness.dense.rules import MODES as SEVEN

Plots = Mapping[str, tuple[Tag, str]]
"""File name without its ending -> the picture and its text alternative."""


def plots(found: Experiment) -> Plots:
    """All four."""
    rows = found.configurations
    names = [row.name for row in rows]
    floors = {floor.task for floor in found.floors}
    curves = [
        (at, row.name, [(one.k, one.value, one.low, one.high) for one in row.passes]) for at, row in enumerate(rows)
    ]
    cells = [
        (task, [(row.tasks[task].hits, row.tasks[task].runs) for row in rows], task in floors) for task in found.tasks
    ]
    return {
        "completion-memory": completion_memory(points(rows), names, name="memory", budget=found.budget),
        "pass-k": pass_curves(curves, names, name="passk"),
        "failure-modes": stacked(
            [(row.name, bars(row)) for row in rows], parts(), title="How the runs ended", name="modes"
        ),
        "tasks": matrix(cells, names, name="tasks"),
    }


def points(rows: tuple[Configuration, ...]) -> list[Point]:
    """Those configurations that have both, a completion and a memory that is theirs."""
    found = []
    for at, row in enumerate(rows):
        done, memory = row.completion, row.memory
        if done.value is None or done.low is None or done.high is None or memory is None:
            continue
        bytes_, estimated = (memory.estimate, True) if memory.estimate is not None else (memory.peak, row.weights.fake)
        found.append(Point(row.name, at, bytes_, done.value, done.low, done.high, estimated))
    return found


def bars(row: Configuration) -> dict[str, int]:
    """Runs by mode, with those outside of every rate as one part."""
    return {**row.modes, "not_run": sum(row.not_run.values())}


def parts() -> list[tuple[str, str, str]]:
    """The parts of a bar: what was completed, the seven modes, what was not run."""
    modes = [(mode, MODES[mode], series(at)) for at, mode in enumerate(SEVEN)]
    return [
        ("success", MODES["success"], "done"),
        *modes,
        ("no label", "failed without a label", "away"),
        ("not_run", MODES["not_run"], "away"),
    ]
