"""Requests of the OpenAI dialects: chat completions and completions.

Source: OpenAI API reference, "Create chat completion", "Create completion"; local servers' extra fields are sorted
into their canonical places where they have one and kept in `extra` where not.
"""

from __future__ import annotations

from stacks.dialects.asked import (
    FORMATS,
    THINKING,
    common_fields,
    content_type_of,
    function_tool,
    history_call,
    joined_text,
    set_limit,
    tool_choice_of,
    tools_of,
)
from stacks.dialects.base import integer, text_of
from stacks.strictjson import Path
from stacks.turn import CanonicalRequest, Message, ToolCall

_LIMITS = ("max_completion_tokens", "max_tokens", "n_predict", "max_new_tokens")
_KNOWN = frozenset(
    ("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "stream",
     "stream_options", "stop", "n", "prompt", "options", *_LIMITS, *FORMATS, *THINKING)
)  # fmt: skip
_MESSAGE_FIELDS = frozenset(
    ("role", "content", "tool_calls", "tool_call_id", "name", "function_call", "reasoning", "reasoning_content",
     "thinking")
)  # fmt: skip


def read_chat_request(request: CanonicalRequest, body: dict[str, object]) -> None:
    """Fill a canonical request from a chat completions body."""
    _shared(request, body)
    messages = body.get("messages")
    if isinstance(messages, list):
        request.messages = [_message(entry, ("messages", at)) for at, entry in enumerate(messages)]
    request.tools = [function_tool(entry, path) for path, entry in tools_of(request, body)]
    if not request.tools and isinstance(body.get("functions"), list):
        request.tools = [function_tool(entry, path) for path, entry in tools_of(request, body, "functions")]
    choice = body.get("tool_choice", body.get("function_call"))
    if choice is not None:
        request.tool_choice = tool_choice_of(choice)
    parallel = body.get("parallel_tool_calls")
    request.parallel_tool_calls = parallel if isinstance(parallel, bool) else None


def read_completions_request(request: CanonicalRequest, body: dict[str, object]) -> None:
    """Fill a canonical request from a completions body."""
    _shared(request, body)
    request.prompt = body.get("prompt")


def _shared(request: CanonicalRequest, body: dict[str, object]) -> None:
    common_fields(request, body, _KNOWN)
    set_limit(request, body, _LIMITS)
    request.choices = integer(body.get("n"))
    options = body.get("stream_options")
    if isinstance(options, dict):
        include = options.get("include_usage")
        request.include_usage = include if isinstance(include, bool) else None
    options = body.get("options")
    if isinstance(options, dict):
        request.context_length = integer(options.get("num_ctx"))
        request.extra["options"] = options


def _message(entry: object, path: Path) -> Message:
    if not isinstance(entry, dict):
        return Message(role=None, content=None, path=path, raw=entry)
    role = entry.get("role")
    content = entry.get("content")
    message = Message(
        role=role if isinstance(role, str) else None,
        content=joined_text(content),
        path=path,
        content_type=content_type_of(entry),
        parts=content if isinstance(content, list) else [],
        raw=entry,
    )
    if len(entry) == 2 and content is not None:
        return message
    for name in ("reasoning_content", "reasoning", "thinking"):
        text = entry.get(name)
        if isinstance(text, str):
            message.reasoning = text
            break
    calls = entry.get("tool_calls")
    if isinstance(calls, list):
        message.tool_calls = [_call(call, (*path, "tool_calls", at)) for at, call in enumerate(calls)]
    legacy = entry.get("function_call")
    if isinstance(legacy, dict) and not calls:
        where = (*path, "function_call")
        message.tool_calls = [
            history_call(
                legacy.get("name"), None, legacy.get("arguments"), where, (*where, "arguments"), "function_call"
            )
        ]
    message.tool_call_id = text_of(entry.get("tool_call_id"))
    message.name = text_of(entry.get("name"))
    if role == "function":
        message.role = "tool"
    for key in entry.keys() - _MESSAGE_FIELDS:
        message.extra[key] = entry[key]
    return message


def _call(entry: object, path: Path) -> ToolCall:
    if not isinstance(entry, dict):
        return ToolCall(arguments_error="the entry is no object", where=((-1, path),))
    function = entry.get("function")
    if isinstance(function, dict):
        where = (*path, "function", "arguments")
        return history_call(function.get("name"), entry.get("id"), function.get("arguments"), path, where)
    custom = entry.get("custom")
    if isinstance(custom, dict):
        call = history_call(custom.get("name"), entry.get("id"), None, path, (*path, "custom", "input"), "custom")
        text = custom.get("input")
        if isinstance(text, str):
            call.arguments_text, call.arguments, call.arguments_type, call.arguments_error = text, text, "string", None
        return call
    return history_call(entry.get("name"), entry.get("id"), entry.get("arguments"), path, (*path, "arguments"))
