"""A ranking only where every interval is apart, and a sentence where it is not."""

from __future__ import annotations

from itertools import combinations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from results.statistics.grid import statistics_of
from results.statistics.ranking import Contender, contender, rank
from results.statistics.resampling import Interval
from tests.support.episodes import CELL, episodes


def one(model: str, low: float, high: float, stack: str = "llamacpp") -> Contender:
    cell = msgspec.structs.replace(CELL, model=model, stack=stack)
    return Contender(cell, (low + high) / 2, Interval(low, high), 8)


def test_separable() -> None:
    found = rank([one("small", 0.1, 0.3), one("large", 0.6, 0.9), one("middle", 0.35, 0.5)])
    assert found.order == ("large", "middle", "small")
    assert found.sentence.startswith("large (75.0 % [60.0, 90.0], 8 seeds) > middle")


def test_overlap_is_named() -> None:
    found = rank([one("a", 0.1, 0.5), one("b", 0.5, 0.9), one("c", 0.2, 0.4)])
    assert found.refused
    assert found.overlapping == (("a", "b"), ("a", "c"))
    assert found.sentence.startswith("No ranking: the 95 % intervals of a (30.0 % [10.0, 50.0], 8 seeds) and b (")
    assert "and 1 more pairs" in found.sentence


def test_undefined_is_not_the_last_place() -> None:
    refused = Contender(msgspec.structs.replace(CELL, model="phi3"), None, None, 0, "rej")
    assert rank([one("a", 0.1, 0.2), refused]).sentence == ("No ranking: the rate is undefined, not 0, for phi3 (rej).")


def test_cells_that_differ_in_more_than_one_thing() -> None:
    assert "differ in model and stack" in rank([one("a", 0, 0.1), one("b", 0.5, 1, "ollama")]).sentence
    assert "one cell" in rank([one("a", 0, 0.1), one("a", 0.5, 1)]).sentence
    assert rank([one("a", 0, 1)]).refused


def test_a_bootstrap_without_width_does_not_separate() -> None:
    cells = [msgspec.structs.replace(CELL, model=model) for model in ("never wrong", "once wrong")]
    rows = (["v"] * 4, ["v", "v", "v", "p"])
    found = [contender(statistics_of(episodes(row, cell))[0]) for row, cell in zip(rows, cells, strict=True)]
    assert rank(found).refused


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=5))
def test_ranked_exactly_where_all_are_apart(ends: list[tuple[float, float]]) -> None:
    contenders = [one(f"m{place}", *sorted(pair)) for place, pair in enumerate(ends)]
    found = rank(contenders)
    apart = all(
        not first.interval.overlaps(second.interval)
        for first, second in combinations(contenders, 2)
        if first.interval and second.interval
    )
    assert found.refused is not apart
    if found.order is not None:
        values = {str(each.cell.model): each.value or 0 for each in contenders}
        assert list(found.order) == sorted(values, key=lambda name: -values[name])
