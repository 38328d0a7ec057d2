"""Percentiles by nearest rank, against sorted lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from checklists.facts.spreads import Spreads, rounded


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=200))
def test_percentiles_are_those_of_the_sorted_rounded_values(values: list[int]) -> None:
    spreads = Spreads()
    for value in values:
        spreads.add(value)
    found = spreads.spread()
    assert found is not None
    ordered = sorted(rounded(value) for value in values)
    for percent, value in ((50, found.p50), (90, found.p90), (99, found.p99)):
        rank = -(-len(ordered) * percent // 100)
        assert value == ordered[rank - 1]
    assert (found.n, found.lowest, found.highest) == (len(values), ordered[0], ordered[-1])


@given(st.integers(0, 10**15))
def test_three_digits_stay(value: int) -> None:
    assert abs(rounded(value) - value) * 200 <= max(value, 1)
    assert len(str(rounded(value)).rstrip("0")) <= 3


def test_nothing_is_nothing() -> None:
    spreads = Spreads()
    spreads.add(None)
    spreads.add(-1)
    assert spreads.spread() is None
