"""Requests of every dialect in canonical form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacks.dialects import read_request
from stacks.strictjson import UNPARSED
from stacks.turn import CanonicalRequest
from tests.support.wire import PATHS, WEATHER, dumps


def read(path: str, body: Any) -> CanonicalRequest:
    return read_request("POST", path, body if isinstance(body, bytes) else dumps(body))


def test_chat_request() -> None:
    request = read(
        "/proxy/t/seed=3/v1/chat/completions?api-version=1",
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "a"},
                        {"type": "image_url", "image_url": {}},
                        {"type": "text", "text": "b"},
                    ],
                },
                {
                    "role": "assistant",
                    "content": None,
                    "reasoning_content": "hm",
                    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "42", "odd": True},
            ],
            "tools": [WEATHER],
            "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
            "parallel_tool_calls": False,
            "max_tokens": 5,
            "temperature": 0,
            "seed": 7,
            "stop": ["x"],
            "n": 2,
            "stream": True,
            "stream_options": {"include_usage": True},
            "response_format": {"type": "json_object"},
            "chat_template_kwargs": {"enable_thinking": False},
            "strange": 1,
        },
    )
    assert (request.dialect, request.route, request.model) == ("openai_chat", "chat_completions", "m")
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool"]
    assert request.system == "Be brief."
    assert (request.messages[1].content, request.messages[1].content_type) == ("ab", "array")
    assistant = request.messages[2]
    assert (assistant.content, assistant.content_type, assistant.reasoning) == (None, "null", "hm")
    assert (assistant.tool_calls[0].id, assistant.tool_calls[0].arguments) == ("c1", {"a": 1})
    assert (request.messages[3].tool_call_id, request.messages[3].extra) == ("c1", {"odd": True})
    assert request.tool_names == ("get_weather",)
    tool = request.tool("get_weather")
    assert tool is not None
    assert tool.parameters == WEATHER["function"]["parameters"]  # type: ignore[index]
    assert request.tool("nothing") is None
    assert request.tool_choice is not None
    assert (request.tool_choice.mode, request.tool_choice.name) == ("named", "get_weather")
    assert request.parallel_tool_calls is False
    assert (request.max_tokens, request.max_tokens_field, request.choices) == (5, "max_tokens", 2)
    assert request.sampling == {"temperature": 0, "seed": 7}
    assert (request.stop, request.stream, request.include_usage) == (["x"], True, True)
    assert (request.response_format, request.response_format_field) == ({"type": "json_object"}, "response_format")
    assert (request.thinking, request.thinking_field) == (False, "chat_template_kwargs.enable_thinking")
    assert request.extra == {"strange": 1, "chat_template_kwargs": {"enable_thinking": False}}
    assert request.body_error is None


@pytest.mark.parametrize(
    ("raw", "mode", "name"),
    [
        ("auto", "auto", None),
        ("none", "none", None),
        ("required", "required", None),
        ("any", "required", None),
        ("sometimes", "other", None),
        ({"type": "any"}, "required", None),
        ({"type": "tool", "name": "f"}, "named", "f"),
        ({"type": "function", "function": {"name": "f"}}, "named", "f"),
        ({"type": "function", "name": "f"}, "named", "f"),
        ({"type": "allowed_tools", "mode": "auto"}, "auto", None),
        (7, "other", None),
    ],
)
def test_tool_choice(raw: Any, mode: str, name: str | None) -> None:
    choice = read(PATHS["openai_chat"], {"messages": [], "tool_choice": raw}).tool_choice
    assert choice is not None
    assert (choice.mode, choice.name, choice.raw) == (mode, name, raw)


@pytest.mark.parametrize(
    ("body", "state"),
    [
        ({}, "absent"),
        ({"tools": None}, "null"),
        ({"tools": []}, "empty"),
        ({"tools": {}}, "invalid"),
        ({"tools": [WEATHER]}, "list"),
    ],
)
def test_state_of_the_tools(body: dict[str, Any], state: str) -> None:
    for dialect in ("openai_chat", "ollama_chat", "anthropic_messages", "openai_responses"):
        assert read(PATHS[dialect], body).tools_state == state


def test_former_functions() -> None:
    request = read(
        PATHS["openai_chat"],
        {
            "functions": [{"name": "f", "parameters": {}}],
            "function_call": {"name": "f"},
            "messages": [
                {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
                {"role": "function", "name": "f", "content": "1"},
            ],
        },
    )
    assert request.tool_names == ("f",)
    assert request.tool_choice is not None
    assert request.tool_choice.name == "f"
    assert request.messages[0].tool_calls[0].kind == "function_call"
    assert (request.messages[1].role, request.messages[1].name) == ("tool", "f")


def test_broken_calls_in_the_history() -> None:
    def call(arguments: Any) -> dict[str, Any]:
        return {"id": "a", "function": {"name": "f", "arguments": arguments}}

    calls = [call("{bad"), call({"a": 1}), call(""), call(None), "x", {"id": "b"}]
    request = read(PATHS["openai_chat"], {"messages": [{"role": "assistant", "tool_calls": calls}, "odd", {"role": 5}]})
    read_calls = request.messages[0].tool_calls
    assert read_calls[0].arguments is UNPARSED
    assert read_calls[0].arguments_error
    assert (read_calls[1].arguments_type, read_calls[1].arguments) == ("object", {"a": 1})
    assert read_calls[2].arguments_error
    assert read_calls[3].arguments_error == "missing"
    assert len(read_calls) == 6
    assert [message.role for message in request.messages] == ["assistant", None, None]


def test_completions_request() -> None:
    request = read("/v1/completions", {"model": "m", "prompt": ["a"], "max_tokens": 3, "logprobs": 1})
    assert (request.dialect, request.prompt, request.max_tokens, request.stream) == (
        "openai_completions",
        ["a"],
        3,
        False,
    )
    assert request.extra == {"logprobs": 1}


def test_ollama_request() -> None:
    request = read(
        "/api/chat",
        {
            "model": "m",
            "messages": [
                {
                    "role": "assistant",
                    "content": "",
                    "thinking": "t",
                    "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}],
                },
                {"role": "tool", "tool_name": "f", "content": "1", "images": []},
            ],
            "tools": [WEATHER],
            "options": {"num_ctx": 4096, "num_predict": 9, "temperature": 0.5, "stop": ["x"], "num_gpu": 1},
            "format": "json",
            "think": "high",
            "keep_alive": -1,
        },
    )
    assert (request.stream, request.stream_stated) == (True, None)
    assert (request.context_length, request.max_tokens, request.max_tokens_field) == (4096, 9, "options.num_predict")
    assert (request.sampling, request.stop) == ({"temperature": 0.5}, ["x"])
    assert (request.response_format_field, request.thinking, request.thinking_field) == ("format", "high", "think")
    assert request.extra == {"keep_alive": -1, "options": {"num_gpu": 1}}
    first, second = request.messages
    assert (first.reasoning, first.tool_calls[0].arguments, first.tool_calls[0].arguments_type) == (
        "t",
        {"a": 1},
        "object",
    )
    assert (second.role, second.name, second.extra) == ("tool", "f", {"images": []})
    generate = read("/api/generate", {"model": "m", "prompt": "p", "raw": True, "stream": False})
    assert (generate.prompt, generate.stream, generate.extra) == ("p", False, {"raw": True})


def test_anthropic_request() -> None:
    request = read(
        "/v1/messages",
        {
            "model": "m",
            "max_tokens": 9,
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "t"},
                        {"type": "text", "text": "x"},
                        {"type": "tool_use", "id": "u1", "name": "f", "input": {"a": 1}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "u1",
                            "content": [{"type": "text", "text": "42"}],
                            "is_error": True,
                        },
                        {"type": "text", "text": "go on"},
                    ],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "u2", "content": "7"}]},
            ],
            "tools": [
                {"name": "f", "description": "d", "input_schema": {"type": "object"}},
                {"type": "web_search_20250305", "name": "web_search"},
            ],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            "stop_sequences": ["x"],
            "thinking": {"type": "enabled"},
        },
    )
    roles = [(message.role, message.content) for message in request.messages]
    assert roles == [
        ("system", "Be brief."),
        ("user", "hi"),
        ("assistant", "x"),
        ("tool", "42"),
        ("user", "go on"),
        ("tool", "7"),
    ]
    assert request.messages[2].tool_calls[0].arguments == {"a": 1}
    assert request.messages[2].reasoning == "t"
    assert (request.messages[3].tool_call_id, request.messages[3].is_error) == ("u1", True)
    assert request.messages[3].path == ("messages", 2, "content", 0)
    assert request.tool_names == ("f", "web_search")
    assert (request.tools[0].parameters, request.tools[1].kind) == ({"type": "object"}, "web_search_20250305")
    assert (request.parallel_tool_calls, request.stop, request.thinking_field) == (False, ["x"], "thinking")


def test_responses_request() -> None:
    request = read(
        "/v1/responses",
        {
            "model": "m",
            "instructions": "Be brief.",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}]},
                {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":1}'},
                {"type": "function_call_output", "call_id": "c1", "output": "42"},
                {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "free text"},
                {"type": "custom_tool_call_output", "call_id": "c2", "output": {"a": 1}},
                {"type": "item_reference", "id": "i"},
            ],
            "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}, {"type": "web_search"}],
            "tool_choice": "auto",
            "max_output_tokens": 9,
            "text": {"format": {"type": "json_object"}},
            "reasoning": {"effort": "low"},
        },
    )
    roles = [(message.role, message.content) for message in request.messages]
    assert roles == [
        ("system", "Be brief."),
        ("user", "hi"),
        ("assistant", None),
        ("assistant", None),
        ("tool", "42"),
        ("assistant", None),
        ("tool", '{"a":1}'),
        (None, None),
    ]
    assert request.messages[2].reasoning == "t"
    assert request.messages[3].tool_calls[0].arguments == {"a": 1}
    assert request.messages[5].tool_calls[0].arguments == "free text"
    assert request.messages[5].tool_calls[0].arguments_error is None
    assert [(tool.name, tool.kind) for tool in request.tools] == [("f", "function"), (None, "web_search")]
    assert (request.max_tokens, request.response_format_field, request.thinking_field) == (
        9,
        "text.format",
        "reasoning",
    )
    assert read("/v1/responses", {"input": "hi"}).messages[0].content == "hi"


def test_unreadable_bodies() -> None:
    request = read(PATHS["openai_chat"], b'{"model": "m", "messages": [')
    assert request.model == "m"
    assert request.body_error is not None
    assert "ends inside" in request.body_error
    assert read(PATHS["openai_chat"], b"[1]").body_error == "the body is a JSON array, not an object"
    assert read(PATHS["openai_chat"], b"").body_error is None
    assert read(PATHS["openai_chat"], b"hello").body_error
    twice = read(PATHS["openai_chat"], b'{"model": "a", "model": "b", "messages": []}')
    assert twice.model == "b"
    assert twice.body_error is not None
    assert "stands twice" in twice.body_error


@pytest.mark.parametrize(
    ("target", "dialect", "route"),
    [
        ("/v1/chat/completions", "openai_chat", "chat_completions"),
        ("/chat/completions/", "openai_chat", "chat_completions"),
        ("http://host:1/openai/deployments/x/chat/completions?v=1", "openai_chat", "chat_completions"),
        ("/v1/completions", "openai_completions", "completions"),
        ("/completion", "other", "llamacpp_completion"),
        ("/v1/responses", "openai_responses", "responses"),
        ("/v1/responses/input_tokens", "other", "responses_input_tokens"),
        ("/v1/responses/resp_1", "other", "responses_item"),
        ("/anthropic/v1/messages", "anthropic_messages", "messages"),
        ("/v1/messages/count_tokens", "other", "messages_count_tokens"),
        ("/api/chat", "ollama_chat", "api_chat"),
        ("/x/api/generate", "ollama_generate", "api_generate"),
        ("/generate", "other", "sglang_generate"),
        ("/apply-template", "other", "apply_template"),
        ("/v1/models", "other", "models"),
        ("/v1/models/some/name", "other", "models"),
        ("/api/tags", "other", "tags"),
        ("/api/v1/chat", "other", "lmstudio_chat"),
        ("/", "other", "root"),
        ("/nope", "other", "unknown"),
        ("*", "other", "unknown"),
    ],
)
def test_routes(target: str, dialect: str, route: str) -> None:
    request = read_request("POST", target, b"{}")
    assert (request.dialect, request.route) == (dialect, route)


def test_an_unknown_route_is_told_by_its_body() -> None:
    bodies: list[tuple[dict[str, Any], str]] = [
        ({"messages": []}, "openai_chat"),
        ({"messages": [], "options": {}}, "ollama_chat"),
        ({"messages": [], "tools": [{"name": "f", "input_schema": {}}]}, "anthropic_messages"),
        ({"model": "m", "input": "x"}, "openai_responses"),
        ({"model": "m", "prompt": "x"}, "openai_completions"),
        ({"model": "m", "prompt": "x", "options": {}}, "ollama_generate"),
        ({"a": 1}, "other"),
    ]
    for body, dialect in bodies:
        assert read("/llm", body).dialect == dialect


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    *("messages", "tools", "tool_choice", "input", "system", "stream", "options", "max_tokens", "functions", "text"),
    *("n", "stream_options", "response_format", "prompt", "model", "instructions", "function_call", "role", "content"),
    *("tool_calls", "function", "name", "arguments", "type", "id", "chat_template_kwargs"),
]
shaped = st.recursive(
    json_values, lambda inner: st.dictionaries(st.sampled_from(FIELDS), inner | st.lists(inner, max_size=2), max_size=5)
)


@given(st.sampled_from(sorted(PATHS.values())), shaped)
def test_no_request_raises(path: str, body: Any) -> None:
    request = read(path, body)
    assert request.raw is not None or body is None
