"""One exchange of each kind, layer by layer, and the look-alikes next to it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from proxy.classify import judge
from proxy.exchange_files import from_case
from proxy.exchange_view import judged_of
from results.outcomes import Judged
from tests.proxy.classify.exchanges import ADD, CALL, QUESTION, chat, delta, entry, error, message, verdict

GOOD = [("get_weather", {"city": "Lyon"})]
DONE = "data: [DONE]"


def named(outcome: Any) -> tuple[str, str]:
    return outcome.name, outcome.at_fault


# ---------------------------------------------------------------------- ok
def test_native_call() -> None:
    outcome = verdict(chat(message(None, GOOD, usage=(50, 9))))
    assert named(outcome) == ("ok.native_call", "none")
    assert outcome.model_ran == "yes"
    assert not outcome.flags


def test_streamed_call_with_id_only_in_the_first_delta() -> None:
    stream = [
        delta(role="assistant", content=None),
        delta(tool_calls=[entry(0, "get_weather", '{"ci')]),
        delta(tool_calls=[entry(0, None, 'ty":"Lyon"}')]),
        delta("tool_calls"),
        DONE,
    ]
    assert verdict(chat(stream=stream)).name == "ok.native_call"


def test_small_talk_needs_no_call() -> None:
    view = chat(message("Hello! How can I help?"), messages=[{"role": "user", "content": "hello"}])
    assert named(verdict(view)) == ("ok.no_call_needed", "none")


def test_answer_after_a_result() -> None:
    history = [
        QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Lyon"}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "22 C"},
    ]  # fmt: skip
    assert named(verdict(chat(message("It is 22 degrees."), messages=history))) == ("ok.final_answer", "none")


def test_answer_where_a_call_may_have_been_due_is_left_open() -> None:
    outcome = verdict(chat(message("You could look at a weather site.")))
    assert named(outcome) == ("ok.final_answer", "undetermined")
    assert outcome.decide_by is not None
    assert outcome.decide_by.startswith("comparison_request:")


def test_a_call_quoted_in_a_refusal_is_no_call() -> None:
    text = 'I won\'t send {"name":"get_weather","arguments":{"city":"Lyon"}} because that is private.'
    assert verdict(chat(message(text))).layer == "ok"


def test_fenced_json_in_prose_is_no_call() -> None:
    text = 'Such a request looks like this:\n```json\n{"city": "Lyon"}\n```\nShall I go on?'
    assert verdict(chat(message(text))).layer == "ok"


def test_text_where_no_tools_were_offered() -> None:
    assert named(verdict(chat(message(CALL), tools=None))) == ("ok.final_answer", "none")
    assert named(verdict(chat(message(CALL), tool_choice="none"))) == ("ok.final_answer", "none")


def test_text_call_where_the_prompt_describes_the_tool() -> None:
    asked = [{"role": "user", "content": "Call get_weather by writing JSON. Weather in Lyon?"}]
    assert verdict(chat(message(CALL), tools=None, messages=asked)).name == "ok.text_call"


def test_requests_that_ask_for_no_generation() -> None:
    assert verdict(chat({"data": []}, path="/v1/models")).name == "ok.service"
    assert verdict(chat({"tokens": [1]}, path="/tokenize")).name == "ok.service"


# ---------------------------------------------------------------------- parser
def test_left_as_text() -> None:
    outcome = verdict(chat(message(CALL)))
    assert named(outcome) == ("parser.left_as_text", "undetermined")
    assert outcome.delivery == "left_as_text"
    assert outcome.wrote == "valid_call"
    assert outcome.evidence[0].quote == CALL


@pytest.mark.parametrize("stack", ["vllm", "sglang", "ollama", "mlx_lm", "llama.cpp", "mlx_inprocess", "LM Studio", ""])
def test_left_as_text_names_the_change_for_each_stack(stack: str) -> None:
    outcome = verdict(chat(message(CALL), stack=stack))
    assert outcome.remedy is not None
    words = {
        "vllm": "--tool-call-parser",
        "sglang": "--tool-call-parser",
        "ollama": "TEMPLATE",
        "mlx_inprocess": "--parse",
    }
    assert words.get(stack, "") in outcome.remedy


def test_left_as_text_although_finish_announces_calls() -> None:
    outcome = verdict(chat(message(CALL, finish="tool_calls")))
    assert named(outcome) == ("parser.left_as_text", "stack")
    assert outcome.detail.count("announces") == 1


def test_call_in_the_reasoning_field() -> None:
    outcome = verdict(chat(message("", reasoning_content=CALL)))
    assert named(outcome) == ("parser.in_reasoning", "stack")
    thought = verdict(chat(message("", reasoning_content="I should call it. " + CALL)))
    assert named(thought) == ("parser.in_reasoning", "undetermined")


def test_dropped_although_announced() -> None:
    outcome = verdict(chat(message(None, finish="tool_calls", usage=(50, 12))))
    assert named(outcome) == ("parser.dropped", "undetermined")
    assert outcome.delivery == "dropped"


def test_name_without_arguments() -> None:
    stream = [delta(tool_calls=[entry(0, "get_weather", "")]), delta("tool_calls"), DONE]
    assert named(verdict(chat(stream=stream))) == ("parser.dropped", "undetermined")


def test_markers_in_the_name() -> None:
    outcome = verdict(chat(message(None, [("get_weather<|channel|>json", {"city": "Lyon"})])))
    assert outcome.name == "parser.marker_leak"
    swallowed = verdict(chat(message(None, [("<function=get_weather>\n<parameter=city>", {})])))
    assert swallowed.name == "parser.marker_leak"


def test_code_read_as_a_call() -> None:
    view = chat(message("Like so:\n```js\nconst x = ", [("alice", {})]))
    assert named(verdict(view)) == ("parser.phantom", "undetermined")


def test_call_although_nothing_was_offered() -> None:
    assert named(verdict(chat(message(None, GOOD), tools=None))) == ("parser.phantom", "stack")


def test_glued_arguments_are_not_the_models_fault() -> None:
    outcome = verdict(chat(message(None, [("get_weather", '{}{"city": "Lyon"}')])))
    assert named(outcome) == ("parser.altered", "undetermined")


def test_piece_of_a_call() -> None:
    assert verdict(chat(message('"arguments": {"city": "Lyon"}}'))).name == "parser.marker_leak"


# ---------------------------------------------------------------------- protocol
def test_two_calls_on_one_index() -> None:
    stream = [
        delta(tool_calls=[entry(0, "get_weather", '{"city":"Lyon"}', "c1")]),
        delta(tool_calls=[entry(0, "get_weather", '{"city":"Turin"}', "c2")]),
        delta("tool_calls"),
        DONE,
    ]
    assert named(verdict(chat(stream=stream))) == ("protocol.delta_index", "stack")


def test_no_index() -> None:
    stream = [delta(tool_calls=[entry(None, "get_weather", '{"city":"Lyon"}')]), delta("tool_calls"), DONE]
    assert verdict(chat(stream=stream)).name == "protocol.delta_index"


def test_arguments_as_an_object() -> None:
    stream = [delta(tool_calls=[entry(0, "get_weather", {"city": "Lyon"})]), delta("tool_calls"), DONE]
    assert verdict(chat(stream=stream)).name == "protocol.arguments_type"


def test_empty_id() -> None:
    answer = message(None, GOOD)
    answer["choices"][0]["message"]["tool_calls"][0]["id"] = ""
    assert verdict(chat(answer)).name == "protocol.delta_id"


def test_finish_announces_calls_that_are_not_there() -> None:
    assert verdict(chat(message("Hello!", [], finish="tool_calls"))).name == "protocol.finish_contradicts"


@pytest.mark.parametrize(
    ("request_fields", "answer"),
    [
        ({"parallel_tool_calls": False}, message(None, GOOD * 2)),
        ({"tool_choice": "required"}, message("No.")),
        ({"tool_choice": "none"}, message(None, GOOD)),
        (
            {"tools": [ADD, {"type": "function", "function": {"name": "get_weather"}}],
             "tool_choice": {"type": "function", "function": {"name": "add"}}},
            message(None, GOOD),
        ),
    ],
)  # fmt: skip
def test_a_field_that_was_not_obeyed(request_fields: dict[str, Any], answer: dict[str, Any]) -> None:
    assert named(verdict(chat(answer, **request_fields))) == ("protocol.choice_ignored", "stack")


def test_encoded_twice() -> None:
    outcome = verdict(chat(message(None, [("get_weather", '"{\\"city\\": \\"Lyon\\"}"')])))
    assert named(outcome) == ("protocol.arguments_type", "undetermined")


def test_stream_that_simply_stops() -> None:
    outcome = verdict(chat(stream=[delta(role="assistant", content=""), delta(content="I'll update the")]))
    assert named(outcome) == ("protocol.done_missing", "undetermined")
    assert (outcome.decide_by or "").startswith("server_log:")


# ---------------------------------------------------------------------- model
def test_unknown_tool() -> None:
    outcome = verdict(chat(message(None, [("weather", {"city": "Lyon"})])))
    assert named(outcome) == ("model.unknown_tool", "model")


def test_invalid_arguments() -> None:
    outcome = verdict(chat(message(None, [("get_weather", {"city": ["Lyon"]})])))
    assert named(outcome) == ("model.invalid_arguments", "model")


def test_numbers_as_strings_may_be_the_parsers_doing() -> None:
    view = chat(message(None, [("add", {"a": "3", "b": "1"})]), tools=[ADD])
    assert named(verdict(view)) == ("model.invalid_arguments", "undetermined")


def test_malformed_call_in_text() -> None:
    outcome = verdict(
        chat(message('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Lyon",}}\n</tool_call>'))
    )
    assert named(outcome) == ("model.malformed_call", "model")
    assert outcome.delivery == "left_as_text"


def test_unparsable_delivered_arguments_are_left_open() -> None:
    outcome = verdict(chat(message(None, [("get_weather", '{"city": Lyon}')])))
    assert named(outcome) == ("model.malformed_call", "undetermined")


# ---------------------------------------------------------------------- truncation
def test_budget_ends_prose() -> None:
    outcome = verdict(chat(message("The main", finish="length", usage=(50, 2)), max_tokens=2))
    assert named(outcome) == ("truncation.output_budget", "config")
    assert outcome.delivery == "cut"


def test_budget_ends_inside_a_call_in_text() -> None:
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"ci'
    assert verdict(chat(message(text, finish="length"), max_tokens=9)).name == "truncation.cut_inside_call"


def test_budget_ends_inside_a_native_call_whatever_finish_says() -> None:
    stream = [
        delta(tool_calls=[entry(0, "get_weather", "")]),
        delta(tool_calls=[entry(0, None, '{"city":"Ly')]),
        delta("tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 64, "total_tokens": 73}},
        DONE,
    ]
    assert named(verdict(chat(stream=stream, max_tokens=64))) == ("truncation.cut_inside_call", "config")


def test_stop_string_inside_a_call_is_the_clients() -> None:
    view = chat(message(None, [("get_weather", '{"city": "Ly')]), stop=["on"])
    assert named(verdict(view)) == ("truncation.cut_inside_call", "client")


def test_context_window_filled_exactly() -> None:
    outcome = verdict(chat(message("The main", finish="length", usage=(193, 3903))))
    assert outcome.name == "truncation.output_budget"
    assert "4096" in outcome.detail


def test_prompt_cut_silently() -> None:
    outcome = verdict(chat(message("I see nothing.", usage=(4095, 5)), estimate=9000))
    assert named(outcome) == ("truncation.context_cut_silently", "undetermined")
    flagged = verdict(chat(message(None, GOOD, usage=(4095, 5)), estimate=9000))
    assert flagged.name == "ok.native_call"
    assert "truncation.context_cut_silently" in flagged.flags


def test_tokens_spent_on_nothing_up_to_the_limit() -> None:
    outcome = verdict(chat(message("", finish="stop", usage=(9, 64)), max_tokens=64))
    assert outcome.name == "truncation.output_budget"


# ---------------------------------------------------------------------- nonresponse
def test_swallowed() -> None:
    outcome = verdict(chat(message("", usage=(190, 40))))
    assert named(outcome) == ("nonresponse.swallowed", "undetermined")
    assert outcome.model_ran == "yes"


def test_empty_is_never_no_call() -> None:
    for answer in (message(""), message(None), message("", usage=(9, 1)), message("", usage=(9, 0))):
        assert named(verdict(chat(answer))) == ("nonresponse.empty", "undetermined")


def test_reasoning_only() -> None:
    assert verdict(chat(message("", reasoning_content="Now I understand."))).name == "nonresponse.reasoning_only"
    limited = verdict(chat(message("", reasoning_content="Now I", finish="length")))
    assert limited.name == "truncation.output_budget"


def test_load_only() -> None:
    view = chat(
        {
            "model": "m",
            "created_at": "x",
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": "load",
        },
        path="/api/chat",
        stream_=None,
        messages=None,
        message=[QUESTION],
    )
    assert named(verdict(view)) == ("nonresponse.load_only", "client")


# ---------------------------------------------------------------------- engine
def test_one_sign_over_and_over() -> None:
    assert named(verdict(chat(message("!" * 200)))) == ("engine.degenerate", "undetermined")
    assert verdict(chat(message("-" * 60 + "\nDone."))).layer == "ok"


def test_finish_says_that_the_engine_gave_up() -> None:
    assert verdict(chat(message("The", finish="abort"))).layer == "engine"


def test_error_event_in_a_stream() -> None:
    stream = [delta(content="Hel"), {"error": {"message": "something odd", "code": 500}}]
    outcome = verdict(chat(stream=stream))
    assert outcome.name == "engine.error_in_stream"
    assert outcome.model_ran == "yes"


def test_ollamas_hidden_stream_error() -> None:
    lost = delta(content="") | {"model": "", "system_fingerprint": "fp_ollama"}
    assert verdict(chat(stream=[lost])).name == "engine.error_in_stream"


# ---------------------------------------------------------------------- transport
@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("ECONNREFUSED 127.0.0.1:11434", "transport.connect"),
        ("getaddrinfo ENOTFOUND gpu-box", "transport.connect"),
        ("Headers Timeout Error", "transport.timeout_read"),
        ("connect timeout", "transport.timeout_connect"),
        ("Empty reply from server", "transport.reset"),
        ("socket hang up", "transport.reset"),
    ],
)
def test_no_answer(said: str, name: str) -> None:
    outcome = verdict(chat(None, status=None, disconnect=True, transport_error=said))
    assert outcome.name == name
    assert outcome.model_ran in ("no", "unknown")


def test_answer_cut_in_the_middle() -> None:
    outcome = verdict(chat(stream=[delta(content="Hel")], disconnect=True))
    assert named(outcome) == ("transport.stream_truncated", "stack")


def test_a_page_instead_of_an_answer() -> None:
    page = {"content-type": "text/html"}
    assert (
        verdict(chat("<html><h1>504 Gateway Time-out</h1></html>", status=504, headers=page)).name
        == "transport.gateway"
    )
    assert verdict(chat("<!doctype html><title>Sign in</title>", status=200, headers=page)).name == "transport.gateway"


def test_wrong_route_under_a_success_status() -> None:
    outcome = verdict(chat({"error": "Unexpected endpoint or method. (POST /chat). Returning 200 anyway"}))
    assert outcome.name == "transport.wrong_route"


# ---------------------------------------------------------------------- refusals by their words
@pytest.mark.parametrize(
    ("text", "status", "name"),
    [
        ("registry.ollama.ai/library/x:latest does not support tools", 400, "gate.tools_unsupported"),
        ("tool calling is not enabled for this model", 422, "gate.tools_unsupported"),
        ("Model foo does not support function calling", 400, "gate.tools_unsupported"),
        (
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser',
            400,
            "gate.parser_not_configured",
        ),
        ("tools param requires --jinja flag", 500, "gate.template_flag_missing"),
        ("The model `x` does not exist.", 404, "gate.model_not_found"),
        ("prompt is too long: 9000 tokens", 400, "request.context_exceeded"),
        ("Input length (9000) exceeds model's maximum context length (4096)", 400, "request.context_exceeded"),
        ("TemplateError: roles must alternate user/assistant", 400, "template.role_rejected"),
        ("jinja2.exceptions.UndefinedError: 'dict object' has no attribute 'x'", 500, "template.render_error"),
        ("CUDA error: out of memory", 500, "engine.oom"),
        ("EngineCore encountered an issue", 500, "engine.crash"),
        ("Failed to parse tool call: unexpected token", 500, "parser.server_error"),
        ("Rate limit reached", 429, "transport.rate_limited"),
        ("Invalid API key provided", 401, "transport.auth"),
        ("Loading model", 503, "transport.loading"),
        ("server busy, please try again", 503, "transport.queue_full"),
        ("temperature must be between 0 and 2", 400, "request.invalid_param"),
        ("context deadline exceeded", 500, "transport.timeout_read"),
        ("dial tcp 127.0.0.1:8080: connect: connection refused", 502, "transport.gateway"),
    ],
)
def test_words(text: str, status: int, name: str) -> None:
    outcome = error(text, status)
    assert outcome.name == name
    assert outcome.at_fault != "model"
    assert outcome.evidence[0].quote.startswith(text[:20])


def test_unknown_words_are_left_open() -> None:
    for status in (400, 404, 500, 503):
        outcome = error("flux capacitor", status)
        assert outcome.at_fault == "undetermined"
        assert outcome.confidence == "low"


def test_errors_inside_errors() -> None:
    inner = '{"error":{"code":400,"message":"request (9 tokens) exceeds the available context size (4 tokens)"}}'
    outcome = verdict(chat({"error": inner}, status=400, path="/api/chat"))
    assert outcome.name == "request.context_exceeded"
    assert outcome.evidence[0].quote.startswith("request (9 tokens)")


def test_fastapi_detail_names_the_message() -> None:
    detail = {"detail": [{"type": "missing", "loc": ["body", "messages", 0, "content"], "msg": "Field required"}]}
    outcome = verdict(chat(detail, status=422))
    assert outcome.name == "request.bad_history"
    assert "message 0" in outcome.detail


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ('{"model": "m", "messages": [', {"error": "unexpected EOF"}),
        (
            "{'model': 'm'}",
            {"error": {"message": "[json.exception.parse_error.101] parse error at line 1", "code": 500}},
        ),
        ("", {"error": "missing request body"}),
    ],
)
def test_request_that_is_no_json(body: str, answer: dict[str, Any]) -> None:
    case = {
        "request": {"method": "POST", "path": "/v1/chat/completions", "body": body},
        "response": {"status": 400, "headers": {"content-type": "application/json"}, "body": answer},
    }
    outcome = verdict(from_case(case).view)
    assert named(outcome) == ("request.invalid_json", "client")
    assert outcome.evidence[0].direction == "request"


@pytest.mark.parametrize(
    ("stream", "name"),
    [
        ([delta(tool_calls=[entry(0, "get_weather", '{"city":')]), delta(tool_calls=[entry(0, "get_weather", '"a"}')])],
         "protocol.malformed_answer"),
        ([delta(tool_calls=[entry(0, "get_weather", '{"city":"a"}') | {"index": "0"}])], "protocol.delta_index"),
        ([delta(tool_calls=[entry(0, "get_weather", '{"city":', "a")]),
          delta(tool_calls=[{"index": 0, "id": "b", "function": {"arguments": '"a"}'}}])], "protocol.delta_id"),
    ],
)  # fmt: skip
def test_deltas_that_clients_stumble_over(stream: list[Any], name: str) -> None:
    assert named(verdict(chat(stream=[*stream, delta("tool_calls"), DONE]))) == (name, "stack")


def test_no_arguments_where_none_are_needed() -> None:
    now = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
    for arguments in ("", "{}"):
        outcome = verdict(chat(message(None, [("now", arguments)]), tools=[now]))
        assert outcome.name == "ok.native_call"
        assert ("protocol.arguments_type" in outcome.flags) == (not arguments)


def test_raw_text_that_a_gateway_hands_back() -> None:
    failed = {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": CALL}
    assert named(verdict(chat({"error": failed}, status=400))) == ("parser.server_error", "stack")
    broken = failed | {"failed_generation": CALL.replace("}}", ",}}")}
    assert named(verdict(chat({"error": broken}, status=400))) == ("model.malformed_call", "model")


@pytest.mark.parametrize("status", [502, 503, 504, 520, 521, 522, 523, 524])
def test_pages_of_gateways(status: int) -> None:
    page = "<html><head><title>error</title></head><body>origin web server is down</body></html>"
    outcome = verdict(chat(page, status=status, headers={"content-type": "text/html"}))
    assert named(outcome) == ("transport.gateway", "network")
    refused = verdict(chat("<html><title>413 Request Entity Too Large</title>nginx</html>", status=413,
                           headers={"content-type": "text/html"}))  # fmt: skip
    assert refused.name == "transport.gateway"


@pytest.mark.parametrize(
    ("status", "text", "name"),
    [
        (404, "404 page not found", "transport.wrong_route"),
        (404, "File Not Found", "transport.wrong_route"),
        (405, "Method Not Allowed", "transport.wrong_route"),
        (404, "Jinja Exception: no", "template.render_error"),
        (408, "late", "transport.timeout_read"),
        (413, "too big", "request.context_exceeded"),
        (401, "who are you", "transport.auth"),
        (403, "Forbidden: bad token", "transport.auth"),
        (403, "", "transport.host_refused"),
    ],
)
def test_statuses_and_routes(status: int, text: str, name: str) -> None:
    answer = {"error": {"message": text}} if text else ""
    assert verdict(chat(answer, status=status)).name == name


@pytest.mark.parametrize(
    ("stack", "text", "words"),
    [
        ("vllm", CALL, "--tool-call-parser hermes"),
        (
            "sglang",
            '[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Lyon"}}]',
            "--tool-call-parser mistral",
        ),
        (
            "vllm",
            '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Lyon"}}',
            "--tool-call-parser llama3_json",
        ),
        ("ollama", CALL, "PARSER "),
        ("", CALL, "parser"),
    ],
)
def test_the_remedy_names_the_parser(stack: str, text: str, words: str) -> None:
    outcome = verdict(chat(message(text), stack=stack))
    assert outcome.name == "parser.left_as_text"
    assert words in (outcome.remedy or "")


@pytest.mark.parametrize("end", ["not_http", "opaque"])
def test_a_connection_that_turned_into_something_else(end: str) -> None:
    view = chat(message("hi"))
    view.end = end
    assert verdict(view).name == "transport.not_http"


def test_a_call_in_the_reasoning_alone_says_so() -> None:
    outcome = verdict(chat(message(None, reasoning_content=CALL)))
    assert (outcome.name, outcome.delivery) == ("parser.in_reasoning", "in_reasoning")
    assert outcome.wrote == "valid_call"


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/api/chat", "Ollama's API"),
        ("/v1/messages", "Anthropic API"),
        ("/v1/v1/chat/completions", "twice"),
        ("/v1/chat/completions/v1/chat/completions", "twice"),
        ("/t/task/v1/chat/completions", "without '='"),
        ("/v2/chat/completions", "base URL"),
    ],
)
def test_what_to_change_about_an_address(path: str, says: str) -> None:
    outcome = verdict(chat("404 page not found", status=404, path=path))
    assert outcome.name == "transport.wrong_route"
    assert says in (outcome.remedy or "")


def test_delivery_of_refusals_and_failures() -> None:
    assert error("x does not support tools", 400).delivery == "refused"
    assert error("CUDA error", 500).delivery == "refused"
    assert verdict(chat({"error": {"message": "slow down"}}, status=429)).delivery == "refused"
    broken = 'data: {"error": {"message": "internal error", "code": 500}}'
    assert verdict(chat(stream=[broken])).delivery == "refused"
    assert verdict(chat(stream=[delta(content="It is "), broken])).delivery == "cut"
    assert verdict(chat(None, status=None, transport_error="connection reset")).delivery == "unknown"
    assert verdict(chat(None, status=None, transport_error="connection refused")).delivery == "unknown"


def test_plain_text_and_bytes_where_an_answer_belongs() -> None:
    plain = verdict(chat("Ollama is running", headers={"content-type": "text/plain"}))
    assert named(plain) == ("transport.wrong_route", "client")
    assert verdict(chat("\x00\x01\x02" * 50, headers={"content-type": "application/octet-stream"})).layer == "transport"


def test_an_error_status_without_any_body() -> None:
    outcome = verdict(chat(None, status=500))
    assert named(outcome) == ("engine.crash", "undetermined")
    assert "500" in outcome.evidence[0].quote


def looked(path: str, status: int = 404) -> Judged:
    """The verdict on a GET that is answered with that status."""
    case = {"request": {"method": "GET", "path": path}, "response": {"status": status, "body": "Not Found"}}
    return judged_of(judge(from_case({"id": "x", "stack": "", **case}).view))


@pytest.mark.parametrize("path", ["/api/tags", "/api/v0/models", "/favicon.ico", "/get_server_info", "/v1/models"])
@pytest.mark.parametrize("status", [404, 405, 501])
def test_asking_what_server_this_is_loses_no_call(path: str, status: int) -> None:
    judged = looked(path, status)
    assert judged.lookup
    assert judged.aside


def test_what_asks_for_an_answer_at_a_wrong_address_is_lost() -> None:
    for path in ("/chat/completions", "/openai/v1/messages", "/v2/talk"):
        assert verdict(chat("Not Found", status=404, path=path)).name == "transport.wrong_route"
    wrong = looked("/v1/v1/models")
    assert (wrong.outcome.name, wrong.aside) == ("transport.wrong_route", False)


@pytest.mark.parametrize(
    ("detail", "name"),
    [
        ("the client stopped listening after 22 ms and did not take the answer", "transport.client_gone"),
        ("fin during the answer: the client stopped listening after 900 ms", "ok.native_call"),
    ],
)
def test_a_whole_answer_that_nobody_took_did_not_end_well(detail: str, name: str) -> None:
    view = chat(message(None, GOOD, usage=(50, 9)))
    outcome = verdict(msgspec.structs.replace(view, end="client_gone", end_detail=detail))
    assert outcome.name == name
    assert outcome.model_ran == "yes"
    if name == "transport.client_gone":
        assert (outcome.at_fault, outcome.detail) == ("client", detail)
        assert "timeout" in (outcome.remedy or "")
