"""Ranges, offsets, and what was offered: the small values that every format and every rule is built on."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.formats import ParsedCall, ParseResult, Span, check_call, find_markers, offered_tools
from stacks.formats.model import ByteOffsets, Found, Problem, complement, inside_any


def spans(*pairs: tuple[int, int]) -> list[Span]:
    return [Span(*pair) for pair in pairs]


def test_ranges() -> None:
    assert Span(1, 3).shifted(2) == (3, 5)
    assert Span(1, 3).of("abcd") == "bc"
    assert Span(1, 3).overlaps(Span(2, 9))
    assert Span(2, 9).overlaps(Span(1, 3))
    assert not Span(1, 3).overlaps(Span(3, 4))
    assert not Span(3, 4).overlaps(Span(1, 3))


@pytest.mark.parametrize(
    ("taken", "length", "gaps"),
    [
        ([], 5, [(0, 5)]),
        ([], 0, []),
        ([(0, 5)], 5, []),
        ([(1, 2)], 5, [(0, 1), (2, 5)]),
        ([(3, 4), (1, 2)], 5, [(0, 1), (2, 3), (4, 5)]),
        ([(1, 4), (2, 3)], 5, [(0, 1), (4, 5)]),
        ([(0, 2), (2, 5)], 5, []),
        ([(0, 3), (1, 4)], 5, [(4, 5)]),
    ],
)
def test_gaps(taken: list[tuple[int, int]], length: int, gaps: list[tuple[int, int]]) -> None:
    assert complement(spans(*taken), length) == gaps


def test_inside() -> None:
    ranges = spans((1, 3), (5, 6))
    assert [at for at in range(8) if inside_any(at, ranges)] == [1, 2, 5]
    assert not inside_any(0, [])


@pytest.mark.parametrize(
    "text", ["", "abc", "a\u00e9\u20ac\U0001f600b", "x" * 1023 + "\u00e9" + "y" * 1100, "a\ud800b"]
)
def test_byte_offsets(text: str) -> None:
    offsets = ByteOffsets(text)
    for at in {0, 1, 2, len(text) // 2, 1023, 1024, 1025, len(text)}:
        if at <= len(text):
            assert offsets.at(at) == len(text[:at].encode("utf-8", "surrogatepass"))
    assert offsets.at(-5) == 0
    assert offsets.at(len(text) + 5) == len(text.encode("utf-8", "surrogatepass"))
    assert offsets.span(Span(0, len(text))) == (0, len(text.encode("utf-8", "surrogatepass")))


def call(**more: Any) -> ParsedCall:
    return ParsedCall("f", {}, "{}", Span(2, 9), Span(3, 4), Span(5, 7), **more)


def test_strict_readings() -> None:
    good, repaired = call(), call(repairs=("single_quotes", "x"))
    cut, cut_and_repaired = call(complete=False), call(complete=False, repairs=("y",))
    problem = Problem("not_json", "no", Span(0, 1))
    result = ParseResult("x", "lenient", (good, repaired, cut, cut_and_repaired), (problem,), (Span(0, 9),))
    strict = result.strict()
    assert (strict.mode, strict.calls, strict.blocks, strict.format) == ("strict", (good,), result.blocks, "x")
    assert [(each.kind, each.message, each.span) for each in strict.problems] == [
        ("not_json", "no", (0, 1)),
        ("repaired", "call to 'f': single_quotes, x", (2, 9)),
        ("cut", "call to 'f': cut", (2, 9)),
        ("cut", "call to 'f': y", (2, 9)),
    ]
    assert result.repairs == ("single_quotes", "x", "y")


def test_readings_of_a_part_move_into_the_whole() -> None:
    result = ParseResult("x", "lenient", (call(),), (Problem("cut", "no", Span(0, 1)),), (Span(2, 9),))
    moved = result.shifted(10)
    assert (moved.calls[0].span, moved.calls[0].name_span, moved.calls[0].arguments_span) == (
        (12, 19),
        (13, 14),
        (15, 17),
    )
    assert (moved.problems[0].span, moved.blocks) == ((10, 11), ((12, 19),))
    assert result.shifted(0) is result


def test_enough_is_enough() -> None:
    found = Found()
    for number in range(999):
        found.problem("cut", "no", number, number)
    assert not found.full
    found.blocks.append(Span(0, 1))
    assert found.full
    assert found.problems[5] == Problem("cut", "no", Span(5, 5))


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    "offered",
    [
        [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
        [{"type": "function", "name": "f", "parameters": SCHEMA}],
        [{"name": "f", "input_schema": SCHEMA}],
        [{"name": "f", "inputSchema": SCHEMA}],
        [{"name": "f", "schema": SCHEMA}],
        {"f": SCHEMA},
        {"name": "f", "parameters": SCHEMA},
        {"type": "function", "function": {"name": "f", "parameters": SCHEMA}},
        ["g", 5, {"name": 7}, {"name": "f", "parameters": SCHEMA}],
    ],
)
def test_every_way_to_offer_a_tool(offered: Any) -> None:
    tools = offered_tools(offered)
    assert tools.known
    assert (tools.offers("f"), tools.offers("h"), tools.schema("f"), tools.schema("h")) == (True, False, SCHEMA, None)
    assert offered_tools(tools) is tools
    assert tools.parameter_types("f", "a") == {"integer"}


def test_names_alone_nothing_and_nobody_knows() -> None:
    assert offered_tools(["f"]).names == {"f"}
    assert offered_tools("f").names == {"f"}
    assert (offered_tools([]).known, offered_tools([]).offers("f")) == (True, False)
    assert (offered_tools(None).known, offered_tools(None).offers("f")) == (False, True)


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "string"}, {"string"}),
        ({"type": ["string", "null"]}, {"string", "null"}),
        ({"type": []}, None),
        ({"type": [5]}, None),
        ({"enum": ["a", 1, 1.5, True, None, [], {}]},
         {"string", "integer", "number", "boolean", "null", "array", "object"}),
        ({"enum": []}, None),
        ({"const": 5}, {"integer"}),
        ({"const": None}, {"null"}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"string", "null"}),
        ({"oneOf": [{"type": "string"}, {"const": 1}]}, {"string", "integer"}),
        ({"anyOf": [{"type": "string"}, {}]}, None),
        ({"anyOf": []}, None),
        ({}, None),
        ("x", None),
    ],
)  # fmt: skip
def test_types_that_a_schema_allows(schema: Any, types: set[str] | None) -> None:
    tools = offered_tools({"f": {"properties": {"p": schema}}})
    found = tools.parameter_types("f", "p")
    assert found == types
    assert tools.parameter_types("f", "q") is None
    assert tools.parameter_types("g", "p") is None
    assert offered_tools({"f": {"properties": 5}}).parameter_types("f", "p") is None
    assert offered_tools({"f": 5}).parameter_types("f", "p") is None


def test_types_behind_many_choices_are_not_followed_for_ever() -> None:
    def choices(depth: int) -> Any:
        return {"anyOf": [choices(depth - 1)]} if depth else {"type": "string"}

    assert offered_tools({"f": {"properties": {"p": choices(8)}}}).parameter_types("f", "p") == {"string"}
    assert offered_tools({"f": {"properties": {"p": choices(9)}}}).parameter_types("f", "p") is None


def test_a_name_that_was_not_offered_names_those_that_were() -> None:
    check = check_call(call(), ["b", "a"])
    assert (check.verdict, check.ok, check.path, check.keyword) == ("unknown_tool", False, "", "")
    assert check.reason == "'f' was not offered; offered: a, b"
    assert check_call(call(), []).reason.endswith("offered: nothing")
    assert check_call(call(), ["f"]).ok


def test_markers_left_over() -> None:
    text = "a <|im_end|> b `</tool_call>` (<tool_call>) <|im_end|>"
    found = [(leak.marker, leak.span.start) for leak in find_markers(text)]
    assert found == [("<|im_end|>", 2), ("<|im_end|>", 44)]
    assert [leak.span.start for leak in find_markers(text, spans((0, 20)))] == [44]
    assert [leak.span for leak in find_markers("x" + "</think>" * 2)] == [(1, 9), (9, 17)]
    assert len(find_markers("<|im_end|>" * 500)) == 200
    assert find_markers("</tool_call>")[0].formats == ("hermes", "qwen_xml", "glm")
