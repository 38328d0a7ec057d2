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


# ---------------------------------------------------------------------- flags of what was odd and stopped nothing
@pytest.mark.parametrize(
    ("wanted", "text", "flagged"),
    [
        ({"response_format": {"type": "json_object"}}, "Sure, here it is.", True),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}}, "No.", True),
        ({"format": "json"}, "Sure, here it is.", True),
        ({"response_format": {"type": "json_object"}}, '{"a": 1}', False),
        ({"response_format": {"type": "json_object"}}, '```json\n{"a": 1}\n```', False),
        ({"response_format": {"type": "text"}}, "Sure.", False),
        ({"response_format": {"type": {"a": 1}}}, "Sure.", False),
        ({"response_format": {"type": ["json"]}}, "Sure.", False),
        ({"response_format": 5}, "Sure.", False),
        ({"grammar": "root ::= [a-z]+"}, "sure", False),
        ({}, "Sure.", False),
    ],
)
def test_json_that_was_asked_for_and_did_not_come(wanted: dict[str, Any], text: str, flagged: bool) -> None:
    outcome = verdict(chat(message(text), tools=None, **wanted))
    assert named(outcome) == ("ok.final_answer", "none", "unknown")
    assert ("protocol.choice_ignored" in outcome.flags) == flagged


@pytest.mark.parametrize("token", ["<|im_end|>", "<|eot_id|>", "<|END_OF_TURN_TOKEN|>", "</s>", "<end_of_turn>\n"])
def test_a_token_that_ends_turns_is_left_in_the_text(token: str) -> None:
    assert "parser.marker_leak" in verdict(chat(message(f"It is sunny.{token}"))).flags
    assert "parser.marker_leak" not in verdict(chat(message(f"It is {token} sunny."))).flags


def test_a_token_is_left_in_arguments() -> None:
    leaked = verdict(chat(message(None, [("get_weather", {"city": "Lyon<|im_end|>"})])))
    assert (leaked.name, "parser.marker_leak" in leaked.flags) == ("ok.native_call", True)
    clean = verdict(chat(message(None, [("get_weather", {"city": "Lyon <b>"})])))
    assert "parser.marker_leak" not in clean.flags


def test_an_event_that_is_no_json_is_a_flag() -> None:
    stream = [delta(content="It is "), 'data: {"choices": [{"delta"', delta("stop", content="fine."), DONE]
    outcome = verdict(chat(stream=stream))
    assert outcome.name == "ok.final_answer"
    assert "protocol.malformed_answer" in outcome.flags


@pytest.mark.parametrize("text", ['get_weather(city="Lyon")', "\n get_weather(city='Lyon')\n"])
def test_one_call_as_a_line_of_python_is_left_in_text(text: str) -> None:
    outcome = verdict(chat(message(text)))
    assert named(outcome) == ("parser.left_as_text", "undetermined", "left_as_text")
    assert outcome.evidence[0].quote.strip() == text.strip()
    for other in ('print("Lyon")', 'get_weather(city="Lyon") is what I would call', "get_weather(5)"):
        assert verdict(chat(message(other))).layer == "ok", other


def test_arguments_that_are_null() -> None:
    lost = verdict(chat(message(None, [("get_weather", "null")])))
    assert (lost.name, lost.at_fault) == ("parser.dropped", "undetermined")
    free = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
    assert verdict(chat(message(None, [("now", "null")]), tools=[free])).name == "ok.native_call"


def test_an_error_code_speaks_where_the_sentence_says_little() -> None:
    said = {"error": {"message": "this cannot be guaranteed here", "type": "x", "code": "tool_choice_not_supported"}}
    assert verdict(chat(said, status=400, tool_choice="required")).name == "gate.tool_choice_unsupported"
    general = {"error": {"message": "it is so", "type": "x", "code": "invalid_request_error"}}
    assert verdict(chat(general, status=400)).confidence == "low"


@pytest.mark.parametrize(
    ("trace", "name"),
    [
        ("Traceback: in transform_response: KeyError: 'name'", "parser.server_error"),
        ("'NoneType' object has no attribute 'group' in extract_tool_calls", "parser.server_error"),
        ("Traceback: in transform_request: list index out of range", "request.invalid_param"),
        ("Traceback: in render_jinja_template: list index out of range", "template.render_error"),
        (
            "1 validation error for ChatCompletionMessage\ncontent.str\n  Input should be",
            "engine.response_invalid",
        ),
        ("1 validation error for ChatCompletionRequest\nmessages\n  Field required", "request.invalid_param"),
    ],
)
def test_where_a_program_failed_is_read_off_its_words(trace: str, name: str) -> None:
    assert verdict(chat({"error": {"message": trace, "type": "x", "code": 500}}, status=500)).name == name


def test_calls_refused_in_a_message_are_no_refusal_of_tools() -> None:
    said = {"error": {"message": "Empty tool_calls is not supported in message.", "type": "x"}}
    history = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "tool_calls": []}]
    for messages in (history, [{"role": "user", "content": "x"}]):
        outcome = verdict(chat(said, status=400, messages=messages))
        assert (outcome.name, outcome.at_fault) == ("request.bad_history", "client")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("list index out of range", "parser.server_error"),
        ("'NoneType' object has no attribute 'get'", "parser.server_error"),
        ("the prompt is too long: it exceeds the maximum context length", "truncation.output_budget"),
        ("m does not support tools", "engine.error_in_stream"),
        ("Conversation roles must alternate", "engine.error_in_stream"),
        ("CUDA error: x", "engine.crash"),
    ],
)
def test_an_error_after_part_of_an_answer_is_no_refusal(text: str, name: str) -> None:
    broken = 'data: {"error": {"message": "' + text + '", "type": "x", "code": 400}}'
    outcome = verdict(chat(stream=[delta(role="assistant"), delta(content="Let me look"), broken, DONE]))
    assert (outcome.name, outcome.model_ran, outcome.delivery) == (name, "yes", "cut")
    before = verdict(chat(stream=[delta(role="assistant", content=""), broken, DONE]))
    assert before.layer not in ("parser", "truncation")
