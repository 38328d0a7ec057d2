"""Paired comparisons, exact tests and corrections, against small cases counted out by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.statistics.ladder import Rung, held, prescribe
from results.statistics.pairs import Arm, holm, mcnemar, paired_delta
from results.statistics.resampling import Interval

SMALL = st.integers(0, 9)


def by_hand(gained: int, lost: int) -> Fraction:
    """All ways in which so many coins can fall, and how many are at least as far from even."""
    coins = gained + lost
    far = sum(abs(2 * sum(fall) - coins) >= abs(gained - lost) for fall in product((0, 1), repeat=coins))
    return Fraction(far, 2**coins)


@given(SMALL, SMALL)
def test_mcnemar_is_the_count_of_all_coin_falls(gained: int, lost: int) -> None:
    assert mcnemar(gained, lost) == pytest.approx(float(by_hand(gained, lost)))
    assert mcnemar(gained, lost) == mcnemar(lost, gained)


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_falls_with_the_distance(gained: int, lost: int) -> None:
    low, high = sorted((gained, lost))
    assert 0 <= mcnemar(low, high + 1) <= mcnemar(low, high) <= 1


def test_mcnemar_of_nothing() -> None:
    assert mcnemar(0, 0) == 1
    with pytest.raises(ValueError, match="cannot be"):
        mcnemar(-1, 3)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []
    with pytest.raises(ValueError, match="no p-value"):
        holm([1.2])


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_lies_between_the_bare_value_and_bonferronis(values: list[float]) -> None:
    adjusted = holm(values)
    assert all(p <= q <= min(1.0, len(values) * p) + 1e-12 for p, q in zip(values, adjusted, strict=True))
    assert all(low <= high for low, high in pairwise(q for _, q in sorted(zip(values, adjusted, strict=True))))


def arm(name: str, values: str, ecosystem: str = "") -> Arm:
    return Arm(name, {str(case): float(value) for case, value in enumerate(values)}, ecosystem)


def test_agreement_is_not_evidence_of_harmlessness() -> None:
    found = paired_delta(arm("a", "0110"), arm("b", "0110"), key="k")
    assert found.text() == (
        "+0.00 [+0.00, +0.00] (4 cases, 0 gained, 0 lost, McNemar p = 1): exact agreement on these cases"
    )


def test_verdicts() -> None:
    credible = paired_delta(arm("a", "1" * 30), arm("b", "0" * 20 + "1" * 10), key="k", resamples=500)
    assert (credible.verdict, credible.gained, credible.lost) == ("credible", 0, 20)
    assert credible.p_value == pytest.approx(2 / 2**20)
    small = paired_delta(arm("a", "1011"), arm("b", "0111"), key="k", resamples=500)
    assert small.verdict == "inconclusive"
    all_lost = paired_delta(arm("a", "111"), arm("b", "000"), key="k", resamples=500)
    assert (all_lost.interval, all_lost.verdict) == (Interval(-1, -1), "credible")


def test_an_interval_that_ends_at_0_is_inconclusive() -> None:
    found = paired_delta(arm("a", "0" * 8), arm("b", "1" + "0" * 7), key="k", resamples=500)
    assert found.interval.low == 0 < found.interval.high
    assert found.verdict == "inconclusive"


def test_only_cases_that_both_could_express() -> None:
    found = paired_delta(arm("L0", "0001"), arm("L1", "1111"), key="k", only={"0", "3"}, resamples=200)
    assert (found.cases, found.gained, found.value) == (2, 1, 0.5)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (arm("a", "01", "gguf"), arm("b", "01", "mlx"), "two ecosystems"),
        (arm("a", "01"), arm("b", "011"), "a lacks 1 of the other arm's cases, the first is '2'"),
        (arm("a", ""), arm("b", ""), "no case in common"),
    ],
)
def test_arms_that_cannot_be_compared(before: Arm, after: Arm, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paired_delta(before, after, key="k")


@given(st.text(alphabet="01", min_size=1, max_size=8), st.randoms())
def test_swapping_the_arms_turns_the_sign(values: str, random: object) -> None:
    other = values[::-1]
    there, back = (
        paired_delta(arm("a", a), arm("b", b), key="k", resamples=60) for a, b in ((values, other), (other, values))
    )
    assert there.value == -back.value
    assert (there.gained, there.lost) == (back.lost, back.gained)
    assert there.p_value == back.p_value
    assert (there.verdict == "exact agreement") == (values == values[::-1])


RUNGS = [
    Rung("L0", 0.79, Interval(0.72, 0.86), 128),
    Rung("L1", 0.86, Interval(0.80, 0.91), 128),
]


@pytest.mark.parametrize(
    ("threshold", "rung", "strength"),
    [
        (0.7, "L0", "firm"),
        (0.75, "L0", "tentative"),
        (0.80, "L1", "firm"),
        (0.81, "L1", "tentative"),
        (0.9, None, "none"),
    ],
)
def test_prescribe(threshold: float, rung: str | None, strength: str) -> None:
    found = prescribe(RUNGS, threshold)
    assert (found.rung.name if found.rung else None, found.strength) == (rung, strength)
    assert f"{threshold:.2f}" in found.text()


def test_the_published_prescriptions_at_080() -> None:
    dev = {
        "3bit": [(0.48, 0.40, 0.57), (0.64, 0.55, 0.73)],
        "4bit": [(0.79, 0.72, 0.86), (0.86, 0.80, 0.91)],
        "5bit": [(0.80, 0.73, 0.87), (0.87, 0.80, 0.92)],
        "bf16": [(0.78, 0.70, 0.85), (0.84, 0.77, 0.90)],
    }
    found = {
        tier: prescribe([Rung(f"L{n}", v, Interval(lo, hi), 128) for n, (v, lo, hi) in enumerate(rungs)], 0.80)
        for tier, rungs in dev.items()
    }
    assert [found[tier].rung and found[tier].rung.name for tier in dev] == [None, "L1", "L0", "L1"]  # type: ignore[union-attr]
    # 4bit L1 is printed as tentative: its lower end is below 0.80 before it is rounded to 0.80
    assert [found[tier].strength for tier in ("3bit", "5bit", "bf16")] == ["none", "tentative", "tentative"]


def test_confirm_wants_the_whole_interval() -> None:
    assert held(Rung("L1", 0.86, Interval(0.80, 0.91), 122), 0.80)
    assert not held(Rung("L1", 0.86, Interval(0.79, 0.91), 122), 0.80)
    with pytest.raises(ValueError, match="no rung"):
        prescribe([], 0.8)
