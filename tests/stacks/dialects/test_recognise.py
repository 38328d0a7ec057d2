"""Which dialect and route an exchange is: by its path, by the shape of what came, by its request body."""

from __future__ import annotations

from typing import Any

import pytest

from stacks.dialects.recognise import DIALECTS, STREAM_BY_DEFAULT, dialect_of_request, dialect_of_value, route_of

ROUTES = {
    "/v1/chat/completions": ("openai_chat", "chat_completions"),
    "/v1/completions": ("openai_completions", "completions"),
    "/v1/responses": ("openai_responses", "responses"),
    "/v1/messages": ("anthropic_messages", "messages"),
    "/api/chat": ("ollama_chat", "api_chat"),
    "/api/generate": ("ollama_generate", "api_generate"),
    "/v1/chat/completions/input_tokens": ("other", "chat_input_tokens"),
    "/v1/chat/completions/control": ("other", "chat_control"),
    "/v1/chat/completions/render": ("other", "chat_render"),
    "/v1/chat/completions/batch": ("other", "chat_batch"),
    "/v1/responses/input_tokens": ("other", "responses_input_tokens"),
    "/v1/responses/resp_1": ("other", "responses_item"),
    "/v1/messages/count_tokens": ("other", "messages_count_tokens"),
    "/v1/messages/render": ("other", "messages_render"),
    "/v1/messages/batches": ("other", "messages_batches"),
    "/api/v1/chat": ("other", "lmstudio_chat"),
    "/api/v1/models": ("other", "models"),
    "/api/v0/models": ("other", "models"),
    "/v1/models": ("other", "models"),
    "/v1/models/some/model": ("other", "models"),
    "/api/embeddings": ("other", "embeddings"),
    "/api/embed": ("other", "embeddings"),
    "/v1/embeddings": ("other", "embeddings"),
    "/embedding": ("other", "embeddings"),
    "/api/version": ("other", "version"),
    "/version": ("other", "version"),
    "/api/tags": ("other", "tags"),
    "/api/show": ("other", "show"),
    "/api/ps": ("other", "ps"),
    "/api/pull": ("other", "pull"),
    "/api/push": ("other", "push"),
    "/api/create": ("other", "create"),
    "/api/copy": ("other", "copy"),
    "/api/delete": ("other", "delete"),
    "/api/status": ("other", "status"),
    "/apply-template": ("other", "apply_template"),
    "/parse_function_call": ("other", "parse_function_call"),
    "/separate_reasoning": ("other", "separate_reasoning"),
    "/health_generate": ("other", "health"),
    "/health": ("other", "health"),
    "/get_server_info": ("other", "server_info"),
    "/server_info": ("other", "server_info"),
    "/get_model_info": ("other", "model_info"),
    "/model_info": ("other", "model_info"),
    "/tokenizer_info": ("other", "tokenizer_info"),
    "/completion": ("other", "llamacpp_completion"),
    "/detokenize": ("other", "detokenize"),
    "/tokenize": ("other", "tokenize"),
    "/generate": ("other", "sglang_generate"),
    "/infill": ("other", "infill"),
    "/v1/rerank": ("other", "rerank"),
    "/props": ("other", "props"),
    "/slots": ("other", "slots"),
    "/metrics": ("other", "metrics"),
    "/ready": ("other", "ready"),
    "/ping": ("other", "ping"),
    "/load": ("other", "load"),
    "/": ("other", "root"),
    "": ("other", "root"),
    "/nothing": ("other", "unknown"),
    "/xchat": ("other", "unknown"),
    "/api/chatter": ("other", "unknown"),
}


@pytest.mark.parametrize("path", ROUTES)
def test_routes(path: str) -> None:
    assert route_of(path) == ROUTES[path]
    if path not in ("", "/"):
        for spelled in (path + "/", path + "?a=/api/chat", path + "#x", "/gateway/t/k=v" + path, path.upper()):
            assert route_of(spelled) == ROUTES[path], spelled
        assert route_of("http://host:1" + path) == ROUTES[path]


def test_roots() -> None:
    assert route_of("http://host") == route_of("//") == route_of("?x=1") == ("other", "root")


def test_the_names_of_the_dialects() -> None:
    assert DIALECTS == (
        "openai_chat",
        "openai_completions",
        "openai_responses",
        "ollama_chat",
        "ollama_generate",
        "anthropic_messages",
    )
    assert {"ollama_chat", "ollama_generate"} == STREAM_BY_DEFAULT


@pytest.mark.parametrize(
    ("value", "dialect"),
    [
        ({"type": "response.created"}, "openai_responses"),
        ({"type": "response"}, None),
        ({"type": "message_start"}, "anthropic_messages"),
        ({"type": "message_delta"}, "anthropic_messages"),
        ({"type": "message_stop"}, "anthropic_messages"),
        ({"type": "content_block_start"}, "anthropic_messages"),
        ({"type": "content_block_delta"}, "anthropic_messages"),
        ({"type": "content_block_stop"}, "anthropic_messages"),
        ({"type": "ping"}, "anthropic_messages"),
        ({"type": "message", "content": []}, "anthropic_messages"),
        ({"type": "message"}, None),
        ({"type": "error", "error": {}}, None),
        ({"type": 5, "choices": [{"delta": {}}]}, "openai_chat"),
        ({"choices": [{"delta": {}}]}, "openai_chat"),
        ({"choices": [{"message": {}}]}, "openai_chat"),
        ({"choices": [{"text": ""}]}, "openai_completions"),
        ({"choices": [{}], "object": "text_completion"}, "openai_completions"),
        ({"choices": [], "object": "text_completion"}, "openai_completions"),
        ({"choices": [], "object": "chat.completion.chunk"}, "openai_chat"),
        ({"choices": [5], "object": "chat.completion"}, "openai_chat"),
        ({"choices": []}, None),
        ({"choices": [{}], "object": 5}, None),
        ({"choices": {}}, None),
        ({"object": "response", "output": []}, "openai_responses"),
        ({"object": "response"}, None),
        ({"object": "x", "output": []}, None),
        ({"message": {}, "done": False}, "ollama_chat"),
        ({"message": {}, "created_at": "x"}, "ollama_chat"),
        ({"message": {}}, None),
        ({"message": "x", "done": True}, None),
        ({"response": "", "done": False}, "ollama_generate"),
        ({"response": "", "created_at": "x"}, "ollama_generate"),
        ({"response": ""}, None),
        ({"response": {}, "done": True}, None),
        ({"content": "", "stop": False}, "other"),
        ({"content": ""}, None),
        ({"content": [], "stop": False}, None),
        ({"text": "", "meta_info": {}}, "other"),
        ({"text": ""}, None),
        ({"meta_info": {}}, None),
        ({"error": "x"}, None),
        ({}, None),
    ],
)
def test_shapes_of_answers(value: dict[str, Any], dialect: str | None) -> None:
    assert dialect_of_value(value) == dialect


@pytest.mark.parametrize(
    ("body", "dialect"),
    [
        ({"messages": []}, "openai_chat"),
        ({"messages": [], "tools": [{"type": "function"}]}, "openai_chat"),
        ({"messages": [], "tools": [{"input_schema": {}}]}, "anthropic_messages"),
        ({"messages": [], "tools": []}, "openai_chat"),
        ({"messages": [], "tools": {"input_schema": {}}}, "openai_chat"),
        ({"messages": [], "tools": ["x"]}, "openai_chat"),
        ({"messages": [], "options": {}}, "ollama_chat"),
        ({"messages": [], "keep_alive": 0}, "ollama_chat"),
        ({"messages": "x"}, "other"),
        ({"model": "m", "input": "x"}, "openai_responses"),
        ({"input": "x"}, "other"),
        ({"model": "m", "prompt": "x"}, "openai_completions"),
        ({"model": "m", "prompt": "x", "options": {}}, "ollama_generate"),
        ({"model": "m", "prompt": "x", "keep_alive": 0}, "ollama_generate"),
        ({"prompt": "x"}, "other"),
        ({"model": "m"}, "other"),
        ({}, "other"),
        ([], "other"),
        (None, "other"),
    ],
)
def test_shapes_of_requests(body: Any, dialect: str) -> None:
    assert dialect_of_request(body) == dialect
