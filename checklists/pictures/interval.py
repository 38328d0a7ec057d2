"""One rate on a line from 0 to 100 %: a mark at its value, a bar for its interval."""

from __future__ import annotations

from checklists.markup import Tag, tag

WIDTH, HEIGHT = 100, 12


def interval(value: float | None, low: float | None, high: float | None, text: str) -> Tag:
    """The picture; `text` is its text alternative. An undefined rate has neither mark nor bar."""
    drawn = [
        tag("rect", x=0, y=HEIGHT / 2 - 0.5, width=WIDTH, height=1, class_="axis"),
        *(tag("rect", x=x, y=2, width=0.4, height=HEIGHT - 4, class_="axis") for x in (0, 49.8, 99.6)),
    ]
    if low is not None and high is not None:
        width = max(0.8, WIDTH * (high - low))
        drawn.append(tag("rect", x=_place(low), y=4, width=f"{width:.2f}", height=4, class_="range"))
    if value is not None:
        at = min(WIDTH - 1.6, max(0.0, WIDTH * value - 0.8))
        drawn.append(tag("rect", x=f"{at:.2f}", y=1, width=1.6, height=HEIGHT - 2, class_="mark"))
    return tag(
        "svg",
        tag("title", text),
        *drawn,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=text,
        class_="interval",
    )


def _place(value: float) -> str:
    return f"{WIDTH * value:.2f}"
