"""Bodies: framing removed, codings undone, every byte traced back to the wire, nothing believed."""

from __future__ import annotations

import gzip
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from results.body import Body, PayloadSplitter, decode_body
from results.coding import CodingError, ContentDecoder
from results.http1 import Framer, Kind


def raw_deflate(data: bytes) -> bytes:
    squeezer = zlib.compressobj(wbits=-15)
    return squeezer.compress(data) + squeezer.flush()


CODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


def pieces(data: bytes, points: list[int]) -> list[bytes]:
    edges = [0, *sorted({point % (len(data) + 1) for point in points}), len(data)]
    return [data[start:end] for start, end in zip(edges, edges[1:], strict=False)]  # noqa: RUF007


def framed(parts: list[bytes]) -> bytes:
    return b"".join(b"%X;ext=1\r\n%b\r\n" % (len(part), part) for part in parts if part) + b"0\r\nTrailer: x\r\n\r\n"


@pytest.mark.parametrize("coding", CODERS)
@given(data=st.binary(max_size=300), points=st.lists(st.integers(0, 400), max_size=6))
def test_codings_at_every_cut(coding: str, data: bytes, points: list[int]) -> None:
    decoder = ContentDecoder(coding)
    out = b"".join(part for piece in pieces(CODERS[coding](data), points) for part in decoder.feed(piece))
    assert out == data
    assert decoder.finished


@given(st.binary(min_size=1, max_size=300))
def test_variants_met_in_practice(data: bytes) -> None:
    assert b"".join(ContentDecoder("deflate").feed(raw_deflate(data))) == data
    assert b"".join(ContentDecoder("gzip").feed(gzip.compress(data) + gzip.compress(b"two"))) == data + b"two"
    assert b"".join(ContentDecoder("zstd").feed(CODERS["zstd"](data) + CODERS["zstd"](b"two"))) == data + b"two"
    assert b"".join(ContentDecoder("gzip, br").feed(brotli.compress(gzip.compress(data)))) == data
    assert b"".join(ContentDecoder("identity").feed(data)) == data


@pytest.mark.parametrize("coding", CODERS)
@given(junk=st.binary(min_size=1, max_size=60))
def test_junk_is_given_as_it_is_or_cut_short(coding: str, junk: bytes) -> None:
    body = decode_body(junk, 0, chunked=False, content_encoding=coding)
    if not body.problems:
        # Neither has a checksum in its shortest form (RFC 7932, RFC 1951): some short junk is a whole stream of them.
        assert coding in ("br", "deflate")
        assert (brotli.decompress(junk) if coding == "br" else zlib.decompress(junk, -15)) == body.data
        return
    assert body.data == junk or "cut short" in body.problems[-1]


def test_big_answers_in_one_piece() -> None:
    data = bytes(3_500_000)
    for coding, coder in CODERS.items():
        sizes = [len(part) for part in ContentDecoder(coding).feed(coder(data))]
        assert sum(sizes) == len(data)
        assert max(sizes) <= 4 << 20


@pytest.mark.parametrize("coding", CODERS)
def test_bomb_is_cut(coding: str) -> None:
    body = decode_body(CODERS[coding](bytes(5_000_000)), 0, chunked=False, content_encoding=coding, limit=1000)
    assert len(body.data) == 1000
    assert body.problems == ["the decoded body was cut at 1000 bytes"]


@given(st.binary(max_size=200), st.lists(st.integers(0, 300), max_size=6), st.lists(st.integers(0, 300), max_size=6))
def test_chunked_body_is_traced_byte_for_byte(data: bytes, inner: list[int], outer: list[int]) -> None:
    wire = b"HEAD" + framed(pieces(data, inner))
    body = decode_body(wire, 4, chunked=True, pieces=[(0, point) for point in outer])
    assert (body.data, body.problems) == (data, [])
    assert b"".join(wire[s.wire_start : s.wire_end] for s in body.segments) == data
    for at in range(len(data)):
        start, end = body.wire_range(at, at + 1)
        assert wire[start:end] == data[at : at + 1]
    splitter = PayloadSplitter(chunked=True)
    again = b""
    for piece in pieces(wire[4:], outer):
        spans = splitter.feed(piece)
        assert [start for _, start, _ in spans][1:] == [end for _, _, end in spans][:-1]
        again += b"".join(piece[start:end] for is_payload, start, end in spans if is_payload)
    assert (again, splitter.done, splitter.broken) == (data, True, False)


def test_range_across_chunks_covers_the_framing_between() -> None:
    wire = b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n"
    body = decode_body(wire, 0, chunked=True)
    start, end = body.wire_range(1, 5)
    assert wire[start:end] == b"bc\r\n3\r\nde"
    assert body.wire_range(0, 0) == (3, 3)


def test_coded_body_is_traced_to_the_reads_it_came_in() -> None:
    text = bytes(range(256)) * 40
    squeezer = zlib.compressobj()
    one = squeezer.compress(text[:5000]) + squeezer.flush(zlib.Z_SYNC_FLUSH)
    two = squeezer.compress(text[5000:]) + squeezer.flush()
    body = decode_body(one + two, 0, chunked=False, content_encoding="deflate", pieces=[(0, len(one))])
    assert body.data == text
    assert body.wire_range(0, 10) == (0, len(one))
    assert body.wire_range(9000, 9001) == (len(one), len(one) + len(two))


@given(st.binary(max_size=80), st.lists(st.integers(0, 80), max_size=4))
def test_any_bytes_as_chunked_agree_with_the_framer(junk: bytes, points: list[int]) -> None:
    framer = Framer(response=True)
    framer.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    taken = framer.feed(junk)
    body = decode_body(junk, 0, chunked=True, pieces=[(0, point) for point in points])
    if any(piece.kind is Kind.END for piece in taken):
        assert body.problems == []
    elif not framer.opaque:
        assert body.problems == ["the last chunk is missing"]


def test_problems_are_said() -> None:
    assert decode_body(b"5\r\nab", 0, chunked=True).problems == ["the last chunk is missing"]
    assert "cannot be followed" in decode_body(b"zz\r\nab", 0, chunked=True).problems[0]
    unknown = decode_body(b"ab", 0, chunked=False, content_encoding="lz9")
    assert (unknown.data, "not known" in unknown.problems[0]) == (b"ab", True)
    lying = decode_body(b"plain text", 0, chunked=False, content_encoding="gzip")
    assert (lying.data, "content-encoding says gzip" in lying.problems[0]) == (b"plain text", True)
    short = decode_body(gzip.compress(b"x" * 999)[:-9], 0, chunked=False, content_encoding="gzip")
    assert short.problems == ["the gzip data is cut short"]


def test_empty_body_has_no_ranges() -> None:
    assert Body(b"", [], []).wire_range(0, 5) == (0, 0)
    with pytest.raises(CodingError):
        list(ContentDecoder("br").feed(brotli.compress(b"a") + b"more"))
