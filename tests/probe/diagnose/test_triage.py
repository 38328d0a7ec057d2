"""The order of the examination, on simulated servers: each fault ends it at its own stage, with what proves it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from probe.asking import Budget
from probe.diagnose import asked
from probe.diagnose.diagnosis import Diagnosis, text
from probe.diagnose.pace import FEWEST_TOKENS
from probe.diagnose.triage import Triage
from probe.diagnose.words import HEALTHY
from results.manifest import known
from results.outcomes import Evidence
from results.reader import RunReader
from stacks.serving.base import ModelIdentity
from stacks.serving.vllm import VLLM
from tests.support.reading_back import reads_back
from tests.support.simulated import GOOD, SimulatedStack, call, completion, error, simulated_target

Answered = dict[str, Any] | web.StreamResponse


async def examined(
    folder: Path, answer: Callable[[dict[str, Any]], Answered], *, context: int | None = None, **more: Any
) -> Diagnosis:
    """The diagnosis of a simulated server; every citation of its verdict is read back from the run."""
    async with simulated_target(answer, folder, **more) as target:
        if context is not None:
            target.identity = ModelIdentity("m", context_length=known(context, "simulated"))
        found = Diagnosis(target.asker.base_url, "m")
        await Triage(target, found, asked.OPENAI_CHAT, lambda step: None).examine()
    cited_reads_back(found, folder)
    return found


def cited_reads_back(found: Diagnosis, folder: Path) -> None:
    recorded = {exchange.attempt: exchange for exchange in RunReader(folder / "run")}
    for cited in found.outcome.evidence if found.outcome is not None else ():
        assert isinstance(cited, Evidence)
        assert 0 <= cited.start <= cited.end <= len(recorded[cited.attempt].wire(cited.direction))
        if not cited.why.startswith(("what the model wrote", "the rendered prompt")):
            assert reads_back(cited, recorded[cited.attempt].wire(cited.direction)), cited


def calling(body: dict[str, Any]) -> dict[str, Any]:
    """A good server: a call where tools are offered and nothing was answered yet, else text."""
    if body.get("tools") and body["messages"][-1]["role"] == "user":
        return completion(None, call(), prompt=120)
    return completion("The weather is fine.", prompt=20)


async def test_a_healthy_server_is_called_healthy_with_few_requests(tmp_path: Path) -> None:
    budget = Budget()
    found = await examined(tmp_path, calling, budget=budget)
    assert found.healthy
    assert found.headline == HEALTHY
    assert [step.outcome for step in found.steps if step.outcome] == [
        "ok.native_call",
        "ok.native_call",
        "ok.final_answer",
    ]
    assert budget.spent <= 6


async def test_a_refusal_of_tools_is_set_against_the_same_request_without(tmp_path: Path) -> None:
    def refusing(body: dict[str, Any]) -> Answered:
        return error("registry/phi3 does not support tools") if body.get("tools") else completion("Fine.")

    found = await examined(tmp_path, refusing)
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.grade, found.outcome.model_ran) == (
        "gate.tools_unsupported",
        "differential",
        "no",
    )
    assert "undefined, not 0 %" in found.headline
    assert "Without tools the same model on the same server answers." in found.explained
    assert found.remedy


async def test_what_fails_without_tools_too_is_not_laid_on_the_tools(tmp_path: Path) -> None:
    found = await examined(tmp_path, lambda body: error("The model 'm' does not exist", 404))
    assert found.outcome is not None
    assert found.outcome.name == "gate.model_not_found"
    assert found.outcome.grade == "observed"
    assert "Without tools it is the same." in found.explained


async def test_a_prompt_without_the_tools_comes_before_every_guess_at_parser_and_model(tmp_path: Path) -> None:
    found = await examined(
        tmp_path, lambda body: completion("I cannot see any tool."), render=lambda body: "<|user|>hi"
    )
    assert found.outcome is not None
    assert found.outcome.name == "template.tools_absent"
    assert (found.outcome.at_fault, found.outcome.grade) == ("config", "differential")
    assert found.outcome.evidence[0].quote == "<|user|>hi"


async def test_without_a_rendering_the_prompt_tokens_tell(tmp_path: Path) -> None:
    def counted(body: dict[str, Any]) -> Answered:
        return completion("I cannot see any tool.", prompt=40)

    found = await examined(tmp_path, counted)
    assert found.outcome is not None
    assert found.outcome.name == "template.tools_absent"


def shown(body: dict[str, Any]) -> str:
    """A rendering that holds the tools."""
    return json.dumps(body.get("tools", "")) + " <|user|> Paris"


async def test_a_call_in_the_text_is_the_configurations_where_no_fitting_parser_is_known(tmp_path: Path) -> None:
    found = await examined(tmp_path, lambda body: completion(GOOD), render=shown, write=lambda body: GOOD)
    assert found.outcome is not None
    assert found.outcome.name == "parser.left_as_text"
    assert found.outcome.at_fault == "config"
    assert found.outcome.grade == "differential"
    assert len(found.outcome.evidence) >= 2


async def test_a_swallowed_call_is_found_by_the_raw_channel(tmp_path: Path) -> None:
    found = await examined(tmp_path, lambda body: completion(""), render=shown, write=lambda body: GOOD)
    assert found.outcome is not None
    assert found.outcome.name == "parser.dropped"
    assert found.outcome.at_fault == "stack"
    assert found.outcome.wrote == "valid_call"


async def test_only_then_the_model(tmp_path: Path) -> None:
    prose = "I would rather not call anything."
    found = await examined(tmp_path, lambda body: completion(prose), render=shown, write=lambda body: prose)
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.at_fault) == ("model.no_call", "model")
    assert found.outcome.grade == "differential"


async def test_where_nothing_shows_what_the_model_wrote_nobody_is_blamed(tmp_path: Path) -> None:
    def text_only(body: dict[str, Any]) -> Answered:
        if body.get("tool_choice") == "none" or body.get("logprobs"):
            return error("not supported", 422)
        return completion("Hm.", prompt=200 if body.get("tools") else 20)

    found = await examined(tmp_path, text_only)
    assert found.outcome is not None
    assert found.outcome.at_fault in ("undetermined", "model")
    if found.outcome.at_fault == "undetermined":
        assert found.decide_by


async def test_a_fault_of_the_stream_alone_is_said_to_be_one(tmp_path: Path) -> None:
    def half(body: dict[str, Any]) -> Answered:
        if not body.get("stream") or not body.get("tools"):
            return calling(body)
        return completion(GOOD)

    found = await examined(tmp_path, half)
    assert found.outcome is not None
    assert found.outcome.layer == "parser"
    assert "Plain, the call arrives; only the streamed answer is wrong." in found.explained
    assert any("without streaming works" in note for note in found.notes)


async def test_the_servers_own_limit_is_told_from_the_requests(tmp_path: Path) -> None:
    def limiting(body: dict[str, Any]) -> Answered:
        if "max_tokens" not in body and body.get("tools"):
            return completion('<tool_call>\n{"name": "get_we', finish="length", spent=8)
        return calling(body)

    found = await examined(tmp_path, limiting)
    assert found.outcome is not None
    assert found.outcome.layer == "truncation"
    assert found.outcome.at_fault == "config"
    assert "With a limit of its own in the request, the call arrives." in found.explained


async def test_thinking_gets_more_room_before_it_is_called_a_fault(tmp_path: Path) -> None:
    def thinking(body: dict[str, Any]) -> Answered:
        if body.get("tools") and body.get("max_tokens") == 256:
            return completion("", finish="length", spent=256, reasoning_content="I think and think")
        return calling(body)

    found = await examined(tmp_path, thinking)
    assert any("tokens for one call" in note for note in found.notes) or found.healthy


async def test_a_second_turn_that_fails_is_found(tmp_path: Path) -> None:
    def one_turn(body: dict[str, Any]) -> Answered:
        if body["messages"][-1]["role"] == "tool":
            return error("Conversation roles must alternate user/assistant/user/assistant/...", 400)
        return calling(body)

    found = await examined(tmp_path, one_turn)
    assert found.outcome is not None
    assert found.outcome.layer in ("template", "request")
    assert "The first turn works; the turn that sends the tool's result back does not." in found.explained


@pytest.mark.parametrize("refuses", [True, False], ids=["refused", "cut silently"])
async def test_a_context_smaller_than_an_agents_prompt(tmp_path: Path, refuses: bool) -> None:
    def small(body: dict[str, Any]) -> Answered:
        if refuses and len(body["messages"][0]["content"]) > 2000:
            return error("the request exceeds the available context size. try increasing the context size")
        return calling(body)

    found = await examined(tmp_path, small, context=512)
    assert found.outcome is not None
    wanted = "request.context_exceeded" if refuses else "truncation.context_cut_silently"
    assert (found.outcome.name, found.outcome.at_fault) == (wanted, "config")


class Held(web.StreamResponse):
    """A stream of sixty events, all of it after some seconds."""

    seconds = 0.6

    async def write_eof(self, data: bytes = b"") -> None:
        events = (
            b'data: {"choices":[{"index":0,"delta":{"content":"%d "},"finish_reason":null}]}\n\n' % n for n in range(60)
        )
        await asyncio.sleep(self.seconds)
        with contextlib.suppress(ConnectionError):
            await self.write(b"".join(events) + b"data: [DONE]\n\n")
            await super().write_eof(data)


async def test_a_stream_that_is_held_back(tmp_path: Path) -> None:
    def holding(body: dict[str, Any]) -> Answered:
        if body.get("stream") and not body.get("tools"):
            return Held(headers={"content-type": "text/event-stream"})
        return calling(body)

    found = await examined(tmp_path, holding)
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.at_fault) == ("transport.buffered", "network")
    assert "proxy_buffering" in found.remedy


async def test_a_server_that_stays_silent_is_not_called_an_impatient_client(tmp_path: Path) -> None:
    class Silent(web.StreamResponse):
        """Says nothing for longer than the examination waits."""

        async def prepare(self, request: web.BaseRequest) -> Any:
            await asyncio.sleep(1.5)
            return await super().prepare(request)

    found = await examined(tmp_path, lambda body: Silent(), budget=Budget(seconds=0.7))
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.at_fault) == ("transport.timeout_read", "undetermined")
    assert found.decide_by
    assert "client's timeout" not in found.remedy
    assert "restart" in found.remedy


async def test_a_stream_that_waited_in_a_queue_is_not_held_back(tmp_path: Path) -> None:
    limits: list[int] = []

    class Queued(Held):
        """The wait comes first; a longer text then takes its time."""

        async def write_eof(self, data: bytes = b"") -> None:
            await asyncio.sleep(0.5)
            for _ in range(4 if limits[-1] > limits[0] else 0):
                await self.write(b'data: {"choices":[{"index":0,"delta":{"content":"la "}}]}\n\n')
                await asyncio.sleep(0.1)
            self.seconds = 0
            await super().write_eof(data)

    def queueing(body: dict[str, Any]) -> Answered:
        if body.get("stream") and not body.get("tools"):
            limits.append(body["max_tokens"])
            return Queued(headers={"content-type": "text/event-stream"})
        return calling(body)

    found = await examined(tmp_path, queueing)
    assert len(limits) == 2
    assert limits[1] == 2 * limits[0]
    assert found.outcome is None


@pytest.mark.parametrize("short_ends", [True, False])
async def test_a_long_stream_that_brings_nothing_in_time_is_not_taken_for_a_healthy_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short_ends: bool
) -> None:
    monkeypatch.setattr("probe.asking.ANSWER_SECONDS", 1.0)

    def holding(body: dict[str, Any]) -> Answered:
        if body.get("stream") and not body.get("tools"):
            held = Held(headers={"content-type": "text/event-stream"})
            held.seconds = 0.6 if body["max_tokens"] <= FEWEST_TOKENS and short_ends else 2.0
            return held
        return calling(body)

    found = await examined(tmp_path, holding)
    if short_ends:
        assert found.outcome is not None
        assert found.outcome.name == "transport.buffered"
    else:
        assert found.outcome is None
        assert any("held back was not seen" in note for note in found.notes)


async def test_a_budget_that_runs_out_ends_the_examination_with_what_is_known(tmp_path: Path) -> None:
    found = await examined(tmp_path, calling, budget=Budget(requests=1))
    assert found.headline.startswith("No verdict")
    assert not found.healthy
    assert found.exit_code == 3
    assert any("budget" in note for note in found.notes)
    assert "No verdict" in text(found)


async def test_a_call_from_a_prompt_without_the_tools_is_no_health(tmp_path: Path) -> None:
    found = await examined(tmp_path, calling, render=lambda body: "<|user|>hi")
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.at_fault) == ("template.tools_absent", "config")
    assert "a call came all the same" in found.outcome.detail


class NamedVLLM(SimulatedStack):
    """The simulated stack with vLLM's name and words."""

    def remedy(self, outcome: str, facts: Mapping[str, str]) -> str | None:
        return VLLM().remedy(outcome, facts)


@pytest.mark.parametrize("written", [GOOD, "Nothing to call."])
async def test_a_server_without_a_parser_is_asked_what_the_model_writes(written: str, tmp_path: Path) -> None:
    def parserless(body: dict[str, Any]) -> Answered:
        if body.get("tools") and body.get("tool_choice", "auto") != "none":
            return error('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')
        return completion(written)

    found = await examined(tmp_path, parserless, stack=NamedVLLM(name="vllm"))
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.grade) == ("gate.parser_not_configured", "differential")
    wanted = "hermes" if written == GOOD else "NAME"
    assert f"`--enable-auto-tool-choice --tool-call-parser {wanted}`" in found.remedy
    assert any("the model writes a call" in sentence for sentence in found.explained) is (written == GOOD)


RAMBLING = "Paris is a city, and its weather is a weather, and " * 20


def rambling(body: dict[str, Any]) -> Answered:
    return completion(RAMBLING, finish="length", spent=body.get("max_tokens", 4096))


async def test_a_model_that_rambles_without_the_tools_in_its_prompt_is_not_blamed(tmp_path: Path) -> None:
    found = await examined(tmp_path, rambling, render=lambda body: "<|user|>hi")
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.at_fault) == ("template.tools_absent", "config")
    assert found.generations <= 1


async def test_a_model_that_rambles_with_the_tools_in_its_prompt_is(tmp_path: Path) -> None:
    found = await examined(tmp_path, rambling, render=shown, write=lambda body: RAMBLING)
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.at_fault, found.outcome.confidence) == (
        "model.no_call",
        "model",
        "medium",
    )
    assert any("ended by a limit" in note for note in found.notes)


async def test_an_answer_that_was_not_waited_for_is_not_laid_on_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probe.asking.ANSWER_SECONDS", 0.3)
    found = await examined(tmp_path, lambda body: Endless(headers={"content-type": "application/json"}))
    assert found.outcome is not None
    assert (found.outcome.name, found.outcome.at_fault) == ("transport.timeout_read", "undetermined")


async def test_the_context_that_a_remedy_names_is_a_number(tmp_path: Path) -> None:
    def small(body: dict[str, Any]) -> Answered:
        if len(json.dumps(body)) > 2000:
            return error("This model's maximum context length is 512 tokens. However, your prompt has more.")
        return calling(body)

    found = await examined(tmp_path, small, context=512, stack=NamedVLLM(name="vllm"))
    assert found.outcome is not None
    assert found.outcome.name == "request.context_exceeded"
    assert "`--max-model-len 32768`" in found.remedy


class Endless(web.StreamResponse):
    """An answer that does not come."""

    async def prepare(self, request: web.BaseRequest) -> Any:
        writer = await super().prepare(request)
        await asyncio.sleep(5)
        return writer


async def test_a_server_that_is_stuck_after_its_error_keeps_the_verdict_on_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_before: list[int] = []

    def stuck(body: dict[str, Any]) -> Answered:
        asked_before.append(1)
        return error("EOF", 500) if len(asked_before) == 1 else Endless()

    monkeypatch.setattr("probe.asking.ANSWER_SECONDS", 0.3)
    found = await examined(tmp_path, stuck)
    assert found.outcome is not None
    assert found.outcome.name == next(step.outcome for step in found.steps if step.outcome)
    assert len(asked_before) <= 4
