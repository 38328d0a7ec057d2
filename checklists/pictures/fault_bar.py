"""Who is at fault, as one bar: what went well, then whose doing the rest was."""

from __future__ import annotations

from collections.abc import Mapping

from checklists.markup import Tag, tag

ORDER = ("ok", "config", "stack", "client", "network", "undetermined", "model")
"""From left to right. `ok` is what went well."""

WIDTH, HEIGHT, LEAST = 1000, 40, 6
"""Units of the picture; a part that is there at all is at least `LEAST` wide."""


def fault_bar(counts: Mapping[str, int], words: Mapping[str, str], name: str) -> tuple[Tag, str]:
    """The bar and its text alternative. `words` say each part in words; `name` makes the ids of the page unique."""
    parts = [(key, counts[key]) for key in ORDER if counts.get(key)]
    total = sum(count for _, count in parts)
    text = f"Of {total} requests: " + ", ".join(f"{words[key]} {count}" for key, count in parts) + "."
    drawn, at = [], 0.0
    for (key, _), width in zip(parts, widths([count for _, count in parts], WIDTH, LEAST), strict=True):
        drawn.append(tag("rect", x=_unit(at), y=0, width=_unit(width), height=HEIGHT, class_=f"f-{key}"))
        at += width
    picture = tag(
        "svg",
        tag("title", "Who is at fault", id=f"{name}-t"),
        tag("desc", text, id=f"{name}-d"),
        *drawn,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_labelledby=f"{name}-t {name}-d",
        class_="bar",
    )
    return picture, text


def widths(counts: list[int], whole: float, least: float) -> list[float]:
    """Widths that add up to `whole`, in proportion to the counts but none below `least`."""
    if not sum(counts):
        return []
    small = [False] * len(counts)
    while True:
        # To make room for the small ones can make others too small in turn.
        rest = whole - least * sum(small)
        large = sum(count for count, is_small in zip(counts, small, strict=True) if not is_small)
        found = [is_small or count * rest < least * large for count, is_small in zip(counts, small, strict=True)]
        if found == small or all(found):
            break
        small = found
    return [least if is_small else count * rest / large for count, is_small in zip(counts, small, strict=True)]


def _unit(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
