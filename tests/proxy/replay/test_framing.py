"""Recorded answers made servable: framing, labels, pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.replay.framing import chunks_of, joined_body, json_answer, labelled, payload, pieces_of, reframed, split_head
from results.http1 import Framer, Kind

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: x\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(parts: list[bytes]) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts if part) + b"0\r\n\r\n"


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_true_chunks_stay_as_they_are(parts: list[bytes]) -> None:
    raw = HEAD + chunked(parts)
    assert reframed(raw) == raw
    assert payload(raw) == b"".join(parts)
    assert b"".join(data for _, data in pieces_of(raw)) == raw
    assert len(pieces_of(raw)) == max(1, len([part for part in parts if part]) + 1)


@given(st.integers(1, 30), st.sampled_from([-9, -1, 1, 7, 400]))
def test_a_chunk_size_that_is_off_is_repaired(length: int, by: int) -> None:
    part = b"y" * (length + 10)
    raw = HEAD + b"%x\r\n%s\r\n0\r\n\r\n" % (len(part) + by, part)
    fixed = reframed(raw)
    assert chunks_of(split_head(fixed)[1]) is not None
    framer = Framer(response=True)
    framer.expect(b"GET")
    pieces = framer.feed(fixed)
    assert payload(fixed) == part
    assert pieces[-1].kind == Kind.END


def test_two_chunks_with_one_size_off() -> None:
    body = b"7\r\nabc\r\n5\r\nhello\r\n0\r\n\r\n"
    assert joined_body(body) == b"abchello"


def test_a_length_that_is_off_is_repaired_and_an_empty_body_is_left() -> None:
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"
    assert reframed(raw) == b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"
    head_only = b"HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n"
    assert reframed(head_only) == head_only
    assert reframed(b"") == b""


def test_labels_stand_at_the_end_of_the_head_and_cannot_break_it() -> None:
    raw = json_answer(200, "OK", b"{}", [("x-one", "a\r\nevil: b"), ("x-two", "Zürich \u2603")])
    head, body = split_head(raw)
    assert body == b"{}"
    assert head.endswith("x-one: a evil: b\r\nx-two: Zürich ?\r\n\r\n".encode("latin-1"))
    assert labelled(b"no http", [("a", "b")]) == b"no http"
