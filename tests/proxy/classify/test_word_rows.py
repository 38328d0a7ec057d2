"""Every kind of error text is told by sentences of several servers, and by its own row."""

from __future__ import annotations

import pytest

from proxy.classify.history import arguments_problem, message_index
from proxy.classify.raw_text import lift
from proxy.classify.words import HISTORY_WORDS, JSON_WORDS, ROWS, kind_of
from results.taxonomy import CODES
from stacks.formats import offered_tools

EXAMPLES = {
    "transport.loading": ["Loading model", "The model is still loading model weights", "model is being loaded"],
    "transport.queue_full": ["server busy, please try again", "The request queue is full.", "at capacity"],
    "transport.wrong_route": ["Unexpected endpoint or method. (GET /x)", "404 page not found", "no route matched"],
    "transport.client_gone": ["context canceled", "client disconnected", "request canceled"],
    "transport.timeout_read": ["context deadline exceeded", "Request timed out.", "ReadTimeout"],
    "transport.gateway": [
        "connect ECONNREFUSED 127.0.0.1:8080",
        "dial tcp [::1]:1: refused",
        "socket hang up",
        "[WinError 10061] the target machine actively refused it",
        "getaddrinfo failed",
        "fetch failed",
        "Cannot connect to host h:1",
        "HTTPConnectionPool: Max retries exceeded with url",
    ],
    "transport.rate_limited": [
        "Rate limit reached for requests",
        "Too Many Requests",
        "quota exceeded",
        "No deployments available, try again",
    ],
    "transport.auth": ["Invalid API Key", "Unauthorized", "authentication required", "Authentication Error, x"],
    "gate.parser_not_configured": ["tool_choice='auto' requires --tool-call-parser", "no tool call parser configured"],
    "gate.template_flag_missing": ["tools param requires --jinja flag"],
    "gate.tools_unsupported": [
        "x does not support tools",
        "Function calling is not supported by this backend",
        "tools are not enabled",
        "Cannot use tools with stream",
        "No endpoints found that support tool use",
        "Only ['a', 'b'] support tool calls",
        "Not implemented: tools",
        "UnsupportedParamsError: ollama does not support parameters: ['tools']",
    ],
    "gate.tool_choice_unsupported": [
        '`tool_choice` must either be a named tool, "auto", or "none"',
        "Invalid tool_choice: sometimes",
        "Automatic streaming tool choice is not supported",
    ],
    "request.invalid_json": [
        "The request body is not valid JSON: no low surrogate in string: line 1 column 9",
        "Failed to parse the request body as JSON: messages[0].content: lone leading surrogate",
    ],
    "request.bad_history": [
        "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
        "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
        "An assistant message with 'tool_calls' must be followed by tool messages",
        "No tool output found for function call call_1.",
        "Assistant message must have either content or tool_calls, but not both.",
        "Assistant tool call function.arguments must be valid JSON.",
        "invalid tool call arguments",
        "json: cannot unmarshal string into Go struct field ChatRequest.messages.content of type x",
        "messages: tool_use ids were found without tool_result blocks",
    ],
    "gate.model_not_found": [
        "model 'x' not found, try pulling it first",
        "The model `x` does not exist.",
        "unknown model",
        "could not find real modelID for x",
        "Model has not been loaded, please load it",
    ],
    "gate.capability_unsupported": [
        '"x" does not support thinking',
        "image input is not supported",
        "Start it with `--embeddings`",
        "canary is not a multimodal model",
    ],
    "truncation.output_budget": ["Context size has been exceeded.", "context shift is disabled"],
    "request.context_exceeded": [
        "request (4390 tokens) exceeds the available context size (4096 tokens)",
        "This model's maximum context length is 4096 tokens.",
        "the prompt is too long",
        "Input prompt is too big compared to KV size.",
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
        "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000",
        "(n_keep: 10247 >= n_ctx: 4096)",
        "Trying to keep the first 9 tokens when context the overflows",
    ],
    "template.role_rejected": ["Conversation roles must alternate user/assistant", "System role not supported"],
    "template.render_error": [
        "Error rendering prompt with jinja template",
        'can only concatenate str (not "dict") to str',
        "can't evaluate field Thinking in type *api.Message",
        "'NoneType' object is not iterable",
        "Invalid chat handler: None (valid formats: ['llama-2'])",
        "unknown filter 'items' at row 3",
    ],
    "engine.grammar_deadlock": ["Unexpected empty grammar stack after accepting piece: x", "Failed to advance FSM"],
    "parser.server_error": [
        "Failed to parse tool call: Extra content",
        "error parsing tool call: raw=''",
        "XML syntax error on line 7",
        "Invalid diff: now finding less tool calls!",
        "tool 'x' not found",
        "The model produced output that does not match the expected peg-native format",
    ],
    "request.invalid_schema": [
        "Failed to parse tools: Missing tool type",
        "Failed to compile json grammar: x",
        "Tool 'nope' not found in tools list.",
        "json: cannot unmarshal object into Go struct field ChatRequest.tools of type api.Tools",
    ],
    "engine.grammar_compile": ["Grammar preprocessing timed out: x"],
    "engine.oom": [
        "CUDA out of memory",
        "stopped due to insufficient system resources.",
        "model requires more system memory (9 GiB) than is available",
    ],
    "engine.crash": [
        "model runner has unexpectedly stopped",
        "EngineCore encountered an issue",
        "CUDA error: x",
        "Model is unloaded.",
        "Error loading model.\n\n(Exit code: 1844). Unknown error.",
    ],
    "request.invalid_param": ["temperature must be non-negative", "Field 'n': bad", "1 validation error", "too short"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in EXAMPLES.items() for text in texts])
def test_sentences(name: str, text: str) -> None:
    row = kind_of(text)
    assert row is not None
    assert row.name == name


def test_every_row_is_known_and_has_examples() -> None:
    assert {row.name for row in ROWS} == set(EXAMPLES)
    for row in ROWS:
        assert row.name in CODES
        assert row.remedy


def test_edges_of_the_text() -> None:
    assert kind_of("") is None
    assert kind_of("flux capacitor") is None
    row = kind_of("x" * 50_000 + " rate limit reached")
    assert row is not None
    assert row.name == "transport.rate_limited"
    assert kind_of("x" * 4000 + " rate limit reached " + "x" * 4000) is None


def test_words_of_readers_and_histories() -> None:
    for text in (
        "Expecting value: line 1",
        "Extra data: line 1",
        "unexpected end of JSON input",
        "EOF",
        "invalid character 'x'",
    ):
        assert JSON_WORDS.search(text)
    assert not JSON_WORDS.search("temperature must be positive")
    assert HISTORY_WORDS.search("'NoneType' object has no attribute 'get'")


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("loc: ('body', 'messages', 2, 'content')", 2),
        ("body.messages.3.content", 3),
        ("messages[4] is bad", 4),
        ("loc body.messages.0.role", 0),
        ("message 7 has no role", 7),
        ("input[1] is bad", 1),
        ("in messages.[0].role", 0),
        ("body.tools.0.function", None),
        ("nothing named", None),
    ],
)
def test_message_index(text: str, index: int | None) -> None:
    assert message_index(text) == index


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{}", None),
        ('{"a": 1}', None),
        ("[1]", "arguments_not_object"),
        ("null", "arguments_not_object"),
        ("", "arguments_not_json"),
        ('{"a": "b"c"}', "arguments_not_json"),
        ('{"a": 1}{"b": 2}', "arguments_glued"),
        ('{} {"b": 2}\n', "arguments_glued"),
        ("[" * 100_000, "arguments_not_json"),
    ],
)
def test_arguments_problem(text: str, kind: str | None) -> None:
    problem = arguments_problem(text)
    assert (problem[0] if problem is not None else None) == kind


TOOLS = offered_tools([{"name": "go", "parameters": {"type": "object", "properties": {"to": {"type": "string"}}}}])
CALL = '<tool_call>\n{"name": "go", "arguments": {"to": "x"}}\n</tool_call>'


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (f"Failed to parse input at pos 9: {CALL}", "valid_call"),
        (f"it said {CALL} and failed", "valid_call"),
        ('error parsing tool call: raw=\'{"to": "x"}\', err=odd', "valid_call"),
        ('error parsing tool call: raw=\'{"to": "x"}]\', err=odd', "malformed_call"),
        ('error parsing tool call: raw=\'{"to": "x\', err=unexpected end of JSON input', "cut"),
        ("error parsing tool call: raw='[1]', err=x", "malformed_call"),
        ('input_value=\'<tool_call> {"name": "g...}</tool_call>\', input_type=str', "elided"),
        ("input_value='some...text', input_type=str", "elided"),
        (f"at pos 3: {CALL.replace('go', 'run')}", "unknown_tool"),
        (f"at pos 3: {CALL.replace(chr(34) + 'x' + chr(34), '5')}", "invalid_arguments"),
        (f"at pos 3: {CALL.replace('}}', ',}}')}", "malformed_call"),
        ("unparsed peg-native output: hello there", "prose"),
    ],
)
def test_lift(text: str, verdict: str) -> None:
    lifted = lift(text, TOOLS)
    assert lifted is not None
    assert lifted.verdict == verdict


@pytest.mark.parametrize(
    "text",
    [
        'Failed to parse tools: Missing tool type; tools = [{"name": "go", "parameters": {}}]',
        "nothing quoted",
        "raw=''",
    ],
)
def test_nothing_to_lift(text: str) -> None:
    assert lift(text, TOOLS) is None
