"""Records of episodes: round trip, the rules they keep, what binds a cell, and labels given anew."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.episodes import (
    AttemptRecord,
    CallRecord,
    CellKey,
    CellPlan,
    EpisodeRecord,
    Header,
    TurnRecord,
    brief,
    changed_facts,
    decode_episode_line,
    encode_episode_line,
    relabelled,
)
from results.manifest import Fact, known, unknown
from results.outcomes import Evidence
from tests.support.episodes import CELL, episode, not_run, outcome, turns

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
KEYS = st.builds(CellKey, TEXT, TEXT, TEXT, TEXT)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT, lambda inner: st.lists(inner, max_size=3)
)
EPISODES = st.builds(
    lambda key, letters, seed, answer, progress: msgspec.structs.replace(
        episode(letters, seed=seed, cell=key), answer=answer, progress=progress
    ),
    KEYS,
    st.text(alphabet="vthuipfnxgrldbL", max_size=6),
    st.integers(0, 2**40),
    JSON,
    st.none() | st.floats(0, 1),
)


def plan(**facts: Fact) -> CellPlan:
    return CellPlan(cell=CELL, seeds=(42, 7), facts=facts)


@given(EPISODES)
def test_round_trip(one: EpisodeRecord) -> None:
    line = encode_episode_line(one)
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    assert decode_episode_line(line) == one


def test_half_a_surrogate_pair_loses_no_episode() -> None:
    call = CallRecord(name="write\ud800", arguments='{"a": "\udfff"}')
    turn = TurnRecord(outcome=outcome("ok.native_call"), calls=(call,))
    one = msgspec.structs.replace(episode(""), turns=(turn,), answer={"\ud800": ["x", 1.5, None]})
    found = decode_episode_line(encode_episode_line(one))
    assert isinstance(found, EpisodeRecord)
    assert found.turns[0].calls[0] == CallRecord(name="write?", arguments='{"a": "?"}')
    assert found.answer == {"?": ["x", 1.5, None]}
    assert msgspec.structs.replace(found, turns=one.turns, answer=one.answer) == one


def test_round_trip_of_the_other_lines_and_of_unknown_fields() -> None:
    for line in (Header(1, "r", 5), plan(model=known("x", "file"), template=unknown("not read"))):
        assert decode_episode_line(encode_episode_line(line)) == line
        assert decode_episode_line(encode_episode_line(line).replace(b"{", b'{"later":1,', 1)) == line


@given(KEYS, KEYS)
def test_no_two_keys_share_a_text(first: CellKey, second: CellKey) -> None:
    assert (first.text == second.text) == (first == second)
    assert sorted([first, second]) == sorted([second, first])


@given(
    st.binary(max_size=60) | st.sampled_from([b"[" * 100_000, b'{"event":"episode"}', b"null", b'{"event":"other"}'])
)
def test_what_is_no_line_is_a_value_error(raw: bytes) -> None:
    with pytest.raises(ValueError):
        decode_episode_line(raw)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"progress": 1.5}, "progress 1.5"),
        ({"score": -0.1}, "score -0.1"),
        ({"repeat": -1}, "negative"),
        ({"ended_by": "not_run"}, "neither turns"),
        ({"ended_by": "not_run", "turns": (), "outcome": outcome("task.no_stop")}, "neither turns"),
        ({"outcome": msgspec.structs.replace(outcome("task.no_stop"), code="boredom")}, "unknown outcome task.boredom"),
        ({"rejudged": msgspec.structs.replace(outcome("ok.task_done"), at_fault="undetermined")}, "decide_by"),
        ({"turns": (TurnRecord(outcome=msgspec.structs.replace(outcome("ok.text_call"), layer="x")),)}, "x.text_call"),
    ],
)
def test_an_episode_that_contradicts_itself(changes: dict[str, Any], message: str) -> None:
    line = encode_episode_line(msgspec.structs.replace(episode("v"), **changes))
    with pytest.raises(ValueError, match=message):
        decode_episode_line(line)


@pytest.mark.parametrize(
    ("seeds", "repeats", "message"), [((), 1, "no episode"), ((1,), 0, "no episode"), ((1, 1), 1, "twice")]
)
def test_a_plan_of_nothing(seeds: tuple[int, ...], repeats: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode_episode_line(encode_episode_line(CellPlan(cell=CELL, seeds=seeds, repeats=repeats)))


def test_what_was_not_run() -> None:
    one = episode("", ended_by="not_run", result=not_run("gate.model_not_found"))
    assert decode_episode_line(encode_episode_line(one)) == one
    assert not one.succeeded
    assert one.place == (CELL, 0, 0)


def test_a_digest_binds_the_facts_and_not_the_number_of_seeds() -> None:
    first = plan(model=known("sha256:a", "file"), pack=known("p", "file"))
    again = plan(pack=known("p", "file"), model=known("sha256:a", "file"))
    assert first.digest == again.digest == msgspec.structs.replace(first, seeds=(1,), repeats=9).digest
    assert msgspec.structs.replace(first, cell=msgspec.structs.replace(CELL, task="chain")).digest != first.digest
    other = plan(model=known("sha256:b", "file"), template=unknown("not read"))
    assert other.digest != first.digest
    assert changed_facts(first, again) == []
    assert changed_facts(first, other) == [
        'model: "sha256:a" -> "sha256:b"',
        'pack: "p" -> not stated',
        "template: not stated -> unknown (not read)",
    ]


def test_later_labels_reach_the_turns_that_followed_their_attempts() -> None:
    quoted = Evidence(attempt=2, direction="response", start=0, end=3, quote="abc")
    cited = msgspec.structs.replace(outcome("ok.final_answer"), evidence=(quoted,))
    tries = (AttemptRecord(1, outcome("transport.reset")), AttemptRecord(2, cited))
    followed = TurnRecord(outcome=brief(cited), attempts=tries)
    known_better = TurnRecord(outcome=outcome("ok.text_call"), attempts=(AttemptRecord(3, cited),))
    untouched = turns("v")[0]
    one = msgspec.structs.replace(episode(""), turns=(followed, known_better, untouched))
    assert followed.retries == 1
    assert brief(cited).evidence == ()
    new = outcome("parser.left_as_text")
    found = relabelled(one, {2: new, 3: new}).turns
    assert [turn.outcome.name for turn in found] == ["parser.left_as_text", "ok.text_call", "ok.native_call"]
    assert [attempt.outcome.name for turn in found for attempt in turn.attempts] == [
        "transport.reset", "parser.left_as_text", "parser.left_as_text"
    ]  # fmt: skip
    assert relabelled(one, {}) == one


def test_which_turns_are_clean() -> None:
    clean = {letter: turns(letter)[0].clean for letter in "vhufLlxgd"}
    assert clean == {
        "v": True, "h": True, "u": True, "f": True, "L": True, "l": False, "x": False, "g": False, "d": False
    }  # fmt: skip
    assert CallRecord(name="x").arguments == "{}"
