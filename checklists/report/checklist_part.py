"""The serving checklist as a part of a report: 22 questions, each answered, or with what would answer it."""

from __future__ import annotations

from collections.abc import Sequence

from checklists.facts.records import RunFacts
from checklists.items.catalogue import BY_ID
from checklists.items.records import COUNTED_WORDS, STATED, Checklist, Filled, Part
from checklists.items.scope import ALONE, VALID
from checklists.report.blocks import (
    Block,
    Break,
    Bullets,
    Code,
    Fold,
    Inline,
    Line,
    Paragraph,
    Section,
    Strong,
    Table,
    spoken,
)

TITLE = "Serving checklist"
SHOWN_EVIDENCE = 3
SHOWN_PARTS = 12


def checklist(run: RunFacts, prefix: str) -> Section:
    """The checklist of a run."""
    found = run.checklist
    if found is None:
        return Section(f"{prefix}checklist", [TITLE], [Paragraph(["The checklist was not filled for this run."])])
    header: list[Line] = [["no."], ["question"], ["state"], ["answer"]]
    blocks: list[Block | Section] = [
        Paragraph(
            [Strong(f"{found.header}."), " What a reader of these numbers has to know about how they were made."],
            lead=True,
        ),
        Fold(
            ["The 22 questions, and what answers them"],
            [Table("Serving checklist", header, [_row(one) for one in found.entries], wide=True)],
        ),
    ]
    if found.scope:
        blocks += [Paragraph([Strong("What these numbers hold for, and what they cannot say")]), _scope(found)]
    return Section(f"{prefix}checklist", [TITLE], blocks)


def _row(entry: Filled) -> Sequence[Line]:
    item = BY_ID.get(entry.id)
    answer: list[Inline] = [*_parts(entry.parts)] if len(entry.parts) > 1 else [*spoken(entry.value or entry.why)]
    if entry.state == "unknown" and entry.value and len(entry.parts) <= 1:
        answer = [*spoken(entry.why), Break(), "Known: ", *spoken(entry.value)]
    if entry.stated:
        answer.append(f" ({STATED})")
    if entry.command and entry.counted in ("unknown", "not_done"):
        answer += [Break(), "To fill it: ", Code(entry.command)]
    if entry.evidence:
        answer += [Break(), "Seen in " + "; ".join(link.place for link in entry.evidence[:SHOWN_EVIDENCE])]
    return ([entry.id], [item.asks if item is not None else entry.id], [COUNTED_WORDS[entry.counted]], answer)


def _parts(parts: Sequence[Part]) -> Line:
    """The answer for one server, model or cell a line."""
    line: list[Inline] = []
    for part in parts[:SHOWN_PARTS]:
        unknown = (
            "" if part.state == "yes" or (part.state == "no" and part.done) else f"{part.state.replace('_', ' ')}: "
        )
        said = part.value or part.why
        line += [*([Break()] if line else []), Strong(part.about), ": ", *spoken(unknown + said)]
    if len(parts) > SHOWN_PARTS:
        line += [Break(), f"{len(parts) - SHOWN_PARTS} more in report.json"]
    return line


def _scope(found: Checklist) -> Bullets:
    """The scope lines; what the numbers hold for in one of them, however many servers there are."""
    held = dict.fromkeys(line.text for line in found.scope if line.text.startswith(VALID) and line.text.endswith(ALONE))
    others = [line.text for line in found.scope if line.text not in held]
    if len(held) > 1:
        each = "; ".join(text.removeprefix(VALID).removesuffix(ALONE) for text in held)
        one = f"{VALID}these alone: {each}. Whether tools are accepted is decided by each release, not by the model."
        return Bullets([[one], *([text] for text in others)])
    return Bullets([*([text] for text in held), *([text] for text in others)])
