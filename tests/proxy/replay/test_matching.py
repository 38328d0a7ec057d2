"""When two requests are the same, and which of several equal ones is answered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.replay.matching import RUNGS, keys_of, leaves_of, loose_key
from proxy.replay.recordings import IN_MEMORY, RecordedAnswer, Recordings

PATH = "/v1/chat/completions"


def rung(first: Any, second: Any, path: str = PATH, other: str = PATH) -> str | None:
    """The first rung on which two requests are the same."""
    one, two = (
        (*keys_of("POST", where, raw), loose_key("POST", where, raw))
        for where, raw in ((path, json.dumps(first).encode()), (other, json.dumps(second).encode()))
    )
    return next((name for name, left, right in zip(RUNGS, one, two, strict=True) if left == right), None)


def said(content: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": content}]}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("at 2026-11-30T20:44:56Z", "at 2025-01-02T03:04:05.678Z"),
        ("today is 2026-11-30", "today is 2026-12-01"),
        ("It is Monday, November 30, 2026", "It is Tuesday, December 1, 2026"),
        ("at 9:05 pm", "at 11:59 AM"),
        ("session 3f2b8c1e-1111-2222-3333-444455556666", "session 00000000-aaaa-bbbb-cccc-ddddeeeeffff"),
        ("in /tmp/tmpab12cd/x", "in /tmp/tmpzz99yy/x"),
        ("at 1764535496", "at 1764999999"),
        ("sha 0123456789abcdef0", "sha fedcba98765432101"),
        ("key ********", "key ****************"),
    ],
)
def test_what_a_client_makes_anew_each_time_is_passed_over_last(first: str, second: str) -> None:
    assert rung(said(first), said(second)) == "nonces"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("3 apples", "4 apples"),
        ("[[good]]", "[[prose]]"),
        ("deadbeef", "cafebabe"),
        ("in /home/a", "in /home/b"),
        ("12 * 5", "13 * 5"),
        ("May I?", "May you?"),
    ],
)
def test_what_was_asked_is_not_passed_over(first: str, second: str) -> None:
    assert rung(said(first), said(second)) is None


def test_ids_are_compared_by_what_they_join() -> None:
    def history(call: str, answered: str) -> dict[str, Any]:
        return {
            "messages": [
                {"role": "assistant", "tool_calls": [{"id": call, "function": {"name": "f"}}, {"id": "other"}]},
                {"role": "tool", "tool_call_id": answered, "content": "x"},
            ]
        }

    assert rung(history("a", "a"), history("b", "b")) == "nonces"
    assert rung(history("a", "a"), history("b", "other")) is None
    assert rung({"model": "m", "user": "u1"}, {"model": "m", "user": "u2"}) == "nonces"
    assert rung({"model": "m", "seed": 1}, {"model": "m", "seed": 2}) is None


def test_paths_count() -> None:
    assert rung({}, {}, "/v1/a", "/v1/b") is None
    assert rung({}, {}, "/x?key=******", "/x?key=**********") == "nonces"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.text(max_size=8))
def test_a_lower_rung_holds_what_a_higher_one_does(value: Any, path: str) -> None:
    spaced = json.dumps(value, indent=1).encode()
    one, two = keys_of("POST", path, json.dumps(value).encode()), keys_of("POST", path, spaced)
    assert one[1:] == two[1:]
    assert loose_key("POST", path, json.dumps(value).encode()) == loose_key("POST", path, spaced)
    assert keys_of("GET", path, spaced)[1:] != two[1:]


@given(st.binary(max_size=100), st.text(max_size=8))
def test_any_body_has_keys_and_leaves(body: bytes, path: str) -> None:
    assert len(keys_of("POST", path, body)) == len(RUNGS) - 1
    assert loose_key("POST", path, body)
    leaves_of(body)


def test_deep_bodies_are_compared_by_their_bytes() -> None:
    body = b"[" * 100_000
    assert keys_of("POST", PATH, body) == keys_of("POST", PATH, body)
    assert leaves_of(body)


def recorded(text: str, body: bytes = b"{}", **more: Any) -> RecordedAnswer:
    return RecordedAnswer("POST", PATH, body, ((0, text.encode()),), "close", text, **more)


def asked(recordings: Recordings, body: bytes = b"{}", path: str = PATH, **more: Any) -> str | None:
    found = recordings.find("POST", path, body, **more)
    return found[0].source if found is not None else None


def test_each_server_of_a_run_has_its_own_answers() -> None:
    recordings = Recordings([recorded("a1", upstream="a"), recorded("b1", upstream="b"), recorded("a2", upstream="a")])
    assert recordings.upstreams == {"a", "b"}
    assert [asked(recordings, upstream="b"), asked(recordings, upstream="b")] == ["b1", "b1"]
    assert [asked(recordings, upstream="a"), asked(recordings), asked(recordings)] == ["a1", "a2", "a2"]
    assert asked(recordings, upstream="c") is None
    assert recordings.repeated == 2


def test_the_same_tags_come_first() -> None:
    tags = (("episode", "e2"),)
    recordings = Recordings([recorded("first", tags=(("episode", "e1"),)), recorded("second", tags=tags)])
    assert [asked(recordings, tags=tags), asked(recordings, tags=tags)] == ["second", "first"]
    assert asked(recordings, tags=tags) == "second"


def test_an_answer_is_given_once_whatever_the_rung() -> None:
    recordings = Recordings([recorded("first", b'{"a": 1}'), recorded("second", b'{"a":1}')])
    assert [asked(recordings, b'{"a":  1}'), asked(recordings, b'{"a": 1}')] == ["first", "first"]
    assert asked(recordings, b'{"a":   1}') == "second"


def test_matching_loosely_is_told() -> None:
    recordings = Recordings([recorded("attempt 1", json.dumps(said("at 2026-11-30")).encode())])
    assert asked(recordings, json.dumps(said("at 2026-12-01")).encode()) == "attempt 1"
    assert recordings.loosely == {f"POST {PATH}": "attempt 1"}


def test_other_paths_of_a_request_find_it() -> None:
    recordings = Recordings([recorded("a", paths=("/chat", PATH))])
    assert asked(recordings, path="/chat") == "a"
    assert len(recordings) == 1


def test_large_runs_are_kept_in_a_file() -> None:
    piece = b"x" * (IN_MEMORY // 4)
    answers = (
        RecordedAnswer("POST", PATH, b"%d" % n, ((5, piece), (9, b"end%d" % n)), "keep", str(n)) for n in range(6)
    )
    recordings = Recordings(answers)
    for number in (5, 0, 3):
        found = recordings.find("POST", PATH, b"%d" % number)
        assert found is not None
        assert found[0].pieces == ((5, piece), (9, b"end%d" % number))
        assert found[0].body == b"%d" % number
