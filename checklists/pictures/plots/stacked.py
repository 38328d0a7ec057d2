"""How the runs of each configuration ended, as stacked bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from checklists.markup import Tag, tag
from checklists.pictures.plots.frame import SERIES, label, plot, shortened, unit

LEFT, WIDTH, ROW = 250, 560, 30


def stacked(
    rows: Sequence[tuple[str, Mapping[str, int]]],
    parts: Sequence[tuple[str, str, str]],
    *,
    title: str,
    name: str,
) -> tuple[Tag, str]:
    """The plot and its text alternative. `parts` are (key, word, class) in their order; a bar is all of its row, so
    that rows of different numbers of runs stand beside each other; the numbers are runs."""
    drawn: list[Tag] = []
    for at, (row, counts) in enumerate(rows):
        top = 8 + at * ROW
        drawn.append(label(shortened(row, 32), LEFT - 10, top + 16, "end"))
        drawn += _bar(counts, parts, top)
    top = 8 + len(rows) * ROW + 14
    used = [part for part in parts if any(counts.get(part[0]) for _, counts in rows)]
    for at, (_, word, kind) in enumerate(used):
        x, y = 20 + 400 * (at % 2), top + 22 * (at // 2)
        drawn.append(tag("rect", x=unit(x), y=unit(y), width=12, height=12, class_=kind))
        drawn.append(label(word, x + 18, y + 11))
    said = "; ".join(
        f"{row}: " + (", ".join(f"{word} {counts[key]}" for key, word, _ in parts if counts.get(key)) or "no run")
        for row, counts in rows
    )
    text = f"{title}. {said}."
    return plot(drawn, 840, top + 22 * ((len(used) + 1) // 2) + 6, title=title, text=text, name=name), text


def _bar(counts: Mapping[str, int], parts: Sequence[tuple[str, str, str]], top: float) -> list[Tag]:
    total = sum(counts.get(key, 0) for key, _, _ in parts)
    drawn: list[Tag] = [tag("rect", x=LEFT, y=unit(top), width=WIDTH, height=22, class_="empty")]
    at = float(LEFT)
    for key, _, kind in parts:
        count = counts.get(key, 0)
        if not count:
            continue
        width = WIDTH * count / total
        drawn.append(tag("rect", x=unit(at), y=unit(top), width=unit(width), height=22, class_=kind))
        if width >= 9 * len(str(count)) + 4:
            drawn.append(label(str(count), at + width / 2, top + 16, "mid on"))
        at += width
    return drawn


def series(number: int) -> str:
    """The class of a part by its number."""
    return f"p{number % SERIES}"
