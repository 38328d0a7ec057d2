"""Faults of the server, its configuration and the way: each named with its layer, its bytes and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from probe.pairing.records import Finding, PairVerdict
from probe.pairing.verdict.judging import ServerSide, judge
from results.exchange import Exchange
from tests.support.walked import (
    Timed,
    Walker,
    answer,
    as_text,
    events_of,
    failing,
    good_run,
    in_memory,
    with_events,
)

STOPPED: dict[str, Any] = {"file": None, "output": "I could not do it.\n"}


def judged(
    walker: Walker, timed: Sequence[Timed], server: ServerSide | None = None, **run: Any
) -> tuple[PairVerdict, list[Exchange]]:
    exchanges = in_memory(timed)
    verdict = judge(
        walker.plan, exchanges, good_run(walker.plan, **run), server=server or ServerSide(), agent_name="agent"
    )
    return verdict, exchanges


def cited(finding: Finding, exchanges: Sequence[Exchange]) -> str:
    """The bytes that a finding cites, read back from the record."""
    assert finding.wire is not None
    exchange = next(each for each in exchanges if each.attempt == finding.attempt)
    direction: Any = finding.direction
    return exchange.wire(direction)[slice(*finding.wire)].decode()


VLLM_BARE = ServerSide("vllm", "0.32.0", launch_flags=("serve", "DIR"), direct=True)
VLLM_WRONG = ServerSide(
    "vllm", "0.32.0", launch_flags=("--enable-auto-tool-choice", "--tool-call-parser", "mistral"), direct=True
)
SGLANG_BARE = ServerSide("sglang", "0.5.23", launch_flags=("--model-path", "DIR"), direct=True)
LLAMA_RAW = ServerSide("llamacpp", "b11434", launch_flags=("--jinja", "--skip-chat-parsing"), direct=True)
LLAMA_PYTHON = ServerSide("llamacpp_python", "0.3.36", launch_flags=("--model", "F.gguf"), direct=True)
OLLAMA_RANGE = ServerSide("ollama", "0.30.8", mode="go_range", direct=True)


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    ("server", "words"),
    [
        (VLLM_BARE, "--enable-auto-tool-choice --tool-call-parser hermes"),
        (VLLM_WRONG, "--enable-auto-tool-choice --tool-call-parser hermes"),
        (SGLANG_BARE, "--tool-call-parser"),
        (LLAMA_RAW, "--skip-chat-parsing"),
        (LLAMA_PYTHON, "llama-server"),
        (OLLAMA_RANGE, "if .ToolCalls"),
    ],
)
def test_a_call_left_as_text_is_the_configurations_fault(server: ServerSide, words: str, streamed: bool) -> None:
    walker = Walker(streamed=streamed)
    first = as_text(walker.exchanges()[0], walker.plan.turns[0].text)
    verdict, exchanges = judged(walker, [first], server, **STOPPED)
    broken = verdict.broken
    assert broken is not None
    assert (verdict.kind, broken.code, broken.at_fault, broken.step) == (
        "broken",
        "parser.left_as_text",
        "config",
        "look",
    )
    assert words in broken.remedy
    assert broken.who == f"{server.title}'s configuration"
    assert "<tool_call>" in broken.quote
    assert "tool_call" in cited(broken, exchanges)
    assert [step.done for step in verdict.steps] == [False] * 4


LLAMA_SIZE = {
    "error": {
        "code": 400,
        "message": "request (9600 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 9600,
        "n_ctx": 4096,
    }
}
VLLM_SIZE = {
    "error": {
        "message": "This model's maximum context length is 4096 tokens. However, your request has 9600 input tokens. "
        "Please reduce the length of the input messages.",
        "type": "BadRequestError",
        "param": None,
        "code": 400,
    }
}
SGLANG_SIZE = {
    "object": "error",
    "message": "The input (9600 tokens) is longer than the model's context length (4096 tokens).",
    "type": "BadRequestError",
    "param": None,
    "code": 400,
}
OLLAMA_SIZE = {
    "error": {
        "message": '{"error":{"code":400,"message":"request (9600 tokens) exceeds the available context size (4096 '
        'tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9600,"n_ctx":4096}}',
        "type": "invalid_request_error",
        "param": None,
        "code": None,
    }
}


@pytest.mark.parametrize(
    ("server", "error", "words"),
    [
        (ServerSide("llamacpp", direct=True), LLAMA_SIZE, "-c 16384"),
        (ServerSide("vllm", direct=True), VLLM_SIZE, "--max-model-len 16384"),
        (ServerSide("sglang", direct=True), SGLANG_SIZE, "--context-length 16384"),
        (ServerSide("ollama", direct=True), OLLAMA_SIZE, "16,384"),
        (ServerSide("", direct=True), OLLAMA_SIZE, "16,384"),
    ],
)
def test_a_context_too_small_is_said_in_numbers(server: ServerSide, error: Any, words: str) -> None:
    walker = Walker()
    verdict, _ = judged(walker, [failing(walker.exchanges()[0], "400 Bad Request", error)], server, **STOPPED)
    broken = verdict.broken
    assert broken is not None
    assert (broken.code, broken.at_fault) == ("request.context_exceeded", "config")
    assert "agent sends 9,600 tokens; the server's context is 4,096" in broken.said
    assert words in broken.remedy


LONG = "Read the whole of this file before you change a line of it, and tell what you saw in it. " * 120


def long_walk(prompt_tokens: Sequence[int]) -> tuple[Walker, list[Timed]]:
    """A walk with a long system prompt, of which the server counts so many tokens."""
    walker = Walker(streamed=False)
    timed = []
    for number, each in enumerate(walker.exchanges()):
        body = each.body()
        body["messages"][0]["content"] = LONG
        answered = replace(each, pieces=walker.pieces(number, prompt_tokens[number]))
        timed.append(answered.asking(body))
    return walker, timed


def test_a_prompt_cut_silently_is_a_fault_of_a_walk_that_ends_well() -> None:
    walker, timed = long_walk((1024, 1024, 1024, 1024))
    verdict, _ = judged(walker, timed, ServerSide("ollama", "0.30.8", context=1024, direct=True))
    assert verdict.kind == "pairs_with_faults"
    assert [fault.code for fault in verdict.faults] == ["truncation.context_cut_silently"]
    fault = verdict.faults[0]
    assert fault.at_fault == "config"
    assert "the server's context is 1,024" in fault.said
    assert "num_ctx" in fault.remedy
    assert "4 times" in fault.said


def test_a_prompt_that_is_counted_whole_is_no_fault() -> None:
    walker, timed = long_walk((3400, 3460, 3520, 3580))
    verdict, _ = judged(walker, timed, ServerSide("ollama", "0.30.8", context=8192, direct=True))
    assert verdict.kind == "pairs"


def test_a_tool_result_that_never_reached_the_model_breaks_the_walk() -> None:
    walker = Walker()
    timed = walker.exchanges()
    again = replace(timed[1], pieces=walker.pieces(0))
    verdict, _ = judged(walker, [timed[0], again], ServerSide("vllm", direct=True), ending="timeout", file=None)
    assert verdict.broken is not None
    assert (verdict.broken.code, verdict.broken.step) == ("template.drift", "write")
    assert "did not reach the model" in verdict.broken.said


def many_tools(walker: Walker, prompt_tokens: int) -> list[Timed]:
    timed = []
    for number, each in enumerate(walker.exchanges()):
        body = each.body()
        for name in range(12):
            schema = {"type": "object", "properties": {"path": {"type": "string", "description": "which file " * 20}}}
            function = {"name": f"tool_{name}", "description": "it does this and that " * 30, "parameters": schema}
            body["tools"].append({"type": "function", "function": function})
        timed.append(replace(each, pieces=walker.pieces(number, prompt_tokens + 60 * number)).asking(body))
    return timed


def test_tools_that_are_not_in_the_prompt_are_seen_by_its_count() -> None:
    walker = Walker(streamed=False)
    verdict, _ = judged(walker, many_tools(walker, 260), ServerSide("llamacpp", direct=True))
    assert [fault.code for fault in verdict.faults] == ["template.tools_absent"]
    assert verdict.kind == "pairs_with_faults"
    assert judged(walker, many_tools(walker, 3600), ServerSide("llamacpp", direct=True))[0].kind == "pairs"


@pytest.mark.parametrize(("direct", "fault"), [(True, "stack"), (False, "undetermined")])
def test_a_call_that_is_gone(direct: bool, fault: str) -> None:
    walker = Walker()
    timed = walker.exchanges()
    gone = with_events(timed[1], [event for event in events_of(timed[1]) if b'"tool_calls":[' not in event])
    verdict, _ = judged(walker, [timed[0], gone], ServerSide("vllm", direct=direct), **STOPPED)
    broken = verdict.broken
    assert broken is not None
    assert (verdict.kind, broken.step, broken.at_fault) == ("broken", "write", fault)
    assert broken.code in ("parser.dropped", "protocol.finish_contradicts")
    assert [step.done for step in verdict.steps] == [True, False, False, False]
    if not direct:
        assert broken.who == "the server, or whatever stands between"
        assert "--direct" in broken.decide_by
        assert "--gateway" in broken.decide_by


def test_a_lost_delta_is_named_before_the_command_that_failed_of_it() -> None:
    walker = Walker()
    timed = walker.exchanges()
    events = events_of(timed[1])
    calls = [number for number, event in enumerate(events) if b'"arguments":"' in event]
    lost = with_events(timed[1], [event for number, event in enumerate(events) if number != calls[4]])
    history: list[Any] = [("user", "do"), ("call", 0, walker.plan.turns[0]), ("result", 0, "[[k2]]")]
    history += [("call", 1, walker.plan.turns[1]), ("result", 1, "sh: syntax error")]
    after = walker.exchange(history, 1, at_us=9_000_000)
    verdict, _ = judged(walker, [timed[0], lost, after], ServerSide("vllm", direct=True), **STOPPED)
    assert verdict.broken is not None
    assert verdict.broken.code in ("parser.altered", "truncation.cut_inside_call")
    assert (verdict.broken.at_fault, verdict.broken.attempt) == ("stack", 2)


@pytest.mark.parametrize(("parser", "fault"), [("qwen3-coder", "config"), ("", "stack")])
def test_a_server_that_fails_on_a_good_call(parser: str, fault: str) -> None:
    walker = Walker()
    error = {"error": {"message": "error parsing tool call: raw='', err=EOF", "type": "api_error", "code": None}}
    first = failing(walker.exchanges()[0], "500 Internal Server Error", error)
    verdict, _ = judged(walker, [first], ServerSide("ollama", "0.30.8", parser=parser, direct=True), **STOPPED)
    assert verdict.broken is not None
    assert (verdict.broken.code, verdict.broken.at_fault) == ("parser.server_error", fault)
    assert "PARSER" in verdict.broken.remedy


def test_a_stream_that_breaks_off() -> None:
    walker = Walker()
    first = walker.exchanges()[0]
    cut = replace(first, pieces=first.pieces[: len(first.pieces) // 2])
    verdict, _ = judged(walker, [cut], **STOPPED)
    assert verdict.broken is not None
    assert (verdict.broken.code, verdict.broken.at_fault) == ("transport.stream_truncated", "undetermined")
    assert "--gateway" in verdict.broken.decide_by
    reset = replace(cut, how="rst")
    direct, _ = judged(walker, [reset], ServerSide("llamacpp", direct=True), **STOPPED)
    assert direct.broken is not None
    assert (direct.broken.code, direct.broken.at_fault) == ("transport.stream_truncated", "stack")


def test_an_error_that_a_retry_got_over_is_a_fault_of_a_pair_that_works() -> None:
    walker = Walker()
    timed = walker.exchanges()
    busy = failing(timed[1], "503 Service Unavailable", {"error": {"message": "Loading model", "code": 503}})
    verdict, _ = judged(walker, [timed[0], busy, *timed[1:]])
    assert verdict.kind == "pairs_with_faults"
    assert [fault.code for fault in verdict.faults] == ["transport.loading"]
    assert verdict.faults[0].step == "write"
    assert "asked again and got its answer (attempt 3)" in verdict.faults[0].said


def test_a_request_that_crosses_the_close_of_a_kept_connection_is_no_fault() -> None:
    """llama-server closes after a stream; a client that was quick asks on that connection, and again on a new one."""
    walker = Walker()
    timed = walker.exchanges()
    lost = replace(timed[1], pieces=())

    def verdict_of(number: int, ended_us: int) -> PairVerdict:
        exchanges = in_memory([timed[0], lost, *timed[1:]])
        exchanges[1].exchange, exchanges[1].ended_at_us = number, ended_us
        return judge(walker.plan, exchanges, good_run(walker.plan), server=ServerSide(), agent_name="agent")

    assert verdict_of(2, 62).kind == "pairs"
    assert verdict_of(1, 62).kind == verdict_of(2, 400_000).kind == "pairs_with_faults"


def test_missing_usage_is_a_fault() -> None:
    walker = Walker()
    timed = [
        with_events(each, [event for event in events_of(each) if b'"usage"' not in event])
        for each in walker.exchanges()
    ]
    verdict, _ = judged(walker, timed, ServerSide("vllm", direct=True))
    assert [(fault.code, fault.at_fault) for fault in verdict.faults] == [("protocol.usage_absent", "stack")]
    assert "4 times" in verdict.faults[0].said


def contradicting(walker: Walker) -> list[Timed]:
    return [
        with_events(
            each,
            [event.replace(b'"finish_reason":"tool_calls"', b'"finish_reason":"stop"') for event in events_of(each)],
        )
        for each in walker.exchanges()
    ]


def test_a_finish_reason_that_contradicts_is_a_fault_where_the_agent_takes_the_call() -> None:
    walker = Walker()
    verdict, _ = judged(walker, contradicting(walker))
    assert [fault.code for fault in verdict.faults] == ["protocol.finish_contradicts"]
    assert verdict.kind == "pairs_with_faults"


def test_a_finish_reason_that_contradicts_breaks_it_where_the_agent_believes_it() -> None:
    walker = Walker()
    verdict, exchanges = judged(walker, contradicting(walker)[:1], ServerSide("vllm", direct=True), **STOPPED)
    broken = verdict.broken
    assert broken is not None
    assert (broken.code, broken.at_fault, broken.step) == ("protocol.finish_contradicts", "stack", "look")
    assert "agent did not go on from it" in broken.said
    assert "stop" in cited(broken, exchanges)


def test_an_id_that_comes_again_is_a_fault() -> None:
    walker = Walker()
    timed = walker.exchanges()
    same = [
        replace(each, pieces=tuple((at, data.replace(b"call_1abc", b"call_0abc")) for at, data in each.pieces))
        for each in timed
    ]
    verdict, _ = judged(walker, same)
    assert [(fault.code, fault.attempt) for fault in verdict.faults] == [("protocol.duplicate_id", 2)]
    assert "call_0abc" in verdict.faults[0].said


def test_streams_whose_length_was_known_were_held_back() -> None:
    walker = Walker()
    timed = [each.answering(answer(b"".join(events_of(each)), "text/event-stream")) for each in walker.exchanges()]
    verdict, exchanges = judged(walker, timed)
    assert [fault.code for fault in verdict.faults] == ["transport.buffered"]
    assert verdict.kind == "pairs_with_faults"
    assert "Content-Length" in cited(verdict.faults[0], exchanges)


def test_arguments_that_the_grammar_rewrote_are_a_fault() -> None:
    walker = Walker(streamed=False)
    timed = walker.exchanges()
    spelled = b'\\", \\"timeout\\": 5}"'
    rewritten = [each.answering(_mended(each.response.replace(b']]\'\\"}"', b"]]'" + spelled))) for each in timed]
    schema_wide = []
    for each in rewritten:
        body = each.body()
        body["tools"][0]["function"]["parameters"]["properties"]["timeout"] = {"type": "integer"}
        schema_wide.append(each.asking(body))
    verdict, _ = judged(walker, schema_wide, ServerSide("llamacpp", direct=True))
    assert [fault.code for fault in verdict.faults] == ["engine.constrained"]
    assert verdict.kind == "pairs_with_faults"


def _mended(raw: bytes) -> bytes:
    return answer(raw.partition(b"\r\n\r\n")[2])


def test_words_lost_beside_a_call_are_a_fault() -> None:
    walker = Walker()
    timed = [
        with_events(each, [event for event in events_of(each) if b'"delta":{"content":"' not in event])
        for each in walker.exchanges()[:3]
    ]
    verdict, _ = judged(walker, [*timed, walker.exchanges()[3]], ServerSide("vllm", direct=True))
    assert [(fault.code, fault.said) for fault in verdict.faults] == [
        ("parser.dropped", "the words beside the call are missing (3 times)")
    ]


def test_arguments_that_are_no_json_are_no_grammars_doing() -> None:
    walker = Walker()
    first = walker.exchanges()[0]
    events = [event.replace(b'{\\"command', b"{") for event in events_of(first)]
    assert events != events_of(first)
    server = ServerSide("llamacpp", "b11434", launch_flags=("--jinja",))
    verdict, _ = judged(walker, [with_events(first, events)], server, **STOPPED)
    assert verdict.broken is not None
    assert verdict.broken.code == "parser.altered"
    assert "engine.constrained" not in [fault.code for fault in verdict.faults]


def test_asking_again_for_what_could_not_be_read_is_no_fault_of_the_agents() -> None:
    """A stream was asked for and a plain body came: opencode reads nothing in it, and asks the same again."""
    first = Walker().exchanges()[0]
    plain = first.answering(Walker(streamed=False).exchanges()[0].response)
    verdict, _ = judged(Walker(), [plain, replace(plain, at_us=500_000)], **STOPPED)
    assert verdict.broken is not None
    assert verdict.broken.code == "protocol.choice_ignored"
    assert "task.no_stop" not in [fault.code for fault in verdict.faults]


def test_what_an_agent_gets_for_going_on_with_its_own_words_is_not_told() -> None:
    """After an answer whose call was lost, opencode asks again with that answer's words as the last message;
    llama-server goes on with them, and looks for no calls."""
    walker = Walker()
    first = walker.exchanges()[0]
    turn = walker.plan.turns[0]
    lost = as_text(first, turn.prose)
    body = lost.body()
    body["messages"].append({"role": "assistant", "content": turn.prose})
    again = as_text(replace(first.asking(body), at_us=500_000), turn.text)
    verdict, _ = judged(walker, [lost, again], **STOPPED)
    assert verdict.broken is not None
    assert (verdict.broken.code, verdict.broken.attempt) == ("parser.dropped", 1)
    assert [fault.code for fault in verdict.faults if fault.attempt == 2] == []


def test_a_side_request_that_was_refused_is_a_fault() -> None:
    walker = Walker()
    timed = walker.exchanges()
    body = {"model": "canary", "messages": [{"role": "user", "content": "Make a title of this."}], "n": 2}
    side = failing(timed[0].asking(body), "400 Bad Request", {"error": {"message": "n must be 1", "code": 400}})
    verdict, _ = judged(walker, [side, *timed])
    assert verdict.kind == "pairs_with_faults"
    assert "a side request was not answered" in verdict.faults[0].said


@pytest.mark.parametrize("how", ["rst", "refused"])
def test_a_server_that_dies_in_the_middle(how: str) -> None:
    walker = Walker()
    timed = walker.exchanges()
    dead = replace(timed[2], pieces=(), how=how)
    server = ServerSide("llamacpp", "b11434", direct=True, exit_code=-11, log_tail="loading\nsegmentation fault\n")
    verdict, _ = judged(walker, [*timed[:2], dead, dead], server, exit_code=1, file=b"canary-4711\n")
    broken = verdict.broken
    assert broken is not None
    assert (broken.code, broken.at_fault, broken.step, broken.attempt) == ("engine.crash", "stack", "read", 3)
    assert "exit code -11" in broken.said
    assert "segmentation fault" in broken.quote


def test_a_missing_key_and_a_missing_route() -> None:
    walker = Walker()
    first = walker.exchanges()[0]
    refused = failing(first, "401 Unauthorized", {"error": {"message": "Invalid API Key", "code": 401}})
    verdict, _ = judged(walker, [refused], **STOPPED)
    assert verdict.broken is not None
    assert (verdict.broken.code, verdict.broken.at_fault) == ("transport.auth", "client")
    responses = Walker("openai_responses")
    lost = failing(responses.exchanges()[0], "404 Not Found", {"error": {"message": "File Not Found", "code": 404}})
    verdict, _ = judged(responses, [lost], **STOPPED)
    assert verdict.broken is not None
    assert verdict.broken.code == "transport.wrong_route"
    assert "/v1/responses" in verdict.broken.said


def test_what_the_same_request_sent_straight_decides() -> None:
    walker = Walker()
    timed = walker.exchanges()
    gone = with_events(timed[1], [event for event in events_of(timed[1]) if b'"tool_calls":[' not in event])
    front, direct = in_memory([timed[0], gone]), in_memory(timed[:2], first=9)
    run = good_run(walker.plan, **STOPPED)
    pairs = list(zip(front, direct, strict=True))
    verdict = judge(walker.plan, front, run, again=pairs, server=ServerSide(), agent_name="agent")
    assert verdict.broken is not None
    assert (verdict.broken.code, verdict.broken.at_fault) == ("parser.dropped", "network")
    assert (verdict.broken.who, verdict.broken.step, verdict.broken.attempt) == ("the gateway", "write", 2)


def test_both_sides_that_show_the_same_name_the_server() -> None:
    walker = Walker()
    timed = [as_text(walker.exchanges()[0], walker.plan.turns[0].text)]
    front, behind = in_memory(timed), in_memory([replace(timed[0], upstream="behind", at_us=500)], first=2)
    verdict = judge(
        walker.plan,
        front,
        good_run(walker.plan, **STOPPED),
        behind=behind,
        server=replace(VLLM_BARE, direct=False),
        agent_name="agent",
    )
    assert verdict.broken is not None
    assert (verdict.broken.code, verdict.broken.at_fault) == ("parser.left_as_text", "config")


def test_a_model_that_is_not_there_is_named() -> None:
    walker = Walker()
    error = {"error": {"message": "The model `canary` does not exist.", "type": "NotFoundError", "code": 404}}
    first = failing(walker.exchanges()[0], "404 Not Found", error)
    verdict, _ = judged(walker, [first], ServerSide("vllm", direct=True), **STOPPED)
    assert verdict.broken is not None
    assert verdict.broken.code == "gate.model_not_found"
    assert "agent asked for the model 'canary'" in verdict.broken.said
    assert "/v1/models" in verdict.broken.remedy


@pytest.mark.parametrize("name", ["mlx", "mlx_server", "mlx-lm-server"])
def test_a_stack_is_known_by_any_of_its_names(name: str) -> None:
    walker = Walker(streamed=False)
    first = as_text(walker.exchanges()[0], walker.plan.turns[0].text)
    server = ServerSide(name, "0.32.2", launch_flags=("--chat-template", "{{ messages }}"), direct=True)
    verdict, _ = judged(walker, [first], server, **STOPPED)
    assert verdict.broken is not None
    assert "start mlx_lm.server without `--chat-template`" in verdict.broken.remedy
    assert (verdict.broken.code, verdict.broken.at_fault) == ("parser.left_as_text", "config")


def test_a_server_that_never_answers_is_not_the_agents_leaving() -> None:
    walker = Walker()
    timed = walker.exchanges()
    silent = replace(timed[1], pieces=(), how="client")
    verdict, _ = judged(walker, [timed[0], silent], ServerSide("llamacpp", direct=True), ending="timeout", file=None)
    assert verdict.broken is not None
    assert (verdict.broken.code, verdict.broken.step) == ("transport.timeout_read", "write")
    assert verdict.broken.at_fault == "stack"
    assert "log" in verdict.broken.remedy
    between, _ = judged(walker, [timed[0], silent], ending="timeout", file=None)
    assert between.broken is not None
    assert "--gateway" in between.broken.decide_by
