"""The short way of reading a whole plain message gives what a framer gives, and whole chunks are told from others."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.chunked import ChunkedBody, plain_chunks
from results.http1 import Framer, Kind, whole_message

HEADS = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 204 No\r\n",
    b"HTTP/1.1 100 Go\r\n",
    b"HTTP/1.1 101 Up\r\n",
    b"nonsense\r\n",
]
FIELDS = [b"", b"Content-Length: 3\r\n", b"content-length: 0\r\n", b"Transfer-Encoding: chunked\r\n", b"Upgrade: x\r\n"]


@given(
    st.sampled_from(HEADS),
    st.lists(st.sampled_from(FIELDS), max_size=2),
    st.sampled_from([b"", b"ab", b"abc", b"abcd"]),
)
def test_a_whole_message_is_one_to_a_framer_too(start: bytes, fields: list[bytes], body: bytes) -> None:
    data = start + b"".join(fields) + b"\r\n" + body
    head = whole_message(data, response=True)
    framer = Framer(response=True)
    framer.expect(b"GET")
    pieces = framer.feed(data)
    if head is not None:
        expected = [Kind.HEAD, Kind.BODY, Kind.END] if head.length else [Kind.HEAD, Kind.END]
        assert [piece.kind for piece in pieces] == expected
        assert b"".join(piece.data for piece in pieces) == data
        assert pieces[0].data == head.raw


@pytest.mark.parametrize("fields", [b"Content-Length: 3\r\n", b"X: y\r\nContent-Length: 3\r\n"])
def test_a_message_of_a_stated_length_is_read_whole(fields: bytes) -> None:
    data = b"HTTP/1.1 200 OK\r\n" + fields + b"\r\nabc"
    assert whole_message(data, response=True) is not None
    assert whole_message(data[:-1], response=True) is None
    assert whole_message(data + b"d", response=True) is None


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=5), st.sampled_from([b"", b"0\r\n\r\n", b"2\r\nab", b"x"]))
def test_whole_chunks_are_told_one_by_one(payloads: list[bytes], rest: bytes) -> None:
    data = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in payloads)
    found = plain_chunks(data + rest)
    assert [data[start:end] for start, end in found] == payloads
    assert all(after - end >= 4 for (_, end), (after, _) in pairwise(found))
    assert ChunkedBody().feed(data) == len(data)
