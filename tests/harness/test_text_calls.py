from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.text_calls import TextCall, calls_in_text

READ = '{"name": "read_file", "arguments": {"path": "a"}}'
CALL = TextCall("read_file", {"path": "a"})


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (READ, (CALL,)),
        (f"I read it.\n{READ}\nThen I go on.", (CALL,)),
        (f"```json\n{READ}\n```", (CALL,)),
        (f"```\n{READ}\n```", (CALL,)),
        (f"First ```json\n{READ}\n``` and then ```json\n{READ}\n```", (CALL, CALL)),
        ('```json\n{"name": "done"}\n```', (TextCall("done", {}),)),
        ('{"name": "done", "arguments": null}', (TextCall("done", None),)),
        ('{"name": "done", "arguments": "{}"}', (TextCall("done", "{}"),)),
        (f"```json\n{READ}\n``` but not {READ}", (CALL,)),
    ],
)
def test_calls(text: str, calls: tuple[TextCall, ...]) -> None:
    found = calls_in_text(text)
    assert found.calls == calls
    assert not found.problem


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "read_file", "arguments": {"path": "a"}',
        "{'name': 'read_file', \"name\": 1, \"arguments\": {}}",
        '```json\n{"name": "read_file", "arguments": {"path": }}\n```',
        '```json\n{"tool": "read_file"}\n```',
        '{"name": 7, "arguments": {}}',
        f"{READ}\n{READ}",
        '{"name": "read_file", "arg',
        '{"name": "a", "arguments": ' + "[" * 100_000 + "}",
    ],
)
def test_what_looks_like_a_call_and_is_none_is_told(text: str) -> None:
    found = calls_in_text(text)
    assert not found.calls
    assert found.problem


@pytest.mark.parametrize("text", ["", "It is done.", "a set {1, 2}", '"name" and "arguments"', "} {"])
def test_prose_is_no_call_and_no_problem(text: str) -> None:
    assert calls_in_text(text) == calls_in_text("")


@given(
    st.text() | st.lists(st.sampled_from(["{", "}", '"name"', ":", '"arguments"', "```", "json\n", '"a"'])).map("".join)
)
def test_any_text_is_read(text: str) -> None:
    found = calls_in_text(text)
    assert not (found.calls and found.problem)
