"""With the model's text known, outcome and delivery are facts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.classify.exchanges import CALL, chat, delta, entry, message, verdict

GOOD = [("get_weather", {"city": "Lyon"})]
BROKEN = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Lyon",}}\n</tool_call>'
UNKNOWN = '<tool_call>\n{"name": "rocket", "arguments": {"city": "Lyon"}}\n</tool_call>'
TWO = CALL + "\n" + CALL.replace("Lyon", "Turin")


@pytest.mark.parametrize(
    ("known", "answer", "more", "name", "fault", "delivery"),
    [
        (CALL, message(None, GOOD), {}, "ok.native_call", "none", "intact"),
        (CALL, message(CALL), {}, "parser.left_as_text", "config", "left_as_text"),
        (CALL, message(""), {}, "parser.dropped", "stack", "dropped"),
        (CALL, message("", reasoning_content=CALL), {}, "parser.in_reasoning", "stack", "in_reasoning"),
        (CALL, message(None, [("get_weather", {"city": "Ly"})]), {}, "parser.altered", "stack", "altered"),
        (CALL, message(None, [*GOOD, *GOOD]), {}, "parser.altered", "stack", "altered"),
        (CALL, message(CALL), {"tool_choice": "none"}, "ok.final_answer", "none", "intact"),
        (CALL, message(CALL), {"tools": None}, "ok.final_answer", "none", "intact"),
        (CALL, message(None, GOOD), {"tools": None}, "parser.phantom", "stack", "phantom"),
        (CALL, message(None, GOOD), {"tool_choice": "none"}, "protocol.choice_ignored", "stack", "phantom"),
        (TWO, message(None, GOOD), {}, "parser.dropped", "stack", "dropped"),
        (TWO, message(None, GOOD), {"parallel_tool_calls": False}, "ok.native_call", "none", "constrained"),
        (CALL, message(None, [*GOOD, ("get_weather", {"city": "Turin"})]), {}, "parser.phantom", "stack", "phantom"),
        (BROKEN, message(BROKEN), {}, "model.malformed_call", "model", "left_as_text"),
        (BROKEN, message(""), {}, "model.malformed_call", "model", "dropped"),
        (BROKEN, message(None, GOOD), {}, "model.malformed_call", "model", "repaired"),
        (BROKEN, message(None, GOOD), {"stack": "llama.cpp"}, "model.malformed_call", "model", "constrained"),
        (UNKNOWN, message(None, [("rocket", {"city": "Lyon"})]), {}, "model.unknown_tool", "model", "intact"),
        (UNKNOWN, message(UNKNOWN), {}, "model.unknown_tool", "model", "left_as_text"),
        ("", message(""), {}, "nonresponse.empty", "model", "intact"),
        ("", message("x"), {"response_format": {"type": "json_object"}}, "ok.final_answer", "none", "constrained"),
        ("It is warm.", message("It is warm."), {}, "ok.final_answer", "none", "intact"),
        ("It is warm.", message(""), {}, "nonresponse.swallowed", "stack", "dropped"),
        ("It is warm.", message("It was cold."), {}, "parser.altered", "stack", "altered"),
        ("It is warm.", message(None, GOOD), {}, "parser.phantom", "stack", "phantom"),
        ("It is warm.", message(None, GOOD), {"tool_choice": "required"}, "ok.native_call", "none", "constrained"),
        (
            "It is warm.",
            message("", reasoning_content="It is warm."),
            {},
            "parser.in_reasoning",
            "stack",
            "in_reasoning",
        ),
        (
            "<think>\nHm.\n</think>",
            message("", reasoning_content="Hm."),
            {},
            "nonresponse.reasoning_only",
            "model",
            "intact",
        ),
        ("<think>\nHm.\n</think>\n\nWarm.", message("Warm.", reasoning="Hm."), {}, "ok.final_answer", "none", "intact"),
        (CALL, message(CALL[:4], finish="length"), {}, "truncation.output_budget", "config", "cut"),
        (CALL, message(CALL[:45], finish="length"), {}, "truncation.cut_inside_call", "config", "cut"),
        (
            "la lo la lo @-2",
            message("la lo la lo la", finish="length"),
            {},
            "truncation.output_budget",
            "config",
            "cut",
        ),
    ],
)
def test_facts(  # noqa: PLR0917
    known: str, answer: Any, more: dict[str, Any], name: str, fault: str, delivery: str
) -> None:
    outcome = verdict(chat(answer, **more), known)
    assert (outcome.name, outcome.at_fault, outcome.delivery) == (name, fault, delivery)
    assert outcome.grade == "known-answer"
    assert ("engine.constrained" in outcome.flags) == (delivery == "constrained")


@pytest.mark.parametrize(
    ("known", "text", "name"),
    [
        (CALL, "EOF", "parser.server_error"),
        (BROKEN, "EOF", "model.malformed_call"),
        (UNKNOWN, "tool 'rocket' not found", "model.unknown_tool"),
        ("It is warm.", "failed to parse JSON: invalid character 'I'", "parser.server_error"),
        (CALL, "got exception: Unexpected empty grammar stack after accepting piece: x", "engine.grammar_deadlock"),
    ],
)
def test_an_error_after_the_model_ran(known: str, text: str, name: str) -> None:
    outcome = verdict(chat({"error": text}, status=500, path="/api/chat"), known)
    assert (outcome.name, outcome.delivery) == (name, "refused")
    assert outcome.at_fault == ("model" if name.startswith("model.") else "stack")


def test_what_stopped_before_the_model_stays_as_it_is() -> None:
    view = chat({"error": "x does not support tools"}, status=400, path="/api/chat")
    assert verdict(view, CALL) == verdict(view)
    silent = chat(None, status=None, disconnect=True, transport_error="ECONNREFUSED")
    assert verdict(silent, CALL) == verdict(silent)


def test_missing_prose_beside_a_good_call_is_a_flag() -> None:
    outcome = verdict(chat(message(None, GOOD)), CALL + "\nI have called it.")
    assert outcome.name == "ok.native_call"
    assert "parser.dropped" in outcome.flags
    kept = verdict(chat(message("I check.\n", GOOD)), "I check.\n" + CALL)
    assert "parser.dropped" not in kept.flags


def test_streams_are_judged_alike() -> None:
    stream = [
        delta(role="assistant", content=""),
        delta(tool_calls=[entry(0, "get_weather", '{"city": ')]),
        delta(tool_calls=[entry(0, None, '"Lyon"}')]),
        delta("tool_calls"),
        "data: [DONE]",
    ]
    outcome = verdict(chat(stream=stream), CALL)
    assert (outcome.name, outcome.delivery) == ("ok.native_call", "intact")


def test_another_call_than_written_under_a_forced_choice() -> None:
    other = message(None, [("get_weather", {"city": "Turin"})])
    outcome = verdict(chat(other, tool_choice="required"), CALL)
    assert (outcome.name, outcome.delivery) == ("ok.native_call", "constrained")
    misfit = message(None, [("get_weather", {"city": 7})])
    assert verdict(chat(misfit, tool_choice="required"), CALL).name == "parser.altered"
