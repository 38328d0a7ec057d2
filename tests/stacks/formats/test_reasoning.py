"""Reasoning told from the answer, in every style, and what only looks like it."""

from __future__ import annotations

import pytest

from stacks.formats import find_calls, split_reasoning
from stacks.formats.reasoning import STYLES

HARMONY = (
    "<|channel|>analysis<|message|>Need the weather.<|end|>"
    '<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>'
)


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_every_style(style: tuple[str, str, str, str]) -> None:
    _, opens, closes, _ = style
    text = f"{opens}\nHm, {{so}} it is.\n{closes}\n\nYes."
    split = split_reasoning(text)
    assert split.reasoning_text(text) == text[: -len("\n\nYes.")]
    assert split.answer_text(text) == "\n\nYes."
    assert (split.unclosed, split.opened_by_template) == (False, False)
    cut = split_reasoning(text[: text.index("it is")])
    assert (cut.unclosed, cut.answer) == (True, ())


@pytest.mark.parametrize(
    ("text", "answer", "unclosed", "opened"),
    [
        ("It is sunny.", "It is sunny.", False, False),
        ("", "", False, False),
        ("so it is.\n</think>\n\nYes.", "\n\nYes.", False, True),
        ("so it is.</think>\nYes.", "\nYes.", False, True),
        ("\n</think>\n\nYes.", "\n\nYes.", False, True),
        ("so it is.\n[/THINK]Yes.", "Yes.", False, True),
        ("<think>a</think>b\n<think>c</think>d", "b\nd", False, False),
        ("<think></think>\n\nYes.", "\n\nYes.", False, False),
        ("Write <think> before and </think> after it.", "Write <think> before and </think> after it.", False, False),
        ("The tag </think> ends it.", "The tag </think> ends it.", False, False),
        ("Sure.\n<think>\nnever closed", "Sure.\n", True, False),
        ("  <think>\nx\n</think>Yes.", "  Yes.", False, False),
    ],
)
def test_shapes(text: str, answer: str, unclosed: bool, opened: bool) -> None:
    split = split_reasoning(text)
    assert (split.answer_text(text), split.unclosed, split.opened_by_template) == (answer, unclosed, opened)


def test_the_template_is_known_to_have_opened_it() -> None:
    split = split_reasoning("I never close this", starts_inside=True)
    assert (split.answer, split.unclosed, split.opened_by_template) == ((), True, True)
    assert split_reasoning("a</think>b", starts_inside=True).answer_text("a</think>b") == "b"


def test_harmony_channels() -> None:
    split = split_reasoning(HARMONY)
    assert split.reasoning_text(HARMONY) == "<|channel|>analysis<|message|>Need the weather.<|end|>"
    assert [call.call.arguments for call in find_calls(HARMONY, ["f"]).standing] == [{"a": 1}]
    final = "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>It is sunny."
    assert find_calls(final).prose_text == "It is sunny."
    bare = "analysisNeed it.assistantfinalIt is sunny."
    assert split_reasoning(bare).answer_text(bare) == "assistantfinalIt is sunny."
    cut = split_reasoning("<|channel|>analysis<|message|>Need the")
    assert (cut.unclosed, cut.answer) == (True, ())
    call = '<|channel|>analysis to=functions.f<|message|>{"a": 1}<|call|>'
    assert split_reasoning(call).reasoning == ()


def test_a_tag_inside_arguments_is_text() -> None:
    text = (
        "<tool_call>\n<function=f>\n<parameter=a>\n<think>\nx\n</think>\n</parameter>\n</function>\n</tool_call>\n"
        "<think>\nreal\n</think>\nDone."
    )
    scan = find_calls(text, ["f"])
    assert [call.call.arguments for call in scan.standing] == [{"a": "<think>\nx\n</think>"}]
    assert [span.of(text) for span in scan.reasoning.reasoning] == ["<think>\nreal\n</think>"]


def test_a_call_begun_in_reasoning_does_not_swallow_the_real_one() -> None:
    text = (
        "<think>\nI would write <tool_call>\n<function=f>\n<parameter=a>\n then.\n</think>\n\n"
        "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"
    )
    scan = find_calls(text, ["f"])
    assert [call.call.arguments for call in scan.standing] == [{"a": "1"}]


def test_calls_in_reasoning_that_never_closes() -> None:
    scan = find_calls('<think>\nNow. <tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>', ["f"])
    assert (scan.reasoning.unclosed, scan.standing, len(scan.in_reasoning)) == (True, (), 1)
