"""Random schemas: nothing crashes, and whatever is filled in is what the schema allows."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from referencing import Registry

from probe.pairing.learning.command_tools import candidates
from probe.pairing.learning.filling import NO_VALUE, value_for
from probe.pairing.learning.finishing import finish_tool
from probe.pairing.learning.learn import NotLearntError, learn
from probe.pairing.learning.prompt_tools import json_tools, listed_tools, xml_tools
from probe.pairing.learning.slots import COMMAND, placed
from probe.pairing.planning import plan
from stacks.turn import CanonicalRequest, Message, OfferedTool

NAMES = st.sampled_from(
    ["command", "cmd", "cwd", "timeout_ms", "requires_approval", "is_background", "id", "path", "content", "risk",
     "action", "language", "args", "code", "\u547d\u4ee4", "description", "x"]
)  # fmt: skip
SMALL = st.integers(-3, 40)
STRINGS = st.fixed_dictionaries(
    {"type": st.just("string")},
    optional={
        "minLength": st.integers(0, 30),
        "maxLength": st.integers(30, 300),
        "pattern": st.sampled_from(["^[a-z]+$", "^(fast|slow)$", r"^\d+s$", "^[A-Z]{2,}$", "^.*$", "canary"]),
        "description": st.sampled_from(["The shell command to run", "Absolute path", "", "Id"]),
        "format": st.sampled_from(["date", "uri", "uuid", "email", "date-time"]),
    },
)
NUMBERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"])},
    optional={
        "minimum": SMALL, "exclusiveMinimum": SMALL, "maximum": st.integers(40, 90_000), "multipleOf": st.integers(1, 7)
    },
)  # fmt: skip
CHOICES = st.builds(
    lambda values: {"enum": values}, st.lists(st.sampled_from(["run", "kill", "bash", "LOW", None, 3]), min_size=1)
)
PLAIN = st.one_of(
    STRINGS,
    NUMBERS,
    CHOICES,
    st.just({"type": "boolean"}),
    st.just({"const": "v"}),
    st.just({"type": ["string", "null"]}),
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    def built(properties: dict[str, Any], required: list[str], closed: bool) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "object", "properties": properties}
        made["required"] = [name for name in dict.fromkeys(required) if name in properties]
        return {**made, "additionalProperties": False} if closed else made

    return st.builds(built, st.dictionaries(NAMES, inner, max_size=5), st.lists(NAMES, max_size=6), st.booleans())


def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        objects(inner),
        st.builds(lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 3)),
        st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"oneOf": parts}, st.lists(inner, min_size=1, max_size=3)),
    )


SCHEMAS = st.recursive(PLAIN, deeper, max_leaves=8)
TOOLS = st.builds(
    lambda name, about, schema: OfferedTool(name, about, schema, "function", (), None),
    st.sampled_from(["bash", "run_command", "python", "finish", "write_file", "read_file", "kill_shell", "x", ""]),
    st.sampled_from([None, "Runs a shell command.", "Runs Python.", "Reads a file.", "Ends the task."]),
    objects(SCHEMAS),
)
WORDS = (
    "type", "properties", "required", "items", "anyOf", "$ref", "enum", "allOf", "const", "pattern", "command",
    "minimum", "multipleOf", "description", "prefixItems", "minItems",
)  # fmt: skip
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.floats(allow_nan=False),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=4), inner, max_size=5),
    ),
    max_leaves=20,
)


def allowed(value: Any, schema: Mapping[str, Any]) -> bool:
    return jsonschema.Draft202012Validator(dict(schema), registry=Registry()).is_valid(value)


@given(NAMES, SCHEMAS)
def test_a_value_is_what_the_schema_allows(name: str, schema: dict[str, Any]) -> None:
    value = value_for(name, schema, {})
    assert value is NO_VALUE or allowed(value, schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 5, "maximum": 6},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.01},
        {"type": "integer", "minimum": 11, "multipleOf": 7},
        {"type": "string", "pattern": "^(fast|slow)$"},
        {"type": "string", "minLength": 200},
        {"type": "string", "maxLength": 3},
        {"type": "array", "minItems": 2, "items": {"type": "string"}, "uniqueItems": True},
        {"type": "array", "prefixItems": [{"const": 1}, {"type": "string"}], "minItems": 2},
        {"anyOf": [{"type": "null"}, {"type": "integer"}]},
        {"allOf": [{"type": "string"}, {"enum": ["b", "c"]}]},
        {"type": "object", "properties": {"a": {"type": "object", "required": ["b"]}}, "required": ["a"]},
        {"type": "string", "format": "uuid", "pattern": "^[0-9a-f-]{36}$"},
    ],
)
def test_simple_bounds_have_a_value(schema: dict[str, Any]) -> None:
    value = value_for("x", schema, {})
    assert value is not NO_VALUE
    assert allowed(value, schema)


@settings(max_examples=60)
@given(st.lists(TOOLS, max_size=4))
def test_what_is_taken_fits_its_schema(tools: list[OfferedTool]) -> None:
    schemas = {tool.name: tool.parameters for tool in reversed(tools)}
    for language in ("shell", "python"):
        for one in candidates(tools, language):  # type: ignore[arg-type]
            if not one.against:
                assert COMMAND in str(one.arguments)
                schema = schemas[one.tool]
                assert isinstance(schema, dict)
                assert allowed(placed(one.arguments, {COMMAND: "ls; echo done"}), schema)
    found = finish_tool(tools)
    if found is not None:
        schema = schemas[found[0]]
        assert isinstance(schema, dict)
        assert allowed(found[1], schema)


@settings(max_examples=60)
@given(st.lists(TOOLS, max_size=4), st.text(max_size=60))
def test_learning_ends_in_a_plan_or_a_reason(tools: list[OfferedTool], prompt: str) -> None:
    request = CanonicalRequest("openai_chat", "chat", "POST", tools=tools)
    request.messages = [Message("system", prompt, ())]
    try:
        speech = learn([request])
    except NotLearntError as error:
        event(str(error)[:16])
        return
    assert plan(speech).turns


@given(JUNK, JUNK)
def test_junk_for_a_schema_is_no_crash(schema: Any, raw: Any) -> None:
    request = CanonicalRequest("openai_responses", "responses", "POST")
    request.tools = [
        OfferedTool("bash", "Runs a shell command.", schema, "function", (), raw),
        OfferedTool(None, None, schema, "namespace", (), {"tools": raw}),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(NotLearntError):
            learn([request])


@given(st.text(alphabet='<>/{}[]":,\n `#-_abcTolArgsInput:=~', max_size=200))
def test_junk_for_a_prompt_is_no_crash(prompt: str) -> None:
    for read in (json_tools, xml_tools, listed_tools):
        assert isinstance(read(prompt), list)
    request = CanonicalRequest("openai_chat", "chat", "POST")
    request.messages = [Message("system", prompt, ())]
    with contextlib.suppress(NotLearntError):
        assert learn([request]).channel == "text"


def test_schemas_that_refer_to_themselves_end() -> None:
    node: dict[str, Any] = {
        "type": "object",
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "required": ["next"]}},
        "properties": {"command": {"type": "string"}, "node": {"$ref": "#/$defs/Node"}},
        "required": ["command", "node"],
    }
    tools = [OfferedTool("bash", "Runs a shell command.", node, "function", (), None)]
    assert "no values fit" in candidates(tools, "shell")[0].against
    assert value_for("x", {"$ref": "#"}, {"$ref": "#"}) is not None


def test_references_to_elsewhere_are_not_followed() -> None:
    schema = {
        "type": "object",
        "properties": {"command": {"$ref": "http://127.0.0.1:9/x.json"}},
        "required": ["command"],
    }
    tools = [OfferedTool("bash", "Runs a shell command.", schema, "function", (), None)]
    assert candidates(tools, "shell")
