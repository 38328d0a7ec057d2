"""pass^k against k, one line for each configuration, with its interval as a band."""

from __future__ import annotations

from collections.abc import Sequence

from checklists.markup import Tag, tag
from checklists.pictures.plots.completion_memory import whole_ticks
from checklists.pictures.plots.frame import SERIES, Frame, label, legend, plot, unit

Curve = Sequence[tuple[int, float, float, float]]
"""(k, value, low, high), k from 1."""


def pass_curves(curves: Sequence[tuple[int, str, Curve]], names: Sequence[str], *, name: str) -> tuple[Tag, str]:
    """The plot and its text alternative. A curve comes with its number in the legend and its name."""
    last = max((points[-1][0] for _, _, points in curves if points), default=1)
    frame = Frame(440, 260, low=1.0, high=float(max(last, 2)))
    drawn = frame.shares()
    drawn += frame.ticks([(float(k), str(k)) for k in whole_ticks(last)], "k runs of a task, all of them completed")
    for number, _, points in curves:
        drawn += _curve(frame, number, points)
    drawn += legend(names, frame.left + frame.width + 24, frame.top)
    said = "; ".join(
        f"{title}: " + ", ".join(f"k={k} {100 * value:.1f} %" for k, value, _, _ in _told(points))
        for _, title, points in curves
        if points
    )
    text = f"pass^k, the chance that k runs of a task all complete it. {said or 'It is defined for none'}."
    height = max(frame.bottom + 50, frame.top + 20 * len(names) + 8)
    return plot(drawn, 840, height, title="pass^k", text=text, name=name), text


def _curve(frame: Frame, number: int, points: Curve) -> list[Tag]:
    if not points:
        return []
    kind = number % SERIES
    upper = [(k, high) for k, _, _, high in points]
    lower = [(k, low) for k, _, low, _ in reversed(points)]
    k, value, _, _ = points[-1]
    return [
        tag("path", d=_path(frame, [*upper, *lower]) + " Z", class_=f"b{kind}"),
        tag("path", d=_path(frame, [(at, share) for at, share, _, _ in points]), class_=f"l{kind}"),
        tag("circle", cx=unit(frame.x(k)), cy=unit(frame.y(value)), r=4, class_=f"p{kind}"),
        label(str(number + 1), frame.x(k) + 7, frame.y(value) + 4),
    ]


def _path(frame: Frame, points: Sequence[tuple[float, float]]) -> str:
    places = [f"{unit(frame.x(x))} {unit(frame.y(y))}" for x, y in points]
    return "M" + " L".join(places)


def _told(points: Curve) -> Curve:
    return [point for point in points if point[0] in (1, 5, points[-1][0])]
