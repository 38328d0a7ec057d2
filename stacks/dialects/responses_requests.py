"""Requests of the OpenAI responses dialect.

Source: OpenAI API reference, "Create a model response". `instructions` become the first message; input items of type
function_call and function_call_output become a call of an assistant message and a message of role `tool`.
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
from stacks.dialects.base import compact, text_of
from stacks.strictjson import Path
from stacks.turn import CanonicalRequest, Message, json_type

_LIMITS = ("max_output_tokens", "max_completion_tokens", "max_tokens")
_KNOWN = frozenset(
    ("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream", "text", "stop",
     *_LIMITS, *FORMATS, *THINKING)
)  # fmt: skip
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "shell_call_output")


def read_responses_request(request: CanonicalRequest, body: dict[str, object]) -> None:
    """Fill a canonical request from a responses body."""
    common_fields(request, body, _KNOWN)
    set_limit(request, body, _LIMITS)
    instructions = body.get("instructions")
    if instructions is not None:
        request.messages.append(
            Message("system", joined_text(instructions), ("instructions",), json_type(instructions), raw=instructions)
        )
    given = body.get("input")
    if isinstance(given, str):
        request.messages.append(Message("user", given, ("input",), "string", raw=given))
    elif isinstance(given, list):
        request.messages += [_item(entry, ("input", at)) for at, entry in enumerate(given)]
    request.tools = [function_tool(entry, path) for path, entry in tools_of(request, body)]
    if body.get("tool_choice") is not None:
        request.tool_choice = tool_choice_of(body["tool_choice"])
    parallel = body.get("parallel_tool_calls")
    request.parallel_tool_calls = parallel if isinstance(parallel, bool) else None
    text = body.get("text")
    if isinstance(text, dict) and text.get("format") is not None:
        request.response_format, request.response_format_field = text["format"], "text.format"


def _item(entry: object, path: Path) -> Message:
    if not isinstance(entry, dict):
        return Message(role=None, content=None, path=path, raw=entry)
    kind = entry.get("type", "message")
    if kind in ("function_call", "custom_tool_call"):
        field = "arguments" if kind == "function_call" else "input"
        message = Message("assistant", None, path, raw=entry)
        call = history_call(entry.get("name"), entry.get("call_id"), entry.get(field), path, (*path, field), str(kind))
        if kind == "custom_tool_call":
            call.arguments, call.arguments_error = call.arguments_text, None
        message.tool_calls = [call]
        return message
    if kind in _OUTPUTS:
        output = entry.get("output")
        text = joined_text(output)
        if text is None and output is not None:
            text = compact(output)
        message = Message("tool", text, path, json_type(output) if "output" in entry else "absent", raw=entry)
        message.tool_call_id = text_of(entry.get("call_id"))
        return message
    if kind == "reasoning":
        message = Message("assistant", None, path, raw=entry)
        message.reasoning = joined_text(entry.get("content"), ("reasoning_text", "text")) or joined_text(
            entry.get("summary"), ("summary_text", "text")
        )
        return message
    content = entry.get("content")
    message = Message(text_of(entry.get("role")), joined_text(content), path, content_type_of(entry), raw=entry)
    message.parts = content if isinstance(content, list) else []
    if kind != "message":
        message.extra["type"] = kind
    return message
