"""What does not matter must not change a verdict: dialect, framing, headers, names, layout, a gateway around it."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from proxy.classify import ExchangeView, classify
from proxy.exchange_files import from_case
from results.outcomes import Outcome
from tests.cases.test_reports import REPORTS
from tests.proxy.classify.exchanges import QUESTION, WEATHER, chat, delta, verdict
from tests.proxy.classify.test_word_rows import EXAMPLES
from tests.support.corpus import cases

Case = dict[str, Any]
ALL: list[Case] = [*cases(), *REPORTS]
SCHEMA = WEATHER["function"]["parameters"]


def judged(case: Case) -> tuple[str, str]:
    outcome = classify(from_case(case).view)
    return outcome.name, outcome.at_fault


def other_headers(case: Case) -> Case:
    headers = case["response"].get("headers") or {}
    case["response"]["headers"] = {name.upper(): f"{value}; charset=UTF-8" for name, value in headers.items()}
    return case


def no_headers(case: Case) -> Case:
    case["response"]["headers"] = {}
    return case


def a_prefix(case: Case) -> Case:
    case["request"]["path"] = "/gateway/llm" + case["request"]["path"]
    return case


def laid_out(case: Case) -> Case:
    for side in ("request", "response"):
        if isinstance(case[side].get("body"), dict):
            case[side]["body"] = "\n" + json.dumps(case[side]["body"], indent=4) + "\n\n"
    return case


def between_comments(case: Case) -> Case:
    if _is_sse(case):
        lines = case["response"]["stream"]
        case["response"]["stream"] = [": opened", *(each for line in lines for each in (line, ": still here"))]
    return case


def other_line_ends(case: Case) -> Case:
    if _is_sse(case):
        lines = case["response"].pop("stream")
        case["response"]["body"] = "".join(f"{line}\r\n\r\n" for line in lines)
    return case


def _is_sse(case: Case) -> bool:
    lines = case["response"].get("stream")
    return (
        bool(lines) and not case["request"]["path"].startswith("/api") and all(isinstance(line, str) for line in lines)
    )


def other_names(case: Case) -> Case:
    """Every tool under another name, wherever the name stands as a word."""
    body = case["request"]["body"]
    tools = body.get("tools") or [] if isinstance(body, dict) else []
    named = [tool.get("function", tool) for tool in tools if isinstance(tool, dict)]
    names = {tool["name"] for tool in named if isinstance(tool, dict) and "_" in str(tool.get("name"))}
    text = json.dumps(case)
    for name in names:
        text = re.sub(rf"(?<![A-Za-z_]){re.escape(name)}(?![A-Za-z_])", f"acme_{name[::-1]}_9".replace("-", "_"), text)
    renamed: Case = json.loads(text)
    return renamed


@pytest.mark.parametrize(
    "change", [other_headers, no_headers, a_prefix, laid_out, between_comments, other_line_ends, other_names]
)
def test_the_verdict_stays(change: Callable[[Case], Case]) -> None:
    moved = []
    for case in ALL:
        before, after = judged(case), judged(change(copy.deepcopy(case)))
        if before != after:
            moved.append((case["id"], before, after))
    assert not moved, moved[:5]


def test_a_gateway_around_an_error_does_not_hide_it() -> None:
    moved = []
    for case in ALL:
        body, status = case["response"].get("body"), case["response"].get("status")
        if not isinstance(body, dict) or not isinstance(status, int) or status < 400:
            continue
        wrapped = copy.deepcopy(case)
        said = f"litellm.APIError: OpenAIException - {json.dumps(body)}. Received Model Group=x"
        wrapped["response"]["body"] = {"error": {"message": said, "type": None, "param": None, "code": str(status)}}
        before, after = judged(case), judged(wrapped)
        if before[0].partition(".")[0] != after[0].partition(".")[0]:
            moved.append((case["id"], before, after))
    assert not moved, moved


SENTENCES = [(name, text) for name, texts in EXAMPLES.items() for text in texts]


def _streamed(path: str, body: dict[str, Any], lines: list[str], kind: str = "text/event-stream") -> ExchangeView:
    asked = {"method": "POST", "path": path, "body": {"model": "m", "stream": True, **body}}
    answer = {"status": 200, "headers": {"content-type": kind}, "stream": lines}
    return from_case({"id": "x", "stack": "openai", "request": asked, "response": answer}).view


def _in_every_dialect(text: str) -> dict[str, Outcome]:
    messages, error = {"messages": [QUESTION], "tools": [WEATHER]}, {"message": text, "type": "x", "code": 500}
    anthropic = {"max_tokens": 8192, "messages": [QUESTION], "tools": [{"name": "get_weather", "input_schema": SCHEMA}]}
    responses = {"input": "Weather in Lyon?", "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]}
    failed = {"type": "response.failed", "response": {"id": "r", "status": "failed", "output": [], "error": error}}
    event = {"type": "error", "error": {"type": "api_error", "message": text}}
    views = {
        "chat": _streamed("/v1/chat/completions", messages, ["data: " + json.dumps({"error": error})]),
        "after text": _streamed(
            "/v1/chat/completions",
            messages,
            ["data: " + json.dumps(each) for each in (delta(content="I will"), {"error": error})],
        ),
        "messages": _streamed("/v1/messages", anthropic, ["event: error\ndata: " + json.dumps(event)]),
        "responses": _streamed("/v1/responses", responses, ["data: " + json.dumps(failed)]),
        "ollama": _streamed("/api/chat", messages, [json.dumps({"error": text})], "application/x-ndjson"),
    }
    return {name: verdict(view) for name, view in views.items()}


@pytest.mark.parametrize(("name", "text"), SENTENCES)
def test_a_sentence_means_the_same_in_every_dialect(name: str, text: str) -> None:
    plain = verdict(chat({"error": {"message": text, "type": "x", "code": 500}}, status=500, stack="openai"))
    for where, outcome in _in_every_dialect(text).items():
        if where == "after text" and plain.layer in ("gate", "request", "template"):
            assert outcome.layer in ("engine", "parser", "truncation"), (where, outcome.name, plain.name)
        else:
            assert outcome.layer == plain.layer, (where, outcome.name, plain.name)
        cut = where == "after text" and outcome.delivery == "cut"
        assert cut or outcome.delivery == "refused", (where, outcome.delivery)
