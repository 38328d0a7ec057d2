"""The common interface on the forms every stack meets first."""

from __future__ import annotations

import pytest

from stacks.formats import check_call, find_calls, format_named, split_reasoning

TOOLS = {"get_weather": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
CALL = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
BLOCK = f"<tool_call>\n{CALL}\n</tool_call>"


@pytest.mark.parametrize(
    ("text", "name", "position"),
    [
        (BLOCK, "hermes", "whole"),
        (f"I will check.\n{BLOCK}\nDone.", "hermes", "block"),
        (CALL, "bare_json", "whole"),
        (f"```json\n{CALL}\n```", "fenced_json", "whole"),
        (f"I reason.\n</think>\n\n{BLOCK}", "hermes", "whole"),
    ],
)
def test_a_call_that_stands(text: str, name: str, position: str) -> None:
    scan = find_calls(text, TOOLS)
    assert scan.format == name
    assert [(c.call.arguments, c.position, c.stands) for c in scan.calls] == [({"city": "Paris"}, position, True)]
    assert check_call(scan.calls[0].call, TOOLS).ok


@pytest.mark.parametrize(
    ("text", "position"),
    [
        (f"I won't send {CALL} because of the rain.", "inline"),
        (f"I will not write {BLOCK.replace(chr(10), '')} because of the rain.", "quoted"),
        (f"For example:\n```json\n{CALL}\n```\nThat is how.", "fenced"),
        (f"<think>\n{BLOCK}\n</think>\nNo.", "reasoning"),
    ],
)
def test_a_call_that_does_not_stand(text: str, position: str) -> None:
    scan = find_calls(text, TOOLS)
    assert [(call.position, call.stands) for call in scan.calls] == [(position, False)]


def test_strict_refuses_what_lenient_rescues() -> None:
    text = BLOCK.replace('"', "'")
    hermes = format_named("hermes")
    assert hermes.parse(text, "lenient").calls[0].repairs == ("single_quotes",)
    strict = hermes.parse(text, "strict")
    assert strict.calls == ()
    assert strict.problems[0].kind == "repaired"


def test_reasoning_opened_by_the_template() -> None:
    split = split_reasoning("so it is.\n</think>\n\nYes.")
    assert split.opened_by_template
    assert split.answer_text("so it is.\n</think>\n\nYes.") == "\n\nYes."
