"""Which dialect an exchange speaks: from its route, its request body and the shape of what came back.

Headers are never trusted alone. A route is matched by the end of its path, so any prefix (a gateway's, stacktap's
tags) does not matter.
"""

from __future__ import annotations

OPENAI_CHAT = "openai_chat"
OPENAI_COMPLETIONS = "openai_completions"
OPENAI_RESPONSES = "openai_responses"
OLLAMA_CHAT = "ollama_chat"
OLLAMA_GENERATE = "ollama_generate"
ANTHROPIC_MESSAGES = "anthropic_messages"
OTHER = "other"

DIALECTS = (
    OPENAI_CHAT,
    OPENAI_COMPLETIONS,
    OPENAI_RESPONSES,
    OLLAMA_CHAT,
    OLLAMA_GENERATE,
    ANTHROPIC_MESSAGES,
)

STREAM_BY_DEFAULT = frozenset((OLLAMA_CHAT, OLLAMA_GENERATE))
"""Dialects that stream unless the request says otherwise."""

# Longest first: the first ending that matches names the route.
_ROUTES: tuple[tuple[str, str, str], ...] = (
    ("/chat/completions/input_tokens", OTHER, "chat_input_tokens"),
    ("/chat/completions/control", OTHER, "chat_control"),
    ("/chat/completions/render", OTHER, "chat_render"),
    ("/chat/completions/batch", OTHER, "chat_batch"),
    ("/responses/input_tokens", OTHER, "responses_input_tokens"),
    ("/messages/count_tokens", OTHER, "messages_count_tokens"),
    ("/messages/render", OTHER, "messages_render"),
    ("/messages/batches", OTHER, "messages_batches"),
    ("/chat/completions", OPENAI_CHAT, "chat_completions"),
    ("/api/v1/chat", OTHER, "lmstudio_chat"),
    ("/api/v1/models", OTHER, "models"),
    ("/api/v0/models", OTHER, "models"),
    ("/api/embeddings", OTHER, "embeddings"),
    ("/api/generate", OLLAMA_GENERATE, "api_generate"),
    ("/api/version", OTHER, "version"),
    ("/api/chat", OLLAMA_CHAT, "api_chat"),
    ("/api/tags", OTHER, "tags"),
    ("/api/show", OTHER, "show"),
    ("/api/ps", OTHER, "ps"),
    ("/api/pull", OTHER, "pull"),
    ("/api/push", OTHER, "push"),
    ("/api/create", OTHER, "create"),
    ("/api/copy", OTHER, "copy"),
    ("/api/delete", OTHER, "delete"),
    ("/api/embed", OTHER, "embeddings"),
    ("/api/status", OTHER, "status"),
    ("/apply-template", OTHER, "apply_template"),
    ("/parse_function_call", OTHER, "parse_function_call"),
    ("/separate_reasoning", OTHER, "separate_reasoning"),
    ("/health_generate", OTHER, "health"),
    ("/get_server_info", OTHER, "server_info"),
    ("/get_model_info", OTHER, "model_info"),
    ("/tokenizer_info", OTHER, "tokenizer_info"),
    ("/server_info", OTHER, "server_info"),
    ("/model_info", OTHER, "model_info"),
    ("/completions", OPENAI_COMPLETIONS, "completions"),
    ("/completion", OTHER, "llamacpp_completion"),
    ("/embeddings", OTHER, "embeddings"),
    ("/embedding", OTHER, "embeddings"),
    ("/detokenize", OTHER, "detokenize"),
    ("/tokenize", OTHER, "tokenize"),
    ("/responses", OPENAI_RESPONSES, "responses"),
    ("/messages", ANTHROPIC_MESSAGES, "messages"),
    ("/generate", OTHER, "sglang_generate"),
    ("/infill", OTHER, "infill"),
    ("/rerank", OTHER, "rerank"),
    ("/models", OTHER, "models"),
    ("/health", OTHER, "health"),
    ("/props", OTHER, "props"),
    ("/slots", OTHER, "slots"),
    ("/metrics", OTHER, "metrics"),
    ("/version", OTHER, "version"),
    ("/ready", OTHER, "ready"),
    ("/ping", OTHER, "ping"),
    ("/load", OTHER, "load"),
)


_route_cache: dict[str, tuple[str, str]] = {}


def route_of(target: str) -> tuple[str, str]:
    """(dialect, route name) of a request target; ("other", "unknown") when no known route ends the path."""
    known = _route_cache.get(target)
    if known is None:
        known = _match(target)
        if len(_route_cache) < 4096:
            _route_cache[target] = known
    return known


def _match(target: str) -> tuple[str, str]:
    path = target.partition("?")[0].partition("#")[0]
    scheme, separator, rest = path.partition("://")
    if separator and scheme.isalpha():
        path = "/" + rest.partition("/")[2]
    path = "/" + path.strip("/")
    lower = path.lower()
    for ending, dialect, name in _ROUTES:
        if lower.endswith(ending):
            return dialect, name
    for part, name in (("/models/", "models"), ("/responses/", "responses_item")):
        if part in lower:
            return OTHER, name
    return OTHER, "root" if lower == "/" else "unknown"


_ANTHROPIC_EVENTS = frozenset(
    ("message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta",
     "content_block_stop", "ping")
)  # fmt: skip


def dialect_of_value(value: dict[str, object]) -> str | None:
    """The dialect a JSON body or event speaks by its own shape; None where it does not say (an error, an unknown)."""
    kind = value.get("type")
    if isinstance(kind, str):
        if kind.startswith("response."):
            return OPENAI_RESPONSES
        if kind in _ANTHROPIC_EVENTS or (kind == "message" and "content" in value):
            return ANTHROPIC_MESSAGES
    choices = value.get("choices")
    if isinstance(choices, list):
        return _dialect_of_choices(choices, value.get("object"))
    kind = value.get("object")
    if kind == "response" and "output" in value:
        return OPENAI_RESPONSES
    if isinstance(value.get("message"), dict) and ("done" in value or "created_at" in value):
        return OLLAMA_CHAT
    if isinstance(value.get("response"), str) and ("done" in value or "created_at" in value):
        return OLLAMA_GENERATE
    if isinstance(value.get("content"), str) and "stop" in value:
        return OTHER
    if "meta_info" in value and "text" in value:
        return OTHER
    return None


def _dialect_of_choices(choices: list[object], kind: object) -> str | None:
    if choices and isinstance(choices[0], dict):
        first = choices[0]
        if "delta" in first or "message" in first:
            return OPENAI_CHAT
        if "text" in first:
            return OPENAI_COMPLETIONS
    if kind == "text_completion":
        return OPENAI_COMPLETIONS
    if isinstance(kind, str) and kind.startswith("chat.completion"):
        return OPENAI_CHAT
    return None


def dialect_of_request(body: object) -> str:
    """The dialect a request body suggests when the route says nothing; "other" where it does not either."""
    if not isinstance(body, dict):
        return OTHER
    if isinstance(body.get("messages"), list):
        tools = body.get("tools")
        first = tools[0] if isinstance(tools, list) and tools else None
        if isinstance(first, dict) and "input_schema" in first:
            return ANTHROPIC_MESSAGES
        if "options" in body or "keep_alive" in body:
            return OLLAMA_CHAT
        return OPENAI_CHAT
    if "input" in body and "model" in body:
        return OPENAI_RESPONSES
    if "prompt" in body and "model" in body:
        return OLLAMA_GENERATE if "options" in body or "keep_alive" in body else OPENAI_COMPLETIONS
    return OTHER
