"""The way of requests from the program to the model and back, as a pipe that narrows where exchanges stop."""

from __future__ import annotations

from collections.abc import Sequence

from checklists.facts.records import Station
from checklists.markup import Tag, tag
from checklists.pictures.fault_bar import ORDER, widths

WIDTH, ROW, TOP = 400, 50, 8
PIPE_X, PIPE, LABEL_X = 8, 120, 148
LEAST = 3
TURN = "engine"
"""The station at which a request becomes an answer."""


def request_path(stations: Sequence[Station], good: int, name: str) -> tuple[Tag, str]:
    """The picture and its text alternative. `good` exchanges ended as they should; `name` makes ids unique."""
    total = stations[0].entered if stations else 0
    text = _said(stations, good, total)
    drawn: list[Tag] = []
    for number, station in enumerate(stations):
        top = TOP + number * ROW
        drawn += _row(station, top, total, last=number == len(stations) - 1, good=good)
    height = TOP + len(stations) * ROW + 4
    picture = tag(
        "svg",
        tag("title", "Where requests stopped", id=f"{name}-t"),
        tag("desc", text, id=f"{name}-d"),
        *drawn,
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_labelledby=f"{name}-t {name}-d",
        class_="path",
    )
    return picture, text


def _said(stations: Sequence[Station], good: int, total: int) -> str:
    stopped = [f"{one.stopped} at {one.title}" for one in stations if one.stopped]
    said = "; ".join(stopped) if stopped else "none stopped on the way"
    return f"{total} requests set out; {said}; {good} ended as they should."


def _row(station: Station, top: float, total: int, *, last: bool, good: int) -> list[Tag]:
    """One station: the pipe through it, what stops there, and its name."""
    left = good if last else station.entered - station.stopped
    through, parts = _split(station, left, total)
    drawn = [tag("rect", x=PIPE_X, y=top, width=PIPE, height=ROW, class_="bed")]
    if station.entered:
        drawn.append(
            tag(
                "rect",
                x=PIPE_X,
                y=top,
                width=f"{through + sum(width for _, width in parts):.1f}",
                height=12,
                class_="pipe",
            )
        )
    if through:
        drawn.append(
            tag(
                "rect", x=PIPE_X, y=top + 12, width=f"{through:.1f}", height=ROW - 12, class_="f-ok" if last else "pipe"
            )
        )
    at = PIPE_X + through
    for fault, width in parts:
        drawn.append(tag("rect", x=f"{at:.1f}", y=top + 12, width=f"{width:.1f}", height=20, class_=f"f-{fault}"))
        at += width
    drawn.append(tag("line", x1=PIPE_X, y1=top, x2=LABEL_X - 8, y2=top, class_="rule"))
    drawn.append(tag("text", station.title, x=LABEL_X, y=top + 17, class_="name"))
    drawn.append(tag("text", _count(station, last=last, good=good), x=LABEL_X, y=top + 36, class_="count"))
    return drawn


def _split(station: Station, left: int, total: int) -> tuple[float, list[tuple[str, float]]]:
    """Width of the pipe that goes on, and of each fault's part that stops."""
    faults = [(key, station.at_fault[key]) for key in ORDER if station.at_fault.get(key)]
    counts = [left, *(count for _, count in faults)]
    if not total or not sum(counts):
        return 0.0, []
    whole = max(PIPE * sum(counts) / total, LEAST * sum(count > 0 for count in counts))
    present = [count for count in counts if count]
    sizes = iter(widths(present, whole, LEAST))
    through = next(sizes) if left else 0.0
    return through, [(key, size) for (key, _), size in zip(faults, sizes, strict=True)]


def _count(station: Station, *, last: bool, good: int) -> str:
    if last:
        wrong = f", {station.stopped} wrong by the model" if station.stopped else ""
        return f"{good} as they should be{wrong}"
    if station.key == "client":
        return f"{station.entered} requests sent"
    if station.stopped:
        return f"{station.stopped} of {station.entered} stopped here"
    return f"{station.entered} passed" if station.entered else "none came this far"
