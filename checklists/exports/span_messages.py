"""What was said, as the attributes of a GenAI span hold it: JSON text in the shapes of the conventions. Pure.

The shapes: `gen-ai-input-messages.json`, `gen-ai-output-messages.json` and `gen-ai-system-instructions.json` beside the
conventions that `span_attributes` names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checklists.exports.encoding import json_text
from stacks.turn import CanonicalRequest, Message, ToolCall, Turn

FINISH_REASONS = {"tool_calls": "tool_call"}
"""Our finish reasons as `finish_reason` of an output message, where the words differ."""


def input_messages(request: CanonicalRequest | None) -> str | None:
    """The history that was sent, without the system's messages."""
    if request is None or not request.messages:
        return None
    said = [message for message in request.messages if message.role not in ("system", "developer")]
    return json_text([_message(message) for message in said])


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        part = {"type": "tool_call_response", "id": message.tool_call_id, "response": message.content}
        return {"role": "tool", "parts": [part]}
    parts: list[dict[str, Any]] = []
    if message.reasoning:
        parts.append({"type": "reasoning", "content": message.reasoning})
    if message.content is not None:
        parts.append({"type": "text", "content": message.content})
    return {"role": message.role, "parts": parts + [_call(call) for call in message.tool_calls]}


def _call(call: ToolCall) -> dict[str, Any]:
    # What is no JSON stays text: that it is none may be the fault.
    arguments = call.arguments if call.arguments_valid else call.arguments_text
    return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments}


def output_messages(turns: Sequence[Turn]) -> str | None:
    """What was answered, one message a choice."""
    return json_text([_answered(turn) for turn in turns]) if turns else None


def _answered(turn: Turn) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if turn.reasoning:
        parts.append({"type": "reasoning", "content": turn.reasoning})
    if turn.content:
        parts.append({"type": "text", "content": turn.content})
    if turn.refusal:
        parts.append({"type": "text", "content": turn.refusal})
    finish = turn.finish or "error"
    return {
        "role": turn.role or "assistant",
        "parts": parts + [_call(call) for call in turn.tool_calls],
        "finish_reason": FINISH_REASONS.get(finish, finish),
    }


def system_instructions(request: CanonicalRequest | None) -> str | None:
    """The system's messages."""
    text = request.system if request is not None else None
    return json_text([{"type": "text", "content": text}]) if text else None


def tool_definitions(request: CanonicalRequest | None) -> str | None:
    """The tools that were offered."""
    if request is None or not request.tools:
        return None
    return json_text(
        [
            {"type": tool.kind, "name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in request.tools
        ]
    )
