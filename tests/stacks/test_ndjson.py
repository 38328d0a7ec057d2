"""NDJSON splitter: lines, ranges, independence of the split."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stacks.ndjson import NdjsonLine, NdjsonParser


def parse(body: bytes, cuts: list[int] | None = None) -> list[NdjsonLine]:
    parser = NdjsonParser()
    lines: list[NdjsonLine] = []
    last = 0
    for cut in [*sorted(cuts or []), len(body)]:
        lines += parser.feed(body[last:cut])
        last = cut
    return lines + parser.close()


def test_lines_with_ranges() -> None:
    body = b'\xef\xbb\xbf{"a":1}\r\n\n  {"b":2} \n{"c":'
    lines = parse(body)
    assert [line.data for line in lines] == [b'{"a":1}', b'{"b":2}', b'{"c":']
    assert [body[line.start : line.end] for line in lines] == [line.data for line in lines]
    assert [line.closed for line in lines] == [True, True, False]


def test_nothing_in_nothing_out() -> None:
    assert parse(b"") == []
    assert parse(b"\r\n \n\n") == []


bodies = st.lists(
    st.sampled_from([b"{}", b'{"a":"\xc3\xa9"}', b"\n", b"\r\n", b" ", b"\t", b"x", b"\xef\xbb\xbf", b"\xff"]),
    max_size=25,
).map(b"".join)


@given(bodies, st.lists(st.integers(0, 150), max_size=10))
def test_result_is_independent_of_the_split(body: bytes, cuts: list[int]) -> None:
    whole = parse(body)
    assert parse(body, [min(cut, len(body)) for cut in cuts]) == whole
    assert parse(body, list(range(len(body)))) == whole
    for line in whole:
        assert body[line.start : line.end] == line.data
        assert b"\n" not in line.data
