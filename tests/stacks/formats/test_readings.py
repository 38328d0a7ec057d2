"""Broken, cut and wrapped calls of every format, read whole: values, places, what was rescued, what was no call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stacks.formats import ParseResult, find_calls, format_named, formats, offered_tools

TOOLS = offered_tools(
    {
        "get_weather": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "tags": {"type": "array"}},
        },
        "write_file": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
    }
)
LINES = (Path(__file__).parent / "cases" / "readings.jsonl").read_text(encoding="utf-8").splitlines()
ROWS: list[dict[str, Any]] = [json.loads(line) for line in LINES]
FORMATS = sorted({row["format"] for row in ROWS})


def told(result: ParseResult) -> dict[str, Any]:
    """A reading in the words of the file."""
    calls = []
    for call in result.calls:
        spans = {"span": call.span, "name_span": call.name_span, "arguments_span": call.arguments_span}
        said = {"name": call.name, "arguments": call.arguments} | {name: list(span) for name, span in spans.items()}
        said |= {"closed": call.closed, "complete": call.complete, "repairs": list(call.repairs)}
        calls.append(said | ({"id": call.call_id} if call.call_id else {}))
    problems = [[problem.kind, problem.message, *problem.span] for problem in result.problems]
    return {"calls": calls, "problems": problems, "blocks": [list(block) for block in result.blocks]}


def test_every_format_is_there() -> None:
    assert [entry.name for entry in sorted(formats(), key=lambda entry: entry.name)] == FORMATS


@pytest.mark.parametrize("name", FORMATS)
def test_readings(name: str) -> None:
    for row in ROWS:
        if row["format"] == name:
            said = told(format_named(name).parse(row["text"], "lenient", TOOLS))
            # As JSON, so that 3, 3.0 and True differ.
            assert json.dumps(said) == json.dumps({key: row[key] for key in said}), row["text"]


@pytest.mark.parametrize("name", FORMATS)
def test_places_read_again(name: str) -> None:
    for row in ROWS:
        if row["format"] != name:
            continue
        text = row["text"]
        for call in format_named(name).parse(text, "lenient", TOOLS).calls:
            assert call.name_span.of(text) == call.name
            assert call.arguments_span.of(text) == call.arguments_text
            assert call.span.start <= call.name_span.start < call.name_span.end <= call.span.end <= len(text)
            assert call.span.start <= call.arguments_span.start <= call.arguments_span.end <= call.span.end


@pytest.mark.parametrize("name", FORMATS)
def test_strict_takes_what_needed_no_repair_and_nothing_else(name: str) -> None:
    for row in ROWS:
        if row["format"] != name:
            continue
        strict = format_named(name).parse(row["text"], "strict", TOOLS)
        good = [call for call in row["calls"] if not call["repairs"] and call["complete"]]
        assert [call.arguments for call in strict.calls] == [call["arguments"] for call in good]
        assert len(strict.problems) == len(row["problems"]) + len(row["calls"]) - len(good)
        kinds = {("repaired" if call["complete"] else "cut") for call in row["calls"] if call not in good}
        assert kinds <= {problem.kind for problem in strict.problems}


@pytest.mark.parametrize("name", FORMATS)
def test_the_whole_answer_loses_no_whole_call(name: str) -> None:
    for row in ROWS:
        if row["format"] != name:
            continue
        scan = find_calls(row["text"], TOOLS)
        for call in row["calls"]:
            if call["complete"] and call["closed"] and not call["repairs"] and not row["problems"]:
                found = [(each.call.name, each.call.arguments) for each in scan.calls]
                assert (call["name"], call["arguments"]) in found, row["text"]


@pytest.mark.parametrize("line", ["Okay", "Well. ", "Okay.\n", "Sure, let me check."])
def test_a_line_of_prose_before_a_call_is_no_name(line: str) -> None:
    scan = find_calls(line + '\n{"name": "get_weather", "arguments": {"city": "Paris"}}', TOOLS)
    assert [(call.call.name, call.call.arguments) for call in scan.calls] == [("get_weather", {"city": "Paris"})]
    assert find_calls(line + '\n{"city": "Paris"}', TOOLS).calls == ()


def test_a_bare_first_line_is_a_name_where_it_was_offered() -> None:
    scan = find_calls('get_weather\n{"city": "Paris"}', TOOLS)
    assert [(call.call.name, call.call.format, call.stands) for call in scan.calls] == [
        ("get_weather", "functionary_v32", True)
    ]


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ("name='city'", "city"),
        ("name=city", "city"),
        ('name = "city"', "city"),
        ('name="city" string="true"', "city"),
        ("name=city string=true", "city"),
        ("name='a city' x='1'", "a city"),
        ('name="city"  ', "city"),
    ],
)
def test_spellings_of_a_parameter_tag(attributes: str, name: str) -> None:
    text = f"<function_calls>\n<invoke name='f'>\n<parameter {attributes}>Paris</parameter>\n</invoke>\n"
    result = format_named("claude_xml").parse(text + "</function_calls>", "lenient")
    assert [call.arguments for call in result.calls] == [{name: "Paris"}]
    assert result.calls[0].repairs == ("call_tag_spelling", "parameter_tag_spelling")
