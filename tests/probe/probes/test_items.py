"""What all probes share: the budget ends items and keeps what was found; requests are shared; consent is asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from probe.asking import Budget
from probe.probes import PROBES, gate, probe_named, recovery, run_probe, streaming, tool_choice
from probe.probes.items import rendered
from probe.probes.requests import body_of, chat, on_wire, reply_to, weather
from probe.target import Target
from stacks.serving.base import Ask
from tests.support.simulated import SimulatedStack, asking, call, completion, http_server, simulated_target


def good(body: dict[str, Any]) -> Any:
    return completion(None, call())


async def test_what_was_found_before_the_budget_ended_stays(tmp_path: Path) -> None:
    async with simulated_target(good, tmp_path, budget=Budget(requests=2)) as target:
        results = await tool_choice.probe(target)
    assert [result.status for result in results] == ["ran", "ran", "skipped", "skipped"]
    assert "budget of 2 requests" in results[-1].why
    assert results[-1].support == "unknown"


async def test_a_server_that_fell_silent_is_left_alone(tmp_path: Path) -> None:
    async def silent(request: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    async with http_server(silent) as url, asking(url, tmp_path) as asker:
        target = Target(asker, SimulatedStack(), "m")
        for question in ("a", "b"):
            reply = await chat(target, body_of(target, question), "x", seconds=0.2)
            assert not reply.arrived
        results = await tool_choice.probe(target)
        assert asker.budget.spent == 2
        assert (await reply_to(target, Ask("GET", "/v1/models", seconds=0.2))).answer.failure == "timeout"
    assert {result.status for result in results} == {"skipped"}
    assert "none of the last 2 requests that generate" in results[0].why


async def test_requests_that_probes_share_are_sent_once(tmp_path: Path) -> None:
    async with simulated_target(good, tmp_path) as target:
        first = await weather(target, "a")
        assert (await weather(target, "b")) is first
        await gate.probe(target)
        before = target.asker.budget.spent
        assert before == 2
        await streaming.probe(target)
        assert target.asker.budget.spent == before + 1


async def test_nothing_that_may_wedge_is_sent_without_consent(tmp_path: Path) -> None:
    async with simulated_target(good, tmp_path) as target:
        for entry in PROBES:
            if entry.changes:
                (result,) = await run_probe(entry, target)
                assert (result.status, result.support) == ("skipped", "unknown")
                assert "--disruptive" in result.why
        direct = await recovery.probe(target)
        assert direct[0].status == "skipped"
        assert target.asker.budget.spent == 0


@pytest.mark.parametrize("entry", PROBES, ids=[entry.name for entry in PROBES])
async def test_no_probe_costs_more_than_it_says(tmp_path: Path, entry: Any) -> None:
    for number, known in enumerate((False, True)):
        budget = Budget(requests=100, disruptive=True)
        folder = tmp_path / str(number)
        async with simulated_target(good, folder, known=known, budget=budget, render=str) as target:
            results = await run_probe(entry, target)
        assert budget.spent <= entry.requests
        assert budget.generations <= entry.generations
        names = [result.name for result in results]
        assert len(set(names)) == len(names) >= 1


async def test_a_rendering_that_is_not_to_be_had_is_not_asked_for_again(tmp_path: Path) -> None:
    async with simulated_target(good, tmp_path, stack=SimulatedStack(renders=True)) as target:
        assert (await rendered(target, {"messages": [1]})).text is None
        assert (await rendered(target, {"messages": [2]})).why
        assert target.asker.budget.spent == 1
        assert (await rendered(target, {"messages": [2], "tools": [3]})).text is None
        assert target.asker.budget.spent == 2


async def test_a_rendering_that_one_request_is_refused_does_not_end_rendering(tmp_path: Path) -> None:
    def picky(body: dict[str, Any]) -> str | None:
        return None if body.get("think") else "prompt"

    async with simulated_target(good, tmp_path, render=picky) as target:  # type: ignore[arg-type]
        assert (await rendered(target, body_of(target, "x", think=True))).text is None
        assert (await rendered(target, body_of(target, "x"))).text == "prompt"


def test_a_probe_is_found_by_its_name() -> None:
    assert probe_named("gate").name == "gate"
    with pytest.raises(KeyError, match="tool_choice"):
        probe_named("gates")


def test_ollamas_own_route_gets_its_own_form() -> None:
    history = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "", "tool_calls": [call(city="Rome")]},
    ]
    body = {"model": "m", "messages": history, "temperature": 0, "max_tokens": 9, "stream": True, "tools": []}
    sent = on_wire("/api/chat", {**body, "response_format": {"type": "json_object"}, "stream_options": {}})
    assert sent["options"] == {"temperature": 0, "num_predict": 9}
    assert sent["format"] == "json"
    assert sent["messages"][1]["tool_calls"][0]["function"]["arguments"] == {"city": "Rome"}
    assert "stream_options" not in sent
    assert on_wire("/v1/chat/completions", body) == body
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    assert on_wire("/api/chat", {"response_format": schema})["format"] == {"type": "object"}


async def test_a_stream_asks_for_its_usage(tmp_path: Path) -> None:
    async with simulated_target(good, tmp_path) as target:
        assert body_of(target, "x", stream=True)["stream_options"] == {"include_usage": True}
        assert "tools" not in body_of(target, "x", tools=None)
