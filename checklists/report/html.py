"""A document as one HTML page: no script, nothing loaded, a policy that forbids both; escaped by construction."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256

from checklists.facts.records import ShownBytes
from checklists.markup import Tag, tag
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
    Tile,
    Tiles,
    spoken,
)
from checklists.report.glossary import FAULT_WORDS, meaning
from checklists.report.style import STYLE

Children = list[Tag | str]
_PERCENT = re.compile(r"(?<=\d) %")


def html(document: Document, style: str = STYLE) -> str:
    """The page; `style` is its whole style sheet."""
    return f"<!DOCTYPE html>\n{_page(document, style)}\n"


def policy(style: str = STYLE) -> str:
    """The content security policy: the page's own style sheet and nothing else."""
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _page(document: Document, style: str) -> Tag:
    writer = _Writer()
    main = [
        *writer.opening(document),
        *(writer.section(section, 2) for section in document.sections),
    ]
    return tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=policy(style)),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", name="referrer", content="no-referrer"),
            tag("title", f"{document.title} · stacktap report"),
            tag("style", style),
        ),
        tag(
            "body",
            tag("a", "Skip to the verdict", class_="skip", href="#verdict"),
            tag("header", tag("p", tag("b", "stacktap"), " report", class_="brand"), _contents(document.sections)),
            tag("main", *main, *writer.glossary()),
            tag("footer", *(tag("p", *writer.line(line)) for line in document.footer)),
        ),
        lang="en",
    )


def _contents(sections: Sequence[Section]) -> Tag:
    links = [tag("li", tag("a", *_plain(section.title), href=f"#{section.anchor}")) for section in sections]
    return tag(
        "nav",
        tag(
            "details",
            tag("summary", "Contents"),
            tag("ul", *links, tag("li", tag("a", "Words used here", href="#words"))),
        ),
        aria_label="Contents",
    )


def _plain(line: Line) -> Children:
    return [each if isinstance(each, str) else _text_of(each) for each in line]


def _text_of(each: Inline) -> str:
    match each:
        case str():
            return each
        case Strong(text) | Code(text):
            return text
        case Term(word, shown):
            return shown or word
        case Fault(word):
            return FAULT_WORDS.get(word, word)
        case Glyph(_, text):
            return text
        case Break():
            return " "


class _Writer:
    """Writes blocks, and remembers the words that need explaining."""

    def __init__(self) -> None:
        self._words: set[str] = set()

    def opening(self, document: Document) -> Children:
        """The first screen."""
        blocks = [self.block(block) for block in document.opening]
        return [
            tag(
                "section",
                tag("p", document.kicker, class_="kicker"),
                tag("h1", *self.line(spoken(document.title))),
                *blocks,
                class_=f"verdict {document.tone}".strip(),
                id="verdict",
            )
        ]

    def section(self, section: Section, level: int) -> Tag:
        """A section and what stands in it."""
        inside: Children = [
            self.section(each, level + 1) if isinstance(each, Section) else self.block(each) for each in section.blocks
        ]
        heading = tag(f"h{min(level, 6)}", *self.line(section.title), id=f"{section.anchor}-h")
        return tag("section", heading, *inside, id=section.anchor, aria_labelledby=f"{section.anchor}-h")

    def glossary(self) -> Children:
        """Every word of ours on the page, explained: where there is no hover (a phone, paper)."""
        if not self._words:
            return []
        rows: Children = []
        for word in sorted(self._words):
            rows += [tag("dt", word, id=_word_id(word)), tag("dd", meaning(word))]
        heading = tag("h2", "Words used here", id="words-h")
        return [tag("section", heading, tag("dl", *rows, class_="words"), id="words", aria_labelledby="words-h")]

    def block(self, block: Block) -> Tag:
        """One block."""
        match block:
            case Paragraph(line, lead):
                return tag("p", *self.line(line), class_="lead" if lead else None)
            case Bullets(items, numbered):
                return tag("ol" if numbered else "ul", *(tag("li", *self.line(item)) for item in items))
            case Table():
                return self._table(block)
            case Figure(picture, _, beside):
                below = [tag("div", *(self.block(each) for each in beside), class_="beside")] if beside else []
                return tag("div", tag("figure", picture), *below, class_="figure two" if beside else "figure")
            case Bytes(shown):
                return self._bytes(shown)
            case Pairs(pairs):
                return tag("dl", *(each for pair in pairs for each in self._pair(*pair)), class_="pairs")
            case Advice(title, items):
                listed = [tag("li", *self.line(item)) for item in items]
                return tag("div", tag("h2", title), tag("ol" if len(items) > 1 else "ul", *listed), class_="advice")
            case Tiles(tiles):
                return tag("ul", *(self._tile(one) for one in tiles), class_="tiles")
            case Fold(summary, blocks):
                inside = [self.block(each) for each in blocks]
                return tag("details", tag("summary", *self._summary(summary)), *inside)

    def _pair(self, name: Line, value: Line) -> Children:
        return [tag("dt", *self.line(name)), tag("dd", *self.line(value))]

    def _tile(self, tile: Tile) -> Tag:
        return tag(
            "li",
            tag("span", *self.line(tile.label), class_="label"),
            tag("strong", tile.value, class_="value"),
            tag("span", *self.line(tile.note), class_="note"),
            class_=f"tile {tile.tone}".strip(),
        )

    def _table(self, table: Table) -> Tag:
        head = tag("tr", *(self._cell("th", line, at, table, scope="col") for at, line in enumerate(table.header)))
        rows = [
            tag(
                "tr",
                *(
                    self._cell("td" if at else "th", line, at, table, scope=None if at else "row")
                    for at, line in enumerate(row)
                ),
            )
            for row in table.rows
        ]
        inner = tag("table", tag("caption", table.caption), tag("thead", head), tag("tbody", *rows))
        kind = "scroll wide" if table.wide else "scroll even" if table.even else "scroll"
        return tag("div", inner, class_=kind, tabindex="0", role="region", aria_label=table.caption)

    def _cell(self, name: str, line: Line, at: int, table: Table, scope: str | None) -> Tag:
        return tag(name, *self.line(line), scope=scope, class_="number" if at in table.numeric else None)

    def _bytes(self, shown: ShownBytes) -> Tag:
        where = f"Exchange {shown.attempt}, {shown.direction}, bytes {shown.start} to {shown.end}"
        said = f"{where}: {shown.why}" if shown.why else where
        inside: Children = [shown.before, tag("mark", shown.cited), shown.after]
        if shown.quoted:
            said += " (as decoded)"
            inside = [tag("mark", shown.cited)]
        elif shown.left_out:
            gap = tag("i", f" … {shown.left_out} bytes … ")
            inside = [shown.before, tag("mark", shown.cited, gap, shown.cited_end), shown.after]
        return tag(
            "figure",
            tag("figcaption", said),
            tag("pre", *inside, tabindex="0", role="region", aria_label=where),
            class_="bytes",
        )

    def line(self, line: Line) -> Children:
        """Inline content."""
        return [self._inline(each) for each in line]

    def _summary(self, line: Line) -> Children:
        """A line that is a control by itself, and so may hold no link."""
        return [
            self._term(each.word, each.shown, linked=False) if isinstance(each, Term) else self._inline(each)
            for each in line
        ]

    def _inline(self, each: Inline) -> Tag | str:
        match each:
            case str():
                return _PERCENT.sub("\u00a0%", each)
            case Strong(text):
                return tag("strong", _PERCENT.sub("\u00a0%", text))
            case Code(text):
                return tag("code", text)
            case Term(word, shown):
                return self._term(word, shown)
            case Fault(word):
                name = "worked" if word == "ok" else FAULT_WORDS[word]
                return tag("span", tag("span", class_=f"dot d-{word}"), name, class_="fault")
            case Glyph(picture, _):
                return picture
            case Break():
                return tag("br")

    def _term(self, word: str, shown: str, *, linked: bool = True) -> Tag | str:
        try:
            said = meaning(word)
        except KeyError:
            return tag("code", word)
        self._words.add(word)
        name: Tag | str = tag("code", word) if "." in word else shown or word
        explained = tag("abbr", name, title=f"{word}: {said}" if shown and shown.lower() != word else said)
        return tag("a", explained, href=f"#{_word_id(word)}", class_="term") if linked else explained


def _word_id(word: str) -> str:
    return "w-" + "".join(char if char.isalnum() else "-" for char in word)
