"""Probes that compare turns: streaming, parallel calls, determinism, reasoning; on simulated servers."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from probe.probes import determinism, parallel, reasoning, streaming
from tests.support.simulated import (
    GOOD,
    SimulatedStack,
    by_name,
    call,
    completion,
    error,
    evidence_reads_back,
    json_answer,
    simulated_target,
)


def good(body: dict[str, Any]) -> Any:
    return completion(None, call())


# ---------------------------------------------------------------------- streaming
def loses_stream(body: dict[str, Any]) -> Any:
    return completion("") if body["stream"] else completion(None, call())


def stream_fails(body: dict[str, Any]) -> Any:
    return error("streaming with tools is not implemented", 400) if body["stream"] else completion(None, call())


def stream_ignored(body: dict[str, Any]) -> Any:
    return json_answer(completion(None, call()))


def all_refused(body: dict[str, Any]) -> Any:
    return error("m does not support tools")


@pytest.mark.parametrize(
    ("server", "works", "same", "outcome"),
    [
        (good, "yes", "yes", "ok.native_call"),
        (loses_stream, "yes", "no", "parser.stream_differs"),
        (stream_fails, "refused", "no", "parser.stream_differs"),
        (stream_ignored, "ignored", "yes", "ok.native_call"),
        (all_refused, "refused", "not_applicable", ""),
    ],
)
async def test_a_stream_is_compared_with_a_plain_answer(
    tmp_path: Path, server: Any, works: str, same: str, outcome: str
) -> None:
    async with simulated_target(server, tmp_path) as target:
        results = await streaming.probe(target)
    found = by_name(results)
    assert set(found) == {"works", "same"}
    assert (found["works"].support, found["same"].support, found["same"].outcome) == (works, same, outcome)
    assert evidence_reads_back(tmp_path, results) >= 1


async def test_a_model_that_is_not_repeatable_is_not_blamed_on_the_stream(tmp_path: Path) -> None:
    words = itertools.count()
    async with simulated_target(lambda body: completion(f"answer {next(words)}"), tmp_path) as target:
        assert by_name(await streaming.probe(target))["same"].support == "unknown"


async def test_a_canary_is_asked_for_texts_that_streams_are_known_to_lose(tmp_path: Path) -> None:
    def loses_the_cut_call(body: dict[str, Any]) -> Any:
        if "[[trunc]]" not in str(body):
            return completion(None, call())
        return completion("", finish="tool_calls") if body["stream"] else completion(GOOD[:60])

    async with simulated_target(loses_the_cut_call, tmp_path, known=True) as target:
        found = by_name(await streaming.probe(target))
    assert (found["same"].support, found["prosecall"].support, found["trunc"].support) == ("yes", "yes", "no")


# ---------------------------------------------------------------------- parallel calls
def both(body: dict[str, Any]) -> Any:
    return completion(None, call(), call(number=1, city="London"))


def obeys_off(body: dict[str, Any]) -> Any:
    return good(body) if body.get("parallel_tool_calls") is False else both(body)


@pytest.mark.parametrize(
    ("server", "known", "two", "off"),
    [
        (both, False, "yes", "ignored"),
        (obeys_off, False, "yes", "yes"),
        (good, False, "unknown", "unknown"),
        (good, True, "partial", "unknown"),
        (lambda body: completion(GOOD), True, "no", "unknown"),
        (all_refused, True, "refused", "refused"),
    ],
)
async def test_two_calls_in_one_turn(tmp_path: Path, server: Any, known: bool, two: str, off: str) -> None:
    async with simulated_target(server, tmp_path, known=known) as target:
        results = await parallel.probe(target)
    assert [result.support for result in results] == [two, off]
    assert evidence_reads_back(tmp_path, results) == 2


# ---------------------------------------------------------------------- determinism
async def test_one_request_twice(tmp_path: Path) -> None:
    words = itertools.count()

    def seeded_differs(body: dict[str, Any]) -> Any:
        return completion(f"answer {next(words)}") if "seed" in body else completion("answer")

    async with simulated_target(seeded_differs, tmp_path) as target:
        results = await determinism.probe(target)
    found = by_name(results)
    assert (found["greedy"].support, found["seeded"].support) == ("yes", "no")
    assert found["seeded"].value["first"]["text"] != found["seeded"].value["second"]["text"]
    assert evidence_reads_back(tmp_path, results) == 4


async def test_a_second_answer_that_fails_is_no_difference(tmp_path: Path) -> None:
    answers = iter([completion("a"), error("overloaded", 503), completion("b"), completion("b")])
    async with simulated_target(lambda body: next(answers), tmp_path) as target:
        found = by_name(await determinism.probe(target))
    assert (found["greedy"].status, found["greedy"].support) == ("failed", "unknown")
    assert found["seeded"].support == "yes"


# ---------------------------------------------------------------------- reasoning
def thinks(body: dict[str, Any]) -> Any:
    on = body.get("chat_template_kwargs", {}).get("enable_thinking", body.get("reasoning_effort") != "none")
    return completion("It is sunny.", reasoning_content="Let me see.") if on else completion("It is sunny.")


def always_thinks(body: dict[str, Any]) -> Any:
    return completion("<think>\nLet me see.\n</think>\n\nIt is sunny.")


def never_thinks(body: dict[str, Any]) -> Any:
    return completion("It is sunny.")


@pytest.mark.parametrize("stack", ["llamacpp", "openai"])
@pytest.mark.parametrize(
    ("server", "switch", "separated"),
    [(thinks, "yes", "yes"), (always_thinks, "ignored", "no"), (never_thinks, "unknown", "unknown")],
)
async def test_the_switch_of_each_stack(tmp_path: Path, stack: str, server: Any, switch: str, separated: str) -> None:
    async with simulated_target(server, tmp_path, stack=SimulatedStack(name=stack)) as target:
        results = await reasoning.probe(target)
    assert [result.support for result in results] == [switch, separated]
    assert evidence_reads_back(tmp_path, results) == 3


@pytest.mark.parametrize(("follows", "support"), [(True, "yes"), (False, "ignored")])
async def test_a_rendering_tells_whether_the_switch_reaches_the_prompt(
    tmp_path: Path, follows: bool, support: str
) -> None:
    def render(body: dict[str, Any]) -> str:
        return f"prompt, thinking {body.get('reasoning_effort')}" if follows else "prompt"

    async with simulated_target(never_thinks, tmp_path, render=render) as target:
        (switch, _) = await reasoning.probe(target)
    assert (switch.support, switch.source) == (support, "/render")


async def test_a_known_reasoning_that_is_gone_was_dropped(tmp_path: Path) -> None:
    async with simulated_target(never_thinks, tmp_path, known=True) as target:
        (_, separated) = await reasoning.probe(target)
    assert (separated.support, separated.outcome) == ("no", "parser.dropped")
