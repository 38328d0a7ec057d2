"""Python calls and literals as models write them: values with their types, places, and what had to be rescued."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.formats.model import MAX_STEPS
from stacks.formats.python_values import (
    MAX_DEPTH,
    PythonReader,
    python_literal,
    render_call,
    render_value,
    unescape,
)

Row = tuple[str, str, int, dict[str, Any], list[Any], tuple[str, ...], bool]
"""Text, name, where the call ends, keyword arguments, positional ones, repairs, whether it is whole."""

WHOLE: list[Row] = [
    ("f()", "f", 3, {}, [], (), True),
    ("f( )", "f", 4, {}, [], (), True),
    ("f(a=1)", "f", 6, {"a": 1}, [], (), True),
    ("f(a=1, b='x')", "f", 13, {"a": 1, "b": "x"}, [], (), True),
    ("f(1, 'x', k=None)", "f", 17, {"k": None}, [1, "x"], (), True),
    ("f(a=True, b=False, c=None)", "f", 26, {"a": True, "b": False, "c": None}, [], (), True),
    (
        "f(a=[1, 2], b=(3, 4), c={'k': 'v', 'n': 1.5})",
        "f",
        45,
        {"a": [1, 2], "b": [3, 4], "c": {"k": "v", "n": 1.5}},
        [],
        (),
        True,
    ),
    ("f(a=[])", "f", 7, {"a": []}, [], (), True),
    ("f(a={})", "f", 7, {"a": {}}, [], (), True),
    ("f(a=())", "f", 7, {"a": []}, [], (), True),
    (
        "f(a=-1, b=+2, c=1_000, d=0x1F, e=1e3, g=.5, h=5., i=1.5E-2)",
        "f",
        59,
        {"a": -1, "b": 2, "c": 1000, "d": 31, "e": 1000.0, "g": 0.5, "h": 5.0, "i": 0.015},
        [],
        (),
        True,
    ),
    ("f(a=0)", "f", 6, {"a": 0}, [], (), True),
    ("f(a=-0)", "f", 7, {"a": 0}, [], (), True),
    ("f(a='it''s')", "f", 12, {"a": "its"}, [], (), True),
    ("f(a='x' \"y\")", "f", 12, {"a": "xy"}, [], (), True),
    ("f(a=r'\\n')", "f", 10, {"a": "\\n"}, [], (), True),
    ("f(a=b'x')", "f", 9, {"a": "x"}, [], (), True),
    ("f(a=f'x')", "f", 9, {"a": "x"}, [], (), True),
    ("f(a='''x\n'y' z''')", "f", 18, {"a": "x\n'y' z"}, [], (), True),
    ('f(a="""q""")', "f", 12, {"a": "q"}, [], (), True),
    ("f(a='x\\\ny')", "f", 11, {"a": "xy"}, [], (), True),
    ("f(a='\\x41\\u00e9\\U0001F600\\101\\n\\t\\q\\\\')", "f", 39, {"a": "Aé😀A\n\t\\q\\"}, [], (), True),
    ("f(a='\\U00110000')", "f", 17, {"a": "\\U00110000"}, [], (), True),
    ("f(a=[1,])", "f", 9, {"a": [1]}, [], (), True),
    ("f(a={'k': 1,})", "f", 14, {"a": {"k": 1}}, [], (), True),
    ("a.b.c(x=1)", "a.b.c", 10, {"x": 1}, [], (), True),
    ("a-b(x=1)", "a-b", 8, {"x": 1}, [], (), True),
    ("é(x=1)", "é", 6, {"x": 1}, [], (), True),
    ("f(x-y=1)", "f", 8, {"x-y": 1}, [], (), True),
    ("f(a=1)(b=2)", "f", 6, {"a": 1}, [], (), True),
    ("f(a=[[1], [2, [3]]])", "f", 20, {"a": [[1], [2, [3]]]}, [], (), True),
    ("f(a= 1 , b = 2 )", "f", 16, {"a": 1, "b": 2}, [], (), True),
    ("f(\n  a=1,\n  b=2\n)", "f", 17, {"a": 1, "b": 2}, [], (), True),
    ("f(a=1, a=2)", "f", 11, {"a": 2}, [], (), True),
    ("f(a=1e999)", "f", 10, {"a": "1e999"}, [], (), True),
    ("f(a='a' 'b' \"c\", d=1)", "f", 21, {"a": "abc", "d": 1}, [], (), True),
]
RESCUED: list[Row] = [
    ("f(a=true, b=null)", "f", 17, {"a": True, "b": None}, [], ("json_literal", "json_literal"), True),
    ("f(a=007)", "f", 8, {"a": "007"}, [], ("unquoted_value",), True),
    ("f(a=0b1)", "f", 8, {"a": "0b1"}, [], ("unquoted_value",), True),
    ("f(a=1.2.3)", "f", 10, {"a": "1.2.3"}, [], ("unquoted_value",), True),
    ("f(a=12abc)", "f", 10, {"a": "12abc"}, [], ("unquoted_value",), True),
    ("f(a='x\ny')", "f", 10, {"a": "x\ny"}, [], ("control_character",), True),
    ("f(a='say 'hi' now')", "f", 19, {"a": "say 'hi' now"}, [], ("unescaped_quote", "unescaped_quote"), True),
    ('f(a="he said "x" ok")', "f", 21, {"a": 'he said "x" ok'}, [], ("unescaped_quote", "unescaped_quote"), True),
    ("f(a=b c)", "f", 8, {"a": "b c"}, [], ("unquoted_value",), True),
    ("f(a=b c, d=1)", "f", 13, {"a": "b c", "d": 1}, [], ("unquoted_value",), True),
    ("f(a=1 b=2)", "f", 10, {"a": 1, "b": 2}, [], ("missing_comma",), True),
    ("f(a={k: 1})", "f", 11, {"a": {"k": 1}}, [], ("unquoted_key",), True),
    ("f(a={k-x: 1, 'y': 2})", "f", 21, {"a": {"k-x": 1, "y": 2}}, [], ("unquoted_key",), True),
    ("f(a={1: 2, None: 3})", "f", 20, {"a": {"1": 2, "None": 3}}, [], ("unquoted_key",), True),
    ("f(a=0xZZ)", "f", 9, {"a": "0xZZ"}, [], ("unquoted_value",), True),
]
BROKEN: list[Row] = [
    ("f(a='b", "f", 6, {"a": "b"}, [], ("cut",), False),
    ('f(a="b\\', "f", 7, {"a": "b"}, [], ("cut",), False),
    ("f(a='''b''", "f", 10, {"a": "b''"}, [], ("cut",), False),
    ("f(a=b", "f", 5, {}, [], ("cut",), False),
    ("f(a=", "f", 4, {}, [], ("cut",), False),
    ("f(a", "f", 3, {}, [], ("cut",), False),
    ("f(", "f", 2, {}, [], ("cut",), False),
    ("f(a=1", "f", 5, {"a": 1}, [], ("cut",), False),
    ("f(a=1,", "f", 6, {"a": 1}, [], ("cut",), False),
    ("f(a=1 2)", "f", 6, {"a": 1}, [], ("broken_arguments",), False),
    ("f(a=1;b=2)", "f", 5, {"a": 1}, [], ("broken_arguments",), False),
    ("f(a=[1", "f", 6, {}, [], ("cut",), False),
    ("f(a=[1,2)", "f", 8, {}, [], ("broken_arguments",), False),
    ("f(a=[1;2])", "f", 6, {}, [], ("broken_arguments",), False),
    ("f(a={'k': 1", "f", 11, {}, [], ("cut",), False),
    ("f(a={'k'", "f", 8, {}, [], ("cut",), False),
    ("f(a=)", "f", 4, {}, [], ("broken_arguments",), False),
    ("f(a=,b=1)", "f", 4, {}, [], ("broken_arguments",), False),
    ("f(a=g(1))", "f", 5, {"a": "g"}, [], ("unquoted_value", "broken_arguments"), False),
]
AT_MARKERS: list[Row] = [
    ("f(a=1</t>", "f", 5, {"a": 1}, [], ("broken_arguments",), False),
    ("f(</t>", "f", 2, {}, [], ("broken_arguments",), False),
    ("f(a='x</t>')", "f", 12, {"a": "x</t>"}, [], (), True),
    ("f(a=1, </t>", "f", 7, {"a": 1}, [], ("broken_arguments",), False),
]


def typed(value: Any) -> Any:
    """A value with its types, so that 1, 1.0 and True differ."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    return [typed(item) for item in value] if isinstance(value, list) else (type(value).__name__, value)


def check(row: Row, stops: tuple[str, ...] = ()) -> None:
    text, name, end, keywords, positional, repairs, whole = row
    call = PythonReader(text, stops).call(0)
    assert call is not None
    assert (call.name, call.start, call.end, call.complete) == (name, 0, end, whole)
    assert typed(call.keywords) == typed(keywords)
    assert typed(call.positional) == typed(positional)
    assert tuple(call.repairs) == repairs
    inner = text[len(name) + 1 : end - 1 if whole else end]
    assert call.inner.of(text) == inner


def of_text(row: Row) -> str:
    return row[0]


@pytest.mark.parametrize("row", WHOLE, ids=of_text)
def test_calls_as_python_has_them(row: Row) -> None:
    check(row)


@pytest.mark.parametrize("row", RESCUED, ids=of_text)
def test_what_is_nearly_python_is_read_and_the_repair_named(row: Row) -> None:
    check(row)


@pytest.mark.parametrize("row", BROKEN, ids=of_text)
def test_a_broken_call_keeps_what_was_read(row: Row) -> None:
    check(row)


@pytest.mark.parametrize("row", AT_MARKERS, ids=of_text)
def test_a_closing_marker_ends_an_open_call_but_not_a_string(row: Row) -> None:
    check(row, ("</t>",))


@pytest.mark.parametrize("text", ["f (a=1)", "1f()"])
def test_no_call_stands_there(text: str) -> None:
    assert PythonReader(text).call(0) is None


def test_a_call_in_the_middle_of_a_text() -> None:
    text = "x = f(a=1); g()"
    call = PythonReader(text).call(4)
    assert call is not None
    assert (call.start, text[call.start : call.end], call.inner.of(text)) == (4, "f(a=1)", "a=1")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2]", [1, 2]), (" [1]", [1]), ("[1] ", None), ("{'a': 1}", {"a": 1}), ("('x',)", ["x"]), ("[1", None),
        ("[true]", None), ("1", 1), ("'x'", "x"), ("[f()]", None), ("{a: 1}", None), ("", None), ("[1]]", None),
    ],
)  # fmt: skip
def test_a_whole_literal_or_nothing(text: str, value: Any) -> None:
    assert typed(python_literal(text)) == typed(value)


def test_depth_and_length_are_bounded() -> None:
    for depth, whole in ((MAX_DEPTH + 1, True), (MAX_DEPTH + 2, False)):
        call = PythonReader("f(a=" + "[" * depth + "]" * depth + ")").call(0)
        assert call is not None
        assert call.complete is whole
    for opening in ("[", "(", "{'k': "):
        call = PythonReader("f(a=" + opening * 10_000).call(0)
        assert call is not None
        assert (call.complete, call.repairs) == (False, ["broken_arguments"])
    for count, whole in ((MAX_STEPS - 1, True), (MAX_STEPS, False)):
        call = PythonReader("f(a=[" + "1," * count + "])").call(0)
        assert call is not None
        assert call.complete is whole


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"), (True, "True"), (1, "1"), (1.5, "1.5"), ("x", '"x"'), ("q\"'\n", '"q\\"\'\\n"'),
        ([1, "a", None], '[1, "a", None]'), ({"a": [True], "b": {}}, '{"a": [True], "b": {}}'), ({1: 2}, '{"1": 2}'),
    ],
)  # fmt: skip
def test_rendering(value: Any, text: str) -> None:
    assert render_value(value) == text


def test_rendering_of_calls() -> None:
    assert render_call("f", {}) == "f()"
    assert render_call("f", {"a": 1, "b": "x"}) == 'f(a=1, b="x")'


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("plain", "plain"), (r"\n\t\r\b\f\a\v", "\n\t\r\b\f\a\v"),
        (r"\\ \' \"", "\\ ' \""), (r"\x41\u00e9\101\7", "A\u00e9A\a"),
        (r"\q", r"\q"), (r"\xZ1", r"\xZ1"), (r"\u12", r"\u12"),
        ("a\\\nb", "ab"), ("a\\\r\nb", "ab"), (r"\U0010FFFF", "\U0010ffff"),
        (r"\U00110000", r"\U00110000"), (r"\400", "\u0100"), (r"\x", r"\x"), (r"\8", r"\8"),
    ],
)  # fmt: skip
def test_escapes(body: str, text: str) -> None:
    assert unescape(body) == text
