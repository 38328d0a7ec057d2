"""The replayed history of a request: which turn of it is broken, in which message, and how.

A broken turn is a fact about the request alone; whether it is what a server refused is decided where the error is read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from stacks.turn import CanonicalRequest, Message, ToolCall

ARGUMENT_KINDS = frozenset({"arguments_not_json", "arguments_glued", "arguments_not_object", "arguments_type"})


@dataclass(frozen=True, slots=True)
class BrokenTurn:
    """`message` is the index in the request's list of messages; `turn` the number of the assistant turn (from 1) that
    it belongs to; `kind` a stable word; `path` the place of the offending value in the request body."""

    kind: str
    message: int
    turn: int
    text: str
    path: tuple[str | int, ...]


def broken_turns(request: CanonicalRequest) -> list[BrokenTurn]:
    """Every broken turn of the history, the worst kinds first, then by position."""
    found: list[BrokenTurn] = []
    known_ids: set[str] = set()
    turn = 0
    for index, message in enumerate(request.messages):
        if message.role == "assistant":
            turn += 1
        found.extend(_of_message(request, message, index, max(turn, 1), known_ids))
        known_ids.update(call.id for call in message.tool_calls if call.id)
    order = {kind: place for place, kind in enumerate(_ORDER)}
    return sorted(found, key=lambda broken: (order.get(broken.kind, len(order)), broken.message))


_ORDER = (
    "arguments_glued",
    "arguments_not_json",
    "arguments_type",
    "arguments_not_object",
    "role_missing",
    "call_name_missing",
    "content_missing",
    "content_type",
    "content_null",
    "empty_tool_calls",
    "result_orphan",
    "role_unknown",
)

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function", "ipython", "observation"})


def _of_message(
    request: CanonicalRequest, message: Message, index: int, turn: int, known_ids: set[str]
) -> list[BrokenTurn]:
    found = [
        BrokenTurn(kind, index, turn, text, path)
        for call in message.tool_calls
        for kind, text, path in _of_call(request, message, call)
    ]
    path = message.path

    def add(kind: str, text: str, at: tuple[str | int, ...] = path) -> None:
        found.append(BrokenTurn(kind, index, turn, text, at))

    if message.role is None:
        add("role_missing", "the message has no role")
    elif message.role.lower() not in _ROLES:
        add("role_unknown", f"the role is {message.role!r}")
    raw = message.raw if isinstance(message.raw, dict) else {}
    if message.content_type == "absent" and "content" not in raw and not message.parts and _wants_content(request):
        add("content_missing", "the message has no content")
    elif message.content_type == "null":
        add("content_null", "the content is null", (*path, "content"))
    elif message.content_type in ("number", "boolean", "object"):
        add("content_type", f"the content is of type {message.content_type}", (*path, "content"))
    if message.role == "assistant" and raw.get("tool_calls") == []:
        add("empty_tool_calls", "the list of tool calls is empty", (*path, "tool_calls"))
    if message.role == "tool" and message.tool_call_id and known_ids and message.tool_call_id not in known_ids:
        add("result_orphan", f"no earlier call has the id {message.tool_call_id!r}", (*path, "tool_call_id"))
    return found


def _wants_content(request: CanonicalRequest) -> bool:
    return request.dialect in ("openai_chat", "ollama_chat", "anthropic_messages")


def _of_call(
    request: CanonicalRequest, message: Message, call: ToolCall
) -> list[tuple[str, str, tuple[str | int, ...]]]:
    where = call.where_arguments or call.where
    path = where[0][1] if where else message.path
    wanted = "object" if request.dialect in ("ollama_chat", "anthropic_messages") else "string"
    if not call.name:
        return [("call_name_missing", "a call in the history has no name", path)]
    if call.arguments_type == "absent":
        return []
    if call.arguments_type == "string":
        problem = arguments_problem(call.arguments_text)
        if problem is not None:
            return [(problem[0], problem[1], path)]
    if call.arguments_type != wanted:
        return [("arguments_type", f"arguments are sent as {call.arguments_type}; this API wants {wanted}", path)]
    if not call.arguments_valid:
        return [("arguments_not_object", "the arguments are JSON but no object", path)]
    return []


def arguments_problem(text: str) -> tuple[str, str] | None:
    """What is wrong with the JSON text of a call's arguments: (kind, sentence), or None where it is an object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if _glued(text):
            return "arguments_glued", "the arguments are several JSON objects glued together"
        return "arguments_not_json", f"the arguments are not JSON ({error})"
    if not isinstance(value, dict):
        return "arguments_not_object", "the arguments are JSON but no object"
    return None


def _glued(text: str) -> bool:
    decoder = json.JSONDecoder()
    rest = text.strip()
    count = 0
    while rest:
        try:
            _, end = decoder.raw_decode(rest)
        except (ValueError, RecursionError):
            return False
        count += 1
        rest = rest[end:].strip()
    return count > 1


_INDEX = re.compile(
    r"messages?['\"]?\s*[,.\[]+\s*(\d+)|body\.(\d+)\.|\bmessages?\s+(?:#|at index |index )?(\d+)\b|"
    r"\binput['\"]?[,.\[]\s*(\d+)",
    re.IGNORECASE,
)


def message_index(error: str) -> int | None:
    """The index of a message that an error text names (`('body', 'messages', 2, ...)`, `messages[2]`), or None."""
    found = _INDEX.search(error)
    if found is None:
        return None
    return next(int(group) for group in found.groups() if group is not None)
