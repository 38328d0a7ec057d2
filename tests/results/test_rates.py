"""Rates: Wilson's interval against published values, the three denominators, and words instead of zeros."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.outcomes import Outcome, Wrote
from results.rates import Rate, RateCounter, Z, rates, wilson
from results.taxonomy import CODES


def outcome(name: str, wrote: Wrote = "unknown") -> Outcome:
    code = CODES[name]
    fault = "stack" if code.usual_fault == "undetermined" else code.usual_fault
    return Outcome(layer=code.layer, code=code.code, at_fault=fault, model_ran=code.model_ran, wrote=wrote)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [(8, 8, 0.6756, 1.0), (0, 8, 0.0, 0.3244), (5, 8, 0.3057, 0.8632), (50, 100, 0.4038, 0.5962), (1, 1, 0.2065, 1.0)],
)
def test_wilson(hits: int, trials: int, low: float, high: float) -> None:
    found = wilson(hits, trials)
    assert found == pytest.approx((low, high), abs=5e-4)


@pytest.mark.parametrize(("hits", "trials"), [(0, 0), (2, 1), (-1, 3)])
def test_wilson_is_undefined_where_it_is(hits: int, trials: int) -> None:
    with pytest.raises(ValueError, match="no interval"):
        wilson(hits, trials)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_rate_and_stays_inside(pair: tuple[int, int]) -> None:
    hits, trials = pair
    low, high = wilson(hits, trials)
    assert 0 <= low <= hits / trials + 1e-12
    assert hits / trials - 1e-12 <= high <= 1


def test_three_denominators() -> None:
    found = rates(
        [
            outcome("ok.native_call"),
            outcome("ok.native_call"),
            outcome("parser.left_as_text", "valid_call"),
            outcome("parser.dropped", "valid_call"),
            outcome("model.malformed_call", "malformed_call"),
            outcome("ok.final_answer", "prose"),
            outcome("gate.tools_unsupported"),
            outcome("nonresponse.empty"),
            outcome("ok.service"),
        ]
    )
    assert (found.fidelity.hits, found.fidelity.trials) == (2, 5)
    assert (found.fidelity_open.hits, found.fidelity_open.trials) == (2, 4)
    assert (found.cleared.hits, found.cleared.trials) == (4, 6)
    assert (found.naive.hits, found.naive.trials) == (2, 8)
    assert found.outside == {"gate": 1, "nonresponse": 1, "parser": 1}
    assert found.attempts == 8


def test_a_client_that_parses_text_recovers_calls() -> None:
    left = [outcome("parser.left_as_text", "valid_call")]
    assert rates(left).fidelity.hits == 0
    assert rates(left, recovers_text=True).fidelity.hits == 1


@pytest.mark.parametrize(
    ("names", "word"),
    [
        (["gate.tools_unsupported"] * 3, "rej"),
        (["gate.tools_unsupported", "nonresponse.empty"], "n/r"),
        (["transport.connect"], "n/r"),
        ([], "none"),
        (["ok.service"], "none"),
    ],
)
def test_undefined_is_a_word_and_never_zero(names: list[str], word: str) -> None:
    found = rates([outcome(name) for name in names])
    assert found.fidelity.value is None
    assert found.fidelity.text() == word
    assert "0.0" not in found.fidelity.text()


def test_text_of_a_rate() -> None:
    assert Rate(5, 8).text() == "62.5 % [30.6, 86.3] (5/8)"
    assert Rate(0, 4).text().startswith("0.0 % [0.0, ")


def test_undetermined_is_counted() -> None:
    counter = RateCounter()
    counter.add(
        Outcome(
            layer="nonresponse", code="empty", at_fault="undetermined", model_ran="unknown", decide_by="server_log: x"
        )
    )
    assert counter.rates().undetermined == 1


PAIRS = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(PAIRS)
def test_wilsons_ends_solve_the_score_equation(pair: tuple[int, int]) -> None:
    """In fractions: at either end the distance to hits/trials is Z standard errors of that end."""
    hits, trials = pair
    rate, z = Fraction(hits, trials), Fraction(Z)
    for end in map(Fraction, wilson(hits, trials)):
        off = (rate - end) ** 2 - z**2 * end * (1 - end) / trials
        assert abs(off) < Fraction(1, 10**12)


@given(PAIRS)
def test_wilson_is_symmetric_and_rises_with_the_hits(pair: tuple[int, int]) -> None:
    hits, trials = pair
    low, high = wilson(hits, trials)
    assert (1 - high, 1 - low) == pytest.approx(wilson(trials - hits, trials), abs=1e-12)
    if hits < trials:
        more = wilson(hits + 1, trials)
        assert more[0] > low
        assert more[1] >= high
    wider = wilson(2 * hits, 2 * trials)
    assert wider[1] - wider[0] < high - low


def test_a_recovered_call_counts_for_its_own_attempt_only() -> None:
    counter = RateCounter()
    counter.add(outcome("parser.left_as_text", "valid_call"), recovered=True)
    counter.add(outcome("parser.left_as_text", "valid_call"))
    counter.add(outcome("model.malformed_call"), recovered=True)
    assert counter.rates().fidelity == Rate(1, 3, "n/r")


def test_a_bare_rate_has_no_interval() -> None:
    assert (Rate(5, 8).bare(), Rate(0, 0, "rej").bare(), Rate(0, 0).bare()) == ("62.5 % (5/8)", "rej", "n/r")


def test_requests_without_tools_are_left_out_where_others_offered_some() -> None:
    counter = RateCounter()
    for tools, name in ((0, "ok.final_answer"), (0, "ok.native_call"), (3, "request.context_exceeded")):
        counter.add(outcome(name), tools=tools)
    found = counter.rates()
    assert (found.naive.hits, found.naive.trials, found.without_tools) == (0, 1, 2)
    assert (found.fidelity.value, found.outside) == (None, {"request": 1})
    counter.add(outcome("ok.native_call"))
    assert counter.rates().naive.trials == 2, "what is not known to lack tools counts"


def test_a_run_without_any_tools_counts_as_ever() -> None:
    counter = RateCounter()
    for _ in range(3):
        counter.add(outcome("ok.final_answer"), tools=0)
    counter.add(outcome("parser.left_as_text", "valid_call"))
    found = counter.rates()
    assert (found.fidelity.hits, found.fidelity.trials, found.cleared.hits) == (0, 4, 1)
    assert (found.fidelity_open.trials, found.without_tools, found.attempts) == (1, 0, 4)
    of_a_part = counter.rates(offering=True)
    assert (of_a_part.naive.trials, of_a_part.without_tools) == (1, 3)
