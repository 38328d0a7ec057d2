"""The first screen: what was asked, what came out, and how much so few runs can say. In plain words."""

from __future__ import annotations

from checklists.dense import words
from checklists.report.blocks import Advice, Block, Line, Paragraph, Strong, Tile, Tiles
from harness.dense.experiment.gathering import ENOUGH_RUNS
from harness.dense.experiment.records import Experiment

MOST_TILES = 8


def title(found: Experiment) -> str:
    """The verdict in one sentence."""
    rows = [row for row in found.configurations if row.completion.value is not None]
    tasks = words.number(len(found.tasks), "task")
    if not rows:
        return "No run of this experiment counts: the set-up ended all of them"
    if found.tasks and len(found.floors) == len(found.tasks):
        nobody = "no run completed" if len(rows) == 1 else f"none of {len(rows)} configurations completed"
        return f"Floor: {nobody} any of {tasks}, so nothing is ranked"
    if len(rows) == 1:
        done = rows[0].completion
        return f"{rows[0].name} completed {done.hits} of {done.runs} runs"
    pairs = len(found.overlapping) + len(found.apart)
    if not found.apart:
        return f"These runs do not tell the {len(rows)} configurations apart"
    if not found.overlapping:
        best = max(rows, key=lambda row: row.completion.value or 0.0)
        return f"{best.name} completes most ({words.rate(best.completion)}), and all configurations are told apart"
    return f"{len(found.apart)} of {words.number(pairs, 'pair')} of configurations are told apart by these runs"


def tone(found: Experiment) -> str:
    """The colour of the verdict: open wherever it is none."""
    return "good" if found.apart and not found.underpowered else "open"


def opening(found: Experiment) -> list[Block]:
    """What stands under it."""
    said = (
        f"{words.number(len(found.configurations), 'configuration')} of a model and the program that runs it got "
        f"{words.number(len(found.tasks), 'task')} with files, {words.runs_each(found)} times each. A run counts as "
        "completed only if the files end up as they should, and no tool was used where none should be; one right step "
        "is nothing."
    )
    blocks: list[Block] = [Paragraph([said], lead=True)]
    blocks += [Paragraph([Strong("The baseline. "), one]) for one in found.baselines]
    fake = [row.name for row in found.configurations if row.weights.fake]
    if fake:
        verb = "is" if len(fake) == 1 else "are"
        blocks.append(
            Paragraph(
                [
                    Strong("Fake-quantised. "),
                    f"{words.listed(fake)} {verb} fake-quantised: the weights were quantised for real, measured, and "
                    "dequantised again to run. Their answers are those of the width; their speed and memory are not.",
                ]
            )
        )
    if any(row.condition.endswith("/prompt") for row in found.configurations):
        said = (
            "They stood in the prompt as text, in the form that the model is known to write: its own template renders "
            "none, or was not asked to. How well a model takes tools from its prompt is part of what is measured."
        )
        blocks.append(Paragraph([Strong("The tools. "), said]))
    blocks.append(Advice("How much these runs can say", limits(found)))
    rows = found.configurations[:MOST_TILES]
    tiles = [
        Tile(
            [row.name],
            words.rate(row.completion),
            [f"{row.completion.hits} of {row.completion.runs} runs; {words.ends(row.completion)} %"]
            if row.completion.runs
            else ["no run counts"],
        )
        for row in rows
    ]
    return [*blocks, Tiles(tiles)]


def limits(found: Experiment) -> list[Line]:
    """What a reader must know before comparing."""
    said: list[Line] = []
    if found.underpowered:
        few = f"Underpowered: {words.runs_each(found)} runs of each task under each configuration; the original has "
        said.append([Strong(few + f"{ENOUGH_RUNS}.")])
    if found.resolves is not None and len(found.configurations) > 1:
        said.append(
            [
                f"Around one half, two configurations have to lie {100 * found.resolves:.0f} points apart before so "
                "many runs tell them apart."
            ]
        )
    if found.overlapping:
        pairs = len(found.overlapping)
        said.append(
            [
                f"Overlap: the 95 % intervals of {words.number(pairs, 'pair')} of configurations share values: their "
                "order is not shown by these runs, and none is printed."
            ]
        )
    if found.floors and len(found.floors) == len(found.tasks):
        said.append(["Every task is a floor (completed by nobody): nothing is ranked. Why is said below."])
    elif found.floors:
        said.append(
            [
                f"{len(found.floors)} of {len(found.tasks)} tasks are floors (completed by nobody): all differences "
                "rest on the others."
            ]
        )
    same = [row.name for row in found.configurations if row.identical and len(row.identical) == len(row.tasks)]
    if same:
        said.append(
            [
                f"The runs of each task are byte-identical for {words.listed(same)}: they are one run repeated. No "
                "variance and no pass^k is printed for them, and their intervals say nothing about repeating."
            ]
        )
    if found.findings:
        said.append(
            [f"{words.number(len(found.findings), 'finding')} of a check of the run stand in the technical part."]
        )
    return said or [["Nothing known stands against comparing these configurations."]]
