"""The document model: what a report is made of before it is Markdown or HTML. Strings are data, never markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from checklists.facts.records import ShownBytes
from checklists.markup import Tag


@dataclass(frozen=True, slots=True)
class Strong:
    """Text that stands out."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text as a machine has it: a flag, a path, a name out of a recording."""

    text: str


@dataclass(frozen=True, slots=True)
class Term:
    """A word of ours, explained by hover and footnote. `word` is in the glossary or an outcome; `shown` replaces it."""

    word: str
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """Whose fault: a word with its colour. `word` is one of `results.taxonomy.FAULTS`, or `ok`."""

    word: str


@dataclass(frozen=True, slots=True)
class Glyph:
    """A small picture within a line or a table; Markdown shows `text` for it."""

    picture: Tag
    text: str = ""


@dataclass(frozen=True, slots=True)
class Break:
    """A new line within a paragraph or a cell."""


Inline = str | Strong | Code | Term | Fault | Glyph | Break
Line = Sequence[Inline]


def spoken(text: str) -> Line:
    """A sentence of ours in which machine words stand between backticks."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return [text]
    return [Code(piece) if number % 2 else piece for number, piece in enumerate(pieces) if piece]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; `lead` for the one that opens a section."""

    line: Line
    lead: bool = False


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list; numbered where the order matters."""

    items: Sequence[Line]
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table. `numeric` are the columns set to the right; the first column heads its row. `wide`: its second and last
    columns hold sentences. `even`: all columns are alike."""

    caption: str
    header: Sequence[Line]
    rows: Sequence[Sequence[Line]]
    numeric: frozenset[int] = frozenset()
    wide: bool = False
    even: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture with its text alternative inside; `beside` are blocks that stand next to it where there is room. With
    `file`, Markdown links the picture by that name; without it gives the text."""

    picture: Tag
    text: str
    beside: Sequence[Block] = ()
    file: str = ""


@dataclass(frozen=True, slots=True)
class Bytes:
    """Cited bytes with what stands around them."""

    shown: ShownBytes


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names and values: a description list."""

    pairs: Sequence[tuple[Line, Line]]


@dataclass(frozen=True, slots=True)
class Advice:
    """What to change, or what to ask: the box that a reader must not miss."""

    title: str
    items: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Tile:
    """One number in large type, and what it is."""

    label: Line
    value: str
    note: Line
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Tiles:
    """Numbers side by side."""

    tiles: Sequence[Tile]


@dataclass(frozen=True, slots=True)
class Fold:
    """What opens on demand."""

    summary: Line
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Section:
    """A part with a heading one level below that of what it stands in."""

    anchor: str
    title: Line
    blocks: Sequence[Block | Section]


Block = Paragraph | Bullets | Table | Figure | Bytes | Pairs | Advice | Tiles | Fold


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report. `kicker` stands small above the title, `opening` is the first screen."""

    kicker: str
    title: str
    tone: str
    opening: Sequence[Block]
    sections: Sequence[Section]
    footer: Sequence[Line]
