"""The minimiser: properties of its core, and a real run against a simulated server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probe.asking import Budget, BudgetSpentError
from probe.known_answer import WEATHER_TOOL
from probe.minimise import Fault, Progress, fails_alike, minimise, recorded_request, same_fault
from probe.shrinking import PROSE, SHORT_PIECE, ddmin, shrinking, size_of
from stacks.serving.base import Ask
from tests.support.simulated import GOOD, asking, call, chat_handler, completion, error, http_server


def driven(search: Generator[Any, bool, Any], fails: Callable[[Any], bool]) -> tuple[Any, list[Any]]:
    tried: list[Any] = []
    try:
        candidate = next(search)
        while True:
            tried.append(candidate)
            candidate = search.send(fails(candidate))
    except StopIteration as done:
        return done.value, tried


@given(st.lists(st.integers(0, 30), unique=True, max_size=24), st.sets(st.integers(0, 30), max_size=4))
def test_ddmin_finds_exactly_what_a_failure_needs(items: list[int], needed: set[int]) -> None:
    wanted = needed & set(items)
    kept, tried = driven(ddmin(items), lambda rest: wanted <= set(rest))
    assert sorted(kept) == sorted(wanted)
    assert kept == [item for item in items if item in kept]
    assert len(tried) <= 4 * len(items) ** 2 + 2


@given(st.lists(st.integers(0, 9), max_size=14), st.functions(like=lambda rest: ..., returns=st.booleans(), pure=True))
def test_ddmin_is_1_minimal_for_any_predicate(items: list[int], says: Callable[[Any], bool]) -> None:
    def fails(rest: list[int]) -> bool:
        return rest == items or says(tuple(rest))

    kept, _ = driven(ddmin(items), fails)
    assert fails(kept)
    for place in range(len(kept)):
        assert not fails(kept[:place] + kept[place + 1 :]) or len(kept) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=5), st.randoms(use_true_random=False))
def test_every_candidate_is_smaller_and_the_result_is_one_that_failed(request: dict[str, Any], dice: Any) -> None:
    verdicts: dict[str, bool] = {}
    best = [size_of(request)]

    def fails(candidate: dict[str, Any]) -> bool:
        assert size_of(candidate) < best[-1]
        answer = verdicts.setdefault(json.dumps(candidate, sort_keys=True), dice.random() < 0.4)
        if answer:
            best.append(size_of(candidate))
        return answer

    whole = json.dumps(request)
    result, _ = driven(shrinking(request), fails)
    assert json.dumps(request) == whole
    assert size_of(result) == best[-1]
    assert result == request or verdicts[json.dumps(result, sort_keys=True)]


@settings(max_examples=10)
@given(st.integers(0, 7), st.integers(0, 5), st.text("ab ", max_size=40))
def test_the_one_message_the_one_tool_and_the_one_property_are_found(message: int, tool: int, around: str) -> None:
    request = request_of(message, tool, around)

    def fails(candidate: dict[str, Any]) -> bool:
        texts = [str(each.get("content")) for each in candidate.get("messages", [])]
        fields = [
            name
            for each in candidate.get("tools", [])
            for name in each.get("function", {}).get("parameters", {}).get("properties", {})
        ]
        return any("needle" in text for text in texts) and "thread" in fields

    assert fails(request)
    result, _ = driven(shrinking(request), fails)
    assert fails(result)
    assert set(result) == {"model", "messages", "tools", "temperature"}
    assert len(result["messages"]) == len(result["tools"]) == 1
    assert list(result["tools"][0]["function"]["parameters"]["properties"]) == ["thread"]
    assert len(result["messages"][0]["content"]) <= max(PROSE, len("needle") + 2 * SHORT_PIECE)


def request_of(message: int, tool: int, around: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"text {number}"} for number in range(8)]
    messages[message]["content"] = f"{around}needle{around}"
    tools = []
    for number in range(6):
        names = [f"field_{each}" for each in range(5)] + (["thread"] if number == tool else [])
        schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}
        tools.append({"type": "function", "function": {"name": f"tool_{number}", "parameters": schema}})
    return {"model": "m", "messages": messages, "tools": tools, "temperature": 0, "stream": False, "user": "somebody"}


def test_a_property_that_goes_leaves_required_too() -> None:
    request = request_of(0, 0, "")
    _, tried = driven(shrinking(request), lambda candidate: False)
    for candidate in tried:
        for tool in candidate.get("tools", []):
            schema = tool.get("function", {}).get("parameters", {})
            if isinstance(schema.get("properties"), dict) and schema.get("required"):
                assert set(schema["required"]) <= set(schema["properties"]) or schema["properties"] == {}


# ---------------------------------------------------------------------- for real
def picky(body: dict[str, Any]) -> Any:
    """Simulated: refuses any tool whose schema has a `pattern` with a look-ahead."""
    if "(?=" in json.dumps(body.get("tools", [])):
        return error("Failed to compile json grammar: regex look-around is not supported")
    return completion(None, call()) if body.get("tools") else completion("Hello.")


def failing_request() -> dict[str, Any]:
    request = request_of(2, 3, "words ")
    request["tools"][3]["function"]["parameters"]["properties"]["thread"]["pattern"] = "^(?=a)a$"
    return request


async def test_a_recorded_request_is_made_smaller_by_real_runs(tmp_path: Path) -> None:
    request = failing_request()
    async with http_server(chat_handler(picky)) as url, asking(url, tmp_path, Budget(requests=500)) as asker:
        path = "/v1/chat/completions"
        first = await asker.judged(await asker.ask(_ask(path, request)))
        assert first is not None
        found = await minimise(request, fails_alike(asker, path, first.outcome.name))
        spent = asker.budget.spent
    assert found.reproduced
    assert found.steady
    assert not found.stopped
    assert found.after_bytes < found.before_bytes / 5
    assert found.steps <= spent <= 200
    assert "(?=" in json.dumps(found.request)
    assert len(found.request["tools"]) == 1
    assert "messages" not in found.request or len(found.request["messages"]) <= 1


async def test_a_recorded_exchange_gives_back_its_request(tmp_path: Path) -> None:
    async with http_server(chat_handler(picky)) as url, asking(url, tmp_path) as asker:
        answers = [
            await asker.ask(_ask("/v1/chat/completions?x=1", failing_request())),
            await asker.ask(Ask("POST", "/v1/chat/completions", raw=b"{cut")),
            await asker.ask(Ask("POST", "/v1/chat/completions", raw=b"[1]")),
            await asker.ask(Ask("GET", "/v1/models")),
        ]
        exchanges = [await asker.exchange(answer) for answer in answers]
    found = [recorded_request(exchange) for exchange in exchanges if exchange is not None]
    assert found == [("/v1/chat/completions?x=1", failing_request()), None, None, None]


async def test_a_failure_that_only_a_known_text_shows(tmp_path: Path) -> None:
    def loses(body: dict[str, Any]) -> Any:
        return completion("") if body.get("tools") else completion(GOOD)

    request = request_of(0, 0, "")
    request["tools"].insert(2, WEATHER_TOOL)
    async with http_server(chat_handler(loses)) as url, asking(url, tmp_path) as asker:
        path = "/v1/chat/completions"
        fails = fails_alike(asker, path, "parser.dropped", known_text=GOOD)
        found = await minimise(request, fails, steps=60)
        blind = await fails_alike(asker, path, "parser.dropped")(request)
    assert found.reproduced
    assert len(found.request["tools"]) == 1
    assert not blind


def _ask(path: str, body: dict[str, Any]) -> Any:
    return Ask("POST", path, body)


async def test_the_steps_and_the_budget_end_the_search_with_what_was_reached(tmp_path: Path) -> None:
    runs: list[dict[str, Any]] = []

    async def fails(candidate: dict[str, Any]) -> bool:
        runs.append(candidate)
        return "(?=" in json.dumps(candidate)

    found = await minimise(failing_request(), fails, steps=5)
    assert found.steps == 5
    assert len(runs) == 6  # and one to confirm
    assert "5 steps" in found.stopped
    assert found.after_bytes <= found.before_bytes
    assert "(?=" in json.dumps(found.request)

    async def broke(candidate: dict[str, Any]) -> bool:
        if len(runs) > 12:
            raise BudgetSpentError("the budget of 7 requests is spent")
        return await fails(candidate)

    found = await minimise(failing_request(), broke)
    assert found.stopped == "the budget of 7 requests is spent"
    assert found.steady is None
    assert "(?=" in json.dumps(found.request)


async def test_a_request_that_does_not_fail_again_is_left_alone() -> None:
    async def never(candidate: dict[str, Any]) -> bool:
        return False

    request = failing_request()
    found = await minimise(request, never)
    assert (found.request, found.reproduced, found.steps) == (request, False, 1)


async def test_a_failure_that_comes_and_goes_is_told() -> None:
    answers = iter([True, True, False])

    async def sometimes(candidate: dict[str, Any]) -> bool:
        return next(answers, False)

    found = await minimise({"a": 1, "b": 2}, sometimes)
    assert found.reproduced
    assert found.steady is False


async def test_what_the_predicate_raises_is_passed_on() -> None:
    async def breaks(candidate: dict[str, Any]) -> bool:
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        await minimise({"a": 1}, breaks)


async def test_nothing_to_take_away() -> None:
    async def always(candidate: dict[str, Any]) -> bool:
        return True

    assert (await minimise({}, always)).request == {}
    assert (await minimise({"a": "x " * 25}, always)).request == {}


async def test_it_is_stopped_in_the_middle_of_a_request_with_what_was_reached() -> None:
    stop = asyncio.Event()
    told: list[Progress] = []

    async def fails(candidate: dict[str, Any]) -> bool:
        if len(told) >= 6:
            asyncio.get_running_loop().call_soon(stop.set)
            await asyncio.sleep(60)
        return "(?=" in json.dumps(candidate)

    found = await asyncio.wait_for(minimise(failing_request(), fails, tell=told.append, stop=stop), 10)
    assert found.reproduced
    assert found.stopped == "it was interrupted"
    assert found.steady is None
    assert found.after_bytes == told[-1].size < found.before_bytes
    assert "(?=" in json.dumps(found.request)
    at_once = await minimise(failing_request(), fails, stop=stop)
    assert (at_once.reproduced, at_once.steps) == (False, 0)


async def test_the_same_outcome_by_another_cause_is_another_fault(tmp_path: Path) -> None:
    """Simulated: two reasons for one outcome; the second one shows only when the first is taken away."""

    def refuses(body: dict[str, Any]) -> Any:
        if any(tool.get("function", {}).get("name") == "tool_3" for tool in body.get("tools", [])):
            return error("Invalid tool definition: the name tool_3 cannot be used on this machine today")
        return error("messages: text too short") if body["messages"] else completion("Hello.")

    request = request_of(2, 3, "words ")
    async with http_server(chat_handler(refuses)) as url, asking(url, tmp_path, Budget(requests=300)) as asker:
        path = "/v1/chat/completions"
        first = await asker.judged(await asker.ask(_ask(path, request)))
        other = await asker.judged(await asker.ask(_ask(path, {**request, "tools": []})))
        assert first is not None
        assert other is not None
        assert first.outcome.signature is other.outcome.signature is None
        fault = Fault.of(first)
        seen: list[dict[str, Any]] = []
        fails = same_fault(asker, path, fault, seen=lambda candidate, exchange: seen.append(candidate))
        found = await minimise(request, fails)
    assert fault.is_in(first)
    assert not fault.is_in(other)
    assert Fault(first.outcome.name).is_in(other) == (first.outcome.name == other.outcome.name)
    assert [tool["function"]["name"] for tool in found.request["tools"]] == ["tool_3"]
    assert found.request in seen
