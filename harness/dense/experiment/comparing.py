"""What may be said of configurations beside each other: what so few runs can show, and how a family moves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from harness.dense.experiment.records import Configuration, Family
from results.rates import wilson

_WIDTH = re.compile(r"[-_. ]*(\d{1,2})[-_ ]?bits?\b", re.IGNORECASE)


def resolvable(runs: int) -> float | None:
    """The smallest difference of two completions of so many runs each, around one half, whose Wilson intervals share no
    point; None where no difference does."""
    for distance in range(1, runs + 1):
        low = (runs - distance) // 2
        if wilson(low, runs)[1] < wilson(low + distance, runs)[0]:
            return distance / runs
    return None


def families(rows: Sequence[Configuration]) -> tuple[Family, ...]:
    """Families of which two or more widths were run on the same stack form, and how completion moves with the width."""
    found: dict[str, list[tuple[float, Configuration]]] = {}
    for row in rows:
        bits = width(row)
        if bits is not None and row.completion.value is not None:
            found.setdefault(family_name(row), []).append((bits, row))
    return tuple(
        _family(name, sorted(members, key=lambda one: (one[0], one[1].name)))
        for name, members in sorted(found.items())
        if len({bits for bits, _ in members}) == len(members) > 1
    )


def width(row: Configuration) -> float | None:
    """Bits of a configuration's weights: as made, by its name, or as measured."""
    named = _WIDTH.search(row.model) or _WIDTH.search(row.stack)
    return row.weights.bits or (float(named[1]) if named else None) or row.weights.tensor_bits


def family_name(row: Configuration) -> str:
    """What its weights were made from, or its model's name without the width."""
    name = row.weights.source or _WIDTH.sub("", row.model) or row.model
    return name if row.in_process else f"{name} @ {row.stack}"


def _family(name: str, members: Sequence[tuple[float, Configuration]]) -> Family:
    values = [row.completion.value or 0.0 for _, row in members]
    steps = {(later > earlier) - (later < earlier) for earlier, later in pairwise(values)} - {0}
    direction = "mixed" if len(steps) > 1 else {1: "up", -1: "down"}.get(steps.pop() if steps else 0, "level")
    return Family(
        name,
        tuple(bits for bits, _ in members),
        tuple(row.name for _, row in members),
        tuple(values),
        direction,
        any(_apart(one, other) for at, (_, one) in enumerate(members) for _, other in members[at + 1 :]),
    )


def _apart(one: Configuration, other: Configuration) -> bool:
    mine, theirs = one.completion, other.completion
    if mine.low is None or mine.high is None or theirs.low is None or theirs.high is None:
        return False
    return mine.high < theirs.low or theirs.high < mine.low
