"""Byte spans of values and of parts of strings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stacks.jsonspans import StringMap, span_of

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    yield path, value
    if isinstance(value, dict):
        for key, member in value.items():
            yield from paths(member, (*path, key))
    elif isinstance(value, list):
        for position, member in enumerate(value):
            yield from paths(member, (*path, position))


@given(values, st.booleans(), st.sampled_from([None, 1]), st.sampled_from([b"", b"\xef\xbb\xbf", b" \n"]))
def test_every_value_is_found(value: Any, ascii_only: bool, indent: int | None, head: bytes) -> None:
    data = head + json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass") + b"\n"
    for path, member in paths(value):
        span = span_of(data, path)
        assert span is not None
        assert json.loads(data[span[0] : span[1]]) == member


def test_of_a_key_that_stands_twice_the_last_value_counts() -> None:
    data = b'{"a": 1, "a": {"b": 2}}'
    assert span_of(data, ("a", "b")) == (20, 21)


def test_paths_that_do_not_exist() -> None:
    data = b'{"a": [1, 2], "s": "x"}'
    for path in (("b",), ("a", 2), ("a", -1), ("a", "x"), ("s", 0), ("s", "x"), (0,)):
        assert span_of(data, path) is None
    assert span_of(b"", ()) is None
    assert span_of(b"[]", (0,)) is None


@given(st.binary(max_size=80), st.lists(st.integers(0, 2) | st.sampled_from(["a", ""]), max_size=3))
def test_never_raises_on_any_bytes(data: bytes, path: list[str | int]) -> None:
    span = span_of(data, tuple(path))
    assert span is None or 0 <= span[0] < span[1] <= len(data)


def test_cut_text_is_searched_as_far_as_it_goes() -> None:
    data = b'{"a": {"b": "half'
    assert span_of(data, ("a", "b")) == (12, 17)


@given(st.text(max_size=30), st.booleans(), st.integers(0, 30), st.integers(0, 30))
def test_string_map_leads_back_to_the_bytes(text: str, ascii_only: bool, one: int, two: int) -> None:
    literal = json.dumps(text, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    first, last = sorted((min(one, len(text)), min(two, len(text))))
    mapped = StringMap(literal, 0)
    assert mapped.text == text
    start, end = mapped.span(first, last)
    assert json.loads(b'"' + literal[start:end] + b'"') == text[first:last]


def test_string_map_with_surrogate_pairs_and_escapes() -> None:
    literal = b'"a\\ud83d\\ude00\\n\xc3\xa9z"'
    mapped = StringMap(literal, 100)
    assert mapped.text == "a\U0001f600\n\u00e9z"
    assert mapped.span(1, 2) == (102, 114)
    assert mapped.span(2, 3) == (114, 116)
    assert mapped.span(3, 5) == (116, 119)
    assert mapped.span(5, 5) == (119, 119)
    assert mapped.offset(4) == 118
