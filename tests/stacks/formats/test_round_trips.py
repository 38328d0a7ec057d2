"""Properties of every format: what is rendered reads back as it was, whatever the values; no text raises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stacks.formats import (
    ParsedCall,
    Span,
    find_calls,
    format_named,
    formats,
    lenient_reply,
    offered_tools,
    strict_reply,
)

NOWHERE = Span(0, 0)
NAMES = ("get_weather", "read_file", "search2")
KEYS = ("city", "path", "limit", "flag", "options")
#: Formats that write strings without quotes or escapes: what may stand in a value is what cannot be mistaken.
RAW_TEXT = {"qwen_xml", "seed_oss", "minimax_m2", "muse_atem", "claude_xml", "minicpm5"}
RAW_TEXT |= {"deepseek_v32", "deepseek_v4", "glm", "longcat", "hunyuan_v3", "gemma4", "functiongemma"}
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
CODE = st.sampled_from(
    ['a "b" c', "it's", "x\ny", "\\n", "{'a': 1}", "</tool_call>", "```", "[1]", "007", "1e5", "true"]
)
NUMBERS = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | NUMBERS | ANY_TEXT | CODE


def containers(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
        max_leaves=6,
    )


def plain(text: str) -> str:
    return "".join(char for char in text if char not in "<>|\"'`\\\r") or "x"


def values(raw: bool) -> st.SearchStrategy[Any]:
    return containers(LEAVES if not raw else st.none() | st.booleans() | NUMBERS | ANY_TEXT.map(plain))


def calls(raw: bool) -> st.SearchStrategy[list[tuple[str, dict[str, Any]]]]:
    arguments = st.dictionaries(st.sampled_from(KEYS), values(raw), max_size=4)
    return st.lists(st.tuples(st.sampled_from(NAMES), arguments), min_size=1, max_size=3)


def schema_of(value: Any) -> dict[str, str]:
    kinds = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return {"type": "null" if value is None else kinds[type(value)]}


def drawn(name: str, wanted: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """One schema per tool, so that a parameter has one type: later calls take the values of the first."""
    first: dict[tuple[str, str], Any] = {}
    out = []
    for tool, arguments in wanted:
        out.append((tool, {key: first.setdefault((tool, key), value) for key, value in arguments.items()}))
    return out


@pytest.mark.parametrize("entry", formats(), ids=lambda entry: entry.name)
def test_render_then_parse(entry: Any) -> None:
    raw = entry.name in RAW_TEXT

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(calls(raw))
    def check(wanted: list[tuple[str, dict[str, Any]]]) -> None:
        wanted = drawn(entry.name, wanted)
        tools = offered_tools(
            {
                tool: {"properties": {k: schema_of(v) for t, a in wanted if t == tool for k, v in a.items()}}
                for tool, _ in wanted
            }
        )
        text = entry.render([ParsedCall(tool, args, "", NOWHERE, NOWHERE, NOWHERE) for tool, args in wanted])
        result = entry.parse(text, "strict", tools)
        assert result.problems == ()
        assert [(call.name, call.arguments) for call in result.calls] == wanted
        again = entry.render(result.calls)
        assert [(c.name, c.arguments) for c in entry.parse(again, "strict", tools).calls] == wanted
        scan = find_calls(text, tools)
        assert [(call.call.name, call.call.arguments) for call in scan.calls] == wanted

    check()


PIECES = st.sampled_from(
    [
        *sorted({marker for entry in formats() for marker in entry.markers}),
        *(
            "{",
            "}",
            "[",
            "]",
            '"',
            "'",
            ":",
            ",",
            "\\",
            "\n",
            "```json\n",
            "```",
            '"name"',
            '"arguments"',
            "get_weather",
        ),
        *("(", ")", "=", "1e999", "NaN", "9" * 5000, "\ud800", "<think>\n", "</think>", "to=functions.x", ">>>x\n"),
        *("<|channel|>analysis<|message|>", "Action: a\nAction Input: ", "é", "😀", "\u2028", " ", "\x00"),
    ]
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES | st.text(max_size=8), max_size=25).map("".join), st.booleans())
def test_no_text_raises_and_spans_hold(text: str, known: bool) -> None:
    scan = find_calls(text, ["get_weather"] if known else None)
    covered = sum(span.end - span.start for span in (*scan.reasoning.reasoning, *scan.reasoning.answer))
    assert covered == len(text)
    for found in scan.calls:
        call = found.call
        assert 0 <= call.span.start <= call.name_span.start <= call.name_span.end <= len(text)
        assert call.span.start <= call.arguments_span.start <= call.arguments_span.end <= call.span.end <= len(text)
        assert call.arguments_span.of(text) == call.arguments_text
        assert not found.stands or (found.offered and found.has_object and call.complete)
    for problem in scan.problems:
        assert 0 <= problem.span.start <= problem.span.end <= len(text)
    for leak in scan.leaks:
        assert leak.span.of(text) == leak.marker
    strict_reply(text)
    lenient_reply(text, "hermes")


@given(containers(LEAVES))
@settings(max_examples=60, deadline=None)
def test_tiers(value: Any) -> None:
    from stacks.formats.json_text import dumps

    text = dumps(value)
    strict = strict_reply(f"  {text}\n")
    assert strict is not None
    assert (strict.value, strict.extractor, strict.span) == (value, "whole", (2, 2 + len(text)))
    if isinstance(value, dict | list) and value:
        assert strict_reply(f"Here: {text}") is None
        fenced = lenient_reply(f"Here:\n```json\n{text}\n```\nDone.")
        assert fenced is not None
        assert (fenced.value, fenced.extractor) == (value, "fence")
        bare = lenient_reply(f"Here: {text} and done.")
        assert bare is not None
        assert (bare.value, bare.extractor) == (value, "braces")


def test_tiers_prefer_the_declared_envelope() -> None:
    reply = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    reading = lenient_reply(reply, "hermes")
    assert reading is not None
    assert (reading.extractor, reading.value) == ("native:hermes", {"name": "f", "arguments": {"a": 1}})
    assert strict_reply(reply) is None
    assert lenient_reply("no value here", "hermes") is None


AWKWARD = (
    "x </parameter> y", "a</function>b", "line\n</parameter>\nmore", "</function>\n</tool_call>",
    "<parameter=b>\nz\n</parameter>", "x </arg_value> y", "<arg_key>b</arg_key>\n<arg_value>z</arg_value>",
    "<tool_call>\n<function=g>\n<parameter=b>\nz\n</parameter>\n</function>\n</tool_call>", "</tool_call>",
    "<tool_call>", "ends with </parameter>", "<parameter=", "\n", "", " ", "\n\nx\n\n", 'print("<function=f>")',
    "</seed:tool_call>", "</invoke>", '<invoke name="f">', "</minimax:tool_call>\n", "</\uff5cDSML\uff5cparameter>",
)  # fmt: skip


@pytest.mark.parametrize("name", sorted(RAW_TEXT - {"gemma4", "functiongemma"}))
def test_markup_inside_a_value_stays_inside(name: str) -> None:
    """A file that shows how to write a call is written by a call."""
    entry = format_named(name)
    tools = offered_tools({"f": {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}})
    for value in AWKWARD:
        for arguments in ({"a": value}, {"a": value, "b": "k"}, {"b": "k", "a": value}):
            text = entry.render([ParsedCall("f", arguments, "", NOWHERE, NOWHERE, NOWHERE)])
            result = entry.parse(text, "strict", tools)
            assert [call.arguments for call in result.calls] == [arguments], value
