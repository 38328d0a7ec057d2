"""What one exchange cannot show: silence after a fault, refusals that depend on what was loaded, broken history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proxy.classify import RunMemory
from proxy.exchange_view import classify_run
from results.outcomes import Judged
from results.reader import RunReader
from tests.proxy.classify.exchanges import QUESTION, WEATHER, chat, message, verdict
from tests.support.journalled import Raw, record


def ask(model: str = "m", tools: bool = True) -> bytes:
    body: dict[str, Any] = {"model": model, "messages": [QUESTION], "stream": False}
    if tools:
        body["tools"] = [WEATHER]
    data = json.dumps(body).encode()
    return f"POST /api/chat HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


def answer(body: dict[str, Any], status: int = 200) -> bytes:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def said(text: str = "Hello.", calls: list[dict[str, Any]] | None = None, done: str = "stop") -> dict[str, Any]:
    body: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        body["tool_calls"] = calls
    return {"model": "m", "created_at": "x", "message": body, "done": True, "done_reason": done}


CALLS = [{"function": {"name": "get_weather", "arguments": {"city": "Lyon"}}}]
BROKEN = answer({"error": "EOF"}, 500)


def run(folder: Path, *raws: Raw) -> list[Judged]:
    record(folder, raws)
    return sorted(classify_run(RunReader(folder)), key=lambda line: line.attempt)


def test_silence_after_a_parser_error_is_a_wedged_engine(tmp_path: Path) -> None:
    found = run(
        tmp_path / "run",
        Raw(ask(), answer(said())),
        Raw(ask(), BROKEN),
        Raw(ask(), b"", "client"),
        Raw(ask("other-name-same-weights"), b"", "timeout"),
    )
    assert [line.outcome.name for line in found[1:]] == ["parser.server_error", "engine.wedged", "engine.wedged"]
    wedged = found[2].outcome
    assert wedged.at_fault == "stack"
    assert 2 in [cited.attempt for cited in wedged.evidence]
    assert "attempt 2" in wedged.detail
    assert found[3].outcome.confidence == "medium"


def test_an_answer_in_between_ends_the_suspicion(tmp_path: Path) -> None:
    found = run(tmp_path / "run", Raw(ask(), BROKEN), Raw(ask(), answer(said())), Raw(ask(), b"", "client"))
    assert found[2].outcome.name == "transport.client_gone"


def test_unloading_ends_the_suspicion(tmp_path: Path) -> None:
    unloaded = answer(said("", done="unload"))
    found = run(tmp_path / "run", Raw(ask(), BROKEN), Raw(ask(), unloaded), Raw(ask(), b"", "timeout"))
    assert found[1].outcome.name == "nonresponse.load_only"
    assert found[2].outcome.name == "transport.timeout_read"


def test_silence_alone_is_no_wedge(tmp_path: Path) -> None:
    found = run(tmp_path / "run", Raw(ask(), b"", "timeout"))
    assert found[0].outcome.name == "transport.timeout_read"


def test_a_refusal_that_depends_on_what_was_loaded(tmp_path: Path) -> None:
    gate = answer({"error": '{"error":{"code":500,"message":"tools param requires --jinja flag"}}'}, 500)
    found = run(
        tmp_path / "run",
        Raw(ask("native"), answer(said("", CALLS))),
        Raw(ask("templated"), answer(said("", CALLS))),
        Raw(ask("native"), gate),
    )
    refused = found[2].outcome
    assert refused.name == "gate.template_flag_missing"
    assert "attempt 1" in refused.detail
    assert "templated" in refused.detail
    assert {cited.attempt for cited in refused.evidence} >= {1, 2, 3}


def test_the_same_refusal_at_once_is_a_plain_gate(tmp_path: Path) -> None:
    gate = answer({"error": "x does not support tools"}, 400)
    found = run(tmp_path / "run", Raw(ask(tools=False), answer(said())), Raw(ask(), gate))
    assert found[1].outcome.name == "gate.tools_unsupported"
    assert "depends on what was loaded" not in found[1].outcome.detail


def test_memory_is_bounded() -> None:
    memory = RunMemory()
    for number in range(5000):
        memory.remember("up", f"m{number}", number, "parser.server_error", ())
        memory.remember("up", f"n{number}", number, "ok.native_call", (), took_tools=True)
    assert len(memory._faults) <= 512
    assert len(memory._answers) <= 512
    last = memory.fault_before("up", "m4999")
    assert last is not None
    assert last.attempt == 4999
    assert memory.fault_before("elsewhere", "m4999") is None


# ---------------------------------------------------------------------- the request's own past
def past(arguments: Any = '{"city": "Lyon"}', **more: Any) -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    return [
        QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [call], **more},
        {"role": "tool", "tool_call_id": "c1", "content": "22 C"},
        {"role": "user", "content": "and Turin?"},
    ]


@pytest.mark.parametrize(
    ("messages", "said_by_server", "status", "number"),
    [
        (past('{"city": "Ly"on"}'), "Expecting ',' delimiter: line 1 column 14 (char 13)", 400, 1),
        (past('{"city": "a"}{"city": "b"}'), "litellm.APIConnectionError: Extra data: line 1 column 14", 500, 1),
        (past('{"city":'), "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]", 500, 1),
        (past('{"city":'), "unexpected end of JSON input", 500, 1),
        (past({"city": "a"}), "json: cannot unmarshal object into Go struct field .arguments of type string", 400, 1),
        ([QUESTION, {"role": "assistant"}, QUESTION], "Internal Server Error", 500, 1),
        ([{"content": "hi"}, QUESTION], "Failed to parse messages: Missing 'role' in message", 500, 0),
    ],
)
def test_bad_history_names_turn_and_message(
    messages: list[dict[str, Any]], said_by_server: str, status: int, number: int
) -> None:
    body = {"error": {"message": said_by_server, "type": "x", "code": status}}
    outcome = verdict(chat(body, status=status, messages=messages))
    assert outcome.name == "request.bad_history"
    assert outcome.at_fault == "client"
    assert outcome.model_ran == "no"
    assert f"message {number}" in outcome.detail
    assert outcome.evidence[0].direction == "request"


def test_sound_history_is_not_suspected() -> None:
    body = {"error": {"message": 'can only concatenate str (not "dict") to str', "code": 500}}
    assert verdict(chat(body, status=500, messages=past())).name == "template.render_error"


def test_broken_history_that_was_accepted_is_no_outcome() -> None:
    view = chat(message(None, [("get_weather", {"city": "Turin"})]), messages=past('{"city":'))
    assert verdict(view).name == "ok.native_call"


def test_the_same_call_again_right_after_its_result() -> None:
    messages = past()[:-1]
    outcome = verdict(chat(message(None, [("get_weather", {"city": "Lyon"})]), messages=messages))
    assert outcome.name == "ok.native_call"
    assert "model.loop" in outcome.flags
    assert outcome.at_fault == "undetermined"


def test_a_cut_call_that_was_delivered_is_no_fault_of_the_engine() -> None:
    memory = RunMemory()
    memory.remember("up", "m", 1, "truncation.cut_inside_call", (), refused=False)
    assert memory.fault_before("up", "m") is None
    memory.remember("up", "m", 2, "gate.tools_unsupported", (), refused=True)
    assert memory.fault_before("up", "m") is None
    memory.remember("up", "m", 3, "parser.server_error", (), refused=True)
    assert memory.fault_before("up", "m") is not None
