"""Raw parameter texts under the types of a schema."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.formats.typed_values import typed_value

OBJECT, ARRAY, INTEGER, STRING = (frozenset({name}) for name in ("object", "array", "integer", "string"))


@pytest.mark.parametrize(
    ("text", "types", "value", "repairs"),
    [
        ("5", INTEGER, 5, ()),
        ("5", STRING, "5", ()),
        ("5", None, "5", ()),
        (" true ", frozenset({"boolean"}), True, ()),
        ("True", frozenset({"boolean"}), True, ()),
        ("None", frozenset({"null"}), None, ()),
        ("null", frozenset({"null", "string"}), None, ()),
        ("null", STRING, "null", ()),
        ("five", INTEGER, "five", ()),
        ("{'a': None}", OBJECT, {"a": None}, ()),
        ("{a: true}", OBJECT, {"a": True}, ("unquoted_key",)),
        ("[1, 2,, x]", ARRAY, [1, 2, "x"], ("extra_comma", "unquoted_value")),
        ("[1, 2", ARRAY, "[1, 2", ()),
        ("{a: true} and more", OBJECT, "{a: true} and more", ()),
        ("{a: true}", INTEGER, "{a: true}", ()),
    ],
)
def test_values(text: str, types: frozenset[str] | None, value: Any, repairs: tuple[str, ...]) -> None:
    assert typed_value(text, types) == (value, repairs)


@pytest.mark.parametrize(
    ("text", "value"), [("5", 5), ('{"a": 1}', {"a": 1}), ("word", "word"), ("tru", "tru"), ("", "")]
)
def test_a_format_that_writes_json_is_read_so_without_a_schema(text: str, value: Any) -> None:
    assert typed_value(text, None, untyped_json=True) == (value, ())
