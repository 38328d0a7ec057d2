"""Strings, numbers and words as JSON has them and as models write them; and tags that the end of a text cuts."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.formats.json_nodes import MAX_DEPTH, decode_piece, too_deep
from stacks.formats.json_text import (
    dumps,
    loads,
    number_of,
    read_scalar,
    read_strict_string,
    read_string,
    skip_space,
    unescape,
)
from stacks.formats.typed_values import trim_cut_tag, typed_value


@pytest.mark.parametrize(
    ("text", "value", "end", "whole", "repairs"),
    [
        ('"a"', "a", 3, True, ()),
        ('"a", x', "a", 3, True, ()),
        ('"a"}', "a", 3, True, ()),
        ('"a": 1', "a", 3, True, ()),
        ('"a"\n]', "a", 3, True, ()),
        ('"a" "b": 1', "a", 3, True, ()),
        ('"say "hi" now"', 'say "hi" now', 14, True, ("unescaped_quote", "unescaped_quote")),
        ("'a'", "a", 3, True, ("single_quotes",)),
        ("'a \"b\" c'", 'a "b" c', 9, True, ("single_quotes",)),
        ("\u201ca\u201d", "a", 3, True, ("typographic_quotes",)),
        ("`a`", "a", 3, True, ("typographic_quotes",)),
        ('"a', "a", 2, False, ("missing_quote",)),
        ('"a\\', "a", 3, False, ("missing_quote",)),
        ('"a\nb"', "a\nb", 5, True, ("control_character",)),
        ('"a\\qb"', "a\\qb", 6, True, ("invalid_escape",)),
        ('"a\\"b"', 'a"b', 6, True, ()),
        ('"\\u00e9\\t"', "\u00e9\t", 10, True, ()),
        ('""', "", 2, True, ()),
    ],
)
def test_strings(text: str, value: str, end: int, whole: bool, repairs: tuple[str, ...]) -> None:
    token = read_string(text, 0, len(text))
    assert (token.value, token.end, token.complete) == (value, end, whole)
    assert tuple(dict.fromkeys(token.repairs)) == tuple(dict.fromkeys(repairs))
    strict = read_strict_string(text, 0, len(text))
    if whole and not repairs:
        assert strict is not None
        assert (strict.value, strict.end) == (value, end)
    assert read_string("x" + text, 1, len(text) + 1).end == end + 1


@pytest.mark.parametrize("text", ["'a'", '"a', '"a\nb"', '"\\q"', '"\\u12"'])
def test_no_valid_string(text: str) -> None:
    assert read_strict_string(text, 0, len(text)) is None


def test_a_quote_that_nothing_fitting_follows_is_text() -> None:
    assert read_string('"a" x', 0, 5) == ('a" x', 5, False, ("unescaped_quote", "missing_quote"))


def test_a_string_ends_at_the_limit_at_the_latest() -> None:
    assert read_string('"abc"', 0, 3) == ("ab", 3, False, ("missing_quote",))
    assert read_string('"abc"', 0, 5).complete
    assert read_strict_string('"abc"', 0, 4) is None
    assert read_strict_string('"abc"', 0, 5) == ("abc", 5, True, ())


@pytest.mark.parametrize(
    ("text", "value", "end", "whole", "repairs"),
    [
        ("12,", 12, 2, True, ()),
        ("-1.5e2]", -150.0, 6, True, ()),
        ("0}", 0, 1, True, ()),
        ("true,", True, 4, True, ()),
        ("false", False, 5, True, ()),
        ("null", None, 4, True, ()),
        ("True,", True, 4, True, ("python_literal",)),
        ("None", None, 4, True, ("python_literal",)),
        ("1e999,", "1e999", 5, True, ("number_out_of_range",)),
        ("007,", "007", 3, True, ("unquoted_value",)),
        ("1.2.3,", "1.2.3", 5, True, ("unquoted_value",)),
        ("new york, x", "new york", 8, True, ("unquoted_value",)),
        ("new york", "new york", 8, False, ("unquoted_value",)),
        ("truely,", "truely", 6, True, ("unquoted_value",)),
    ],
)
def test_scalars(text: str, value: Any, end: int, whole: bool, repairs: tuple[str, ...]) -> None:
    token = read_scalar(text, 0, len(text))
    assert token is not None
    assert (token.value, type(token.value), token.end) == (value, type(value), end)
    assert (token.complete, token.repairs) == (whole, repairs)


@pytest.mark.parametrize("text", ["", ",", "}", "<a", '"'])
def test_no_scalar(text: str) -> None:
    assert read_scalar(text, 0, len(text)) is None


@pytest.mark.parametrize(
    ("body", "text", "repairs"),
    [
        ("plain", "plain", ()),
        ("\\n\\/\\\\", "\n/\\", ()),
        ("\\u00e9\\ud83d\\ude00", "\u00e9\U0001f600", ()),
        ("a\tb", "a\tb", ("control_character",)),
        ("\\'\\d", "'\\d", ("invalid_escape",)),
        ("\\d\\ud83d\\ude00\\b\\f\\r\\t\\n", "\\d\U0001f600\b\f\r\t\n", ("invalid_escape",)),
        ('a"b', 'a"b', ()),
    ],
)
def test_unescaping(body: str, text: str, repairs: tuple[str, ...]) -> None:
    assert unescape(body) == (text, repairs)


def test_numbers() -> None:
    assert [number_of(word) for word in ("1", "-2", "1.0", "1e2", "1E2", "1e999", "-1e999")] == [
        1, -2, 1.0, 100.0, 100.0, "1e999", "-1e999",
    ]  # fmt: skip
    assert type(number_of("1.0")) is float
    assert number_of("1" * 4000) == int("1" * 4000)
    assert number_of("1" * 4001) == "1" * 4001


def test_whole_texts() -> None:
    assert loads('{"a": [1, 1e999]}') == {"a": [1, "1e999"]}
    for text in ("NaN", "Infinity", "-Infinity", "{", "[" * 100_000):
        with pytest.raises(ValueError):
            loads(text)
    assert dumps({"a": "\u00e9"}) == '{"a": "\u00e9"}'


def test_white_space() -> None:
    assert [skip_space("a \t\r\n\u00a0\ufeffb", at) for at in (0, 1, 3, 7)] == [0, 7, 7, 7]
    assert skip_space("  ", 0) == 2
    assert skip_space("", 0) == 0
    assert skip_space("a\u2003b", 1) == 1


def nested(depth: int) -> Any:
    value: Any = {}
    for number in range(depth - 1):
        value = [value] if number % 2 else {"a": value}
    return value


def test_depth() -> None:
    assert not too_deep(1)
    assert not too_deep(nested(MAX_DEPTH))
    assert too_deep(nested(MAX_DEPTH + 1))
    assert too_deep([1, "x", nested(MAX_DEPTH)])


@pytest.mark.parametrize(
    ("piece", "found"),
    [
        ('{"a": 1} x', ({"a": 1}, 8, False)),
        ('{"a": 1e999}', ({"a": "1e999"}, 12, False)),
        ('{"a": 1,} and more text behind it', (None, 0, False)),
        ("x and more text behind it", (None, 0, False)),
        ('{"a": "b and more text', (None, 0, True)),
        ('{"a": [1, 2', (None, 0, True)),
        ('{"a": NaN} and more', (None, 0, False)),
    ],
)
def test_pieces(piece: str, found: tuple[Any, int, bool]) -> None:
    assert decode_piece(piece) == found


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("abc", 0, 3),
        ("abc</t", 0, 3),
        ("abc</t>", 0, 3),
        ("abc<", 0, 3),
        ("abc</x", 0, 6),
        ("</t", 0, 0),
        ("</t", 1, 3),
        ("abc<|e", 0, 3),
        ("a</t>b", 0, 6),
        ("", 0, 0),
    ],
)
def test_a_tag_that_the_end_cuts(text: str, start: int, end: int) -> None:
    assert trim_cut_tag(text, start, ("</t>", "<|end|>")) == end
    assert trim_cut_tag(text, start, ()) == len(text)


@pytest.mark.parametrize(
    ("text", "types", "value", "repairs"),
    [
        ("5", None, "5", ()),
        ("5", {"integer"}, 5, ()),
        (" 5 ", {"integer"}, 5, ()),
        (" 5 ", {"string"}, " 5 ", ()),
        ("5", {"string", "integer"}, "5", ()),
        ("null", {"string", "null"}, None, ()),
        ("null", {"string"}, "null", ()),
        ("x", {"string", "null"}, "x", ()),
        ("True", {"boolean"}, True, ()),
        ("None", {"null"}, None, ()),
        ("{'a': None}", {"object"}, {"a": None}, ()),
        ("['a']", {"array"}, ["a"], ()),
        ("['a']", {"integer"}, "['a']", ()),
        ("{'a': true}", {"object"}, {"a": True}, ("single_quotes",)),
        ("{'a': true} x", {"object"}, "{'a': true} x", ()),
        ("{'a': tr", {"object"}, "{'a': tr", ()),
        ("five", {"integer"}, "five", ()),
    ],
)
def test_values_under_a_schema(text: str, types: set[str] | None, value: Any, repairs: tuple[str, ...]) -> None:
    found, noted = typed_value(text, frozenset(types) if types is not None else None)
    assert (found, type(found), noted) == (value, type(value), repairs)


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5), ("-5", -5), ('{"a": 1}', {"a": 1}), ("[1]", [1]), ("true", True), ("null", None), ("false", False),
     ('"x"', "x"), ("x", "x"), ("tall", "tall"), ("", ""), ("5 apples", "5 apples"), (" 5", 5)],
)  # fmt: skip
def test_values_of_formats_that_write_others_as_json(text: str, value: Any) -> None:
    assert typed_value(text, None, untyped_json=True) == (value, ())
    assert typed_value(text, frozenset({"string"}), untyped_json=True) == (text, ())
