"""What all plots share: the frame with its axes, the legend, the style sheet, and a plot as a file of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from checklists.markup import Tag, tag

SERIES = 8
"""So many series have a colour of their own; further ones begin again, and are told apart by their numbers."""
_LIGHT = ("#0b5c8a", "#b5500c", "#1b7a4a", "#8a3f8f", "#a3261d", "#6b5310", "#4a4f57", "#2d6fb8")
_DARK = ("#7fc4ee", "#f0a35e", "#7fd3a0", "#d69be0", "#ff9d92", "#e6c766", "#c3c7cd", "#9fc0ff")

_RULES = "".join(
    f".p{at}{{fill:var(--p{at});stroke:var(--p{at})}}.l{at}{{fill:none;stroke:var(--p{at});stroke-width:2}}"
    f".b{at}{{fill:var(--p{at});opacity:.13}}"
    for at in range(SERIES)
)
PLOT_STYLE = (
    ":root{"
    + "".join(f"--p{at}:{colour};" for at, colour in enumerate(_LIGHT))
    + "--ok:#3f8f5f;--none:#efece4}@media (prefers-color-scheme:dark){:root{"
    + "".join(f"--p{at}:{colour};" for at, colour in enumerate(_DARK))
    + "--ok:#4fa873;--none:#262b33}}"
    + _RULES
    + "svg.plot{max-width:52rem}svg.plot text{font-size:13px}svg.plot .soft{fill:var(--soft)}"
    ".plot .grid{stroke:var(--line);stroke-width:1}.plot .whisker{stroke-width:2}"
    ".plot .hollow{fill:var(--card);stroke-width:2}.plot .done{fill:var(--ok)}.plot .away{fill:var(--line)}"
    ".plot .empty{fill:var(--none)}.plot .floor{fill:none;stroke:var(--bad);stroke-dasharray:4 3}"
    ".plot .on{fill:var(--card)}.plot .mid{text-anchor:middle}.plot .end{text-anchor:end}"
)
"""Rules for plots on a page whose own style sheet defines its colours."""
_ALONE = (
    ":root{--card:#ffffff;--ink:#1d2126;--soft:#555c66;--line:#dcd9d0;--bad:#a3261d}"
    "svg{background:#ffffff}text{font-family:sans-serif;fill:var(--ink)}"
)


@dataclass(frozen=True, slots=True)
class Frame:
    """The rectangle that data are drawn in, in units of the picture: y a share from 0 to 1, x from `low` to `high`."""

    width: float
    height: float
    left: float = 56
    top: float = 16
    low: float = 0.0
    high: float = 1.0

    def x(self, value: float) -> float:
        """Where a value stands."""
        span = self.high - self.low
        return self.left + (self.width * (value - self.low) / span if span > 0 else self.width / 2)

    def y(self, share: float) -> float:
        """Where a share stands."""
        return self.top + self.height * (1 - share)

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height

    def shares(self) -> list[Tag]:
        """The y axis: lines at every quarter, in per cent."""
        drawn = []
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            at = self.y(share)
            line = tag("line", x1=unit(self.left), x2=unit(self.left + self.width), y1=unit(at), y2=unit(at))
            drawn += [_with_class(line, "grid"), label(f"{share * 100:.0f} %", self.left - 6, at + 4, "soft end")]
        return drawn

    def ticks(self, values: Sequence[tuple[float, str]], title: str) -> list[Tag]:
        """The x axis: marks with their words, and what it is."""
        drawn = [label(word, self.x(value), self.bottom + 18, "soft mid") for value, word in values]
        return [*drawn, label(title, self.left + self.width / 2, self.bottom + 38, "mid")]


def label(text: str, x: float, y: float, kind: str = "") -> Tag:
    """A text; `kind` is its classes (`mid` and `end` say where `x` is)."""
    return tag("text", text, x=unit(x), y=unit(y), class_=kind or None)


def legend(names: Sequence[str], x: float, y: float) -> list[Tag]:
    """Numbered names, one below the other, each with its series' colour."""
    drawn: list[Tag] = []
    for at, name in enumerate(names):
        top = y + at * 20
        drawn.append(tag("rect", x=unit(x), y=unit(top), width=12, height=12, class_=f"p{at % SERIES}"))
        drawn.append(label(f"{at + 1} {shortened(name)}", x + 18, top + 11))
    return drawn


def shortened(name: str, most: int = 38) -> str:
    """A name that fits beside a plot."""
    return name if len(name) <= most else f"{name[: most - 10]}…{name[-9:]}"


def plot(drawn: Sequence[Tag], width: float, height: float, *, title: str, text: str, name: str) -> Tag:
    """The picture, with its title and its text alternative."""
    return tag(
        "svg",
        tag("title", title, id=f"{name}-t"),
        tag("desc", text, id=f"{name}-d"),
        *drawn,
        viewBox=f"0 0 {unit(width)} {unit(height)}",
        role="img",
        aria_labelledby=f"{name}-t {name}-d",
        class_="plot",
    )


def alone(picture: Tag) -> str:
    """The picture as an SVG file."""
    space = ("xmlns", "http://www.w3.org/2000/svg")
    whole = Tag("svg", (space, *picture.attributes), (tag("style", _ALONE + PLOT_STYLE), *picture.children))
    return f"{whole}\n"


def unit(value: float) -> str:
    """A coordinate: one digit is enough, and is the same everywhere."""
    return f"{value:.1f}".removesuffix(".0")


def _with_class(node: Tag, name: str) -> Tag:
    return Tag(node.name, (*node.attributes, ("class", name)), node.children)
