"""The tool choice probe, on simulated servers: each of honoured, ignored, refused, unknown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probe.probes import tool_choice
from tests.support.simulated import GOOD, by_name, call, completion, error, evidence_reads_back, simulated_target

HELLO = "Good morning, Ann."


def choice(body: dict[str, Any]) -> str:
    stated = body.get("tool_choice", "auto")
    return stated if isinstance(stated, str) else "named"


def asks_weather(body: dict[str, Any]) -> bool:
    return "weather" in body["messages"][-1]["content"]


def obeys(body: dict[str, Any]) -> Any:
    if choice(body) == "named":
        return completion(None, call("get_time", zone="CET"))
    if choice(body) == "required":
        return completion(None, call())
    if choice(body) == "none" or not asks_weather(body):
        return completion(HELLO)
    return completion(None, call())


def ignores(body: dict[str, Any]) -> Any:
    return completion(None, call()) if asks_weather(body) else completion(HELLO)


def never_calls(body: dict[str, Any]) -> Any:
    return completion(HELLO)


def always_calls(body: dict[str, Any]) -> Any:
    return completion(None, call())


def refuses_objects(body: dict[str, Any]) -> Any:
    if choice(body) == "named":
        return error("Invalid tool_choice type: 'object'. Supported string values: none, auto, required")
    return obeys(body)


def leaves_text(body: dict[str, Any]) -> Any:
    return completion(GOOD)


def forces_without_parsing(body: dict[str, Any]) -> Any:
    tool = "get_time" if choice(body) == "named" else "get_weather"
    field = "zone" if choice(body) == "named" else "city"
    written = json.dumps({"name": tool, "arguments": {field: "x"}})
    return completion(f"<tool_call>\n{written}\n</tool_call>")


def runs_out(body: dict[str, Any]) -> Any:
    return completion("Well, well, ", finish="length", spent=96)


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (obeys, "yes yes yes yes"),
        (ignores, "yes ignored ignored ignored"),
        (never_calls, "unknown unknown ignored ignored"),
        (always_calls, "yes ignored unknown ignored"),
        (refuses_objects, "yes yes yes refused"),
        (leaves_text, "unknown yes unknown ignored"),
        (forces_without_parsing, "unknown yes unknown unknown"),
        (runs_out, "unknown unknown unknown unknown"),
    ],
)
async def test_with_a_model_that_is_not_known(tmp_path: Path, server: Any, expected: str) -> None:
    async with simulated_target(server, tmp_path) as target:
        results = await tool_choice.probe(target)
    assert [result.name.partition(".")[2] for result in results] == ["auto", "none", "required", "named"]
    assert [result.support for result in results] == expected.split()
    assert evidence_reads_back(tmp_path, results) >= 4


def canary(body: dict[str, Any]) -> Any:
    """A parser that leaves text, in front of the canary."""
    return completion("I could look up the weather in Paris, but I will not." if "[[prose]]" in str(body) else GOOD)


async def test_a_known_answer_decides(tmp_path: Path) -> None:
    async with simulated_target(canary, tmp_path, known=True) as target:
        found = by_name(await tool_choice.probe(target))
    assert {name: result.support for name, result in found.items()} == {
        "auto": "no",
        "none": "yes",
        "required": "ignored",
        "named": "ignored",
    }
    assert found["auto"].outcome == "parser.left_as_text"


async def test_no_trigger_of_a_canary_is_sent_to_a_users_model(tmp_path: Path) -> None:
    seen: list[str] = []

    def keep(body: dict[str, Any]) -> Any:
        seen.append(str(body))
        return completion(HELLO)

    async with simulated_target(keep, tmp_path) as target:
        await tool_choice.probe(target)
    assert seen
    assert all("[[" not in each for each in seen)


@pytest.mark.parametrize(
    ("text", "support"),
    [
        ('{\n   "zone": "aaa', "yes"),
        (GOOD + "\nand on and on", "partial"),
        (GOOD, "ignored"),
        (GOOD[:40], "unknown"),
        ("  \n", "unknown"),
    ],
)
async def test_a_known_answer_tells_whether_a_cut_one_was_forced(tmp_path: Path, text: str, support: str) -> None:
    async with simulated_target(lambda body: completion(text, finish="length", spent=96), tmp_path, known=True) as t:
        assert by_name(await tool_choice.probe(t))["named"].support == support
