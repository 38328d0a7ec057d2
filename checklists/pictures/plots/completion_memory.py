"""Completion against memory, with intervals: what is gained for what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from checklists.markup import Tag, tag
from checklists.pictures.plots.frame import SERIES, Frame, label, legend, plot, unit


@dataclass(frozen=True, slots=True)
class Point:
    """One configuration. `memory` in bytes, `estimated` where it was not measured so; `number` is its place in the
    legend, from 0."""

    name: str
    number: int
    memory: float
    value: float
    low: float
    high: float
    estimated: bool = False


def completion_memory(
    points: Sequence[Point], names: Sequence[str], *, name: str, budget: int | None = None
) -> tuple[Tag, str]:
    """The plot and its text alternative. `names` are all configurations, in the order of their numbers."""
    unit_name, size = scale(max([one.memory for one in points] + ([float(budget)] if budget else []), default=1.0))
    high = nice(max([one.memory / size for one in points] + ([budget / size] if budget else []), default=1.0))
    frame = Frame(440, 260, high=high)
    drawn = frame.shares()
    drawn += frame.ticks([(high * at / 4, f"{high * at / 4:g}") for at in range(5)], f"peak memory, {unit_name}")
    if budget:
        at = unit(frame.x(budget / size))
        drawn.append(tag("line", x1=at, x2=at, y1=unit(frame.top), y2=unit(frame.bottom), class_="floor"))
        drawn.append(label("budget", frame.x(budget / size) - 4, frame.top + 12, "soft end"))
    for one in points:
        drawn += _point(frame, one, size)
    drawn += legend(names, frame.left + frame.width + 24, frame.top)
    height = max(frame.bottom + 50, frame.top + 20 * len(names) + 8)
    said = "; ".join(
        f"{one.name}: {100 * one.value:.1f} % [{100 * one.low:.1f}, {100 * one.high:.1f}] at "
        f"{one.memory / size:.2f} {unit_name}{' (estimated)' if one.estimated else ''}"
        for one in points
    )
    text = f"Completion against peak memory. {said or 'No configuration has both'}."
    return plot(drawn, 840, height, title="Completion against memory", text=text, name=name), text


def _point(frame: Frame, one: Point, size: float) -> list[Tag]:
    x, kind = frame.x(one.memory / size), one.number % SERIES
    drawn = [
        tag("line", x1=unit(x), x2=unit(x), y1=unit(frame.y(one.low)), y2=unit(frame.y(one.high)), class_=f"l{kind}")
    ]
    drawn += [
        tag("line", x1=unit(x - 5), x2=unit(x + 5), y1=unit(frame.y(end)), y2=unit(frame.y(end)), class_=f"l{kind}")
        for end in (one.low, one.high)
    ]
    circle = f"p{kind} hollow" if one.estimated else f"p{kind}"
    drawn.append(tag("circle", cx=unit(x), cy=unit(frame.y(one.value)), r=6, class_=circle))
    drawn.append(label(str(one.number + 1), x + 9, frame.y(one.value) - 6))
    return drawn


def scale(largest: float) -> tuple[str, float]:
    """The unit in which bytes are shown: decimal, as memory is sold."""
    return ("GB", 1e9) if largest >= 5e8 else ("MB", 1e6)


def nice(largest: float) -> float:
    """The end of an axis: the next 1, 2, 4, 6 or 8 times a power of ten above."""
    if largest <= 0:
        return 1.0
    power = 10.0 ** floor(log10(largest * 1.05))
    return float(next((step * power for step in (1, 2, 4, 6, 8) if step * power >= largest * 1.05), 10 * power))


def whole_ticks(last: int) -> list[int]:
    """At most eleven whole numbers from 1 to `last`."""
    step = max(1, ceil(last / 10))
    return list(dict.fromkeys([1, *range(step, last + 1, step)]))
