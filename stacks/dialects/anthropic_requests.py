"""Requests of the Anthropic messages dialect.

Source: Anthropic API reference, "Messages". The system prompt stands apart and becomes the first message; tool results
are blocks of user messages and become messages of role `tool`, in their place.
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
from stacks.dialects.base import text_of
from stacks.strictjson import Path
from stacks.turn import CanonicalRequest, Message, json_type

_KNOWN = frozenset(
    ("model", "messages", "system", "tools", "tool_choice", "stream", "max_tokens", "stop_sequences", "stop",
     *FORMATS, *THINKING)
)  # fmt: skip


def read_messages_request(request: CanonicalRequest, body: dict[str, object]) -> None:
    """Fill a canonical request from a messages body."""
    common_fields(request, body, _KNOWN)
    set_limit(request, body, ("max_tokens",))
    request.stop = body.get("stop_sequences", request.stop)
    system = body.get("system")
    if system is not None:
        text = joined_text(system)
        parts = system if isinstance(system, list) else []
        request.messages.append(Message("system", text, ("system",), json_type(system), parts=parts, raw=system))
    messages = body.get("messages")
    if isinstance(messages, list):
        for position, entry in enumerate(messages):
            request.messages += _messages(entry, ("messages", position))
    request.tools = [function_tool(entry, path) for path, entry in tools_of(request, body)]
    choice = body.get("tool_choice")
    if choice is not None:
        request.tool_choice = tool_choice_of(choice)
        if isinstance(choice, dict) and isinstance(choice.get("disable_parallel_tool_use"), bool):
            request.parallel_tool_calls = not choice["disable_parallel_tool_use"]


def _messages(entry: object, path: Path) -> list[Message]:
    """The canonical messages of one wire message: its tool results first, then the rest."""
    if not isinstance(entry, dict):
        return [Message(role=None, content=None, path=path, raw=entry)]
    content = entry.get("content")
    main = Message(text_of(entry.get("role")), joined_text(content), path, content_type_of(entry), raw=entry)
    if not isinstance(content, list):
        return [main]
    results: list[Message] = []
    others = 0
    for position, part in enumerate(content):
        where = (*path, "content", position)
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(part, dict) and kind == "tool_result":
            results.append(_result(part, where))
            continue
        others += 1
        if isinstance(part, dict) and kind == "tool_use":
            main.tool_calls.append(
                history_call(part.get("name"), part.get("id"), part.get("input"), where, (*where, "input"), "tool_use")
            )
        elif isinstance(part, dict) and kind == "thinking":
            main.reasoning = (main.reasoning or "") + (text_of(part.get("thinking")) or "")
        main.parts.append(part)
    return [*results, main] if others or not results else results


def _result(part: dict[str, object], path: Path) -> Message:
    content = part.get("content")
    message = Message("tool", joined_text(content), path, content_type_of(part), raw=part)
    message.parts = content if isinstance(content, list) else []
    message.tool_call_id = text_of(part.get("tool_use_id"))
    failed = part.get("is_error")
    message.is_error = failed if isinstance(failed, bool) else None
    return message
