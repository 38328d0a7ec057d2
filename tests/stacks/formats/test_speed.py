"""Time grows with the length of a text and no faster, whatever is written to slow the readers down."""

from __future__ import annotations

import time

import pytest

from stacks.formats import find_calls, split_reasoning

MEGABYTE = 1_000_000
GOOD = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>\n'
PIECES = {
    "braces": "{",
    "brackets": "[",
    "open tags": "<tool_call>",
    "open tags and a brace": "<tool_call>{",
    "open tags and a name": '<tool_call>{"name":"x',
    "nested keys": '{"name":',
    "nested lists": '[{"name":[',
    "good calls": GOOD,
    "single quotes": GOOD.replace('"', "'"),
    "cut calls": GOOD[:50],
    "qwen openings": "<function=a><parameter=b>",
    "glm keys": "<tool_call>a<arg_key>b</arg_key><arg_value>",
    "glm closers": "</arg_value>x",
    "kimi openings": "<|tool_call_begin|>functions.a",
    "harmony channels": "<|channel|>analysis<|message|>",
    "gemma braces": "<|tool_call>call:a{b:{",
    "python calls": "[f(a=1), ",
    "fences": '```json\n{"name":',
    "actions": "Action: a\nAction Input: ",
    "thinking": "<think>\n",
    "thoughts": "<think>a</think>\n",
    "closers": "</think>",
    "angles": "<",
    "ticks": "`",
    "quotes": '"',
    "escaped quotes": "\\\"'",
    "spaces": " ",
    "line breaks": "\n",
    "prose": "The quick brown fox jumps. ",
}
PREFIXES = {
    "quotes": '{"name": "',
    "escaped quotes": '<tool_call>{"name": "',
    "glm closers": "<tool_call>f<arg_key>a</arg_key><arg_value>",
}


def _seconds(text: str) -> float:
    started = time.process_time()
    find_calls(text, ["get_weather", "a", "f"])
    return time.process_time() - started


@pytest.mark.parametrize("name", PIECES)
def test_a_megabyte(name: str) -> None:
    """Measured at 0.02 to 0.6 s on an idle core; the bound leaves room for a busy one."""
    piece = PIECES[name]
    text = PREFIXES.get(name, "") + piece * (MEGABYTE // len(piece))
    assert _seconds(text) < 3


@pytest.mark.parametrize("name", ["braces", "open tags", "quotes", "good calls", "cut calls", "glm closers", "angles"])
def test_growth_is_linear(name: str) -> None:
    """Sixteen times the text takes less than sixty times as long (quadratic would be 256 times)."""
    piece = PIECES[name]
    small = PREFIXES.get(name, "") + piece * (20_000 // len(piece))
    large = PREFIXES.get(name, "") + piece * (320_000 // len(piece))
    _seconds(small)
    least = min(_seconds(large) for _ in range(2))
    assert least < 60 * max(_seconds(small), 0.002)


def test_one_large_argument() -> None:
    body = "line\\n" * 200_000
    text = '<tool_call>\n{"name": "a", "arguments": {"x": "' + body + '"}}\n</tool_call>'
    started = time.process_time()
    scan = find_calls(text, ["a"])
    assert time.process_time() - started < 2
    assert scan.standing[0].call.arguments == {"x": "line\n" * 200_000}


def test_reasoning_of_a_megabyte() -> None:
    for piece in ("<think>", "</think>", "<think>\n", "<think>a</think>", "<", "analysis", "[THINK]", " "):
        started = time.process_time()
        split_reasoning(piece * (MEGABYTE // len(piece)))
        assert time.process_time() - started < 2, piece


OPEN_ENDS = [
    "<invoke name=",
    "<invoke name='f'><parameter name=",
    '<invoke name="f"><parameter name="a">',
    "<function=a><parameter=b>",
    "<tool_call>a<arg_key>k</arg_key><arg_value>",
    "<|channel|>commentary to=functions.a",
    "[TOOL_CALLS]a",
    "Action:",
    "<tool_call>",
    "[f(a=1,",
]


@pytest.mark.parametrize("opening", OPEN_ENDS)
@pytest.mark.parametrize("blank", [" ", " \n"], ids=["spaces", "lines"])
def test_blanks_after_an_opening_cost_no_more_than_other_text(opening: str, blank: str) -> None:
    """Measured below 0.02 s; a search that starts anew at each blank took hours."""
    assert _seconds(opening + blank * (100_000 // len(blank)) + "x") < 1
