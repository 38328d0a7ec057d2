"""What an agent asks of a server, read from recorded and written walks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from probe.pairing.verdict.demands import demands_of
from probe.pairing.verdict.room import context_for, sizes_in
from tests.support.walked import Timed, Walker, answer, captured, captured_plan, failing, in_memory

AGENTS = {
    # agent: (API, tools, bytes of tools, tokens before the task, most tokens, context, side requests)
    "opencode": ("OpenAI chat completions (POST /v1/chat/completions)", 10, 20801, 10197, 10367, 16384, ("title",)),
    "codex-cli": ("OpenAI Responses (POST /v1/responses)", 9, 18187, 9309, 9619, 16384, ()),
    "qwen-code": ("OpenAI chat completions (POST /v1/chat/completions)", 15, 38511, 26451, 26840, 49152, ()),
}


@pytest.mark.parametrize("agent", AGENTS)
def test_the_demands_of_a_recorded_agent(agent: str) -> None:
    found = demands_of(captured_plan(agent), in_memory(captured(agent)))
    api, tools, size, before, most, context, side = AGENTS[agent]
    assert (found.api, found.tools, found.tools_bytes, found.side_requests) == (api, tools, size, side)
    assert (found.tokens_before_task, found.most_prompt_tokens, found.tokens_from) == (before, most, "server")
    assert found.context_needed == context
    assert (found.task_requests, found.requests, found.retries) == (4, 4 + len(side), 0)
    assert "stream" in found.features


def test_features_are_named_with_their_values() -> None:
    found = demands_of(captured_plan("codex-cli"), in_memory(captured("codex-cli")))
    assert {"tool_choice=auto", "parallel_tool_calls=true", "store=false", "role developer"} <= set(found.features)
    options: dict[str, Any] = {
        "temperature": 0.2,
        "seed": 7,
        "max_tokens": 900,
        "n": 1,
        "response_format": {"type": "json_object"},
        "stop": ["Observation:"],
        "reasoning_effort": "low",
        "tool_choice": "required",
    }
    found = demands_of(Walker().plan, in_memory(Walker(options=options).exchanges()))
    assert {
        "stream",
        "stream_options.include_usage=true",
        "temperature=0.2",
        "seed=7",
        "max_tokens=900",
        "n=1",
        'response_format={"type": "json_object"}',
        'stop=["Observation:"]',
        "reasoning_effort=low",
        "tool_choice=required",
    } <= set(found.features)


def test_cache_control_and_requests_at_once_are_seen() -> None:
    walker = Walker("anthropic_messages")
    timed = walker.exchanges()
    body = timed[0].body()
    body["system"] = [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}]
    together = [timed[0].asking(body), replace(timed[1], at_us=1000)]
    found = demands_of(walker.plan, in_memory(together))
    assert {"cache_control", "2 requests at once"} <= set(found.features)
    assert found.api == "Anthropic Messages (POST /v1/messages)"


def test_side_requests_reads_and_retries_are_counted() -> None:
    walker = Walker()
    timed = walker.exchanges()
    read = Timed(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", ((1000, answer(b'{"object":"list","data":[]}')),))
    title = {"model": "m", "messages": [{"role": "user", "content": "Give this conversation a title."}]}
    quota = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "quota"}]}
    asked = [read, read, timed[0].asking(title), timed[0].asking(quota), timed[0], *timed]
    found = demands_of(walker.plan, in_memory(asked))
    assert found.reads == ("GET /v1/models (2 times)",)
    assert found.side_requests == ("title", "quota check")
    assert (found.task_requests, found.retries) == (5, 1)


def test_a_refusal_tells_the_size() -> None:
    walker = Walker()
    error = {"error": {"code": 400, "message": "too large", "n_prompt_tokens": 9600, "n_ctx": 4096}}
    found = demands_of(walker.plan, in_memory([failing(walker.exchanges()[0], "400 Bad Request", error)]))
    assert (found.most_prompt_tokens, found.tokens_from, found.context_needed) == (9600, "server", 16384)


def test_without_a_count_the_tokens_are_estimated() -> None:
    found = demands_of(captured_plan("aider"), in_memory(captured("aider")))
    assert found.tokens_from == "estimate"
    assert found.tokens_before_task is not None
    assert 1000 < found.tokens_before_task < 4000


def test_nothing_asked_is_nothing_wanted() -> None:
    found = demands_of(Walker().plan, [])
    assert (found.api, found.requests, found.tools, found.context_needed) == ("", 0, 0, None)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("request (9036 tokens) exceeds the available context size (8192 tokens), try increasing it", (9036, 8192)),
        ("This model's maximum context length is 4096 tokens. However, you requested 9600 tokens", (9600, 4096)),
        ("The input (7546 tokens) is longer than the model's context length (2048 tokens).", (7546, 2048)),
        ("Requested tokens (9600) exceed context window of 2048", (9600, 2048)),
        (
            "maximum context length is 2048 tokens. However, your prompt contains at least 2049 input tokens",
            (2049, 2048),
        ),
        ("You requested a total of 2531 tokens: 1531 tokens from the input messages", (2531, None)),
        ("no numbers here", (None, None)),
    ],
)
def test_the_numbers_of_a_refusal(text: str, sizes: tuple[int | None, int | None]) -> None:
    assert sizes_in(text) == sizes


def test_a_context_is_a_sensible_size() -> None:
    assert [context_for(tokens) for tokens in (100, 1900, 2049, 9600, 26900, 31000, 60000)] == [
        4096,
        4096,
        8192,
        16384,
        32768,
        49152,
        65536,
    ]
    assert context_for(9600, 32000) == 32768
    assert context_for(9600, -1) == 16384
