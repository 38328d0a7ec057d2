"""Tasks against configurations: how often each was completed, with those that nobody completes marked as floors."""

from __future__ import annotations

from collections.abc import Sequence

from checklists.markup import Tag, tag
from checklists.pictures.plots.frame import label, plot, shortened, unit

LEFT, ROW, TOP = 230, 28, 34


def matrix(
    rows: Sequence[tuple[str, Sequence[tuple[int, int]], bool]], columns: Sequence[str], *, name: str
) -> tuple[Tag, str]:
    """The plot and its text alternative. A row is a task, (completed, runs) of each configuration, and whether it is a
    floor."""
    wide = min(150.0, 560 / max(1, len(columns)))
    right = LEFT + wide * len(columns)
    drawn = [
        label(str(at + 1) if wide < 60 else shortened(column, int(wide // 8)), LEFT + wide * (at + 0.5), 22, "mid")
        for at, column in enumerate(columns)
    ]
    for number, (task, cells, floor) in enumerate(rows):
        top = TOP + number * ROW
        drawn.append(label(shortened(task, 28), LEFT - 10, top + 18, "end"))
        for at, (good, runs) in enumerate(cells):
            drawn += _cell(LEFT + at * wide, top, wide, good, runs)
        if floor:
            edge = {"x": LEFT, "y": unit(top + 1), "width": unit(right - LEFT), "height": ROW - 4}
            drawn.append(tag("rect", class_="floor", **edge))
            drawn.append(label("floor", right + 8, top + 18, "soft"))
    said = "; ".join(
        f"{task}: " + ", ".join(f"{good}/{runs}" for good, runs in cells) + (" (floor)" if floor else "")
        for task, cells, floor in rows
    )
    text = f"Completed runs of each task by {', '.join(columns)}. {said}."
    height = TOP + len(rows) * ROW + 6
    return plot(drawn, max(right + 60, 480), height, title="Task by task", text=text, name=name), text


def _cell(x: float, top: float, wide: float, good: int, runs: int) -> list[Tag]:
    box = {"x": unit(x + 1), "y": unit(top + 1), "width": unit(wide - 2), "height": ROW - 4}
    drawn = [tag("rect", class_="empty", **box)]
    if runs and good:
        # The bar within the cell is its share: no scale of shades has to be read.
        drawn.append(tag("rect", class_="done", **{**box, "width": unit((wide - 2) * good / runs)}))
    word = f"{good}/{runs}" if runs else "no run"
    return [*drawn, label(word, x + wide / 2, top + 18, "mid")]
