"""The workbench's reports as documents: blocks one after the other, headings between them, are put into sections."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from checklists.markup import Tag
from checklists.report.blocks import Block, Bullets, Document, Figure, Paragraph, Section, Table


@dataclass(frozen=True, slots=True)
class Heading:
    """What follows is of this section, of a level from 1 (the title) to 3."""

    level: int
    text: str


Part = Heading | Block


def paragraph(text: str) -> Paragraph:
    """A paragraph of plain words."""
    return Paragraph([text])


def points(items: Sequence[str]) -> Bullets:
    """A list of points."""
    return Bullets([[item] for item in items])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table; the first column is text, the others are set to the right. Its section's title is its caption."""
    numeric = frozenset(range(1, len(head)))
    return Table("", [[name] for name in head], [[[cell] for cell in row] for row in rows], numeric)


def picture(name: str, drawn: Tag, text: str) -> Figure:
    """A picture that lies beside the report as `name`; `text` says what it shows."""
    return Figure(drawn, text, file=name)


def document(parts: Sequence[Part], stacktap: str) -> Document:
    """The parts of a report, the title first, as a document made by that version."""
    title, *rest = parts
    assert isinstance(title, Heading)
    opening, sections = _split(rest, 2, title.text)
    return Document(
        kicker="structured answers of models in this process",
        title=title.text,
        tone="",
        opening=opening,
        sections=sections,
        footer=[[f"Made by stacktap {stacktap} from the run alone; the same run and version give the same bytes."]],
    )


def pictures(parts: Sequence[Part]) -> dict[str, Tag]:
    """The files that the Markdown links, by name."""
    return {part.file: part.picture for part in parts if isinstance(part, Figure)}


def _split(parts: Sequence[Part], level: int, title: str) -> tuple[list[Block], list[Section]]:
    """What stands before the first heading of a level, and the sections that such headings begin."""
    before: list[Block] = []
    begun: list[tuple[str, list[Part]]] = []
    for part in parts:
        if isinstance(part, Heading) and part.level == level:
            begun.append((part.text, []))
        elif begun:
            begun[-1][1].append(part)
        elif not isinstance(part, Heading):
            before.append(replace(part, caption=title) if isinstance(part, Table) else part)
    sections = []
    for text, inside in begun:
        own, below = _split(inside, level + 1, text)
        sections.append(Section(re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-"), [text], [*own, *below]))
    return before, sections
