"""What came of a comparison: a matrix of outcomes, the differences between targets, one verdict across them. Pure."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import msgspec

from results.outcomes import Outcome
from results.taxonomy import info

VERSION = 1


@dataclass(frozen=True, slots=True)
class Cell:
    """One request to one target. `turn` is what came back (text and calls), `prompt` the rendered prompt and `raw` what
    the model writes by a raw channel, None where that is not to be had. `word` is the paper's outcome word."""

    question: str
    target: str
    outcome: Outcome | None
    word: str = ""
    attempt: int = 0
    turn: str = ""
    prompt: str | None = None
    raw: str | None = None
    tools_in_prompt: bool | None = None
    remedy: str = ""
    why: str = ""
    """Why there is no outcome: the target could not be started or asked."""

    @property
    def shown(self) -> str:
        """The outcome's name, or why there is none."""
        return self.outcome.name if self.outcome is not None else "not asked"

    @property
    def call_written(self) -> bool:
        """Whether the model is seen to write a usable call here, delivered or not."""
        if self.outcome is None:
            return False
        return self.outcome.name in ("ok.native_call", "ok.text_call", "parser.left_as_text") or (
            self.outcome.wrote == "valid_call"
        )


@dataclass(frozen=True, slots=True)
class Across:
    """The verdict across all targets: who is at fault, in a sentence, and what to change on each that fails."""

    at_fault: str
    said: str
    changes: tuple[str, ...] = ()


@dataclass(slots=True)
class Comparison:
    """All cells, in the order asked. `servers` maps a target to what it was recognised as."""

    questions: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    servers: dict[str, str] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    folder: str = ""
    words: bool = False
    """Whether the paper's words are shown instead of outcomes."""

    def cell(self, question: str, target: str) -> Cell | None:
        """The cell of a request and a target."""
        return next((one for one in self.cells if (one.question, one.target) == (question, target)), None)

    def differ(self) -> bool:
        """Whether any target fails, or two come to different outcomes."""
        return any(not cell.shown.startswith("ok.") for cell in self.cells) or any(
            len({cell.shown for cell in self.cells if cell.question == question}) > 1 for question in self.questions
        )

    def facts(self) -> dict[str, Any]:
        """As a JSON object."""
        cells = [
            {**{k: v for k, v in asdict(_bare(cell)).items() if k != "outcome"}, "outcome": _plain(cell.outcome)}
            for cell in self.cells
        ]
        return {
            "version": VERSION,
            "folder": self.folder,
            "servers": self.servers,
            "cells": cells,
            "across": {question: asdict(across(self, question)) for question in self.questions},
        }


def _bare(cell: Cell) -> Cell:
    return replace(cell, outcome=None)


def _plain(outcome: Outcome | None) -> Any:
    return None if outcome is None else msgspec.to_builtins(outcome)


def across(comparison: Comparison, question: str) -> Across:
    """One verdict on a request that was sent to all targets."""
    cells = [cell for cell in comparison.cells if cell.question == question and cell.outcome is not None]
    failing = [cell for cell in cells if not cell.shown.startswith("ok.")]
    changes = tuple(f"{cell.target}: {cell.remedy}" for cell in failing if cell.remedy)
    if not cells:
        return Across("undetermined", "No target could be asked.")
    if not failing:
        return Across("none", f"All {len(cells)} targets answer well.")
    writing = [cell for cell in cells if cell.call_written]
    if writing:
        faults = ", ".join(f"{cell.target} ({cell.shown}, {cell.outcome.at_fault})" for cell in failing if cell.outcome)
        who = sorted({cell.outcome.at_fault for cell in failing if cell.outcome})
        return Across(
            who[0] if len(who) == 1 else "+".join(who),
            f"The model writes a usable call (seen on {writing[0].target}); it is lost on {faults}.",
            changes,
        )
    models = [cell for cell in failing if cell.outcome is not None and cell.outcome.at_fault == "model"]
    if models:
        seen = ", ".join(cell.target for cell in models)
        before = [cell for cell in failing if cell.outcome is not None and cell.outcome.model_ran == "no"]
        more = f" On {', '.join(cell.target for cell in before)} it never ran." if before else ""
        return Across(
            "model", f"The tools were in the prompt and the model wrote no usable call on {seen}.{more}", changes
        )
    if all(cell.outcome is not None and cell.outcome.model_ran == "no" for cell in failing) and len(failing) == len(
        cells
    ):
        return Across("config", "No target let the model run: its rate is undefined, not 0 %.", changes)
    absent = [cell for cell in failing if cell.shown == "template.tools_absent"]
    if absent:
        said = (
            f"The model never saw the tools on {', '.join(cell.target for cell in absent)}: they are not in its prompt."
        )
        return Across("config", said, changes)
    return Across("undetermined", "No target shows what the model writes: nobody can be blamed yet.", changes)


def text(comparison: Comparison, *, differences: bool = True) -> str:
    """For people: the matrix, the verdict across for each request, then where the targets differ."""
    lines = [f"{name:<28} {comparison.servers.get(name, '')}" for name in comparison.targets]
    lines += ["", *_matrix(comparison)]
    for question in comparison.questions:
        verdict = across(comparison, question)
        lines += ["", f"{question}: {verdict.said}"]
        lines += [f"  change  {change}" for change in verdict.changes]
        for cell in comparison.cells:
            if cell.question == question and cell.why:
                lines.append(f"  note    {cell.target}: {cell.why}")
        if differences:
            lines += list(_differences(comparison, question))
    return "\n".join([*lines, "", f"recorded: {comparison.folder}"])


def _matrix(comparison: Comparison) -> list[str]:
    """One row a target, one column a request: names of targets are long, those of requests are not."""
    widths = [max(22, len(question) + 2) for question in comparison.questions]
    head = f"{'':<28} " + "".join(f"{q:<{w}}" for q, w in zip(comparison.questions, widths, strict=True))
    rows = [head.rstrip()]
    for target in comparison.targets:
        shown = []
        for question, width in zip(comparison.questions, widths, strict=True):
            cell = comparison.cell(question, target)
            word = "" if cell is None else (cell.word if comparison.words and cell.word else cell.shown)
            shown.append(f"{word:<{width}}")
        rows.append(f"{target[:27]:<28} {''.join(shown)}".rstrip())
    return rows


def _differences(comparison: Comparison, question: str) -> Iterator[str]:
    cells = [cell for cell in comparison.cells if cell.question == question and cell.outcome is not None]
    if len(cells) < 2:
        return
    first = cells[0]
    for other in cells[1:]:
        for what, one, two in (
            ("rendered prompt", first.prompt, other.prompt),
            ("raw text", first.raw, other.raw),
            ("returned turn", first.turn, other.turn),
        ):
            if one is not None and two is not None and one != two:
                yield f"  {what}, {first.target} (-) and {other.target} (+):"
                yield from (f"    {line}" for line in _diff(one, two))


def _diff(one: str, two: str, longest: int = 12) -> list[str]:
    changed = [
        line.rstrip("\n")
        for line in difflib.unified_diff(one.splitlines(), two.splitlines(), lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    shown = [line[:160] for line in changed[:longest]]
    return [*shown, f"... {len(changed) - longest} more lines"] if len(changed) > longest else shown


def turn_text(content: str, calls: list[tuple[str, str]]) -> str:
    """A returned turn as text: what was said, then one line a call."""
    lines = [content] if content else []
    return "\n".join([*lines, *(f"call {json.dumps(name)} {arguments}" for name, arguments in calls)])


def paper_word(outcome: Outcome, *, has_calls: bool, has_text: bool, has_block: bool) -> str:
    """The paper's outcome word (S2-13, as `results.labels` projects turns): what one request got from one stack."""
    if has_calls:
        return "200_native"
    if outcome.name == "gate.tools_unsupported":
        return "HTTP400_rejected"
    if outcome.name == "gate.parser_not_configured":
        return "HTTP400_no_parser"
    if not info(outcome.name).reached or not has_text:
        return "error"
    if outcome.layer == "parser" or has_block:
        return "200_text_json_block"
    return "200_prose_nocall"
