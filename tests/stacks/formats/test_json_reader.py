"""The JSON reader: what it reads of valid, broken and cut values, where, and what it says that it had to rescue."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.formats.json_nodes import MAX_DEPTH, Node
from stacks.formats.json_reader import JsonReader
from stacks.formats.model import MAX_STEPS

NOTHING: Any = object()
"""No value at all."""
Row = tuple[str, Any, tuple[int, int], bool, int, str, tuple[str, ...]]
"""Text, value, its place, whether it is whole, where reading ended, why it stopped early, repairs."""

WHOLE: list[Row] = [
    ('{"a": 1}', {"a": 1}, (0, 8), True, 8, "", ()),
    (' \n{"a": 1} x', {"a": 1}, (2, 10), True, 10, "", ()),
    ("[]", [], (0, 2), True, 2, "", ()),
    ("{}", {}, (0, 2), True, 2, "", ()),
    ('[1, "b", null, true, false, -2.5e3]', [1, "b", None, True, False, -2500.0], (0, 35), True, 35, "", ()),
    ("7", 7, (0, 1), True, 1, "", ()),
    ('"s" x', "s", (0, 3), True, 3, "", ()),
    ('"s"', "s", (0, 3), True, 3, "", ()),
    ("-0", 0, (0, 2), True, 2, "", ()),
    ("[1]]", [1], (0, 3), True, 3, "", ()),
    ('{"a": "\\u00e9\\ud83d\\ude00"}', {"a": "é😀"}, (0, 27), True, 27, "", ()),
    ('{"a": 1, "a": 2}', {"a": 2}, (0, 16), True, 16, "", ()),
    ('{"a": {"b": 1e999}}', {"a": {"b": "1e999"}}, (0, 19), True, 19, "", ()),
    ('{"a": 12345678901234567890}', {"a": 12345678901234567890}, (0, 27), True, 27, "", ()),
    ('{"name": "f", "arguments": {"a": 1}}', {"name": "f", "arguments": {"a": 1}}, (0, 36), True, 36, "", ()),
    ('{ "name" : "f" , "parameters" : {} }', {"name": "f", "parameters": {}}, (0, 36), True, 36, "", ()),
    (
        '{"name": "f", "arguments": {"a": 1}, "x": 2}',
        {"name": "f", "arguments": {"a": 1}, "x": 2},
        (0, 44),
        True,
        44,
        "",
        (),
    ),
    ('{"name": "f\\n", "arguments": {}}', {"name": "f\n", "arguments": {}}, (0, 32), True, 32, "", ()),
    ('{"name": "f", "arguments": [1]}', {"name": "f", "arguments": [1]}, (0, 31), True, 31, "", ()),
    ('{"name": "f", "args": {}}', {"name": "f", "args": {}}, (0, 25), True, 25, "", ()),
]
RESCUED: list[Row] = [
    ("1e400", "1e400", (0, 5), True, 5, "", ("number_out_of_range",)),
    ("None", None, (0, 4), True, 4, "", ("python_literal",)),
    ("True", True, (0, 4), True, 4, "", ("python_literal",)),
    ('{"a": 1,}', {"a": 1}, (0, 9), True, 9, "", ("trailing_comma",)),
    ("[1, 2,]", [1, 2], (0, 7), True, 7, "", ("trailing_comma",)),
    ('{"a": 1,, "b": 2}', {"a": 1, "b": 2}, (0, 17), True, 17, "", ("extra_comma",)),
    ("[1,,2]", [1, 2], (0, 6), True, 6, "", ("extra_comma",)),
    ("[,1]", [1], (0, 4), True, 4, "", ("extra_comma",)),
    ('{"a": 1 "b": 2}', {"a": 1, "b": 2}, (0, 15), True, 15, "", ("missing_comma",)),
    ('["a" "b"]', ['a" "b'], (0, 9), True, 9, "", ("unescaped_quote",)),
    ("[{} {}]", [{}, {}], (0, 7), True, 7, "", ("missing_comma",)),
    ('{"a": 1 b: 2}', {"a": 1, "b": 2}, (0, 13), True, 13, "", ("missing_comma", "unquoted_key")),
    ("{'a': 'b'}", {"a": "b"}, (0, 10), True, 10, "", ("single_quotes",)),
    ("{'a': 'it\\'s'}", {"a": "it's"}, (0, 14), True, 14, "", ("single_quotes", "invalid_escape")),
    ("{a: 1}", {"a": 1}, (0, 6), True, 6, "", ("unquoted_key",)),
    ("{a-b.c: 1}", {"a-b.c": 1}, (0, 10), True, 10, "", ("unquoted_key",)),
    ("{$x: 1}", {"$x": 1}, (0, 7), True, 7, "", ("unquoted_key",)),
    ('{"a": b c, "d": 1}', {"a": "b c", "d": 1}, (0, 18), True, 18, "", ("unquoted_value",)),
    ('{"a": True, "b": None}', {"a": True, "b": None}, (0, 22), True, 22, "", ("python_literal",)),
    ('{"a": [1}', {"a": [1]}, (0, 9), True, 9, "", ("missing_bracket",)),
    ('{"a": [1}, "b": 2}', {"a": [1]}, (0, 9), True, 9, "", ("missing_bracket",)),
    ('[{"a": 1]', [{"a": 1}], (0, 9), True, 9, "", ("missing_brace",)),
    ('{"a": "say "hi" now"}', {"a": 'say "hi" now'}, (0, 21), True, 21, "", ("unescaped_quote",)),
    ('{"a": "x\ny"}', {"a": "x\ny"}, (0, 12), True, 12, "", ("control_character",)),
    ('{"a": "\\d"}', {"a": "\\d"}, (0, 11), True, 11, "", ("invalid_escape",)),
    ('{"a": "\\d\\ud83d\\ude00\\u00e9\\n\\\'"}', {"a": "\\d😀é\n'"}, (0, 33), True, 33, "", ("invalid_escape",)),
    ("“a”", "a", (0, 3), True, 3, "", ("typographic_quotes",)),
    ('{“a”: “b "c" d”}', {"a": 'b "c" d'}, (0, 16), True, 16, "", ("typographic_quotes",)),
    ('{"a": `b`}', {"a": "`b`"}, (0, 10), True, 10, "", ("unquoted_value",)),
    ('{"a": NaN}', {"a": "NaN"}, (0, 10), True, 10, "", ("unquoted_value",)),
    ('{"a": 1e999}', {"a": "1e999"}, (0, 12), True, 12, "", ("number_out_of_range",)),
    ('{"a": -1e999}', {"a": "-1e999"}, (0, 13), True, 13, "", ("number_out_of_range",)),
    ('[1, {"x": Infinity}]', [1, {"x": "Infinity"}], (0, 20), True, 20, "", ("unquoted_value",)),
    (
        '{"name": "f", "arguments": {"a": 1,}}',
        {"name": "f", "arguments": {"a": 1}},
        (0, 37),
        True,
        37,
        "",
        ("trailing_comma",),
    ),
    ('{"a": "b" "c": 1}', {"a": "b", "c": 1}, (0, 17), True, 17, "", ("missing_comma",)),
    ("[1, ]", [1], (0, 5), True, 5, "", ("trailing_comma",)),
    ("{,}", {}, (0, 3), True, 3, "", ("extra_comma",)),
    ('{"a": [1, 2}, ', {"a": [1, 2]}, (0, 12), True, 12, "", ("missing_bracket",)),
]
STOPPED: list[Row] = [
    ("01", "01", (0, 2), False, 2, "cut", ("unquoted_value",)),
    ("1.", "1.", (0, 2), False, 2, "cut", ("unquoted_value",)),
    (".5", ".5", (0, 2), False, 2, "cut", ("unquoted_value",)),
    ("0x1F", "0x1F", (0, 4), False, 4, "cut", ("unquoted_value",)),
    ("NaN", "NaN", (0, 3), False, 3, "cut", ("unquoted_value",)),
    ("hello world", "hello world", (0, 11), False, 11, "cut", ("unquoted_value",)),
    ("hello", "hello", (0, 5), False, 5, "cut", ("unquoted_value",)),
    ("", NOTHING, (0, 0), False, 0, "cut", ()),
    ("   ", NOTHING, (0, 0), False, 3, "cut", ()),
    (",", NOTHING, (0, 0), False, 0, "garbage", ()),
    ("}", NOTHING, (0, 0), False, 0, "garbage", ()),
    (":", NOTHING, (0, 0), False, 0, "garbage", ()),
    ('{"a"', {}, (0, 4), False, 4, "cut", ()),
    ('{"a":', {}, (0, 5), False, 5, "cut", ()),
    ('{"a": ', {}, (0, 6), False, 6, "cut", ()),
    ('{"a": 1', {"a": 1}, (0, 7), False, 7, "cut", ()),
    ('{"a": 1,', {"a": 1}, (0, 8), False, 8, "cut", ()),
    ('{"a": "b', {"a": "b"}, (0, 8), False, 8, "cut", ("missing_quote",)),
    ('{"a": "b\\', {"a": "b"}, (0, 9), False, 9, "cut", ("missing_quote",)),
    ("{", {}, (0, 1), False, 1, "cut", ()),
    ("[", [], (0, 1), False, 1, "cut", ()),
    ("[1", [1], (0, 2), False, 2, "cut", ()),
    ("[1,", [1], (0, 3), False, 3, "cut", ()),
    ('{"a": tru', {"a": "tru"}, (0, 9), False, 9, "cut", ("unquoted_value",)),
    ('{"a": [1, {"b": 2', {"a": [1, {"b": 2}]}, (0, 17), False, 17, "cut", ()),
    ("[1 2]", [1], (0, 3), False, 3, "garbage", ()),
    ('{"a": 1 2}', {"a": 1}, (0, 8), False, 8, "garbage", ()),
    ('{"a": 1]', {"a": 1}, (0, 8), False, 8, "cut", ("extra_bracket",)),
    ("[1}", [1], (0, 3), False, 3, "cut", ("extra_bracket",)),
    ('{"a": {"b": 1]}', {"a": {"b": 1}}, (0, 15), False, 15, "cut", ("extra_bracket",)),
    ("]", NOTHING, (0, 0), False, 0, "garbage", ()),
    ("[)", [], (0, 1), False, 1, "garbage", ()),
    ('{"a": )', {}, (0, 6), False, 6, "garbage", ()),
    ("`a`", "`a`", (0, 3), False, 3, "cut", ("unquoted_value",)),
    ('{"name": "f", "arguments": {"a": 1}', {"name": "f", "arguments": {"a": 1}}, (0, 35), False, 35, "cut", ()),
]
AT_MARKERS: list[Row] = [
    ('{"a": 1</t>', {"a": 1}, (0, 7), True, 7, "stop", ("missing_brace",)),
    ('{"a": 1, </t>', {"a": 1}, (0, 9), True, 9, "stop", ("missing_brace",)),
    ('{"a": "b\n</t> x', {"a": "b"}, (0, 8), False, 8, "stop", ("missing_quote", "missing_brace")),
    ('{"a": "b\n  </t> x"}', {"a": "b"}, (0, 8), False, 8, "stop", ("missing_quote", "missing_brace")),
    ('{"a": [1</t>', {"a": [1]}, (0, 8), False, 8, "stop", ("missing_bracket", "missing_brace")),
    ("{</t>", {}, (0, 1), True, 1, "stop", ("missing_brace",)),
    ("</t>", NOTHING, (0, 0), False, 0, "stop", ()),
    ('{"a": </t>', {}, (0, 6), False, 6, "stop", ("missing_brace",)),
    ("[1, 2 <|end|>", [1, 2], (0, 6), True, 6, "stop", ("missing_bracket",)),
    ('{"a": "</t>"}</t>', {"a": "</t>"}, (0, 13), True, 13, "", ()),
    ('{"a": 1}</t>', {"a": 1}, (0, 8), True, 8, "", ()),
    ('{"a": b</t>', {"a": "b"}, (0, 7), True, 7, "stop", ("unquoted_value", "missing_brace")),
    ("{a</t>", {}, (0, 1), False, 1, "garbage", ()),
    ('{"a": "x\ny"}\n</t>', {"a": "x\ny"}, (0, 12), True, 12, "", ("control_character",)),
    (
        '{"a": "x" \n</t>',
        {"a": 'x" '},
        (0, 10),
        False,
        10,
        "stop",
        ("unescaped_quote", "missing_quote", "missing_brace"),
    ),
    ('{"a": \'x\n</t>', {"a": "x"}, (0, 8), False, 8, "stop", ("single_quotes", "missing_quote", "missing_brace")),
    ("[[1</t>", [[1]], (0, 3), True, 3, "stop", ("missing_bracket",)),
    ('{"a": {"b": 1}</t>', {"a": {"b": 1}}, (0, 14), True, 14, "stop", ("missing_brace",)),
    ('{"a": 1, "b"\n</t>', {"a": 1}, (0, 13), True, 13, "stop", ("missing_brace",)),
]


def check(row: Row, stops: tuple[str, ...] = ()) -> None:
    text, value, place, whole, end, stopped, repairs = row
    reading = JsonReader(text, stops).read(0)
    assert (reading.end, reading.stopped, reading.repairs) == (end, stopped, repairs)
    if value is NOTHING:
        assert reading.node is None
        return
    assert reading.node is not None
    assert (reading.node.value, type(reading.node.value)) == (value, type(value))
    assert (reading.node.span, reading.node.complete) == (place, whole)


def of_text(row: Row) -> str:
    return row[0]


@pytest.mark.parametrize("row", WHOLE, ids=of_text)
def test_valid_values(row: Row) -> None:
    check(row)


@pytest.mark.parametrize("row", RESCUED, ids=of_text)
def test_what_is_nearly_json_is_read_and_the_repair_named(row: Row) -> None:
    check(row)


@pytest.mark.parametrize("row", STOPPED, ids=of_text)
def test_what_cannot_be_read_to_its_end(row: Row) -> None:
    check(row)


@pytest.mark.parametrize("row", AT_MARKERS, ids=of_text)
def test_a_closing_marker_ends_an_open_value(row: Row) -> None:
    check(row, ("</t>", "<|end|>"))


@pytest.mark.parametrize(
    ("text", "end", "value", "whole"),
    [
        ('{"a": 1}', 8, {"a": 1}, True),
        ('{"a": 1}', 7, {"a": 1}, False),
        ('"abc"', 5, "abc", True),
        ('"abc"', 4, "abc", False),
        ("ab cd", 4, "ab c", False),
        ('{"a": "b"}', 9, {"a": "b"}, False),
    ],
)
def test_nothing_behind_the_end_is_read(text: str, end: int, value: Any, whole: bool) -> None:
    node = JsonReader(text, end=end).read(0).node
    assert node is not None
    assert (node.value, node.complete, node.end) == (value, whole, end)


def test_a_value_in_the_middle_of_a_text() -> None:
    text = 'x {"a": 1} y'
    reading = JsonReader(text).read(1)
    assert reading.node is not None
    assert (reading.node.span.of(text), reading.end) == ('{"a": 1}', 10)


def member(node: Node | None, *path: str | int) -> Node:
    for step in path:
        assert node is not None
        if isinstance(step, int):
            assert node.items is not None
            node = node.items[step]
        else:
            assert node.members is not None
            node = node.members[step][1]
    assert node is not None
    return node


@pytest.mark.parametrize("more", ["", ', "id": "c1"', ","])
def test_the_members_of_a_call_have_places(more: str) -> None:
    text = 'x [{"name": "f", "arguments": {"k": [1]}' + more + "}]"
    node = JsonReader(text).read(2).node
    call = member(node, 0)
    assert call.members is not None
    assert call.span.of(text) == text[3:-1]
    key, name = call.members["name"]
    assert (key.of(text), name.span.of(text), name.value) == ('"name"', '"f"', "f")
    key, arguments = call.members["arguments"]
    assert (key.of(text), arguments.span.of(text), arguments.value) == ('"arguments"', '{"k": [1]}', {"k": [1]})


@pytest.mark.parametrize("wrapper", ["function", "function_call", "tool_call", "tool_calls"])
def test_wrapped_calls_have_places_too(wrapper: str) -> None:
    text = '{"' + wrapper + '": {"name": "f", "arguments": {}}}'
    node = JsonReader(text).read(0).node
    assert member(node, wrapper, "name").span.of(text) == '"f"'
    other = JsonReader(text.replace(wrapper, "x")).read(0).node
    assert member(other, "x").members is None


def test_lists_of_calls_in_a_wrapper_have_places() -> None:
    text = '{"tool_calls": [{"function": {"name": "f", "arguments": {}}}]}'
    node = JsonReader(text).read(0).node
    assert member(node, "tool_calls", 0, "function", "name").span.of(text) == '"f"'


def test_arguments_are_not_taken_apart() -> None:
    node = JsonReader('{"name": "f", "arguments": {"function": {"name": "g"}}}').read(0).node
    assert member(node, "arguments").members is None


@pytest.mark.parametrize(("opening", "inner", "closing"), [("[", "'a'", "]"), ("{'a':", "1", "}")])
def test_depth_is_bounded(opening: str, inner: str, closing: str) -> None:
    deepest = JsonReader(opening * MAX_DEPTH + inner + closing * MAX_DEPTH).read(0)
    assert (deepest.stopped, deepest.end) == ("", MAX_DEPTH * (len(opening) + len(closing)) + len(inner))
    deeper = JsonReader(opening * (MAX_DEPTH + 1) + inner + closing * (MAX_DEPTH + 1)).read(0)
    assert deeper.stopped == "too_deep"
    assert JsonReader(opening * 100_000).read(0).stopped == "too_deep"
    assert JsonReader("[" * 5000 + "]" * 5000).read(0).stopped == "too_deep"


def test_values_read_by_hand_are_bounded() -> None:
    assert JsonReader("[" + "'a'," * (MAX_STEPS - 2) + "'a']").read(0).stopped == ""
    assert JsonReader("[" + "'a'," * MAX_STEPS + "'a']").read(0).stopped == "too_long"


def test_long_valid_values_are_read_whole() -> None:
    for size in (2040, 2048, 65530, 65536, 70000):
        text = '{"name": "f", "arguments": {"k": "' + "x" * size + '"}}'
        reading = JsonReader(text).read(0)
        assert reading.node is not None
        assert (reading.node.complete, reading.end, reading.repairs) == (True, len(text), ())
        assert reading.node.value["arguments"]["k"] == "x" * size


def test_long_cut_values_are_read_as_far_as_they_go() -> None:
    for size in (2040, 65530, 70000):
        text = '{"name": "f", "arguments": {"a": [1], "k": "' + "x" * size
        reading = JsonReader(text).read(0)
        assert reading.node is not None
        assert (reading.stopped, reading.node.complete) == ("cut", False)
        assert reading.node.value == {"name": "f", "arguments": {"a": [1], "k": "x" * size}}


def test_stop_markers_are_looked_for_where_they_stand() -> None:
    reader = JsonReader("ab</t>c\n </t>", ("</t>", "<|end|>"))
    assert [at for at in range(len(reader.text)) if reader.stop_here(at)] == [2, 9]
    assert reader.string_limit(0) == reader.string_limit(7) == 7
    assert reader.string_limit(8) == len(reader.text)
    assert JsonReader("ab</t>").string_limit(0) == 6
    assert not JsonReader("ab</t>").stop_here(2)
