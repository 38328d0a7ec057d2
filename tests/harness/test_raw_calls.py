from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.raw_calls import read_raw
from stacks.formats import formats

TOOLS = [
    {"type": "function", "function": {"name": "ls", "parameters": {"type": "object", "properties": {}}}},
    {
        "type": "function",
        "function": {
            "name": "cd",
            "parameters": {"type": "object", "properties": {"folder": {"type": "string"}}, "required": ["folder"]},
        },
    },
]
HERMES, LLAMA = ("hermes",), ("llama3_python_tag", "llama3_json")
GOOD = '<tool_call>\n{"name": "ls", "arguments": {}}\n</tool_call>'


def names(text: str, declared: tuple[str, ...] = HERMES) -> list[str]:
    found = read_raw(text, TOOLS, declared)
    assert not found.recovered
    return [call.name for call in found.calls]


def test_calls_in_the_declared_format() -> None:
    assert names(GOOD) == ["ls"]
    assert names(f"I look.\n{GOOD}\n{GOOD}") == ["ls", "ls"]
    two = '<|python_tag|>{"name": "ls", "parameters": {}}; {"name": "cd", "parameters": {"folder": "x"}}'
    assert names(two, LLAMA) == ["ls", "cd"]
    assert names('{"name": "cd", "parameters": {"folder": "x"}}', LLAMA) == ["cd"]


def test_an_unknown_tool_and_wrong_arguments_are_calls() -> None:
    assert names(GOOD.replace("ls", "fly")) == ["fly"]
    assert names('<tool_call>\n{"name": "cd", "arguments": "x"}\n</tool_call>') == ["cd"]
    assert names('<tool_call>\n{"name": "ls"}\n</tool_call>') == ["ls"]


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace('"', "'"),
        GOOD.replace("}}", "}"),
        GOOD.removesuffix("</tool_call>"),
        GOOD[:30],
        GOOD.replace("{}}", "{},}"),
        "<tool_call>\n```json\n" + GOOD[12:-13] + "\n```\n</tool_call>",
    ],
)
def test_broken_text_in_the_declared_format_is_no_call_and_is_not_repaired(text: str) -> None:
    found = read_raw(text, TOOLS, HERMES)
    assert (found.calls, found.recovered) == ((), "")
    assert found.problem


@pytest.mark.parametrize("declared", [HERMES, LLAMA])
@pytest.mark.parametrize(
    "text",
    [
        "<|python_tag|>I have copied the files.",
        "I used <|python_tag|> to call it.",
        "I would write <tool_call> here.",
        "Done. The script:\n```python\nls()\n```",
        'The result:\n```json\n{"a": 1}\n```',
        'I called\n```json\n{"name": "ls", "arguments": {}}\n```\nand that was all.',
        '{"name": "ls", "arguments": {}} is what I called.',
        'For example:\n```json\n{"name": "fly", "arguments": {}}\n```',
        "",
        "   \n",
    ],
)
def test_what_is_no_call(text: str, declared: tuple[str, ...]) -> None:
    found = read_raw(text, TOOLS, declared)
    assert (found.calls, found.recovered, found.problem) == ((), "", "")


@pytest.mark.parametrize(
    ("text", "recovered"),
    [
        ('So:\n```json\n{"name": "ls", "arguments": {}}\n```', "fenced_json/fenced"),
        ('Then: {"name": "ls", "arguments": {}}', "bare_json/tail"),
        ('{"name": "ls", "arguments": {}}', "bare_json/whole"),
        ('<|python_tag|>{"name": "ls", "parameters": {}}', "llama3_python_tag/whole"),
    ],
)
def test_a_call_outside_the_declared_format_is_recovered_and_said_so(text: str, recovered: str) -> None:
    found = read_raw(text, TOOLS, HERMES)
    assert [call.name for call in found.calls] == ["ls"]
    assert found.recovered == recovered


def test_a_tool_that_was_not_offered_is_never_recovered() -> None:
    assert read_raw('{"name": "fly", "arguments": {}}', TOOLS, HERMES).calls == ()


_PIECES = st.sampled_from(
    [
        GOOD,
        "<tool_call>",
        "</tool_call>",
        "<|python_tag|>",
        "```json\n",
        "```",
        '{"name": "ls", ',
        "}",
        "prose ",
        "; ",
        "\n",
    ]
)


@given(st.lists(_PIECES | st.text(max_size=8), max_size=12).map("".join), st.sampled_from(formats()))
def test_any_text_in_any_format_is_read(text: str, entry: object) -> None:
    found = read_raw(text, TOOLS, (entry.name,))  # type: ignore[attr-defined]
    assert not (found.recovered and not found.calls)
    assert all(isinstance(call.name, str) for call in found.calls)


@pytest.mark.parametrize("entry", formats(), ids=lambda entry: entry.name)
def test_what_a_format_writes_is_read_as_its_own(entry: object) -> None:
    written = entry.render(list(read_raw(GOOD, TOOLS, HERMES).calls))  # type: ignore[attr-defined]
    found = read_raw(written, TOOLS, (entry.name,))  # type: ignore[attr-defined]
    if [call.name for call in found.calls] != ["ls"] or found.recovered or found.problem:
        pytest.fail(f"{written!r}: {found}")
