"""The short way of checking arguments says yes only where the full validator does."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacks.formats.plain_schema import plain_schema

NAMES = st.sampled_from(["a", "b", "c"])
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "object", "array", "null"])
MEMBERS = st.fixed_dictionaries({"type": TYPES}, optional={"description": st.just("x")})
SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(NAMES, MEMBERS)},
    optional={"required": st.lists(NAMES, unique=True), "additionalProperties": st.booleans()},
)
VALUES = st.sampled_from(["", "x", 0, 1, 1.0, 1.5, True, False, None, {}, {"a": 1}, [], [1]])


@given(SCHEMAS, st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), VALUES))
def test_yes_only_where_the_validator_says_yes(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    plain = plain_schema(schema)
    assert plain is not None
    valid = jsonschema.Draft202012Validator(schema).is_valid(arguments)
    assert valid or not plain.surely_fits(arguments)
    whole = any(isinstance(value, float) and value.is_integer() for value in arguments.values())
    assert plain.surely_fits(arguments) or not valid or whole  # 1.0 is an integer to the validator alone


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"properties": {}},
        {"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "minProperties": 1},
        {"type": "object", "patternProperties": {"x": {"type": "string"}}},
        {"type": "object", "$defs": {}},
    ],
)
def test_a_schema_that_demands_more_is_not_plain(schema: dict[str, Any]) -> None:
    assert plain_schema(schema) is None


def test_what_a_plain_schema_demands() -> None:
    properties = {"a": {"type": "integer", "description": "x"}, "b": {"type": "number"}}
    plain = plain_schema({"type": "object", "properties": properties, "required": ["a"], "additionalProperties": False})
    assert plain is not None
    said = [plain.surely_fits(each) for each in ({"a": 1}, {"a": 1, "b": 2}, {"a": True}, {"b": 1}, {"a": 1, "c": 1})]
    assert said == [True, True, False, False, False]
    opened = plain_schema({"type": "object", "properties": properties})
    assert opened is not None
    assert opened.surely_fits({"c": 1})
