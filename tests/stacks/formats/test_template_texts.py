"""Every format on what its models' own chat templates write, whole, in prose, cut at every place, and not offered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stacks.formats import ByteOffsets, ParseResult, find_calls, format_named, formats, offered_tools

_FILE = json.loads((Path(__file__).parent / "cases" / "template_texts.json").read_text(encoding="utf-8"))
TOOLS = offered_tools(_FILE["tools"])
ROWS: list[dict[str, Any]] = _FILE["texts"]
NAMES = [entry.name for entry in formats()]
SINGLE = [row for row in ROWS if row["id"] == "single"]
SHORT = ("single", "parallel", "closing_marker_in_string")
#: The plural of these is what the template never writes in one turn's text without framing of its own.
FRAMED = {"muse_atem-parallel"}


def rows_of(name: str, ids: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    return [row for row in ROWS if row["format"] == name and (not ids or row["id"] in ids)]


def _calls(result: ParseResult) -> list[dict[str, Any]]:
    return [{"name": call.name, "arguments": call.arguments} for call in result.calls]


def test_every_format_has_its_texts() -> None:
    wanted = {"single", "parallel", "nested", "unicode", "empty_arguments", "closing_marker_in_string", "escapes"}
    wanted.add("number_like")
    for entry in formats():
        have = {row["id"] for row in ROWS if row["format"] == entry.name}
        assert wanted <= have, f"{entry.name} lacks {wanted - have}"


@pytest.mark.parametrize("name", NAMES)
def test_strict_and_lenient_agree_with_the_template(name: str) -> None:
    entry = format_named(name)
    for row in rows_of(name):
        text, where = row["text"], row["id"]
        strict, lenient = entry.parse(text, "strict", TOOLS), entry.parse(text, "lenient", TOOLS)
        assert strict.problems == lenient.problems == (), where
        assert _calls(strict) == _calls(lenient) == row["calls"], where
        assert {(call.closed, call.complete, call.repairs) for call in strict.calls} == {(True, True, ())}, where
        raw, offsets = text.encode(), ByteOffsets(text)
        for call in strict.calls:
            assert call.name_span.of(text).strip("\"'") == call.name, where
            assert call.arguments_span.of(text) == call.arguments_text, where
            assert raw[slice(*offsets.span(call.span))].decode() == call.span.of(text), where


@pytest.mark.parametrize("name", NAMES)
def test_the_scan_picks_the_format_and_the_calls_stand(name: str) -> None:
    for row in rows_of(name):
        scan, where = find_calls(row["text"], TOOLS), row["id"]
        assert (scan.format, scan.formats) == (name, (name,)), where
        assert [{"name": c.call.name, "arguments": c.call.arguments} for c in scan.calls] == row["calls"], where
        assert {(call.position, call.stands, call.exact) for call in scan.calls} == {("whole", True, True)}, where
        assert (scan.reasoning.reasoning, scan.cut) == ((), False), where
        if f"{name}-{where}" not in FRAMED:
            assert (scan.prose_text, scan.leaks) == ("", ()), where


@pytest.mark.parametrize("row", SINGLE, ids=lambda row: row["format"])
def test_text_around(row: dict[str, Any]) -> None:
    text = f"I will check the weather.\n\n{row['text']}\n\nThat is all."
    scan = find_calls(text, TOOLS)
    assert [{"name": c.call.name, "arguments": c.call.arguments} for c in scan.calls] == row["calls"]
    entry = format_named(scan.format)
    assert [call.stands for call in scan.calls] == [entry.delimited]
    assert scan.prose_text.split() == ["I", "will", "check", "the", "weather.", "That", "is", "all."]
    assert scan.leaks == ()


@pytest.mark.parametrize("row", SINGLE, ids=lambda row: row["format"])
def test_behind_reasoning_and_inside_it(row: dict[str, Any]) -> None:
    behind = find_calls(f"<think>\nThey ask.\n</think>\n\n{row['text']}", TOOLS)
    inside = find_calls(f"<think>\nThey ask.\n\n{row['text']}\n</think>\n\nNo.", TOOLS)
    if row["format"] != "harmony":
        assert [call.stands for call in behind.calls] == [True]
        assert behind.format == row["format"]
        assert [call.position for call in inside.calls] == ["reasoning"]
        assert inside.standing == ()
        assert inside.prose_text == "No."
    else:
        assert [call.stands for call in behind.calls] == [True]


@pytest.mark.parametrize("row", SINGLE, ids=lambda row: row["format"])
def test_a_tool_that_was_not_offered(row: dict[str, Any]) -> None:
    scan = find_calls(row["text"], ["launch_rocket"])
    if row["format"] == "pythonic" and not scan.calls:
        return
    assert [(call.offered, call.stands, call.call.name) for call in scan.calls] == [(False, False, "get_weather")]


@pytest.mark.parametrize("name", NAMES)
def test_every_prefix(name: str) -> None:
    """No prefix invents: what a prefix holds of complete calls is what the whole text holds first."""
    entry = format_named(name)
    for row in rows_of(name, SHORT):
        text, where = row["text"], row["id"]
        for end in range(len(text)):
            part = text[:end]
            lenient = entry.parse(part, "lenient", TOOLS)
            strict = lenient.strict()
            assert _calls(strict) == row["calls"][: len(strict.calls)], (where, end)
            whole = [{"name": c.name, "arguments": c.arguments} for c in lenient.calls if c.complete and c.closed]
            if where != "closing_marker_in_string" and entry.typed:
                assert whole == row["calls"][: len(whole)], (where, end)
            for call in lenient.calls:
                assert 0 <= call.span.start < call.span.end <= end
                assert call.span.start <= call.name_span.start <= call.name_span.end <= end
            if end % 4 == 0:
                find_calls(part, TOOLS)


@pytest.mark.parametrize("row", SINGLE, ids=lambda row: row["format"])
def test_a_text_cut_inside_the_arguments_is_cut(row: dict[str, Any]) -> None:
    text = row["text"]
    scan = find_calls(text[: text.index("Paris") + 3], TOOLS)
    assert scan.standing == ()
    if row["format"] not in ("pythonic", "fenced_json", "react"):
        assert scan.cut
