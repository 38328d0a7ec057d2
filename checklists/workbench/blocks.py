"""A report as blocks, written as Markdown and as a page: the same words in both, nothing else in either."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from checklists.items.render import markdown as escaped
from checklists.markup import Tag, tag


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a level from 1."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Points:
    """A list of points."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first column is text, the others are set to the right."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG picture that lies beside the report as `name`; `text` says what it shows."""

    name: str
    drawn: Tag
    text: str


Block = Heading | Paragraph | Points | Table | Picture


def markdown(blocks: Sequence[Block]) -> str:
    """As Markdown. Words of models, packs and machines cannot become a link, a heading or HTML."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {_text(block.text)}"
    if isinstance(block, Paragraph):
        return _text(block.text)
    if isinstance(block, Points):
        return "\n".join(f"- {_text(item)}" for item in block.items)
    if isinstance(block, Picture):
        return f"![{_text(block.text)}]({block.name})"
    rule = "|".join(["---", *["---:"] * (len(block.head) - 1)])
    return "\n".join([_row(block.head), f"|{rule}|", *(_row(row) for row in block.rows)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_text(cell) for cell in cells) + " |"


def _text(text: str) -> str:
    return " ".join(escaped(text).split())


_STYLE = """
:root{color-scheme:light dark;--ink:#1a1a1a;--paper:#fff;--soft:#5a5a5a;--line:#c9c9c9;}
@media (prefers-color-scheme:dark){:root{--ink:#ececec;--paper:#161616;--soft:#b5b5b5;--line:#4a4a4a}}
body{margin:0 auto;max-width:62rem;padding:1rem;font:1rem/1.5 system-ui,sans-serif}
body{color:var(--ink);background:var(--paper)}
h1,h2,h3{line-height:1.2;overflow-wrap:anywhere}
.wide{overflow-x:auto}
table{border-collapse:collapse;margin:.5rem 0;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}
svg{max-width:100%;height:auto}
p,li{overflow-wrap:anywhere}
"""


def page(blocks: Sequence[Block], title: str) -> str:
    """As one HTML file that loads nothing."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("title", title),
        tag("style", _STYLE),
    )
    main = tag("main", *(_html(block) for block in blocks))
    return f"<!doctype html>\n{tag('html', head, tag('body', main), lang='en')}\n"


def _html(block: Block) -> Tag:
    if isinstance(block, Heading):
        return tag(f"h{block.level}", block.text)
    if isinstance(block, Paragraph):
        return tag("p", block.text)
    if isinstance(block, Points):
        return tag("ul", *(tag("li", item) for item in block.items))
    if isinstance(block, Picture):
        return tag("div", block.drawn, class_="wide", tabindex=0)
    head = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in block.head)))
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in block.rows))
    return tag("div", tag("table", head, body), class_="wide", tabindex=0, role="region", aria_label=block.head[0])


def pictures(blocks: Sequence[Block]) -> dict[str, str]:
    """The files that the Markdown links, by name."""
    return {block.name: f"{block.drawn}\n" for block in blocks if isinstance(block, Picture)}
