"""Calls against what was offered."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from stacks.formats import check_arguments, check_call, offered_tools

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}},
    "required": ["city"],
    "additionalProperties": False,
}


class Call(NamedTuple):
    """A name and arguments."""

    name: str
    arguments: Any


def tools(schema: Any = SCHEMA) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "get_weather", "parameters": schema}}]


@pytest.mark.parametrize(
    ("call", "verdict", "path", "keyword"),
    [
        (Call("get_weather", {"city": "Paris"}), "ok", "", ""),
        (Call("launch_rocket", {}), "unknown_tool", "", ""),
        (Call("Get_Weather", {"city": "Paris"}), "unknown_tool", "", ""),
        (Call("get_weather", {}), "invalid_arguments", "$", "required"),
        (Call("get_weather", {"city": 5}), "invalid_arguments", "$.city", "type"),
        (Call("get_weather", {"city": "a", "days": "3"}), "invalid_arguments", "$.days", "type"),
        (Call("get_weather", {"city": "a", "unit": "K"}), "invalid_arguments", "$.unit", "enum"),
        (Call("get_weather", {"city": "a", "x": 1}), "invalid_arguments", "$", "additionalProperties"),
        (Call("get_weather", ["Paris"]), "invalid_arguments", "$", "type"),
        (Call("get_weather", None), "invalid_arguments", "$", "type"),
        (Call("get_weather", "Paris"), "invalid_arguments", "$", "type"),
    ],
)
def test_verdicts(call: Call, verdict: str, path: str, keyword: str) -> None:
    check = check_call(call, tools())
    assert (check.verdict, check.path, check.keyword, check.schema_fault) == (verdict, path, keyword, "")
    assert check.ok is (verdict == "ok")
    assert bool(check.reason) is (verdict != "ok")


@pytest.mark.parametrize("schema", [None, {}, True, {"type": "object"}])
def test_a_missing_schema_accepts_anything(schema: Any) -> None:
    check = check_call(Call("get_weather", {"anything": [1]}), tools(schema))
    assert (check.verdict, check.schema_fault) == ("ok", "")


DEEP: dict[str, Any] = {}
for _ in range(3000):
    DEEP = {"properties": {"a": DEEP}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"type": "object", "required": "city"},
        {"properties": [1]},
        {"$ref": "#/nowhere"},
        {"$ref": "http://localhost:1/schema.json"},
        {"$schema": "http://nowhere.invalid/x", "type": 5},
        {"pattern": "("},
        {"properties": {"city": {"pattern": "("}}},
        {"properties": {"city": {"$ref": "#"}}},
        {"not": {"type": {}}},
        "string",
        5,
        False,
        [],
        DEEP,
        {"x": {1, 2}},
    ],
    ids=lambda schema: str(schema)[:40] if schema is not DEEP else "deep",
)
def test_a_broken_schema_is_never_an_error(schema: Any) -> None:
    check = check_arguments({"city": "Paris"}, schema)
    if schema == {"properties": {"city": {"$ref": "#"}}}:
        assert check.ok
        return
    assert check.verdict == "ok"
    assert check.schema_fault
    check_call(Call("get_weather", {"city": "Paris"}), tools(schema))


def test_deep_arguments_do_not_recurse() -> None:
    value: dict[str, Any] = {}
    for _ in range(3000):
        value = {"a": value}
    recursive = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    assert check_arguments(value, recursive).keyword == "depth"


def test_a_changed_schema_is_not_served_from_the_cache() -> None:
    schema: dict[str, Any] = {"type": "object", "required": ["a"]}
    assert not check_arguments({}, schema).ok
    schema = {"type": "object"}
    assert check_arguments({}, schema).ok


@pytest.mark.parametrize(
    ("offered", "names", "known"),
    [
        (None, set(), False),
        ([], set(), True),
        (["a", "b"], {"a", "b"}, True),
        ({"a": {"type": "object"}}, {"a"}, True),
        ([{"type": "function", "function": {"name": "a"}}], {"a"}, True),
        ([{"type": "function", "name": "a", "parameters": {}}], {"a"}, True),
        ([{"name": "a", "input_schema": {}}], {"a"}, True),
        ([{"type": "web_search"}, 5, None, {"function": {"name": 3}}], set(), True),
        ({"type": "function", "function": {"name": "a"}}, {"a"}, True),
        ("a", {"a"}, True),
        (5, set(), True),
    ],
)
def test_every_dialect_of_offering(offered: Any, names: set[str], known: bool) -> None:
    tools = offered_tools(offered)
    assert (tools.names, tools.known) == (names, known)
    assert tools.offers("zzz") is not known
    assert offered_tools(tools) is tools
