"""Where the wire does not tell model from stack: the fault stays open, and never falls on the model by default."""

from __future__ import annotations

from typing import Any

import pytest

from results.outcomes import DECIDERS
from tests.proxy.classify.exchanges import ADD, CALL, WEATHER, chat, delta, entry, message, verdict

DONE = "data: [DONE]"
OBJECT = '{"name": "get_weather", "arguments": {"city": "Lyon"}}'


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"<calls>\n{OBJECT}\n</calls>", "parser.left_as_text"),
        (f"<tool_call>{OBJECT}</tool_response>", "parser.left_as_text"),
        (f"Sure, let me check that.\n\n{OBJECT}", "parser.left_as_text"),
        (f"<tool_call>\n{OBJECT}", "parser.left_as_text"),
        (
            "<function=get_weather>\n<parameter=city>\nLyon\n</parameter>\n</function>\n</tool_call>",
            "parser.left_as_text",
        ),
        ('assistantcommentary to=functions.get_weather json{"city": "Lyon"}', "parser.left_as_text"),
        ('{"tool": "get_weather", "args": {"city": "Lyon"}}', "parser.left_as_text"),
        ('{"tool_calls": [{"name": "get_weather", "arguments": {"city": "Lyon"}}]}', "parser.left_as_text"),
        (f"<think>\nI call it. {CALL}", "parser.in_reasoning"),
    ],
)
def test_calls_in_text(text: str, name: str) -> None:
    outcome = verdict(chat(message(text)))
    assert (outcome.name, outcome.at_fault) == (name, "undetermined")
    assert (outcome.decide_by or "").partition(":")[0] in DECIDERS
    assert outcome.wrote != "malformed_call"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (("function", {"city": "Lyon"}), "parser.altered"),
        (("get_weather", {}), "model.invalid_arguments"),
        (("get_weather", {"place": "Lyon"}), "model.invalid_arguments"),
        (("get_weather", '{"city": "Ly'), "model.malformed_call"),
        (("answer", {"message": "Hello!"}), "protocol.malformed_answer"),
    ],
)
def test_delivered_calls(call: tuple[str, Any], name: str) -> None:
    outcome = verdict(chat(message(None, [call])))
    assert (outcome.name, outcome.at_fault) == (name, "undetermined")


@pytest.mark.parametrize(
    "name", ["get_weatherget_weather", "functions.get_weather", "get_weather:0", "call:get_weather"]
)
def test_names_with_markup_are_the_stacks(name: str) -> None:
    outcome = verdict(chat(message(None, [(name, {"city": "Lyon"})])))
    assert (outcome.name, outcome.at_fault) == ("parser.marker_leak", "stack")


@pytest.mark.parametrize("name", ["weather", "execute", "get_weather_now", "answer"])
def test_names_without_markup_are_the_models(name: str) -> None:
    outcome = verdict(chat(message(None, [(name, {"city": "Lyon"})])))
    assert (outcome.name, outcome.at_fault) == ("model.unknown_tool", "model")


def test_invalid_arguments_that_only_a_model_writes() -> None:
    view = chat(message(None, [("add", {"a": 1, "b": [2]})]), tools=[ADD])
    assert verdict(view).at_fault == "model"
    missing = chat(message(None, [("add", {"a": 1})]), tools=[ADD])
    assert verdict(missing).at_fault == "model"


def test_missing_part_of_streamed_arguments() -> None:
    stream = [
        delta(tool_calls=[entry(0, "add", '{"a": ')]),
        delta(tool_calls=[entry(0, None, "42}")]),
        delta("tool_calls"),
        DONE,
    ]
    outcome = verdict(chat(stream=stream, tools=[ADD]))
    assert (outcome.name, outcome.at_fault) == ("model.invalid_arguments", "undetermined")


def test_arguments_that_end_early_without_a_count() -> None:
    stream = [delta(tool_calls=[entry(0, "get_weather", '{"city": "Ly')]), delta("tool_calls"), DONE]
    limited = verdict(chat(stream=stream, max_tokens=20))
    assert (limited.name, limited.at_fault) == ("truncation.cut_inside_call", "undetermined")
    unlimited = verdict(chat(stream=stream))
    assert (unlimited.name, unlimited.at_fault) == ("parser.altered", "undetermined")


def test_more_tokens_than_the_text_takes() -> None:
    outcome = verdict(chat(message("All right.", usage=(50, 90))))
    assert outcome.at_fault == "undetermined"
    assert "parser.dropped" in outcome.flags
    hidden = message("All right.", usage=(50, 90))
    hidden["usage"]["completion_tokens_details"] = {"reasoning_tokens": 85}
    assert "parser.dropped" not in verdict(chat(hidden)).flags


def test_a_forced_call_that_does_not_fit_is_not_the_models() -> None:
    view = chat(message(None, [("get_weather", {"city": 5})]), tool_choice="required", stack="vllm")
    assert verdict(view).at_fault == "undetermined"


def test_constrained_calls_are_marked() -> None:
    for more in ({"stack": "llama.cpp"}, {"stack": "vllm", "tool_choice": "required"}):
        outcome = verdict(chat(message(None, [("get_weather", {"city": "Lyon"})]), **more))
        assert "engine.constrained" in outcome.flags
        assert outcome.wrote == "unknown"
    free = verdict(chat(message(None, [("get_weather", {"city": "Lyon"})]), stack="vllm"))
    assert "engine.constrained" not in free.flags


def test_ollamas_native_mode_is_seen_by_its_ids() -> None:
    answer = message(None, [("get_weather", {"city": "Lyon"})])
    answer["choices"][0]["message"]["tool_calls"][0]["id"] = "PfoWx3bWutkQt8ofSy8KFHmOIy3kkWfj"
    assert "engine.constrained" in verdict(chat(answer, stack="ollama")).flags


def test_a_tool_without_a_name_makes_every_name_fine() -> None:
    odd = {"type": "function", "function": {"description": "x"}}
    assert verdict(chat(message(None, [("get_weather", {})]), tools=[odd])).name == "ok.native_call"
    assert (
        verdict(chat(message(None, [("get_weather", {"city": "a"})]), tools=[WEATHER, WEATHER])).name
        == "ok.native_call"
    )
