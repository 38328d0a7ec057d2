"""One cell: which turns count, which rate has which denominator, and words where there is no rate."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.episodes import AttemptRecord, CellPlan, EpisodeRecord
from results.rates import Rate, rates
from results.statistics.cells import CellCounter, CellStatistics
from results.statistics.completion import excluded_as
from results.statistics.grid import statistics_of
from results.statistics.turns import OWN, LabelSet, closes_in_prose, label
from tests.support.episodes import CELL, TURNS, episode, episodes, not_run, turns

ROWS = st.lists(st.text(alphabet="vthuipfnxgrldbL", max_size=8), min_size=1, max_size=6)


def of(rows: list[str], words: LabelSet = "own") -> CellStatistics:
    return statistics_of(episodes(rows), words=words, resamples=100)[0]


def counted(*found: EpisodeRecord, plan: CellPlan | None = None) -> CellStatistics:
    counter = CellCounter(CELL)
    for one in found:
        counter.add(one)
    return counter.statistics(plan, resamples=100)


def test_each_rate_has_its_denominator() -> None:
    found = of(["vvp", "x", "vx", "huil"])
    assert (found.per_seed.values, found.per_seed.seeds) == ((2 / 3, 1.0, 0.0), 4)
    assert found.per_seed.value == pytest.approx(5 / 9)
    assert (found.pooled, found.naive) == (Rate(3, 8), Rate(3, 10))
    assert (found.produced, found.nonresponses) == (8, {"nonresponse": 2})
    assert found.first_turn == Rate(2, 3)
    assert found.labels == {
        "hallucinated": 1, "invalid_call": 1, "non-response": 2, "prose": 1, "unparseable": 2, "valid": 3
    }  # fmt: skip


def test_a_call_found_by_the_clients_parser_counts_and_shows_its_channel() -> None:
    found = of(["vL", "l"])
    assert found.pooled == Rate(2, 3)
    assert found.channels == {"native": 1, "text": 1}


def test_only_what_the_server_left_lying_is_recovered() -> None:
    names = {"l": "valid", "u": "unparseable", "i": "invalid_call", "d": "non-response"}
    for letter, word in names.items():
        assert label(msgspec.structs.replace(turns(letter)[0], recovered="fence")) == word


def test_retries_and_a_long_bad_seed_are_pointed_out() -> None:
    retried = msgspec.structs.replace(
        turns("v")[0], attempts=tuple(AttemptRecord(number, turns("v")[0].outcome) for number in (1, 2, 3))
    )
    found = counted(msgspec.structs.replace(episode("", seed=1), turns=(retried,)), episode("pppp", seed=2))
    assert found.retries == 2
    assert found.gap == pytest.approx(0.2 - 0.5)
    assert found.warnings == (
        "per-seed mean and pooled rate differ by 30.0 points",
        "one seed holds 80.0 % (4/5) of the turns",
        "2 retries: each is another draw, and only the last one counts",
    )


def test_partial_text_is_a_turn_of_ours_and_a_non_response_of_the_papers() -> None:
    assert (of(["vb"]).pooled, of(["vb"], "paper").pooled) == (Rate(1, 2), Rate(1, 1))
    assert (of(["i"]).pooled, of(["i"], "paper").pooled) == (Rate(0, 1), Rate(1, 1))


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        (["g", "g"], "rej"),
        (["g", "x"], "n/r"),
        (["r"], "n/r"),
        (["", ""], "none"),
        (["s"], "none"),
    ],
)
def test_undefined_is_a_word(rows: list[str], word: str) -> None:
    found = of(rows)
    for rate in (found.per_seed, found.per_seed_open, found.pooled, found.pooled_open, found.first_turn):
        assert rate.value is None
        assert rate.text().partition(" ")[0] == word
    assert found.gap is None
    assert found.warnings == ()


def test_an_episode_refused_before_its_first_turn_makes_the_cell_rej() -> None:
    refused = [episode("", seed=seed, ended_by="not_run", result=not_run("gate.tools_unsupported")) for seed in (1, 2)]
    found = counted(*refused)
    assert found.per_seed.text() == "rej (0 of 2 seeds)"
    assert found.completion.text() == "rej; not run: gate x2"
    down = episode("", seed=3, ended_by="not_run", result=not_run("transport.connect"))
    assert counted(*refused, down).per_seed.text() == "n/r (0 of 3 seeds)"


def test_turns_past_the_cap_are_outside_of_every_count() -> None:
    found = counted(episode("vpvv", post_cap=2, ended_by="turn_cap"))
    assert (found.pooled, found.post_cap_turns, found.endless) == (Rate(1, 2), 2, 1)


def test_the_originals_own_words_keep_turns_past_the_cap_and_skip_empty_ones() -> None:
    words = ["valid", "uncounted", "hallucinated", "valid"]
    made = [
        msgspec.structs.replace(turn, labels={"paper-compat": word})
        for turn, word in zip(turns("vxhv", post_cap=1), words, strict=True)
    ]
    one = msgspec.structs.replace(episode(""), turns=tuple(made))
    assert statistics_of([one], words="paper-compat")[0].pooled == Rate(2, 3)
    assert statistics_of([one])[0].naive == Rate(1, 3)
    with pytest.raises(ValueError, match="has to be run again"):
        statistics_of([episode("v")], words="paper-compat")


def test_a_final_answer_that_the_originals_words_take_for_a_call_stays_a_turn() -> None:
    made = [msgspec.structs.replace(turn, labels={"paper-compat": "valid"}) for turn in turns("vf")]
    one = msgspec.structs.replace(episode(""), turns=tuple(made))
    assert statistics_of([one], words="paper-compat")[0].pooled_open == Rate(2, 2)
    assert statistics_of([one])[0].pooled_open == Rate(1, 1)


@pytest.mark.parametrize(
    ("letters", "closes"),
    [
        ("vf", True),
        ("vvf", True),
        ("Lf", True),
        ("f", False),
        ("pf", False),
        ("n", True),
        ("fv", False),
        ("vfx", False),
    ],
)
def test_closing_text(letters: str, closes: bool) -> None:
    assert closes_in_prose(turns(letters)) is closes


def test_closing_text_is_one_turn_of_the_strict_rate_and_none_of_the_open_one() -> None:
    found = of(["vf", "vf", "f"])
    assert (found.pooled, found.pooled_open) == (Rate(2, 5), Rate(2, 3))
    assert found.per_seed.values == (0.5, 0.5, 0.0)
    assert found.per_seed_open.values == (1.0, 1.0, 0.0)
    alone = of(["n"])
    assert (alone.pooled, alone.pooled_open.text()) == (Rate(0, 1), "none")
    assert alone.per_seed_open.text() == "none (0 of 1 seeds)"


def test_a_seed_with_several_runs_is_one_seed() -> None:
    found = counted(episode("vv", seed=1), episode("pp", seed=1, repeat=1), episode("v", seed=2))
    assert found.per_seed.values == (0.5, 1.0)
    assert found.completion.rate.trials == 3


def test_the_plan_gives_the_order_and_what_is_missing() -> None:
    plan = CellPlan(cell=CELL, seeds=(42, 7, 1), repeats=2)
    found = counted(episode("v", seed=7), episode("p", seed=42), plan=plan)
    assert found.per_seed.values == (0.0, 1.0)
    assert found.per_seed.text().endswith("(2 of 3 seeds)")
    assert found.completion.text() == "100.0 % [34.2, 100.0] (2/2); missing: 4"
    beside = counted(*(episode("v", seed=seed) for seed in range(50, 60)), plan=plan)
    assert beside.completion.missing == 6
    assert beside.seeds == 13


def test_one_seed_has_no_width_and_says_so() -> None:
    found = of(["vp", "x"]).per_seed
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (0.5, 0.5)
    assert "bootstrap degenerate (one seed), Wilson [5.5, 94.5]" in found.text()
    assert found.comparable == found.wilson


def test_completion_leaves_infrastructure_out_and_lists_it() -> None:
    found = counted(
        episode("v", seed=1),
        episode("v", seed=2, result="task.state_mismatch"),
        episode("vr", seed=3, result=not_run("transport.reset", "stack"), ended_by="nonresponse"),
        episode("g", seed=4, result=not_run("gate.tools_unsupported"), ended_by="nonresponse"),
        episode("v", seed=5, result=not_run("cancelled", "client"), ended_by="cancelled"),
    )
    said = found.completion.text()
    assert said == "50.0 % [9.5, 90.5] (1/2); not run: cancelled x1, gate x1, transport x1"
    assert found.ended_by == {"cancelled": 1, "done_tool": 2, "nonresponse": 2}


@pytest.mark.parametrize(
    ("name", "word"),
    [("ok.task_done", None), ("model.loop", None), ("task.no_stop", None), ("transport.reset", "transport"),
     ("gate.tools_unsupported", "gate"), ("not_run.disk_full", "disk_full"), ("checker.unsatisfiable", "checker")],
)  # fmt: skip
def test_why_an_episode_is_outside(name: str, word: str | None) -> None:
    result = not_run(name.removeprefix("not_run.")) if name.startswith("not_run.") else name
    assert excluded_as(episode("v", result=result)) == word


def test_episodes_of_another_set_up_are_pointed_out() -> None:
    mixed = counted(episode("v", seed=1, plan="a"), episode("v", seed=2, plan="b"))
    assert any("2 different set-ups" in warning for warning in mixed.warnings)
    with pytest.raises(ValueError, match="does not belong"):
        counted(episode("v", cell=msgspec.structs.replace(CELL, model="other")))


@given(ROWS)
def test_bounds_and_sums(rows: list[str]) -> None:
    found = of(rows)
    assert found.produced + sum(found.nonresponses.values()) == sum(found.labels.values()) == found.naive.trials
    assert found.pooled.hits == sum(found.channels.values()) == found.labels.get("valid", 0)
    assert set(found.labels) <= set(OWN)
    assert found.pooled_open.trials <= found.pooled.trials <= found.naive.trials
    values = [found.naive.value, found.pooled.value, found.pooled_open.value]
    defined = [value for value in values if value is not None]
    assert all(low <= high for low, high in pairwise(defined))
    mean, interval, wilson = found.per_seed.value, found.per_seed.interval, found.per_seed.wilson
    if mean is not None:
        assert interval is not None
        assert wilson is not None
        assert 0 <= interval.low <= interval.high <= 1
        assert min(found.per_seed.values) <= interval.low <= mean + 1e-12
        assert wilson.low - 1e-12 <= mean <= wilson.high + 1e-12


@given(ROWS)
def test_turns_agree_with_the_rates_of_attempts(rows: list[str]) -> None:
    plain = [row.replace("L", "v") for row in rows]
    found = of(plain)
    attempts = rates([turn.outcome for row in plain for turn in turns(row)])
    assert (found.pooled.hits, found.pooled.trials) == (attempts.fidelity.hits, attempts.fidelity.trials)
    assert (found.naive.hits, found.naive.trials) == (attempts.naive.hits, attempts.naive.trials)
    assert found.cleared == attempts.cleared or found.cleared.value == attempts.cleared.value


@given(st.permutations(["vvp", "x", "vx", "huil", "vf", "g"]))
def test_the_order_of_episodes_does_not_matter(rows: list[str]) -> None:
    numbered = {row: seed for seed, row in enumerate(sorted(rows))}
    assert counted(*(episode(row, seed=numbered[row]) for row in rows)) == of(sorted(rows))


def test_every_letter_has_a_word_in_each_set() -> None:
    for letter in TURNS:
        turn = turns(letter)[0]
        assert label(turn) in OWN
        assert label(turn, "paper") in (*OWN, "uncounted")
