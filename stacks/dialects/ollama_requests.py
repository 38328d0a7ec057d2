"""Requests of Ollama's /api/chat and /api/generate.

Source: Ollama's api/types.go (ChatRequest, GenerateRequest, Options) and docs/api.md. Sampling and limits live in
`options`; a stream is the default.
"""

from __future__ import annotations

from stacks.dialects.asked import (
    FORMATS,
    SAMPLING,
    THINKING,
    common_fields,
    content_type_of,
    function_tool,
    history_call,
    joined_text,
    tool_choice_of,
    tools_of,
)
from stacks.dialects.base import integer, text_of
from stacks.strictjson import Path
from stacks.turn import CanonicalRequest, Message

_KNOWN = frozenset(
    ("model", "messages", "tools", "tool_choice", "stream", "options", "prompt", "stop", *FORMATS, *THINKING)
)
_OPTIONS = frozenset(("num_predict", "num_ctx", "stop"))
_MESSAGE_FIELDS = frozenset(("role", "content", "thinking", "tool_calls", "tool_call_id", "tool_name", "name"))


def read_ollama_request(request: CanonicalRequest, body: dict[str, object]) -> None:
    """Fill a canonical request from an /api/chat or /api/generate body."""
    common_fields(request, body, _KNOWN)
    request.prompt = body.get("prompt")
    options = body.get("options")
    if isinstance(options, dict):
        request.context_length = integer(options.get("num_ctx"))
        limit = integer(options.get("num_predict"))
        if limit is not None:
            request.max_tokens, request.max_tokens_field = limit, "options.num_predict"
        for key in options.keys() & SAMPLING:
            request.sampling[key] = options[key]
        if request.stop is None:
            request.stop = options.get("stop")
        rest = {key: options[key] for key in options.keys() - SAMPLING - _OPTIONS}
        if rest:
            request.extra["options"] = rest
    elif options is not None:
        request.extra["options"] = options
    messages = body.get("messages")
    if isinstance(messages, list):
        request.messages = [_message(entry, ("messages", at)) for at, entry in enumerate(messages)]
    request.tools = [function_tool(entry, path) for path, entry in tools_of(request, body)]
    if body.get("tool_choice") is not None:
        request.tool_choice = tool_choice_of(body["tool_choice"])


def _message(entry: object, path: Path) -> Message:
    if not isinstance(entry, dict):
        return Message(role=None, content=None, path=path, raw=entry)
    content = entry.get("content")
    message = Message(
        role=text_of(entry.get("role")),
        content=joined_text(content),
        path=path,
        content_type=content_type_of(entry),
        parts=content if isinstance(content, list) else [],
        reasoning=text_of(entry.get("thinking")),
        tool_call_id=text_of(entry.get("tool_call_id")),
        name=text_of(entry.get("tool_name")) or text_of(entry.get("name")),
        raw=entry,
    )
    calls = entry.get("tool_calls")
    if isinstance(calls, list):
        for at, call in enumerate(calls):
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(call, dict) and isinstance(function, dict):
                where = (*path, "tool_calls", at)
                message.tool_calls.append(
                    history_call(
                        function.get("name"),
                        call.get("id"),
                        function.get("arguments"),
                        where,
                        (*where, "function", "arguments"),
                    )
                )
    for key in entry.keys() - _MESSAGE_FIELDS:
        message.extra[key] = entry[key]
    return message
