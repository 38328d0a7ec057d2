"""Series over the same cases: the goldens of the seed (G18 to G21), pairing, and what a number of cases can show."""

import pytest

from results.statistics.cases import CaseBootstrap, cases_needed, detectable
from results.statistics.pairs import Arm, paired_delta

BASE = [True] * 190 + [False] * 60


def changed(lost: int, gained: int) -> list[bool]:
    return [False] * lost + [True] * (190 - lost) + [True] * gained + [False] * (60 - gained)


def two(value: float) -> float:
    return round(value, 2)


@pytest.fixture(scope="module")
def drawn() -> CaseBootstrap:
    series = {"16": BASE, "3": changed(70, 5), "4": changed(5, 10), "8": BASE, "none": [False] * 250}
    return CaseBootstrap(series, "seed three")


def test_g18_damage_is_credible_and_paired(drawn: CaseBootstrap) -> None:
    found = drawn.delta("16", "3")
    assert (two(found.value), two(found.interval.low), two(found.interval.high)) == (-0.26, -0.32, -0.2)
    assert (found.verdict, found.gained, found.lost, found.cases) == ("credible", 5, 70, 250)


def test_g19_a_small_gain_is_inconclusive(drawn: CaseBootstrap) -> None:
    found = drawn.delta("16", "4")
    assert (two(found.value), two(found.interval.low), two(found.interval.high)) == (0.02, -0.01, 0.05)
    assert found.verdict == "inconclusive"


def test_exact_agreement_has_no_width_and_its_own_word(drawn: CaseBootstrap) -> None:
    found = drawn.delta("16", "8")
    assert (found.interval.low, found.interval.high, found.verdict) == (0, 0, "exact agreement")


@pytest.mark.parametrize(
    ("right", "cases", "low", "high"),
    [
        (190, 250, 0.71, 0.82),
        (125, 250, 0.44, 0.56),
        (195, 250, 0.73, 0.83),
        (61, 128, 0.4, 0.57),
        (82, 128, 0.55, 0.73),
        (101, 128, 0.72, 0.86),
        (110, 128, 0.8, 0.91),
        (102, 128, 0.73, 0.87),
    ],
)
def test_g20_the_seeds_intervals_within_a_hundredth(right: int, cases: int, low: float, high: float) -> None:
    found = CaseBootstrap({"a": [True] * right + [False] * (cases - right)}, f"{right} of {cases}").rate("a")
    assert abs(found.interval.low - low) <= 0.0151
    assert abs(found.interval.high - high) <= 0.0151
    assert found.value == right / cases


def test_pairing_is_that_of_the_paired_bootstrap(drawn: CaseBootstrap) -> None:
    names = [f"{at:03}" for at in range(250)]
    arms = [Arm(name, dict(zip(names, series, strict=True))) for name, series in (("a", BASE), ("b", changed(70, 5)))]
    slow, fast = paired_delta(arms[0], arms[1], key="k"), drawn.delta("16", "3")
    assert slow.value == pytest.approx(fast.value)
    assert slow.interval.low == pytest.approx(fast.interval.low, abs=0.011)
    assert slow.interval.high == pytest.approx(fast.interval.high, abs=0.011)
    assert slow.p_value == fast.p_value


def test_another_series_moves_no_number() -> None:
    alone = CaseBootstrap({"16": BASE}, "k").rate("16")
    beside = CaseBootstrap({"3": changed(70, 5), "16": BASE}, "k").rate("16")
    assert alone == beside
    assert CaseBootstrap({"16": BASE}, "other").rate("16").interval != alone.interval or alone.width


def test_nothing_is_ever_right(drawn: CaseBootstrap) -> None:
    assert (drawn.rate("none").value, drawn.rate("none").width) == (0, 0)


@pytest.mark.parametrize("series", [{}, {"a": []}, {"a": [True], "b": [True, False]}])
def test_series_of_other_lengths_are_refused(series: dict[str, list[bool]]) -> None:
    with pytest.raises(ValueError, match="same cases"):
        CaseBootstrap(series, "k")


def test_what_a_number_of_cases_shows() -> None:
    assert [two(detectable(cases)) for cases in (250, 125, 40)] == [0.08, 0.11, 0.19]
    assert cases_needed(0.08) in range(235, 250)
    assert detectable(cases_needed(0.1)) <= 0.1 < detectable(cases_needed(0.1) - 2)


@pytest.mark.parametrize(("cases", "share"), [(0, 0.2), (10, 0.0), (10, 1.5)])
def test_senseless_sizes_are_refused(cases: int, share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        detectable(cases, share)


def test_a_difference_beyond_the_share_that_differs_is_refused() -> None:
    with pytest.raises(ValueError, match="difference"):
        cases_needed(0.5, 0.2)
