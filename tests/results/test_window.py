"""What two requests share is found to the byte, and references stand for exactly what was there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from results.assemble import RequestBook
from results.window import RequestReferences, RequestWindow, Stored, common_prefix, common_suffix

HEAD = b"POST / HTTP/1.1\r\n\r\n"
LONG = b"".join(b"%d," % number for number in range(600)) + "ünï".encode() * 80
shared_bytes = st.sampled_from([b"", b"ab", b"x" * 255, b"y" * 256, b"z" * 257, LONG[:1000], LONG])
other_bytes = st.one_of(st.binary(max_size=3), st.sampled_from(["é".encode(), "è".encode(), b"\xff", LONG[5:700]]))


def slow_prefix(one: bytes, other: bytes) -> int:
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return same


@given(shared_bytes, other_bytes, other_bytes, st.binary(max_size=2), st.binary(max_size=2))
def test_common_ends_are_found_to_the_byte(
    shared: bytes, one: bytes, other: bytes, before: bytes, behind: bytes
) -> None:
    mine, theirs = before + shared + one, behind + shared + other
    expected = slow_prefix(shared + one, shared + other)
    assert common_prefix(mine, len(before), theirs, len(behind)) == expected
    mine, theirs = one + shared + before, other + shared + behind
    limit = min(len(one), len(other)) + len(shared)
    expected = slow_prefix((one + shared)[::-1], (other + shared)[::-1])
    for allowed in (limit, expected, max(0, expected - 1)):
        found = common_suffix(mine, len(one + shared), theirs, len(other + shared), allowed)
        assert found == min(expected, allowed)


@given(st.lists(st.tuples(shared_bytes, other_bytes, shared_bytes), min_size=2, max_size=5))
def test_references_stand_for_the_same_bytes_in_one_read_and_in_many(bodies: list[tuple[bytes, bytes, bytes]]) -> None:
    window = RequestWindow(3, 1 << 20)
    book = RequestBook()
    book.window = RequestWindow(3, 1 << 20)
    for attempt, pieces in enumerate(bodies, 1):
        data = HEAD + b"".join(pieces)
        parts = window.references(data, len(HEAD))
        assert book.resolve(tuple(parts or [data.decode("latin-1")])) == data or parts is None
        by_read = RequestReferences(window, len(HEAD), len(data))
        offset = 0
        for piece in (HEAD + pieces[0], *pieces[1:]):
            found = by_read.encode(piece, offset)
            assert found is None or book.resolve(tuple(found)) == piece
            offset += len(piece)
        for kept in (window, book.window):
            kept.add(Stored(attempt, data, len(HEAD)))


def test_the_middle_alone_is_written_again() -> None:
    window = RequestWindow(3, 1 << 20)
    window.add(Stored(7, HEAD + LONG + b"one" + LONG, len(HEAD)))
    parts = window.references(HEAD + LONG + b"another" + LONG, len(HEAD))
    assert parts == [HEAD.decode(), (7, 19, len(LONG) + 1 - 1), "another", (7, 19 + len(LONG) + 3, len(LONG))]
