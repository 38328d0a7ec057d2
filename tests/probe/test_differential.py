"""The differential comparison, on simulated servers: what the model writes against what the endpoint delivers."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from probe.differential import differential
from probe.probes.requests import body_of
from probe.raw_text import END_MARKS, ended, text_of_tokens
from results.manifest import known
from stacks.serving.base import ModelIdentity
from tests.support.simulated import (
    GOOD,
    SimulatedStack,
    call,
    completion,
    error,
    evidence_reads_back,
    simulated_target,
)

PROSE = "I cannot know the weather."
CUT = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Par'
UNKNOWN = '<tool_call>\n{"name": "launch_rocket", "arguments": {}}\n</tool_call>'


def delivers(*answer: Any, **more: Any) -> Any:
    return lambda body: completion(*answer, **more)


@pytest.mark.parametrize(
    ("wrote", "server", "verdict"),
    [
        (GOOD + "<|im_end|>\n", delivers(None, call()), "yes ok.native_call kept"),
        (GOOD, delivers(GOOD), "no parser.left_as_text lost"),
        (GOOD, delivers(""), "no parser.dropped lost"),
        (GOOD, delivers(None, call(city="London")), "no parser.altered kept"),
        (GOOD, lambda body: error("EOF", 500), "no parser.server_error lost"),
        (PROSE, delivers(PROSE), "yes ok.final_answer kept"),
        (PROSE, delivers(None, call()), "no parser.phantom kept"),
        (CUT, delivers(CUT), "yes model.malformed_call kept"),
        (CUT, delivers(""), "no model.malformed_call kept"),
        (UNKNOWN, delivers(None, call("launch_rocket")), "no model.unknown_tool kept"),
        ("", delivers(""), "yes nonresponse.empty kept"),
        ("Hm.\n</think>\n\n" + GOOD, delivers("", reasoning_content="Hm.\n" + GOOD), "no parser.in_reasoning lost"),
    ],
)
async def test_what_the_model_wrote_against_what_came(tmp_path: Path, wrote: str, server: Any, verdict: str) -> None:
    opened = "<think>\n" if "</think>" in wrote else ""
    async with simulated_target(
        server, tmp_path, render=lambda body: f"prompt {opened}", write=lambda body: wrote
    ) as target:
        found = await differential(target)
        assert target.asker.budget.spent <= 12
    assert found.outcome is not None
    support, outcome, lost = verdict.split()
    assert (found.result.support, found.outcome.name, found.lost) == (support, outcome, lost == "lost")
    assert found.outcome.grade == "differential"
    assert found.channel == "/render, /raw"
    assert found.wrote is not None
    assert not found.wrote.endswith("<|im_end|>")
    assert evidence_reads_back(tmp_path, [found.result]) >= 2


async def test_a_request_that_was_refused_says_nothing_of_the_model(tmp_path: Path) -> None:
    refuses = lambda body: error("m does not support tools")  # noqa: E731
    async with simulated_target(refuses, tmp_path, render=str, write=lambda body: GOOD) as target:
        found = await differential(target)
        assert target.asker.budget.spent == 1
    assert (found.result.support, found.result.outcome) == ("refused", "gate.tools_unsupported")
    assert found.outcome is not None
    assert (found.outcome.model_ran, found.wrote) == ("no", None)


async def test_answers_that_are_not_repeatable_decide_nothing(tmp_path: Path) -> None:
    texts = itertools.cycle([GOOD, PROSE])
    async with simulated_target(
        delivers(PROSE), tmp_path, render=lambda body: "p", write=lambda body: next(texts)
    ) as target:
        found = await differential(target)
    assert found.result.support == "unknown"
    assert any("raw completion" in condition for condition in found.conditions)
    assert found.outcome is not None
    assert found.outcome.confidence == "low"
    words = itertools.count()
    async with simulated_target(
        lambda body: completion(f"no {next(words)}"), tmp_path / "2", render=lambda body: "p", write=lambda body: GOOD
    ) as target:
        found = await differential(target)
    assert found.result.support == "unknown"
    assert any("chat endpoint" in condition for condition in found.conditions)


async def test_a_template_is_rendered_here_where_the_server_renders_none(tmp_path: Path) -> None:
    prompts: list[str] = []

    def write(body: dict[str, Any]) -> str:
        prompts.append(body["prompt"])
        return GOOD

    async with simulated_target(delivers(GOOD), tmp_path, write=write) as target:
        target.identity = ModelIdentity("m", template=known("T:{{ tools | length }}:{{ messages[0].content }}", "x"))
        found = await differential(target)
    assert prompts[0] == "T:1:What is the weather in Paris?"
    assert found.lost
    assert any("rendered here" in condition for condition in found.conditions)
    assert found.outcome is not None
    assert found.outcome.confidence == "medium"


@pytest.mark.parametrize("stack", ["openai", "mlx_server"])
async def test_log_probabilities_show_what_the_parser_took(tmp_path: Path, stack: str) -> None:
    tokens = ["<tool_call>", "\n", *GOOD.partition("\n")[2].split(" "), "<|im_end|>"]
    spaced = [tokens[0], tokens[1], *(f" {token}" for token in tokens[2:-1]), tokens[-1]]
    spaced[2] = spaced[2].strip()
    if stack == "mlx_server":
        spaced = [token.replace(" ", "\u0120").replace("\n", "\u010a") for token in spaced]

    def answer(body: dict[str, Any]) -> Any:
        whole = completion(None, finish="tool_calls")
        if body.get("logprobs"):
            content = [{"token": token, "logprob": -0.1, "top_logprobs": []} for token in spaced]
            whole["choices"][0]["logprobs"] = {"content": content}
        return whole

    async with simulated_target(answer, tmp_path, stack=SimulatedStack(name=stack)) as target:
        found = await differential(target)
    assert found.wrote == GOOD
    assert (found.lost, found.result.outcome) == (True, "parser.dropped")
    assert found.channel.startswith("log-probabilities")
    assert len(found.tried) == 2


async def test_tool_choice_none_stands_in_where_the_prompt_has_as_many_tokens(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if body.get("logprobs"):
            return error("logprobs are not supported")
        return completion(GOOD) if body.get("tool_choice") == "none" else completion("")

    async with simulated_target(answer, tmp_path) as target:
        found = await differential(target)
    assert (found.channel, found.lost) == ("tool_choice none", True)
    assert "20 tokens" in found.conditions[0]

    def drops_tools(body: dict[str, Any]) -> Any:
        none = body.get("tool_choice") == "none"
        return completion(GOOD if none else "", prompt=12 if none else 90)

    async with simulated_target(drops_tools, tmp_path / "2") as target:
        found = await differential(target)
    assert found.channel == "stream"
    assert any("another prompt" in tried for tried in found.tried)


@pytest.mark.parametrize(
    ("plain", "streamed", "support", "lost"),
    [
        (completion(""), completion(None, call()), "no", True),
        (completion(None, call()), completion(""), "partial", False),
        (completion(PROSE), completion(PROSE), "unknown", False),
    ],
)
async def test_the_stream_is_the_last_resort(
    tmp_path: Path, plain: Any, streamed: Any, support: str, lost: bool
) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if body.get("tool_choice") or body.get("logprobs"):
            return error("unknown field")
        return streamed if body["stream"] else plain

    async with simulated_target(answer, tmp_path) as target:
        results = await differential(target)
    assert (results.channel, results.result.support, results.lost) == ("stream", support, lost)
    assert results.wrote is None
    assert len(results.tried) == 4
    assert evidence_reads_back(tmp_path, [results.result]) == 2


async def test_a_server_known_to_constrain_is_told_as_a_condition(tmp_path: Path) -> None:
    async with simulated_target(
        delivers(None, call(city="ha")), tmp_path, render=lambda body: "p", write=lambda body: CUT
    ) as target:
        target.asker.identify("llamacpp", "b1")
        found = await differential(target)
    assert found.result.support == "partial"
    assert found.outcome is not None
    assert found.outcome.delivery == "constrained"
    assert any("constrains" in condition for condition in found.conditions)


async def test_a_recorded_request_of_the_users_is_compared_at_temperature_0(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> Any:
        seen.append(body)
        return completion(None, call())

    async with simulated_target(answer, tmp_path, render=lambda body: "p", write=lambda body: GOOD) as target:
        request = {**body_of(target, "Weather in Rome?"), "temperature": 0.9, "stream": True, "stream_options": {}}
        found = await differential(target, request)
    assert found.result.support == "yes"
    assert seen[0]["temperature"] == 0
    assert "stream_options" not in seen[0]


async def test_a_server_that_hangs_is_not_asked_through_every_channel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probe.asking.ANSWER_SECONDS", 0.5)

    class Hangs(web.StreamResponse):
        async def prepare(self, request: web.BaseRequest) -> None:
            await asyncio.sleep(1.5)
            raise ConnectionError

    async with simulated_target(lambda body: Hangs(), tmp_path) as target:
        target.asker.budget.generations = 1  # It answered once: it is not loading its model.
        found = await differential(target)
        spent = target.asker.budget.spent
    assert spent == 1
    assert (found.result.support, found.wrote, found.outcome) == ("unknown", None, None)
    assert "brought nothing" in found.tried[0]


@given(st.text(max_size=40), st.lists(st.sampled_from(END_MARKS), max_size=3))
def test_end_tokens_are_taken_off_and_nothing_else(text: str, marks: list[str]) -> None:
    kept = ended(text)
    assert ended(text + "".join(marks)) == kept
    assert text.startswith(kept)
    assert ended("<tool_call>x</tool_call>") == "<tool_call>x</tool_call>"


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_spelled_tokens_read_back(text: str) -> None:
    from stacks.token_bytes import byte_alphabet

    letters = {byte: character for character, byte in byte_alphabet().items()}
    spelled = "".join(letters[byte] for byte in text.encode())
    assert text_of_tokens([spelled[:3], spelled[3:]], by_spelling=True) == text
    assert text_of_tokens([text, "!"], by_spelling=False) == text + "!"
