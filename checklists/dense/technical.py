"""The technical part: pass^k, task by task with intervals, steps and calls, weights, settings, machine, findings."""

from __future__ import annotations

from collections.abc import Sequence

from checklists.dense import words
from checklists.dense.plots import Plots
from checklists.report.blocks import Block, Bullets, Code, Figure, Line, Pairs, Paragraph, Strong, Table
from harness.dense.experiment.passing import HEADLINE_K
from harness.dense.experiment.records import Configuration, Experiment
from harness.dense.rules import MODES


def technical(found: Experiment, drawn: Plots) -> list[Block]:
    """All of it, to stand behind a switch."""
    return [
        *_passes(found, drawn),
        *_by_task(found),
        *_modes(found),
        *_steps(found),
        *_speed(found),
        *_weights(found),
        *_set_up(found),
        *_findings(found),
    ]


def _heading(text: str) -> Paragraph:
    return Paragraph([Strong(text)])


def _names(found: Experiment) -> list[Line]:
    return [[row.name] for row in found.configurations]


def _numeric(count: int) -> frozenset[int]:
    return frozenset(range(1, count + 1))


def _passes(found: Experiment, drawn: Plots) -> list[Block]:
    blocks: list[Block] = [
        _heading("pass^k: all of k runs complete the task"),
        Paragraph(
            [
                "Unbiased, C(c, k) / C(n, k) for c completed of n runs, averaged over the tasks; intervals by a "
                "bootstrap of the runs within each task."
            ]
        ),
        Figure(*drawn["pass-k"]),
    ]
    rows: list[list[Line]] = []
    for row in found.configurations:
        shown = [one for one in row.passes if one.k in (1, 2, HEADLINE_K, 10, row.passes[-1].k)]
        said = "; ".join(
            f"pass^{one.k} {words.percent(one.value)} [{100 * one.low:.1f}, {100 * one.high:.1f}]" for one in shown
        )
        rows.append([[row.name], [said or f"none: {row.no_passes}"]])
    blocks.append(Table("pass^k by configuration", [["configuration"], ["pass^k"]], rows))
    tasks = sorted({task for row in found.configurations for task in row.task_passes})
    if tasks:
        k = min(HEADLINE_K, *(row.passes[-1].k for row in found.configurations if row.passes))
        alike = all(min(HEADLINE_K, row.passes[-1].k) == k for row in found.configurations if row.passes)
        table: list[list[Line]] = [
            [[Code(task)], *([_percent(row.task_passes.get(task))] for row in found.configurations)] for task in tasks
        ]
        word = f"pass^{k} by task" if alike else "pass^k by task, each at the largest k up to 5 that its runs allow"
        blocks.append(Table(word, [["task"], *_names(found)], table, _numeric(len(found.configurations))))
    return blocks


def _percent(value: float | None) -> str:
    return "none" if value is None else words.percent(value)


def _by_task(found: Experiment) -> list[Block]:
    floors = {floor.task for floor in found.floors}
    rows: list[list[Line]] = []
    for task in found.tasks:
        cells: list[Line] = []
        for row in found.configurations:
            one = row.tasks[task]
            cells.append([f"{one.hits}/{one.runs} [{words.ends(one)}]" if one.runs else words.rate(one)])
        rows.append([[Code(task), " floor"] if task in floors else [Code(task)], *cells])
    header: list[Line] = [["task"], *_names(found)]
    table = Table("Completed runs and 95 % interval (Wilson) in per cent", header, rows, _numeric(len(header) - 1))
    said = [f"Not told apart (intervals overlap): {one} and {other}." for one, other in found.overlapping]
    said += [f"Told apart: {one} and {other}." for one, other in found.apart]
    return [_heading("Task by task"), table, *([Bullets([[one] for one in said])] if said else [])]


def _modes(found: Experiment) -> list[Block]:
    keys = [
        mode for mode in ("success", *MODES, "no label") if any(row.modes.get(mode) for row in found.configurations)
    ]
    rows: list[list[Line]] = [
        [[Code(mode)], *([str(row.modes.get(mode, 0))] for row in found.configurations)] for mode in keys
    ]
    rows += [
        [["of these ", Code(word)], *([str(row.apart.get(word, 0))] for row in found.configurations)]
        for word in ("no_action", "premature_done")
        if any(row.apart.get(word) for row in found.configurations)
    ]
    header: list[Line] = [["mode"], *_names(found)]
    return [_heading("Failure modes, in runs"), Table("Runs by mode", header, rows, _numeric(len(header) - 1))]


def _steps(found: Experiment) -> list[Block]:
    rows: list[list[Line]] = [
        [
            [row.name],
            [row.condition],
            [words.counts(row.steps, words.STEPS)],
            [words.counts(row.calls)],
            [words.turns(row.failing)],
        ]
        for row in found.configurations
    ]
    header: list[Line] = [
        ["configuration"],
        ["calls read as"],
        ["steps"],
        ["calls by verdict"],
        ["went wrong first in"],
    ]
    return [_heading("Steps and calls"), Table("Assistant steps", header, rows, even=True)]


def _speed(found: Experiment) -> list[Block]:
    if not any(row.rates or row.memory for row in found.configurations):
        return []
    rows: list[list[Line]] = [
        [
            [row.name],
            [_rate(row, "ttft_seconds", " s")],
            [_rate(row, "prompt_rate", " tokens/s")],
            [_rate(row, "generation_rate", " tokens/s")],
            [f"{row.memory.peak} B in {row.memory.episodes} episodes" if row.memory else "not measured"],
        ]
        for row in found.configurations
    ]
    header: list[Line] = [["configuration"], ["first token"], ["prompt"], ["generation"], ["largest peak memory"]]
    said = "Medians over episodes, by the engine's own clock; fake-quantised weights run at the speed of their type."
    return [_heading("Speed and memory"), Paragraph([said]), Table("As measured", header, rows, _numeric(4))]


def _rate(row: Configuration, name: str, unit: str) -> str:
    value = row.rates.get(name)
    return "not measured" if value is None else f"{value:.3g}{unit}"


def _weights(found: Experiment) -> list[Block]:
    rows: list[list[Line]] = []
    commands: list[Line] = []
    for row in found.configurations:
        made = row.weights
        rows.append(
            [
                [row.name],
                [words.weights(row, full=True)],
                [made.source or "not stated"],
                [Code(made.sha256 or "not known")],
            ]
        )
        commands += [[f"{row.name}: ", Code(" ".join(one))] for one in made.commands]
    header: list[Line] = [["configuration"], ["weights"], ["made from"], ["SHA-256"]]
    blocks: list[Block] = [_heading("Weights"), Table("What was run", header, rows, even=True)]
    return [*blocks, *([Bullets(commands)] if commands else [])]


def _set_up(found: Experiment) -> list[Block]:
    blocks: list[Block] = [_heading("Set-up"), *_pairs(found.settings)]
    if found.host or found.tools:
        blocks += [
            _heading("Machine and packages, as the recordings' manifests say"),
            *_pairs({**found.host, **found.tools}),
        ]
    else:
        blocks.append(Paragraph(["The manifests of the recordings are not kept with this run: machine not stated."]))
    return blocks


def _pairs(facts: dict[str, str]) -> Sequence[Block]:
    return [Pairs([([name.replace("_", " ")], [value]) for name, value in facts.items()])] if facts else []


def _findings(found: Experiment) -> list[Block]:
    said: list[Line] = [[one] for one in found.findings] or [
        ["Nothing: each cell has its runs, each episode its plan."]
    ]
    return [_heading("What a check of the run found"), Bullets(said)]
