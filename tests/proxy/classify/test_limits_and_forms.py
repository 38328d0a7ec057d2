"""A form that was forced and ran to the limit; answers that are whole at the limit; choices that were not enforced."""

from __future__ import annotations

from typing import Any

import pytest

from results.outcomes import Outcome
from tests.proxy.classify.exchanges import CALL, chat, delta, entry, message, verdict

SCHEMA = {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}}
ANSWER = "The weather in Lyon is fine."
DONE = "data: [DONE]"


def named(outcome: Outcome) -> tuple[str, str, str]:
    return outcome.name, outcome.at_fault, outcome.delivery


@pytest.mark.parametrize(
    ("more", "answer", "delivery"),
    [
        (SCHEMA, message('{"a": "' + "so and " * 40, finish="length", usage=(9, 64)), "constrained"),
        (SCHEMA, message('{"a": 1' + "\n" * 90, finish="length", usage=(9, 64)), "constrained"),
        (SCHEMA, message('{"a": "one thing', finish="length", usage=(9, 64)), "cut"),
        ({"format": "json", "tools": None}, message('{"a": "x' + " ho" * 50, finish="length"), "constrained"),
        (
            {"stack": "llama.cpp"},
            message(None, [("get_weather", '{"city": "Ly' + "<tool_call>" * 30)], finish="length"),
            "constrained",
        ),
        ({"stack": "llama.cpp"}, message(None, [("get_weather", '{"city": "Ly')], finish="length"), "cut"),
        ({"stack": "vllm", "tool_choice": "required"}, message(None, [], finish="length", usage=(9, 64)), "cut"),
    ],
)
def test_a_forced_form_at_the_limit_is_marked(more: dict[str, Any], answer: dict[str, Any], delivery: str) -> None:
    outcome = verdict(chat(answer, max_tokens=64, **more))
    assert outcome.layer == "truncation"
    assert outcome.delivery == delivery
    assert "engine.constrained" in outcome.flags
    assert "forced form" in (outcome.remedy or "")


@pytest.mark.parametrize(
    "more", [{}, {"response_format": {"type": "text"}}, {"stack": "llama.cpp"}, {"stack": "vllm"}, {"format": ""}]
)
def test_free_text_at_the_limit_is_not(more: dict[str, Any]) -> None:
    outcome = verdict(chat(message("It is fine, " * 40, finish="length", usage=(9, 64)), max_tokens=64, **more))
    assert named(outcome) == ("truncation.output_budget", "config", "cut")
    assert "engine.constrained" not in outcome.flags


def test_sighted_a_form_in_place_of_the_known_text() -> None:
    runaway = message(None, [("get_weather", '{"city": "Ly' + "<tool_call>" * 30)], finish="length")
    outcome = verdict(chat(runaway, stack="llama.cpp"), CALL.replace("{", "[", 1))
    assert (outcome.layer, outcome.at_fault, outcome.delivery) == ("truncation", "stack", "constrained")
    assert "engine.constrained" in outcome.flags
    begun = message(None, [("get_weather", '{"city": "Ly')], finish="length")
    assert verdict(chat(begun, stack="llama.cpp"), CALL).delivery == "cut"
    repeated = message(ANSWER * 9, finish="length")
    outcome = verdict(chat(repeated, stack="llama.cpp", tool_choice="required"), ANSWER)
    assert named(outcome) == ("truncation.output_budget", "config", "constrained")


def test_sighted_a_format_that_kept_the_tags_away() -> None:
    bare = message(CALL.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>"))
    outcome = verdict(chat(bare, tools=None, response_format={"type": "json_object"}), CALL)
    assert named(outcome) == ("ok.final_answer", "none", "constrained")
    assert named(verdict(chat(bare, tools=None), CALL)) == ("ok.final_answer", "none", "intact")
    assert named(verdict(chat(message(CALL), tools=None, **SCHEMA), CALL)) == ("ok.final_answer", "none", "intact")


@pytest.mark.parametrize(("stack", "after"), [("", "altered"), ("llama.cpp", "constrained")])
def test_sighted_text_beside_a_call_that_is_lost(stack: str, after: str) -> None:
    call = message(None, [("get_weather", {"city": "Lyon"})])
    assert verdict(chat(call, stack=stack), f"{CALL}\nI have called it.").delivery == after
    before = verdict(chat(call, stack=stack), f"I will look.\n{CALL}")
    assert (before.name, before.delivery) == ("ok.native_call", "altered")
    assert "parser.dropped" in before.flags


def test_sighted_a_stream_without_a_single_event_shows_nothing_of_the_model() -> None:
    outcome = verdict(chat(stream=[]), CALL)
    assert named(outcome) == ("nonresponse.empty", "undetermined", "unknown")


def test_a_whole_call_at_the_limit_is_no_cut_answer() -> None:
    outcome = verdict(chat(message(CALL, finish="length", usage=(9, 8)), tools=None, max_tokens=8))
    assert (outcome.name, outcome.at_fault, outcome.confidence) == ("ok.final_answer", "none", "low")
    assert "truncation.output_budget" in outcome.flags
    cut = verdict(chat(message(CALL[:-20], finish="length", usage=(9, 8)), tools=None, max_tokens=8))
    assert cut.layer == "truncation"


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
def test_a_required_call_that_did_not_come(choice: Any) -> None:
    due = verdict(chat(message(ANSWER), tool_choice=choice))
    assert (due.name, due.at_fault) == ("protocol.choice_ignored", "stack")
    greeting = [{"role": "user", "content": "Hello"}]
    assert verdict(chat(message("Hi!"), tool_choice=choice, messages=greeting)).name == "protocol.choice_ignored"
    opaque = [{"role": "user", "content": "[[x]]"}]
    outcome = verdict(chat(message(ANSWER), tool_choice=choice, messages=opaque))
    assert (outcome.name, outcome.at_fault) == ("ok.final_answer", "none")
    assert "protocol.choice_ignored" in outcome.flags


def test_a_required_call_after_a_result_is_a_flag() -> None:
    history = [
        {"role": "user", "content": "What is the weather in Lyon?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Lyon"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "fine"},
    ]
    outcome = verdict(chat(message(ANSWER), tool_choice="required", messages=history))
    assert outcome.name == "ok.final_answer"
    assert "protocol.choice_ignored" in outcome.flags


def test_what_forbids_calls_and_gets_one_stays_a_fault() -> None:
    outcome = verdict(chat(message(None, [("get_weather", {"city": "Lyon"})]), tool_choice="none"))
    assert (outcome.name, outcome.at_fault) == ("protocol.choice_ignored", "stack")


@pytest.mark.parametrize("body", ["[" * 5000, '["x"]', '"hello"', '[{"choices": []}]'])
def test_json_of_no_apis_shape_is_not_an_empty_answer(body: str) -> None:
    outcome = verdict(chat(body))
    assert (outcome.name, outcome.at_fault) == ("transport.not_http", "undetermined")


@pytest.mark.parametrize("sign", "[{(<")
def test_one_sign_over_and_over_is_what_was_delivered(sign: str) -> None:
    for view in (
        chat(message(sign * 200_000)),
        chat(stream=[*[delta(content=sign * 999) for _ in range(50)], delta("stop"), DONE]),
    ):
        assert verdict(view).name == "engine.degenerate"
        assert verdict(view, sign * 200_000).name in ("ok.final_answer", "parser.altered")


def test_a_forced_call_whole_at_the_limit_is_marked() -> None:
    stream = [delta(tool_calls=[entry(0, "get_weather", '{"city": "Lyon"}')]), delta("length"), DONE]
    outcome = verdict(chat(stream=stream, stack="llama.cpp"))
    assert outcome.name == "ok.native_call"
    assert {"engine.constrained", "truncation.output_budget"} <= set(outcome.flags)
