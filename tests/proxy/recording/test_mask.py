"""Masking streams: wherever a secret is cut, it is not stored, and nothing else changes."""

from __future__ import annotations

import gzip
import itertools
import json
import zlib
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.recording.mask import BodyMasker, Rules, TextMask
from proxy.recording.secrets import Secrets

SECRET = b'sk-canary/7Q+xyz=Zz"\xc3\xa9!'
PLAIN_SECRET = b"sk-canary-0123456789"


def rules(*secrets: bytes, patterns: tuple[str, ...] = (), fields: tuple[str, ...] = ()) -> Rules:
    known = Secrets()
    for secret in secrets:
        assert known.learn(secret)
    return Rules(known, patterns, fields)


def cut(data: bytes, points: list[int]) -> list[bytes]:
    edges = [0, *sorted({point % (len(data) + 1) for point in points}), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def stored(masker: TextMask | BodyMasker, pieces: list[bytes]) -> bytes:
    """What is stored, checking on the way that it never runs ahead of what was read."""
    out, read = b"", 0
    for piece in pieces:
        out += masker.feed(piece)
        read += len(piece)
        assert len(out) <= read
    return out + masker.finish()


def chunked(payload: list[bytes]) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in payload if piece) + b"0\r\n\r\n"


def spelled(secret: bytes) -> list[bytes]:
    text = secret.decode()
    return [
        secret,
        quote(secret, safe="").encode(),
        quote(secret, safe="").lower().encode() if b"%" in quote(secret).encode() else secret,
        json.dumps(text)[1:-1].encode(),
        json.dumps(text, ensure_ascii=False)[1:-1].encode(),
        json.dumps(json.dumps(text))[3:-3].encode(),
    ]


@given(st.binary(max_size=40), st.binary(max_size=40), st.lists(st.integers(0, 200), max_size=6), st.integers(0, 5))
def test_every_spelling_at_every_cut(before: bytes, after: bytes, points: list[int], which: int) -> None:
    form = spelled(SECRET)[which]
    if which == 2:
        form = spelled(SECRET)[1]
    data = before + form + after
    out = stored(TextMask(rules(SECRET)), cut(data, points))
    assert len(out) == len(data)
    assert form not in out
    masked = [index for index in range(len(data)) if out[index] != data[index]]
    if masked and form not in before + after:
        assert masked[0] >= len(before)
        assert masked[-1] < len(before) + len(form)


@pytest.mark.parametrize("lead", [b"", b"u", b"us", b"user:"])
@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
def test_secret_inside_base64(lead: bytes, encode: object) -> None:
    data = encode(lead + PLAIN_SECRET + b":tail")  # type: ignore[operator]
    out = stored(TextMask(rules(PLAIN_SECRET)), [data[:7], data[7:]])
    assert len(out) == len(data)
    kept = bytes(out).replace(b"*", b"")
    assert len(kept) <= len(data) - len(PLAIN_SECRET)


@given(st.lists(st.integers(0, 200), max_size=200))
def test_at_most_three_bytes_of_a_secret_are_let_go(points: list[int]) -> None:
    data = b"before " + PLAIN_SECRET + b" after"
    out = stored(TextMask(rules(PLAIN_SECRET)), cut(data, points))
    start = data.index(PLAIN_SECRET)
    assert out[:start] == data[:start]
    assert out.endswith(b" after")
    assert out[start + 3 : start + len(PLAIN_SECRET)] == b"*" * (len(PLAIN_SECRET) - 3)


@given(st.lists(st.sampled_from([b"abcdef", b"abcdefgh", b"efghij", b"abcd", b"ghijkl", b"x"]), max_size=12), st.data())
def test_overlapping_secrets_are_masked_whatever_the_cuts(parts: list[bytes], draw: st.DataObject) -> None:
    data = b"".join(parts)
    secrets = rules(b"abcdef", b"abcdefgh", b"efghij")
    whole = secrets.secrets.mask(data)
    points = draw.draw(st.lists(st.integers(0, len(data)), max_size=8))
    out = stored(TextMask(secrets), cut(data, points))
    assert len(out) == len(data)
    for index, (one, other) in enumerate(zip(out, whole, strict=True)):
        # Up to three bytes of a secret may have been let go at a cut.
        assert one == other or (chr(other) == "*" and data[index] == one)
    for secret in (b"abcdef", b"efghij"):
        assert secret not in out


@given(st.binary(max_size=200), st.lists(st.integers(0, 300), max_size=8))
def test_clean_bytes_pass_unchanged(data: bytes, points: list[int]) -> None:
    assert stored(TextMask(rules(b"never-there-secret")), cut(data, points)) == data
    assert stored(TextMask(rules(patterns=("never-[0-9]+",), fields=("never",))), cut(data, points)) == data


@given(st.lists(st.integers(0, 100), max_size=5), st.lists(st.integers(0, 200), max_size=8))
def test_secret_across_chunk_framing(inner: list[int], outer: list[int]) -> None:
    payload = b'{"echo": "' + PLAIN_SECRET + b'"}'
    wire = chunked(cut(payload, inner))
    out = stored(BodyMasker(rules(PLAIN_SECRET), chunked=True, content_encoding=""), cut(wire, outer))
    assert len(out) == len(wire)
    masker = rules(PLAIN_SECRET)
    reference = stored(BodyMasker(masker, chunked=True, content_encoding=""), [wire])
    assert reference.count(b"*") == len(PLAIN_SECRET)
    assert out.count(b"*") >= len(PLAIN_SECRET) - 3
    for index, byte in enumerate(out):
        assert byte in (wire[index], ord("*"))


def test_secret_in_trailers_is_masked() -> None:
    wire = b"3\r\nabc\r\n0\r\nX-Echo: " + PLAIN_SECRET + b"\r\n\r\n"
    out = stored(BodyMasker(rules(PLAIN_SECRET), chunked=True, content_encoding=""), [wire])
    assert out == wire.replace(PLAIN_SECRET, b"*" * len(PLAIN_SECRET))


def compress(coding: str, data: bytes) -> bytes:
    if coding == "gzip":
        return gzip.compress(data)
    if coding == "deflate":
        return zlib.compress(data)
    if coding == "br":
        return brotli.compress(data)
    return zstandard.ZstdCompressor().compress(data)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
@given(points=st.lists(st.integers(0, 400), max_size=8), framed=st.booleans(), dirty=st.booleans())
def test_coded_bodies(coding: str, points: list[int], framed: bool, dirty: bool) -> None:
    text = b'{"a": "' + bytes(range(32, 127)) * 3 + (PLAIN_SECRET if dirty else b"") + b'", "b": "end"}'
    wire = compress(coding, text)
    if framed:
        wire = chunked([wire[:50], wire[50:]])
    masker = BodyMasker(rules(PLAIN_SECRET), chunked=framed, content_encoding=coding)
    out, decoded, first = b"", b"", None
    for piece in cut(wire, points):
        out += masker.feed(piece)
        if (taken := masker.take_decoded()) is not None:
            first = taken[0] if first is None else first
            assert taken[0] == first + len(decoded)
            decoded += taken[1]
    out += masker.finish()
    if (taken := masker.take_decoded()) is not None:
        first = taken[0] if first is None else first
        decoded += taken[1]
    if not dirty:
        assert (out, decoded) == (wire, b"")
        return
    assert first is not None
    assert wire.startswith(out)
    assert len(out) < len(wire)
    whole = text.replace(PLAIN_SECRET, b"*" * len(PLAIN_SECRET))
    assert len(decoded) == len(text) - first
    assert PLAIN_SECRET not in decoded
    assert decoded[decoded.index(b'", "b"') :] == whole[whole.index(b'", "b"') :]


@given(st.lists(st.integers(0, 100), max_size=6), st.booleans())
def test_body_that_lies_about_its_coding_is_plain(points: list[int], framed: bool) -> None:
    payload = b"this is no gzip: " + PLAIN_SECRET + b" at all"
    wire = chunked([payload[:25], payload[25:]]) if framed else payload
    out = stored(BodyMasker(rules(PLAIN_SECRET), chunked=framed, content_encoding="gzip"), cut(wire, points))
    assert len(out) == len(wire)
    assert out.count(b"*") >= len(PLAIN_SECRET) - 3


@given(st.lists(st.integers(0, 100), max_size=8))
def test_patterns_at_every_cut(points: list[int]) -> None:
    data = b"mail bob@example.org, card 1234-5678-9012, end"
    wanted = rules(patterns=(r"[a-z]+@[a-z.]+", r"\d{4}-\d{4}-\d{4}"))
    out = stored(TextMask(wanted), cut(data, points))
    assert out == b"mail " + b"*" * 15 + b", card " + b"*" * 14 + b", end"


def test_pattern_that_never_ends_is_masked_in_bounded_memory() -> None:
    mask = TextMask(rules(patterns=(r"BEGIN.*END",)))
    out = stored(mask, [b"x BEGIN", *[b"a" * 4096] * 40, b" tail"])
    assert out.startswith(b"x *****")
    assert len(out) == 7 + 4096 * 40 + 5


def test_bad_pattern_is_refused() -> None:
    with pytest.raises(ValueError, match="not a regular expression"):
        rules(patterns=("(",))


@settings(max_examples=600)
@given(st.lists(st.integers(0, 300), max_size=8), st.text(max_size=30), st.integers(0, 2))
def test_json_fields_at_every_depth(points: list[int], value: str, depth: int) -> None:
    document = json.dumps({"a": 1, "pass phrase": value, "b": "after"})
    for _ in range(depth):
        document = json.dumps({"arguments": document, "z": "last"})
    data = document.encode()
    out = stored(TextMask(rules(fields=("pass phrase",))), cut(data, points))
    assert len(out) == len(data)
    found = json.loads(out)
    for _ in range(depth):
        assert found["z"] == "last"
        found = json.loads(found["arguments"])
    assert found["a"] == 1
    assert found["b"] == "after"
    assert set(found["pass phrase"]) <= {"*"}
    assert bool(found["pass phrase"]) == bool(value)


def test_a_secret_learned_in_the_middle_of_a_framed_body() -> None:
    known = Secrets()
    masker = BodyMasker(Rules(known, (), ()), chunked=True, content_encoding="")
    wire = chunked([b"first part", PLAIN_SECRET, b"last part"])
    out = masker.feed(wire[:8])
    known.learn(PLAIN_SECRET)
    out += masker.feed(wire[8:]) + masker.finish()
    assert out == wire.replace(PLAIN_SECRET, b"*" * len(PLAIN_SECRET))
