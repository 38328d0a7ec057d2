"""The plots as PNG, drawn by matplotlib where that is installed. Their bytes depend on its version and fonts, so that
they are no part of what is the same whenever a report is made again."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from checklists.dense.plots import bars, parts, points
from checklists.report.writing import ReportError
from harness.dense.experiment.records import Experiment

DOTS = 150
"""Dots per inch."""


class PlotsMissingError(Exception):
    """matplotlib is not installed; the message says how to get it."""


def write_pngs(found: Experiment, folder: Path) -> list[str]:
    """Write all plots; the names of their files. Raises PlotsMissingError, ReportError."""
    try:
        matplotlib = import_module("matplotlib")
        matplotlib.use("Agg")
        figures = import_module("matplotlib.figure")
    except ImportError:
        raise PlotsMissingError(
            "PNGs are drawn by matplotlib, which is not installed: pip install matplotlib; the SVGs need nothing"
        ) from None
    drawings: dict[str, Callable[[Any, Experiment], None]] = {
        "completion-memory": _completion_memory,
        "pass-k": _pass_k,
        "failure-modes": _failure_modes,
        "tasks": _tasks,
    }
    names = []
    for name, draw in drawings.items():
        figure = figures.Figure(figsize=(8, 4.5), layout="constrained")
        draw(figure.subplots(), found)
        file = f"dense-{name}.png"
        try:
            figure.savefig(folder / file, dpi=DOTS, metadata={"Software": None})
        except OSError as error:
            raise ReportError(f"cannot write {folder / file}: {error.strerror or error}") from error
        names.append(file)
    return names


def _plain(text: str) -> str:
    """A text in which no dollar begins a formula."""
    return text.replace("$", r"\$")


def _completion_memory(axes: Any, found: Experiment) -> None:
    for one in points(found.configurations):
        ends = [[100 * (one.value - one.low)], [100 * (one.high - one.value)]]
        filled = {"markerfacecolor": "none"} if one.estimated else {}
        label = _plain(one.name) + (" (estimated)" if one.estimated else "")
        axes.errorbar([one.memory / 1e9], [100 * one.value], yerr=ends, fmt="o", capsize=4, label=label, **filled)
    if found.budget is not None:
        axes.axvline(found.budget / 1e9, linestyle="--", color="grey", label="budget")
    axes.set(xlabel="peak memory, GB", ylabel="completed, %", ylim=(-3, 103), title="Completion against memory")
    _legend(axes)


def _pass_k(axes: Any, found: Experiment) -> None:
    for row in found.configurations:
        if row.passes:
            ks = [one.k for one in row.passes]
            (line,) = axes.plot(ks, [100 * one.value for one in row.passes], marker=".", label=_plain(row.name))
            low, high = ([100 * getattr(one, end) for one in row.passes] for end in ("low", "high"))
            axes.fill_between(ks, low, high, alpha=0.12, color=line.get_color())
    axes.set(xlabel="k", ylabel="pass^k, %", ylim=(-3, 103), title="All of k runs complete the task")
    _legend(axes)


def _failure_modes(axes: Any, found: Experiment) -> None:
    names = [_plain(row.name) for row in found.configurations]
    left = [0.0] * len(names)
    for key, word, _ in parts():
        counts = [float(bars(row).get(key, 0)) for row in found.configurations]
        if any(counts):
            axes.barh(names, counts, left=left, label=word)
            left = [before + count for before, count in zip(left, counts, strict=True)]
    axes.invert_yaxis()
    axes.set(xlabel="runs", title="How the runs ended")
    _legend(axes)


def _tasks(axes: Any, found: Experiment) -> None:
    rows = found.configurations
    floors = {floor.task for floor in found.floors}
    values = [[row.tasks[task].value or 0.0 for row in rows] for task in found.tasks]
    axes.imshow(values, vmin=0, vmax=1, cmap="Greens", aspect="auto")
    axes.set_xticks(range(len(rows)), [_plain(row.name) for row in rows], rotation=20, ha="right")
    names = [_plain(task) + (" (floor)" if task in floors else "") for task in found.tasks]
    axes.set_yticks(range(len(names)), names)
    for at, task in enumerate(found.tasks):
        for number, row in enumerate(rows):
            one = row.tasks[task]
            axes.text(number, at, f"{one.hits}/{one.runs}", ha="center", va="center")
    axes.set_title("Completed runs by task")


def _legend(axes: Any) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")
