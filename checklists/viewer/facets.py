"""How many of the exchanges that a filter lets through have which layer, fault, stack, model, tag ...: one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from checklists.viewer.filters import parse
from checklists.viewer.opened import select

MOST_VALUES = 60
_BY = ("layer", "name", "fault", "ran", "stack", "model", "upstream", "ended", "status")
_SHOWN = {"name": "outcome", "ended": "end"}

Query = Callable[[str, list[Any]], list[tuple[Any, ...]]]


def facets(query: Query, text: str) -> dict[str, list[tuple[str, int]]]:
    """For each kind its values with their counts, the most frequent first. Raises FilterError."""
    terms = parse(text)
    sql, parameters = select(f"{', '.join(_BY)}, count(*)", terms)
    counts: dict[str, Counter[str]] = {_SHOWN.get(name, name): Counter() for name in _BY}
    for *values, count in query(f"{sql} GROUP BY {', '.join(_BY)}", parameters):
        for name, value in zip(counts, values, strict=True):
            if value not in ("", 0):
                counts[name][str(value)] += count
    counts["tag"] = Counter()
    sql, parameters = select("tags, count(*)", terms)
    for tags, count in query(f"{sql} GROUP BY tags", parameters):
        for tag in set(tags.strip("\n").split("\n")) - {""}:
            counts["tag"][tag] += count
    return {name: count.most_common(MOST_VALUES) for name, count in counts.items()}
