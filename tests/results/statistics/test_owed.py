"""Whose loss it is: known worlds with their shares, bounds, and what is left open."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.episodes import EpisodeRecord
from results.statistics.owed import Owed, owed, serving_fault
from tests.support.episodes import episode, not_run, outcome, turns

FAILED = "task.state_mismatch"


def world(*kinds: str) -> list[EpisodeRecord]:
    """Episodes by kind: success, model's failure, refused (gate), dropped call, the same completed to a success or to
    a failure, an empty answer that may be anybody's, ended by the user."""
    makers = {
        "good": lambda seed: episode("vf", seed=seed),
        "bad": lambda seed: episode("vp", seed=seed, result=FAILED),
        "gate": lambda seed: episode("g", seed=seed, ended_by="nonresponse", result=not_run("gate.tools_unsupported")),
        "dropped": lambda seed: episode("d", seed=seed, result=FAILED),
        "regained": lambda seed: episode("d", seed=seed, result=FAILED, rejudged="ok.task_done"),
        "lost_anyway": lambda seed: episode("d", seed=seed, result=FAILED, rejudged=FAILED),
        "empty": lambda seed: episode("x", seed=seed, ended_by="nonresponse", result=FAILED),
        "cancelled": lambda seed: episode("v", seed=seed, ended_by="cancelled", result=not_run("cancelled", "client")),
        "good_in_spite": lambda seed: episode("dv", seed=seed),
        "text": lambda seed: episode("L", seed=seed, result=FAILED),
    }
    return [makers[kind](seed) for seed, kind in enumerate(kinds)]


def of(*kinds: str) -> Owed:
    return owed(world(*kinds), key="k", resamples=400)


def test_all_owed_to_the_stack() -> None:
    found = of("good", "good", "good", "good", "gate", "gate", "gate", "gate")
    assert (found.lost, found.episodes, found.stack, found.model) == (4, 8, 1.0, 0.0)
    assert (found.lowest, found.highest) == (0.0, 1.0)
    assert found.faults == {"config": 4}


def test_all_owed_to_the_model() -> None:
    found = of("bad", "bad", "good", "bad")
    assert (found.stack, found.model, found.lowest, found.highest) == (0.0, 1.0, 0.0, 0.0)
    assert serving_fault(world("bad")[0]) == ""


def test_known_raw_text_decides() -> None:
    found = of("regained", "regained", "lost_anyway", "bad")
    assert (found.shown, found.shown_successes, found.unknown) == (4, 2, 0)
    assert found.stack == found.lowest == found.highest == 0.5


def test_half_and_half() -> None:
    found = of("good", "bad", "good", "bad", "gate", "gate", "gate", "gate")
    # measured 2/8, without faults 2/4: a third of the 6/8 lost is the stack's
    assert found.stack == pytest.approx(1 / 3)
    assert found.interval is not None
    assert 0 <= found.interval.low <= 1 / 3 <= found.interval.high <= 1
    assert found.model_interval is not None
    assert found.model_interval.low == 1 - found.interval.high
    said = found.text()
    assert "6 of 8 episodes were lost" in said
    assert "owed to the stack: 33.3 %" in said
    assert "to the model: 66.7 %" in said
    assert "2/4 succeed" in said


def test_open_where_no_episode_shows_the_model_alone() -> None:
    found = of("gate", "gate", "empty")
    assert (found.stack, found.model, found.interval) == (None, None, None)
    assert (found.lowest, found.highest) == (0.0, 1.0)
    assert found.faults == {"config": 2, "undetermined": 1}
    assert "no episode shows the model" in found.text()


def test_a_call_that_the_client_recovered_is_no_fault() -> None:
    assert of("text", "good").stack == 0.0


def test_a_success_in_spite_of_a_fault_does_not_count_for_the_model_alone() -> None:
    found = of("good_in_spite", "good_in_spite", "bad", "bad")
    assert (found.shown, found.shown_successes, found.stack) == (2, 0, 0.0)


def test_a_success_that_was_judged_again_regains_nothing() -> None:
    again = [episode("dv", seed=seed, rejudged="ok.task_done") for seed in (1, 2)]
    found = owed([*again, *world("bad")], key="k", resamples=50)
    assert (found.shown, found.shown_successes, found.lost) == (3, 2, 1)
    assert (found.lowest, found.highest, found.stack) == (0, 0, 0)


def test_an_episode_that_was_refused_before_its_first_turn_is_lost_to_the_configuration() -> None:
    refused = episode("", seed=9, ended_by="not_run", result=not_run("gate.model_not_found"))
    assert serving_fault(refused) == "config"
    broken = episode("", seed=9, ended_by="not_run", result=not_run("task_raised", "undetermined"))
    assert serving_fault(broken) == "excluded"


def test_a_fault_past_the_cap_touches_nothing() -> None:
    capped = episode("vd", seed=1, post_cap=1, ended_by="turn_cap", result="task.no_stop")
    assert serving_fault(capped) == ""


def test_an_episode_lost_by_the_client_belongs_to_neither() -> None:
    gone = msgspec.structs.replace(turns("r")[0], outcome=outcome("transport.client_gone"))
    one = msgspec.structs.replace(episode("", seed=4, result=FAILED), turns=(gone,))
    found = owed([one, *world("bad")], key="k", resamples=50)
    assert (found.episodes, found.excluded, found.stack) == (1, {"client": 1}, 0)


def test_no_interval_where_most_resamples_do_not_tell() -> None:
    found = of("gate", "good", *["good_in_spite"] * 6)
    assert (found.stack, found.interval) == (1, None)
    assert "too few resamples" in found.text()


def test_what_the_user_ended_is_left_out() -> None:
    found = of("good", "cancelled")
    assert (found.episodes, found.excluded, found.text()) == (
        1, {"cancelled": 1}, "nothing was lost: 1 of 1 episodes succeeded"
    )  # fmt: skip
    assert owed([], key="k").text() == "no episode was measured"


KINDS = st.sampled_from(
    ["good", "bad", "gate", "dropped", "regained", "lost_anyway", "empty", "cancelled", "good_in_spite", "text"]
)


@given(st.lists(KINDS, max_size=12))
def test_shares_stay_within_their_bounds(kinds: list[str]) -> None:
    found = owed(world(*kinds), key="k", resamples=40)
    assert found.episodes + sum(found.excluded.values()) == len(kinds)
    if found.stack is not None:
        assert found.lowest is not None
        assert found.highest is not None
        assert found.model is not None
        assert 0 <= found.lowest <= found.stack <= found.highest <= 1
        assert found.stack + found.model == pytest.approx(1)
    assert found.text()


@given(st.lists(KINDS, min_size=1, max_size=10))
def test_one_more_loss_to_the_model_never_raises_the_stacks_bound(kinds: list[str]) -> None:
    before, after = (owed(world(*each), key="k", resamples=2) for each in (kinds, [*kinds, "bad"]))
    if before.highest is not None:
        assert after.highest is not None
        assert after.highest <= before.highest
