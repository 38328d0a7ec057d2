"""What came out, in plain words: completion and memory, tasks and floors, failures, families, serving, non-claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checklists.dense import words
from checklists.dense.plots import Plots
from checklists.pictures.interval import interval
from checklists.report.blocks import Block, Bullets, Code, Figure, Glyph, Line, Paragraph, Section, Table, Term
from harness.dense.experiment.records import Configuration, Experiment, Family, Floor


def completion(found: Experiment, drawn: Plots) -> Section:
    """Completion of all configurations, and what it costs in memory."""
    header: list[Line] = [
        ["configuration"],
        ["weights"],
        ["completed"],
        [Term("95 % interval")],
        [""],
        ["runs"],
        ["peak memory"],
    ]
    if found.budget is not None:
        header.append([f"in {words.size(found.budget)}"])
    rows = []
    for row in found.configurations:
        done = row.completion
        cells: list[Line] = [
            [row.name],
            [words.weights(row)],
            [words.rate(done)],
            [words.ends(done)],
            [Glyph(interval(done.value, done.low, done.high, words.rate(done)))],
            [f"{done.hits}/{done.runs}"],
            [_memory(row)],
        ]
        rows.append([*cells, *([[words.fits(row, found.budget)]] if found.budget is not None else [])])
    blocks: list[Block] = [Table("Completion by configuration", header, rows, frozenset({2, 5}))]
    blocks += _memory_said(found)
    blocks.append(Figure(*drawn["completion-memory"]))
    blocks += [Paragraph([said]) for said in _not_run(found)]
    return Section("completion", ["How often the task was finished, and what it takes"], blocks)


def _memory(row: Configuration) -> str:
    if row.memory is None:
        return "not measured"
    peak = words.size(row.memory.peak)
    if not row.weights.fake:
        return peak
    held = f"{peak} with dequantised weights"
    return held if row.memory.estimate is None else f"{words.size(row.memory.estimate)} (estimate); {held}"


def _memory_said(found: Experiment) -> Iterator[Block]:
    rows = found.configurations
    if any(row.memory for row in rows):
        yield Paragraph(["Peak memory is the largest that the engine reported of itself during an episode of the run."])
    if any(row.memory is not None and row.memory.estimate is not None for row in rows):
        said = (
            "An estimate is the measured peak with the bytes of the loaded tensors taken out and those of the "
            "quantised ones put in; it is drawn as a hollow point."
        )
        yield Paragraph([said])
    if found.budget is not None:
        fitting = [row.name for row in rows if words.fits(row, found.budget).startswith("fits")]
        said = words.listed(fitting) or "no configuration that was measured"
        yield Paragraph([f"Into {words.size(found.budget)} fits: {said}."])


def _not_run(found: Experiment) -> list[str]:
    return [
        f"Outside of every rate: of {row.name} {words.number(sum(row.not_run.values()), 'run')} ended by the set-up "
        f"({words.counts(row.not_run)})."
        for row in found.configurations
        if row.not_run
    ]


def tasks(found: Experiment, drawn: Plots) -> Section:
    """Task by task, the floors shown and explained."""
    blocks: list[Block] = [
        Paragraph(
            ["A task that no run of any configuration completed is a floor: it is shown, and tells nothing apart."]
        ),
        Figure(*drawn["tasks"]),
    ]
    if found.floors:
        blocks.append(Bullets([_why(floor, found) for floor in found.floors]))
    return Section("tasks", ["Which tasks were finished"], blocks)


def _why(floor: Floor, found: Experiment) -> Line:
    formats = sorted({row.condition for row in found.configurations if floor.task in row.tasks})
    if not floor.runs:
        return [Code(floor.task), ": no run of it counts."]
    of = "" if floor.turns is None else f" (the user sends {words.number(floor.turns, 'message')})"
    steps = sum(floor.steps.values())
    silent = f"{floor.silent} of {words.number(floor.runs, 'run')} made no call at all. " if floor.silent else ""
    kept = f"Steps: {steps} ({words.counts(floor.steps, words.STEPS)})" if steps else "The steps are not kept"
    first = f" Went wrong first in: {words.turns(floor.failing)}{of}." if floor.failing else ""
    said = (
        f": floor in {words.number(floor.runs, 'run')}. Failed by: {words.counts(floor.modes, words.MODES)}. {silent}"
        f"{kept}, read under {', '.join(formats)}.{first}"
    )
    return [Code(floor.task), said]


def failures(found: Experiment, drawn: Plots) -> Section:
    """By what the runs failed."""
    lead = (
        "Each failed run has exactly one of seven words, by the first message of the user that went wrong. The same "
        "rules name old runs again without a model (stacktap reparse)."
    )
    blocks: list[Block] = [Paragraph([lead]), Figure(*drawn["failure-modes"])]
    near, lost = (
        sum(numbers) for numbers in zip((0, 0), *(row.near_misses for row in found.configurations), strict=True)
    )
    if near:
        said = (
            f"Of {words.number(near, 'run')} of our own tasks with the right tools used wrongly, {lost} "
            f"({words.percent(lost / near)}) lacked nothing but going to the right folder first."
        )
        blocks.append(Paragraph([said]))
    return Section("failures", ["How the others failed"], blocks)


def families(found: Experiment) -> Section | None:
    """How completion moves with the bits of each model family."""
    if not found.families:
        return None
    rows: list[list[Line]] = [
        [
            [one.name],
            [", ".join(f"{bits:g}" for bits in one.bits)],
            [", ".join(words.percent(value) for value in one.values)],
            [_direction(one)],
        ]
        for one in found.families
    ]
    header: list[Line] = [["family"], ["bits"], ["completed"], ["with more bits"]]
    blocks: list[Block] = [Table("Completion by width", header, rows)]
    ways = {one.direction for one in found.families} - {"level"}
    if {"up", "down"} <= ways:
        shown = all(one.shown for one in found.families if one.direction in ("up", "down"))
        said = "The families flip: with more bits one completes more, the other less."
        if not shown:
            said += (
                " The intervals within a family overlap, though: over all tasks the flip is not shown by these runs."
            )
        blocks.append(Paragraph([said]))
    return Section("families", ["More bits, fewer bits"], blocks)


def _direction(one: Family) -> str:
    word = {"up": "more", "down": "less", "level": "the same", "mixed": "neither steadily more nor less"}[one.direction]
    return word if one.shown else f"{word}; intervals overlap: not shown"


def serving(found: Experiment) -> Section | None:
    """What a server made of what the model wrote, beside the same in this process."""
    served = [row for row in found.configurations if not row.in_process]
    if not served:
        return None
    rows = [_beside(row, _inside(row, found.configurations)) for row in served]
    header: list[Line] = [
        ["through a server"],
        ["completed"],
        ["in process"],
        ["turned into something else"],
        ["share of runs"],
    ]
    blocks: list[Block] = [
        Paragraph(
            [
                "The same model and tasks through a server and in this process. A run counts as turned into something "
                "else where the server handed on other than what the model wrote, also where the client made up for it."
            ]
        ),
        Table("Through a server and in process", header, rows, frozenset({1, 2, 3, 4})),
    ]
    causes = sorted({cause for row in served for cause in row.served})
    if causes:
        table: list[list[Line]] = [
            [[Code(cause)], *([str(row.served.get(cause, 0))] for row in served)] for cause in causes
        ]
        head: list[Line] = [["cause"], *([row.name] for row in served)]
        blocks.append(Table("By cause: runs", head, table, frozenset(range(1, len(served) + 1))))
    changed, runs = sum(sum(row.served.values()) for row in served), sum(row.episodes for row in served)
    if runs:
        blocks.append(
            Paragraph(
                [f"Of {words.number(runs, 'run')} through servers, {changed} ({words.percent(changed / runs)}) were."]
            )
        )
    return Section("serving", ["What a server makes of it"], blocks)


def _inside(row: Configuration, rows: Sequence[Configuration]) -> Configuration | None:
    """The same model in this process."""
    return next((one for one in rows if one.in_process and one.model == row.model), None)


def _beside(row: Configuration, inside: Configuration | None) -> list[Line]:
    changed = sum(row.served.values())
    mine = f"{words.rate(row.completion)} ({row.completion.hits}/{row.completion.runs})"
    theirs = "not run"
    if inside is not None:
        theirs = f"{words.rate(inside.completion)} ({inside.completion.hits}/{inside.completion.runs})"
    part = words.percent(changed / row.episodes) if row.episodes else "no run"
    return [[row.name], [mine], [theirs], [f"{changed}/{row.episodes}"], [part]]


def non_claims(found: Experiment) -> Section:
    """What is not claimed."""
    said: list[Line] = [[one] for one in words.NON_CLAIMS]
    sources = sorted(
        {"BFCL v4 multi-turn" if task.startswith("bfcl.") else "stacktap's own items" for task in found.tasks}
    )
    said.append(
        [
            f"Tasks: {words.listed(sources)}. The experiment follows Dense Bench part 4; its numbers are not "
            "repeated here."
        ]
    )
    return Section("non-claims", ["What this does not claim"], [Bullets(said)])
