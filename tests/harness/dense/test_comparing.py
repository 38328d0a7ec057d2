"""What so few runs can show, and how a family moves with its width."""

from __future__ import annotations

import pytest

from harness.dense.experiment.comparing import families, resolvable
from harness.dense.experiment.gathering import share
from harness.dense.experiment.records import Configuration, Weights
from results.rates import Rate, wilson


@pytest.mark.parametrize("runs", [1, 2, 5, 15, 160])
def test_the_smallest_difference_is_one_and_a_smaller_one_is_none(runs: int) -> None:
    found = resolvable(runs)
    if found is None:
        assert wilson(0, runs)[1] >= wilson(runs, runs)[0]
        return
    distance = round(found * runs)
    low = (runs - distance) // 2
    assert wilson(low, runs)[1] < wilson(low + distance, runs)[0]
    lower = (runs - distance + 1) // 2
    assert wilson(lower, runs)[1] >= wilson(lower + distance - 1, runs)[0]


def test_one_run_each_shows_no_difference() -> None:
    assert resolvable(1) is None
    assert resolvable(0) is None
    assert 0.1 < (resolvable(160) or 0) < 0.2


def row(name: str, hits: int, **weights: float | str) -> Configuration:
    rate = share(Rate(hits, 160))
    made = Weights(**weights)  # type: ignore[arg-type]
    return Configuration(name, name, "mlx", "raw/hermes", "mlx_inprocess", rate, made, {}, in_process=True)


def test_families_by_name_and_by_what_they_were_made_from() -> None:
    rows = [row("a-4bit", 10), row("a-8bit", 90), row("b_8_bits", 10), row("b_4_bits", 20)]
    rows += [row("x", 5, bits=3, source="c.gguf"), row("y", 5, bits=16, source="c.gguf")]
    found = {one.name: one for one in families(rows)}
    assert set(found) == {"a", "b", "c.gguf"}
    assert (found["a"].direction, found["a"].shown) == ("up", True)
    assert (found["b"].names, found["b"].direction, found["b"].shown) == (("b_4_bits", "b_8_bits"), "down", False)
    assert (found["c.gguf"].bits, found["c.gguf"].direction) == ((3, 16), "level")


def test_no_family_where_a_width_stands_twice_or_alone() -> None:
    assert families([row("a-4bit", 1), row("b-8bit", 1)]) == ()
    assert families([row("x", 1, bits=4, source="c"), row("y", 1, bits=4, source="c")]) == ()
    assert families([row("no width", 1)]) == ()


def test_neither_up_nor_down() -> None:
    (found,) = families([row("a-3bit", 1), row("a-4bit", 9), row("a-8bit", 2)])
    assert found.direction == "mixed"
