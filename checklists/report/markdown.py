"""A document as Markdown (GitHub's kind): what a recording says is data there, too, never markup.

Terms are footnotes at their first use. Text is escaped; what a machine said stands in code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from checklists.facts.records import ShownBytes
from checklists.markup import visible
from checklists.report.blocks import (
    Advice,
    Block,
    Break,
    Bullets,
    Bytes,
    Code,
    Document,
    Fault,
    Figure,
    Fold,
    Glyph,
    Inline,
    Line,
    Pairs,
    Paragraph,
    Section,
    Strong,
    Table,
    Term,
    Tiles,
    spoken,
)
from checklists.report.glossary import FAULT_WORDS, meaning

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_LINE_BEGINS = re.compile(r"^([-+=:#>]|\d+[.)](?=\s|$))")
"""What makes a heading, a list or a rule of a line that begins with it."""
OPEN, CLOSE = ">>>", "<<<"
"""Marks around cited bytes."""


def markdown(document: Document) -> str:
    """The document."""
    return _Writer().written(document)


def escaped(text: str) -> str:
    """Text that Markdown shows as it is within a line: without markup, HTML, links or footnotes."""
    said = " ".join(visible(text).split())
    said = said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    said = _SPECIAL.sub(r"\\\1", said)
    return said.replace("://", "&#58;//").replace("www.", "www&#46;").replace("@", "&#64;")


def begun(line: str) -> str:
    """A written line whose beginning makes no heading, list or rule of it."""
    return _LINE_BEGINS.sub(lambda found: f"{found[1][:-1]}\\{found[1][-1]}", line)


def code(text: str, *, in_table: bool = False) -> str:
    """Text as a code span that it cannot end."""
    said = " ".join(visible(text).split()) or " "
    ticks = "`" * (1 + max((len(run) for run in re.findall(r"`+", said)), default=0))
    padded = f" {said} " if said.startswith("`") or said.endswith("`") else said
    # A pipe ends a table's cell even within code.
    return f"{ticks}{padded}{ticks}".replace("|", "\\|") if in_table else f"{ticks}{padded}{ticks}"


def fenced(text: str, kind: str = "text") -> list[str]:
    """Lines of a code block that its content cannot end."""
    shown = visible(text).split("\n")
    fence = "`" * max(3, 1 + max((len(run) for line in shown for run in re.findall(r"`+", line)), default=0))
    return [f"{fence}{kind}", *shown, fence]


class _Writer:
    """Writes blocks one after the other, and remembers which terms got their footnote."""

    def __init__(self) -> None:
        self._footnotes: dict[str, int] = {}

    def written(self, document: Document) -> str:
        lines = [f"*{escaped(document.kicker)}*", "", f"# {self._line(spoken(document.title))}", ""]
        for block in document.opening:
            lines += self._block(block, 1)
        for section in document.sections:
            lines += self._section(section, 2)
        lines += ["---", ""]
        for line in document.footer:
            lines += [self._line(line), ""]
        for word, number in self._footnotes.items():
            lines += [f"[^{number}]: {escaped(word)}: {escaped(meaning(word))}", ""]
        return "\n".join(lines).rstrip("\n") + "\n"

    def _section(self, section: Section, level: int) -> list[str]:
        lines = [f"{'#' * min(level, 6)} {self._line(section.title)}", ""]
        for block in section.blocks:
            lines += self._section(block, level + 1) if isinstance(block, Section) else self._block(block, level)
        return lines

    def _block(self, block: Block, level: int) -> list[str]:
        match block:
            case Paragraph(line, _):
                return [self._line(line), ""]
            case Bullets(items, numbered):
                return [*self._items(items, numbered=numbered), ""]
            case Table():
                return self._table(block)
            case Figure(_, text, beside, file):
                below = [line for each in beside for line in self._block(each, level)]
                shown = f"![{escaped(text)}]({file})" if file else f"*{escaped(text)}*"
                return [shown, "", *below]
            case Bytes(shown):
                return self._bytes(shown)
            case Pairs(pairs):
                return [*(f"- {self._line(name)}: {self._line(value)}" for name, value in pairs), ""]
            case Advice(title, items):
                return [f"**{escaped(title)}**", "", *self._items(items, numbered=len(items) > 1), ""]
            case Tiles(tiles):
                return [
                    *(f"- {self._line(one.label)} **{escaped(one.value)}**: {self._line(one.note)}" for one in tiles),
                    "",
                ]
            case Fold(summary, blocks):
                return [
                    f"**{self._line(summary)}**",
                    "",
                    *(line for each in blocks for line in self._block(each, level)),
                ]

    def _items(self, items: Sequence[Line], *, numbered: bool) -> Iterator[str]:
        for number, item in enumerate(items, 1):
            yield f"{number}. {self._line(item)}" if numbered else f"- {self._line(item)}"

    def _table(self, table: Table) -> list[str]:
        keep = [at for at in range(len(table.header)) if not any(_is_picture(row[at]) for row in table.rows)]
        header = [self._line(table.header[at], in_table=True) for at in keep]
        ruler = ["---:" if at in table.numeric else "---" for at in keep]
        lines = [_row(header), _row(ruler)]
        lines += [_row([self._line(row[at], in_table=True) for at in keep]) for row in table.rows]
        return [*lines, ""]

    def _bytes(self, shown: ShownBytes) -> list[str]:
        where = f"Exchange {shown.attempt}, {shown.direction}, bytes {shown.start} to {shown.end}"
        why = f" ({escaped(shown.why)})" if shown.why else ""
        if shown.quoted:
            return [f"{where}{why}, as decoded:", "", *fenced(shown.cited), ""]
        middle = f" [... {shown.left_out} bytes ...] {shown.cited_end}" if shown.left_out else ""
        text = f"{shown.before}{OPEN}{shown.cited}{middle}{CLOSE}{shown.after}"
        return [f"{where}{why}, cited between {code(OPEN)} and {code(CLOSE)}:", "", *fenced(text), ""]

    def _line(self, line: Line, *, in_table: bool = False) -> str:
        return begun("".join(self._inline(each, in_table=in_table) for each in line))

    def _inline(self, each: Inline, *, in_table: bool) -> str:
        match each:
            case str():
                return _spaced(each)
            case Strong(text):
                # A space within the stars would keep them from being markup.
                return f"**{escaped(text)}**" + (" " if text[-1:].isspace() else "")
            case Code(text):
                return code(text, in_table=in_table)
            case Term(word, shown):
                said = code(word) if "." in word else escaped(shown or word)
                return said + self._footnote(word)
            case Fault(word):
                return escaped("worked" if word == "ok" else FAULT_WORDS[word])
            case Glyph(_, text):
                return escaped(text)
            case Break():
                return "<br>"

    def _footnote(self, word: str) -> str:
        if word in self._footnotes:
            return ""
        try:
            meaning(word)
        except KeyError:
            return ""
        self._footnotes[word] = len(self._footnotes) + 1
        return f"[^{self._footnotes[word]}]"


def _is_picture(line: Line) -> bool:
    return len(line) == 1 and isinstance(line[0], Glyph) and not line[0].text


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _spaced(text: str) -> str:
    """Escaped, with the spaces at either end that join it to its neighbours."""
    if not text.strip():
        return " " if text else ""
    left = " " if text[0].isspace() else ""
    right = " " if text[-1].isspace() else ""
    return f"{left}{escaped(text)}{right}"
