"""Content blocks of the Anthropic messages dialect while they come, and the tool call a finished one holds."""

from __future__ import annotations

from stacks.dialects.base import Context, Pieces, finish_arguments, take_object_arguments, text_of
from stacks.turn import Fragment, ToolCall, json_type


class Block:
    """One content block while it comes."""

    __slots__ = ("closed", "kind", "pieces", "raw", "where")

    def __init__(self, kind: str, raw: dict[str, object], where: Fragment) -> None:
        self.kind = kind
        self.raw = raw
        self.where = where
        self.pieces = Pieces()
        self.closed = False


def call_of(index: int, block: Block, number: int, context: Context) -> ToolCall:
    """The tool call of a finished block; `number` counts the calls before it."""
    raw, where = block.raw, block.where
    call = ToolCall(index=index, id=text_of(raw.get("id")), name=text_of(raw.get("name")), where=(where,))
    call.kind = "tool_use"
    call.where_name = ((where[0], (*where[1], "name")),)
    subject = f"call {number}"
    if not call.name:
        context.about(call.where, "name_missing", f"{subject} has no name", subject)
    arguments = raw.get("input")
    if block.pieces:
        call.arguments_text, call.arguments_type = block.pieces.text() or "", "object"
        call.where_arguments = tuple(block.pieces.where)
        finish_arguments(call, context, subject)
    elif isinstance(arguments, dict):
        call.arguments_type, call.where_arguments = "object", ((where[0], (*where[1], "input")),)
        take_object_arguments(call, arguments, context)
    else:
        call.arguments_type = json_type(arguments) if "input" in raw else "absent"
        call.where_arguments = ((where[0], (*where[1], "input")),)
        code = "arguments_missing" if arguments is None else "arguments_type"
        context.about(call.where, code, f"{subject}: input is a JSON {call.arguments_type}", subject)
        if isinstance(arguments, str):
            call.arguments_text = arguments
            finish_arguments(call, context, subject)
        elif arguments is not None:
            take_object_arguments(call, arguments, context)
    return call
