"""Probes for fields and forms: response formats, grammar, sampling fields, histories; on simulated servers."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from probe.probes import formats, history, sampling
from probe.probes.sampling import stop_in
from tests.support.simulated import (
    GOOD,
    SimulatedStack,
    by_name,
    completion,
    error,
    evidence_reads_back,
    simulated_target,
)


# ---------------------------------------------------------------------- response formats
def enforces(body: dict[str, Any]) -> Any:
    kind = body.get("response_format", {}).get("type")
    if kind == "json_schema":
        return completion('{"mark": "seven"}')
    if kind == "json_object":
        return completion('{"greeting": "Hello') if body["max_tokens"] < 4 else completion('{"greeting": "Hello"}')
    return completion("yesyes" if "grammar" in body else "Good morning, Ann.")


def free(body: dict[str, Any]) -> Any:
    return completion("Good morning, Ann.")


def refuses(body: dict[str, Any]) -> Any:
    return error("response_format is not supported here") if len(body) > 5 else completion("Good morning, Ann.")


def other_json(body: dict[str, Any]) -> Any:
    return completion('["Good morning"]')


def always_json(body: dict[str, Any]) -> Any:
    return completion('{"name": "get_weather", "arguments": {}}')


def runs_out(body: dict[str, Any]) -> Any:
    if len(body) == 5:
        return free(body)
    return completion('{\n   "greeting": "aaa', finish="length", spent=48)


def only_thinks(body: dict[str, Any]) -> Any:
    return completion("", finish="length", spent=48, reasoning_content="The user wants a greeting, so")


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (enforces, "yes yes yes"),
        (free, "ignored ignored ignored"),
        (refuses, "refused refused refused"),
        (other_json, "partial partial ignored"),
        (always_json, "unknown partial ignored"),
        (runs_out, "yes yes ignored"),
        (only_thinks, "unknown unknown unknown"),
    ],
)
async def test_forms_that_are_enforced_or_not(tmp_path: Path, server: Any, expected: str) -> None:
    async with simulated_target(server, tmp_path, stack=SimulatedStack(name="llamacpp")) as target:
        results = await formats.probe(target)
    assert [result.support for result in results] == expected.split()
    assert evidence_reads_back(tmp_path, results) == 3


async def test_a_stack_without_a_field_for_grammars_is_not_asked(tmp_path: Path) -> None:
    async with simulated_target(free, tmp_path) as target:
        found = by_name(await formats.probe(target))
        assert target.asker.budget.spent == 2
    assert (found["words"].status, found["words"].support) == ("not_applicable", "not_applicable")


# ---------------------------------------------------------------------- sampling fields
NUMBERS = "one two three four five six seven eight"


def obeys(body: dict[str, Any]) -> Any:
    limit = body.get("max_tokens") or body.get("max_completion_tokens") or 99
    words = NUMBERS.split()
    if body.get("temperature") == 1:
        words = [f"ship-{body['seed']}"]
    for stop in body.get("stop", []):
        words = words[: words.index(stop)] if stop in words else words
    answer = completion(
        " ".join(words[:limit]), finish="length" if limit < len(words) else "stop", spent=len(words[:limit])
    )
    answer["choices"] *= body.get("n", 1)
    if body.get("logprobs"):
        answer["choices"][0]["logprobs"] = {"content": [{"token": "one", "logprob": -0.1, "top_logprobs": []}]}
    return answer


def deaf(body: dict[str, Any]) -> Any:
    return completion(NUMBERS, spent=8)


def leaks(body: dict[str, Any]) -> Any:
    if "stop" in body:
        return completion("one two three four five")
    return obeys(body)


def refuses_fields(body: dict[str, Any]) -> Any:
    known = {"model", "messages", "temperature", "stream", "max_tokens"}
    return obeys(body) if set(body) <= known else error(f"unknown field {sorted(set(body) - known)}", 422)


ALL = ["max_tokens", "max_completion_tokens", "stop", "n", "logprobs", "seed"]


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (obeys, "yes yes yes yes yes yes"),
        (deaf, "ignored ignored ignored ignored ignored unknown"),
        (leaks, "yes yes partial yes yes yes"),
        (refuses_fields, "yes refused refused refused refused refused"),
    ],
)
async def test_fields_that_are_honoured_or_not(tmp_path: Path, server: Any, expected: str) -> None:
    async with simulated_target(server, tmp_path) as target:
        results = await sampling.probe(target)
    assert [result.name for result in results] == [f"sampling.{name}" for name in ALL]
    assert [result.support for result in results] == expected.split()
    assert evidence_reads_back(tmp_path, results) >= 6


async def test_a_limit_that_is_not_told_is_partly_there(tmp_path: Path) -> None:
    def hides(body: dict[str, Any]) -> Any:
        whole = obeys(body)
        whole["choices"][0]["finish_reason"] = "stop"
        return whole

    async with simulated_target(hides, tmp_path) as target:
        assert by_name(await sampling.probe(target))["max_tokens"].support == "partial"


async def test_a_seed_that_brings_different_answers_is_ignored(tmp_path: Path) -> None:
    words = itertools.count()

    def random(body: dict[str, Any]) -> Any:
        return completion(f"ship {next(words)}") if body["temperature"] == 1 else obeys(body)

    async with simulated_target(random, tmp_path) as target:
        assert by_name(await sampling.probe(target))["seed"].support == "ignored"


def test_a_stop_word_stands_in_the_middle_and_nowhere_before() -> None:
    assert stop_in(NUMBERS) == "five"
    assert stop_in("one two") is None
    assert stop_in("") is None
    assert stop_in("la la la la la") is None


# ---------------------------------------------------------------------- histories
def strict(body: dict[str, Any]) -> Any:
    for message in body["messages"]:
        if message["content"] is None or not isinstance(message["content"], str):
            return error("messages: content must be a string")
        for call in message.get("tool_calls", []):
            if not isinstance(call["function"]["arguments"], str):
                return error("messages: arguments must be a string")
    return completion("The weather in Paris is 18 degrees and sunny.")


async def test_histories_that_are_taken_or_refused(tmp_path: Path) -> None:
    async with simulated_target(strict, tmp_path) as target:
        results = await history.probe(target)
    assert {name: result.support for name, result in by_name(results).items()} == {
        "tool_result": "yes",
        "null_content": "refused",
        "object_arguments": "refused",
        "two_results": "yes",
        "empty_result": "yes",
        "parts": "refused",
    }
    assert evidence_reads_back(tmp_path, results) == 6


async def test_a_result_that_is_not_in_the_prompt_was_ignored(tmp_path: Path) -> None:
    def first_result(body: dict[str, Any]) -> str:
        results = [message for message in body["messages"] if message["role"] == "tool"][:1]
        return json.dumps([each for each in results if isinstance(each["content"], str)])

    def answers(body: dict[str, Any]) -> Any:
        return completion("Sunny.")

    async with simulated_target(answers, tmp_path, render=first_result) as target:
        found = by_name(await history.probe(target))
    assert found["tool_result"].support == "yes"
    assert (found["two_results"].support, found["two_results"].outcome) == ("ignored", "template.drift")
    assert found["parts"].support == "ignored"
    assert found["empty_result"].support == "yes"


async def test_a_known_answer_tells_whether_the_result_was_seen(tmp_path: Path) -> None:
    def blind_to_parts(body: dict[str, Any]) -> Any:
        seen = isinstance(body["messages"][-1]["content"], str)
        return completion("The weather in Paris is 18 degrees and sunny." if seen else GOOD)

    async with simulated_target(blind_to_parts, tmp_path, known=True) as target:
        found = by_name(await history.probe(target))
    assert (found["tool_result"].support, found["parts"].support) == ("yes", "ignored")
