"""Schemas as grammars: what a grammar allows fits its schema, what it should allow it does, the rest is said."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stacks.formats.tiers import strict_reply
from stacks.grammars.automaton import places, too_large
from stacks.grammars.language import (
    Chain,
    Chars,
    Choice,
    Grammar,
    Named,
    Node,
    Repeat,
    Text,
    UnexpressibleError,
    code_points,
    complement,
)
from stacks.grammars.numbers import whole_between
from stacks.grammars.rendering import rule_name
from stacks.grammars.schema import answer_grammar


def written(grammar: Grammar, seed: int) -> str:
    """One answer that the grammar allows, at random; recursion is left by the first alternative when it is deep."""
    source = random.Random(seed)

    def write(node: Node, depth: int) -> str:
        match node:
            case Text(text):
                return text
            case Chars(ranges):
                low, high = source.choice(ranges)
                return chr(source.randint(low, high))
            case Chain(parts):
                return "".join(write(part, depth) for part in parts)
            case Choice(options):
                return write(options[0] if depth > 4 else source.choice(options), depth)
            case Repeat(part, least, most):
                more = 0 if depth > 4 else source.randint(0, 3)
                count = least + more if most is None else min(most, least + more)
                return "".join(write(part, depth) for _ in range(count))
            case Named(name):
                return write(grammar.rules[name], depth + 1)

    return write(grammar.root, 0)


def allows(grammar: Grammar, text: str) -> bool:
    return re.fullmatch(grammar.regex(), text) is not None


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "mood": {"enum": ["glad", 'so "so"', None, 3.5]},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
        "score": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    },
    "required": ["name", "age", "mood"],
    "additionalProperties": False,
}
SCHEMAS: list[Any] = [
    PERSON,
    {},
    True,
    {"type": "object"},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": ["string", "null"], "maxLength": 3},
    {"const": {"a": [1, "é"]}},
    {"type": "array"},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}]},
    {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1, "uniqueItems": True},
    {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^[A-Z]{3}$"}]},
    {"oneOf": [{"type": "integer"}, {"type": "null"}]},
    {
        "oneOf": [
            {"type": "object", "properties": {"k": {"const": "a"}, "x": {"type": "integer"}}, "required": ["k"]},
            {"type": "object", "properties": {"k": {"const": "b"}}, "required": ["k"]},
        ]
    },
    {"allOf": [{"type": "integer"}, {"minimum": 3}], "maximum": 9},
    {"type": "number"},
    {"type": "integer"},
    {"type": "number", "exclusiveMinimum": 0},
    {"type": "number", "minimum": -2, "maximum": 2},
    {"type": "integer", "exclusiveMinimum": -12.5, "maximum": 1234},
    {"$defs": {"e": {"type": "string", "format": "email"}}, "type": "array", "items": {"$ref": "#/$defs/e"}},
    {
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "v": {"type": "integer"},
                    "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]},
                },
                "required": ["v", "next"],
            }
        },
        "$ref": "#/$defs/node",
    },
    {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c": {"type": "null"}}},
    {"type": "string", "enum": ["a", 3, "b"]},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:60])
def test_whatever_a_grammar_allows_fits_its_schema(schema: Any) -> None:
    grammar = answer_grammar(schema)
    for seed in range(40):
        text = written(grammar, seed)
        read = strict_reply(text)
        assert read is not None, text
        jsonschema.Draft202012Validator(schema).validate(read.value)


def test_right_answers_are_allowed_and_wrong_ones_are_not() -> None:
    grammar = answer_grammar(PERSON)
    for right in (
        '{"name": "Anna", "age": 31, "mood": "glad"}',
        '{"name":"Ægir","age":0,"mood":null,"tags":["x"],"score":0.25}',
        '{"name": "A\\n\\u00e9", "age": 150, "mood": "so \\"so\\"", "score": 0}',
    ):
        assert allows(grammar, right), right
    for wrong in (
        '{"name": "Anna", "age": 151, "mood": "glad"}',
        '{"name": "", "age": 1, "mood": "glad"}',
        '{"name": "Anna", "age": 01, "mood": "glad"}',
        '{"name": "Anna", "mood": "glad"}',
        '{"name": "Anna", "age": 1, "mood": "sad"}',
        '{"name": "Anna", "age": 1, "mood": "glad", "tags": []}',
        '{"name": "Anna", "age": 1, "mood": "glad", "score": 1}',
        '{"name": "Anna", "age": 1, "mood": "glad", "more": 1}',
        '{"name": "Anna", "age": 1, "mood": "glad"',
        '```json\n{"name": "Anna", "age": 1, "mood": "glad"}\n```',
        'Sure: {"name": "Anna", "age": 1, "mood": "glad"}',
    ):
        assert not allows(grammar, wrong), wrong


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"not": {}}, "not cannot be said"),
        ({"type": "object", "properties": {"a": {"if": {}}}}, r"\$\.a: if"),
        ({"$ref": "https://example.org/x.json"}, "leaves the schema; it is not fetched"),
        ({"$ref": "other.json#/a"}, "leaves the schema"),
        ({"$ref": "#/$defs/nowhere"}, "leads nowhere"),
        ({"$ref": "#anchor"}, "anchor"),
        ({"type": "integer", "multipleOf": 5}, "multipleOf"),
        ({"type": "number", "minimum": 0.5}, "bounded by 0.5"),
        ({"type": "integer", "minimum": 5, "maximum": 4}, "no whole number"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"type": "object", "patternProperties": {}}, "patternProperties"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "overlap"),
        ({"oneOf": [{"const": 1}, {"const": 1}]}, "overlap"),
        ({"anyOf": [{"required": ["a"]}], "properties": {"a": {}}}, "beside properties"),
        ({"type": "string", "pattern": "(?=a)b"}, "looks around"),
        ({"type": "string", "pattern": r"^(a)\1$"}, r"\\1"),
        ({"type": "string", "pattern": "^a$", "maxLength": 4}, "together with a length"),
        ({"enum": ["a"], "type": "integer"}, "none of its fixed values"),
        ({"type": "frog"}, "none of JSON's"),
        ({"type": "string", "maxLength": "x"}, "maxLength is no whole number"),
        (False, "no answer can fit"),
        ([], "no schema"),
        ({"$ref": "#"}, "itself without an end"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "itself without an end"),
        ({"allOf": [{"minimum": 1}, {"minimum": 2}]}, "minimum twice"),
        ({"type": "object", "minProperties": 2}, "number of properties"),
    ],
)
def test_what_cannot_be_said_is_refused_with_the_reason(schema: Any, reason: str) -> None:
    with pytest.raises(UnexpressibleError, match=reason):
        answer_grammar(schema)


def test_deep_schemas_are_refused_and_do_not_recurse() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(3000):
        schema = {"type": "array", "items": schema}
    with pytest.raises(UnexpressibleError, match="too deep"):
        answer_grammar(schema)


@settings(max_examples=150)
@given(low=st.integers(-3000, 3000), size=st.integers(0, 2000), value=st.integers(-6000, 6000))
def test_bounds_of_whole_numbers_are_exact(low: int, size: int, value: int) -> None:
    expression = Grammar(whole_between(low, low + size)).regex()
    assert (re.fullmatch(expression, str(value)) is not None) == (low <= value <= low + size)
    assert re.fullmatch(expression, f"0{abs(value) or 1}") is None


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)


@settings(max_examples=20)
@given(JSON_VALUES)
def test_fixed_values_of_any_kind(value: Any) -> None:
    grammar = answer_grammar({"const": value})
    read = strict_reply(written(grammar, 0))
    assert read is not None
    assert read.value == value


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^[A-Z]{3}$", ["EUR"], ["EU", "eur", "EURO"]),
        ("^\\d{4}-\\d{2}-\\d{2}$", ["2026-12-01"], ["2026-12-1", "x2026-12-01"]),
        ("^(ab|c.)+?$", ["ab", "abcx"], ["", "a"]),
        ("[0-9]", ["a1b", "7"], ["abc"]),
        ("^[^a-c]$", ["d", "é"], ["a", "dd"]),
        ('^"\\w*$', ['\\"ab'], ["ab", '"ab']),
        ("^a|b", None, None),
        ("^\\u0041\\x42?$", ["A", "AB"], ["B"]),
    ],
)
def test_patterns(pattern: str, good: list[str] | None, bad: list[str] | None) -> None:
    schema = {"type": "string", "pattern": pattern}
    if good is None or bad is None:
        with pytest.raises(UnexpressibleError):
            answer_grammar(schema)
        return
    grammar = answer_grammar(schema)
    assert all(allows(grammar, f'"{text}"') for text in good)
    assert not any(allows(grammar, f'"{text}"') for text in bad)
    for seed in range(30):
        value = json.loads(written(grammar, seed))
        assert re.search(pattern, value), value


@settings(max_examples=100)
@given(st.text(alphabet='ab01[](){}|*+?.^$\\-d,"\n', max_size=14))
def test_any_pattern_is_said_or_refused(pattern: str) -> None:
    try:
        grammar = answer_grammar({"type": "string", "pattern": pattern})
    except UnexpressibleError:
        return
    for seed in range(5):
        value = json.loads(written(grammar, seed))
        assert re.search(pattern, value), (pattern, value)


def test_code_points() -> None:
    assert code_points((97, 99), (100, 101), (98, 98)).ranges == ((97, 101),)
    assert complement(((0, 0x10FFFE),)) == ((0x10FFFF, 0x10FFFF),)
    assert complement(()) == ((0, 0xD7FF), (0xE000, 0x10FFFF))


def test_gbnf_has_every_rule_and_names_that_differ() -> None:
    grammar = answer_grammar({"$defs": {"a/b": {"type": "integer"}, "a_b": {"type": "null"}}, "type": "array",
                              "prefixItems": [{"$ref": "#/$defs/a~1b"}, {"$ref": "#/$defs/a_b"}]})  # fmt: skip
    text = grammar.gbnf()
    names = [line.split(" ::= ")[0] for line in text.splitlines()]
    assert len(names) == len(set(names)) == 3
    assert names[0] == "root"
    assert all(rule_name(name) in text for name in grammar.rules)
    assert grammar.digest == answer_grammar(
        {"$defs": {"a/b": {"type": "integer"}, "a_b": {"type": "null"}}, "type": "array",
         "prefixItems": [{"$ref": "#/$defs/a~1b"}, {"$ref": "#/$defs/a_b"}]}).digest  # fmt: skip


def test_the_size_of_an_automaton_is_known_before_it_is_built() -> None:
    assert places(answer_grammar({"type": "string", "maxLength": 200})).wide == 200
    assert places(answer_grammar({"type": "string"})).wide == 1
    assert places(answer_grammar({"type": "object"})).wide == 32
    assert too_large(answer_grammar(PERSON), 50_000) == ""
    assert "200 free characters" in too_large(answer_grammar({"type": "string", "maxLength": 200}), 262_000)
    nested: dict[str, Any] = {"type": "integer"}
    for _ in range(12):
        nested = {"type": "array", "items": nested, "minItems": 9}
    assert "states" in too_large(answer_grammar(nested), 10)
