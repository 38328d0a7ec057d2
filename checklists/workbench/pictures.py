"""Damage, decay and radar as SVG, drawn from the numbers of a run. Each is legible alone and in light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import cos, pi, sin

from checklists.markup import Tag, tag
from harness.workbench.record import DepthPoint, Share

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 36, 48
CHART_STYLE = (
    ".chart{--ink:#1a1a1a;--soft:#5a5a5a;--line:#c9c9c9;--mark:#0b5cad;--other:#a33b00;background:#fff;max-width:100%;"
    "height:auto}"
    "@media (prefers-color-scheme:dark){.chart{--ink:#ececec;--soft:#b5b5b5;--line:#4a4a4a;--mark:#7ab8ff;"
    "--other:#ffab70;background:#161616}}"
    ".chart text{font:13px system-ui,sans-serif;fill:var(--ink)}.chart .soft{fill:var(--soft)}"
    ".chart .grid{stroke:var(--line)}.chart .a{stroke:var(--mark);fill:none;stroke-width:2}"
    ".chart .b{stroke:var(--other);fill:none;stroke-width:2;stroke-dasharray:6 4}"
    ".chart .af{fill:var(--mark)}.chart .bf{fill:var(--other)}"
)
"""Rules for these pictures: in a page's style sheet, or within a picture that stands alone."""


def alone(drawn: Tag) -> str:
    """A picture as a file of its own."""
    title, text, *rest = drawn.children
    return f"{replace(drawn, children=(title, text, tag('style', CHART_STYLE), *rest))}\n"


def _svg(title: str, text: str, drawn: Sequence[Tag], height: int = HEIGHT) -> Tag:
    return tag(
        "svg",
        tag("title", title),
        tag("desc", text),
        tag("text", title, x=LEFT, y=20),
        *drawn,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        class_="chart",
        aria_label=f"{title}. {text}",
    )


def _y(share: float) -> float:
    return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)


def _axis() -> list[Tag]:
    drawn = []
    for step in range(5):
        at = f"{_y(step / 4):.1f}"
        drawn.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at, class_="grid"))
        drawn.append(tag("text", f"{step / 4:.2f}", x=LEFT - 8, y=f"{_y(step / 4) + 4:.1f}", text_anchor="end"))
    return drawn


def damage(title: str, tiers: Sequence[tuple[str, float, Share, bool]], parser: str) -> Tag:
    """A tier's share of right answers with its interval: (name, bits per weight, share, is the baseline)."""
    drawn, said = _axis(), []
    step = (WIDTH - LEFT - RIGHT) / max(1, len(tiers))
    for place, (name, bits, share, base) in enumerate(tiers):
        x = LEFT + (place + 0.5) * step
        kind = "b" if base else "a"
        if base:
            level = f"{_y(share.value):.1f}"
            drawn.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=level, y2=level, class_="b"))
        drawn += [
            tag(
                "line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=f"{_y(share.low):.1f}", y2=f"{_y(share.high):.1f}", class_="a"
            ),
            tag("circle", cx=f"{x:.1f}", cy=f"{_y(share.value):.1f}", r=5, class_=f"{kind}f"),
            tag("text", name, x=f"{x:.1f}", y=HEIGHT - 28, text_anchor="middle"),
            tag("text", f"{bits:.2f} bits", x=f"{x:.1f}", y=HEIGHT - 12, text_anchor="middle", class_="soft"),
        ]
        said.append(f"{name} {share.text()}")
    return _svg(title, f"Right answers under the {parser} parser: {'; '.join(said)}.", drawn)


def decay(title: str, points: Sequence[DepthPoint]) -> Tag:
    """Two curves: right answers by the number of turns in between, and with as many words in a single turn."""
    drawn, said = _axis(), []
    depths = sorted({point.depth for point in points})
    step = (WIDTH - LEFT - RIGHT) / max(1, len(depths))
    for form, kind, shift in (("turns", "a", -7), ("length", "b", 7)):
        rows = [point for point in points if point.form == form]
        at = [(LEFT + (depths.index(row.depth) + 0.5) * step + shift, row.share) for row in rows]
        line = " ".join(f"{'L' if place else 'M'}{x:.1f} {_y(share.value):.1f}" for place, (x, share) in enumerate(at))
        if line:
            drawn.append(tag("path", d=line, class_=kind))
        for x, share in at:
            ends = {"y1": f"{_y(share.low):.1f}", "y2": f"{_y(share.high):.1f}"}
            drawn.append(tag("line", x1=f"{x:.1f}", x2=f"{x:.1f}", class_=kind, **ends))
            drawn.append(tag("circle", cx=f"{x:.1f}", cy=f"{_y(share.value):.1f}", r=4, class_=f"{kind}f"))
        said.append(f"{form}: " + ", ".join(f"{row.depth} {row.right} of {row.cases}" for row in rows))
    for place, depth in enumerate(depths):
        middle = f"{LEFT + (place + 0.5) * step:.1f}"
        drawn.append(tag("text", f"{depth} turns between", x=middle, y=HEIGHT - 28, text_anchor="middle"))
    drawn.append(tag("text", "solid: in turns; dashed: as many words in one turn", x=LEFT, y=HEIGHT - 8, class_="soft"))
    return _svg(title, "; ".join(said) + ".", drawn)


def radar(title: str, bare: Mapping[str, float], scaffolded: Mapping[str, float], names: tuple[str, str]) -> Tag:
    """Two rings over the kinds of cases: bare, and under a scaffold."""
    kinds, size = list(bare), 420
    cx, cy, r = WIDTH / 2, size / 2 + 20, 140.0

    def at(place: int, share: float) -> tuple[float, float]:
        angle = 2 * pi * place / len(kinds) - pi / 2
        return cx + r * share * cos(angle), cy + r * share * sin(angle)

    drawn = [tag("circle", cx=cx, cy=cy, r=f"{r * step / 4:.1f}", class_="grid", fill="none") for step in range(1, 5)]
    for place, kind in enumerate(kinds):
        (x, y), (tx, ty) = at(place, 1), at(place, 1.18)
        drawn.append(tag("line", x1=cx, y1=cy, x2=f"{x:.1f}", y2=f"{y:.1f}", class_="grid"))
        drawn.append(tag("text", kind, x=f"{tx:.1f}", y=f"{ty + 4:.1f}", text_anchor="middle"))
    for values, kind in ((bare, "b"), (scaffolded, "a")):
        corners = [at(place, values.get(name, 0.0)) for place, name in enumerate(kinds)]
        line = " ".join(f"{'L' if place else 'M'}{x:.1f} {y:.1f}" for place, (x, y) in enumerate(corners))
        drawn.append(tag("path", d=f"{line} Z", class_=kind))
    drawn.append(tag("text", f"dashed: {names[0]}; solid: {names[1]}", x=LEFT, y=size + 10, class_="soft"))
    said = "; ".join(f"{kind} {bare[kind]:.2f} to {scaffolded.get(kind, 0.0):.2f}" for kind in kinds)
    return _svg(title, f"Right answers by kind, {names[0]} to {names[1]}: {said}.", drawn, size + 24)
