"""Error manners, recovery and load order, on simulated servers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from probe.asking import Budget
from probe.probes import load_order, manners, recovery
from probe.target import Target
from stacks.serving.base import Ask, Model, Steps
from tests.support.simulated import (
    GOOD,
    SimulatedStack,
    asking,
    by_name,
    call,
    completion,
    error,
    evidence_reads_back,
    http_server,
    json_answer,
    raw_server,
    simulated_target,
)


def polite(body: dict[str, Any]) -> Any:
    if body.get("model") != "m":
        return error(f"The model `{body.get('model')}` does not exist.", 404)
    if not isinstance(body.get("messages"), list):
        return error("Field required: messages")
    return completion("Hello.")


async def test_a_polite_server(tmp_path: Path) -> None:
    async with simulated_target(polite, tmp_path) as target:
        results = await manners.probe(target)
    assert {result.support for result in results} == {"yes"}
    assert len(results) == 6
    found = by_name(results)
    assert found["unknown_model"].value["status"] == 404
    assert found["unknown_model"].outcome == "gate.model_not_found"
    assert evidence_reads_back(tmp_path, results) == 6


async def test_a_server_that_answers_200_to_everything(tmp_path: Path) -> None:
    async def yes(request: web.Request) -> web.Response:
        return json_answer(completion("Hello."))

    async with http_server(yes) as url, asking(url, tmp_path) as asker:
        found = by_name(await manners.probe(Target(asker, SimulatedStack(), "m")))
    assert {found[name].support for name in found if name != "survives"} == {"ignored"}


async def test_a_server_that_blames_itself_and_one_that_shows_a_page(tmp_path: Path) -> None:
    async def page(request: web.Request) -> web.Response:
        if request.method == "POST":
            return error("json parse error", 500)
        return web.Response(status=404, text="Not Found")

    async with http_server(page) as url, asking(url, tmp_path) as asker:
        found = by_name(await manners.probe(Target(asker, SimulatedStack(), "m")))
    assert (found["invalid_json"].support, found["unknown_route"].support) == ("partial", "partial")
    assert "no error object" in found["unknown_route"].why


async def test_a_server_that_closes_the_connection(tmp_path: Path) -> None:
    async def closes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with raw_server(closes) as url, asking(url, tmp_path) as asker:
        results = await manners.probe(Target(asker, SimulatedStack(), "m"))
    found = by_name(results)
    assert {result.support for result in results} == {"no"}
    assert "closed without an answer" in found["wrong_type"].why


@pytest.mark.parametrize("stack", manners.LOADS_ON_DEMAND)
async def test_no_unknown_model_is_named_where_that_unloads_the_known_one(tmp_path: Path, stack: str) -> None:
    async with simulated_target(polite, tmp_path, stack=SimulatedStack(name=stack)) as target:
        unknown = by_name(await manners.probe(target))["unknown_model"]
    assert (unknown.status, unknown.support) == ("skipped", "unknown")


# ---------------------------------------------------------------------- recovery
class Wedging:
    """Simulated: after one malformed call every answer is the error (as of a stuck runner)."""

    stuck = False

    def __call__(self, body: dict[str, Any]) -> Any:
        self.stuck |= body["max_tokens"] < 60
        return error("EOF", 500) if self.stuck else completion(None, call())


def steady(body: dict[str, Any]) -> Any:
    return error("EOF", 500) if "[[single]]" in str(body) else completion(None, call())


async def test_a_server_that_goes_on(tmp_path: Path) -> None:
    async with simulated_target(steady, tmp_path, known=True, budget=Budget(disruptive=True)) as target:
        results = await recovery.probe(target)
    assert [result.support for result in results] == ["yes", "yes"]
    assert evidence_reads_back(tmp_path, results) == 6


async def test_a_server_that_is_stuck_after_a_broken_call(tmp_path: Path) -> None:
    async with simulated_target(Wedging(), tmp_path, budget=Budget(disruptive=True)) as target:
        after_cut, after_malformed = await recovery.probe(target)
    assert after_cut.support == "no"
    assert "EOF" in after_cut.why
    assert after_malformed.support == "not_applicable"


async def test_another_answer_afterwards(tmp_path: Path) -> None:
    answers = iter([completion(GOOD), completion("x"), completion("other")] * 2)
    async with simulated_target(lambda body: next(answers), tmp_path, known=True, budget=Budget(disruptive=True)) as t:
        assert (await recovery.probe(t))[0].support == "partial"
    answers = iter([completion("a"), completion("x"), completion("other")])
    async with simulated_target(lambda body: next(answers), tmp_path / "2", budget=Budget(disruptive=True)) as t:
        assert (await recovery.probe(t))[0].support == "yes"


# ---------------------------------------------------------------------- load order (a simulated Ollama)
class Runner:
    """Simulated: names of one weights file share a runner, which is started as the first of them wants it."""

    def __init__(self, *, shares: bool, names: tuple[str, ...] = ("m", "other", "third")) -> None:
        self.shares = shares
        self.names = names
        self.first = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read() or b"{}")
        name = body.get("model")
        if request.path == "/api/show":
            blob = "a" * 64 if name != "third" else "b" * 64
            kind = "{% if tools %}" if name == "other" else "{{ .Prompt }}"
            modelfile = f"# Modelfile\nFROM /models/blobs/sha256-{blob}\nTEMPLATE x\n"
            return json_answer({"modelfile": modelfile, "template": kind})
        if body.get("keep_alive") == 0:
            self.first = ""
            return json_answer({"model": name, "done": True, "done_reason": "unload"})
        if not request.path.endswith("/chat/completions"):
            return json_answer({"models": []})
        self.first = self.first or name
        if self.shares and self.first != name:
            return error("tools param requires --jinja flag", 500)
        return json_answer(completion(None, call()))


class SimulatedOllama(SimulatedStack):
    """Lists the names that a test gives it."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(name="ollama")
        self.names = names

    def models(self) -> Steps[list[Model]]:
        """As given."""
        yield Ask("GET", "/api/tags")
        return [Model(name) for name in self.names]


@pytest.mark.parametrize(
    ("shares", "names", "support"),
    [
        (True, ("third", "m", "mlike", "other"), "no"),
        (False, ("third", "m", "other"), "yes"),
        (True, ("third", "m"), "not_applicable"),
    ],
)
async def test_two_names_of_one_weights_file(
    tmp_path: Path, shares: bool, names: tuple[str, ...], support: str
) -> None:
    runner = Runner(shares=shares)
    async with http_server(runner.handle) as url, asking(url, tmp_path, Budget(disruptive=True)) as asker:
        (result,) = await load_order.probe(Target(asker, SimulatedOllama(names), "m"))
        assert runner.first == ""  # both are unloaded again
    assert result.support == support
    if support == "no":
        assert "--jinja" in result.why
        assert result.value["other"] == "other"
        assert evidence_reads_back(tmp_path, [result]) == 2


async def test_load_order_is_a_matter_of_ollama_alone(tmp_path: Path) -> None:
    async with simulated_target(polite, tmp_path, budget=Budget(disruptive=True)) as target:
        (result,) = await load_order.probe(target)
        assert target.asker.budget.spent == 0
    assert result.status == "not_applicable"
