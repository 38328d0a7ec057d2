"""Output items of the OpenAI responses dialect while they come, and their way into a turn.

Source of the form: OpenAI API reference, "The response object" (output items: message, function_call,
custom_tool_call, reasoning and many built-in kinds).
"""

from __future__ import annotations

from stacks.dialects.base import Context, Pieces, finish_arguments, text_of
from stacks.strictjson import Path
from stacks.turn import Fragment, ToolCall, Turn, json_type

CALLS = {"function_call": "arguments", "custom_tool_call": "input"}


class Item:
    """One output item: what was streamed of it, and what its final form says."""

    __slots__ = ("closed", "compared", "final", "kind", "number", "raw", "refusal", "streamed", "where")

    def __init__(self, raw: dict[str, object], where: Fragment, number: int = 0) -> None:
        self.number = number
        kind = raw.get("type")
        self.kind = kind if isinstance(kind, str) else ""
        self.raw = raw
        self.where = where
        self.streamed = Pieces()  # text, arguments or reasoning
        self.refusal = Pieces()
        self.final: tuple[dict[str, object], Fragment] | None = None
        self.closed = False
        self.compared = False  # its text with a closing event: once, joining for each would be quadratic

    def finish_with(self, raw: dict[str, object], where: Fragment) -> None:
        """Take the item's final form."""
        self.final = (raw, where)
        self.closed = True
        if not self.kind:
            self.kind = text_of(raw.get("type")) or ""


def whole_text(raw: dict[str, object], where: Fragment) -> tuple[Pieces, Pieces]:
    """(text, refusal) that a whole item carries: a message's parts, a reasoning's content or summary, a call's
    arguments."""
    text, refusal = Pieces(), Pieces()
    event, path = where
    field = CALLS.get(text_of(raw.get("type")) or "")
    if field is not None:
        arguments = raw.get(field)
        if isinstance(arguments, str):
            text.add(arguments, event, (*path, field))
        return text, refusal
    for name in ("content", "summary"):
        parts = raw.get(name)
        if isinstance(parts, str):
            text.add(parts, event, (*path, name))
        elif isinstance(parts, list) and not text.texts:
            _parts(parts, event, (*path, name), text, refusal)
    return text, refusal


def _parts(parts: list[object], event: int, path: Path, text: Pieces, refusal: Pieces) -> None:
    for position, part in enumerate(parts):
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("text"), str):
            text.add(part["text"], event, (*path, position, "text"))
        elif isinstance(part.get("refusal"), str):
            refusal.add(part["refusal"], event, (*path, position, "refusal"))


class ItemReader:
    """Turns finished items into text, reasoning, calls and parts of a turn."""

    __slots__ = ("_content", "_context", "_reasoning", "_refusal", "_turn")

    def __init__(self, turn: Turn, context: Context) -> None:
        self._turn = turn
        self._context = context
        self._content = Pieces()
        self._reasoning = Pieces()
        self._refusal = Pieces()

    def take(self, position: int, item: Item) -> None:
        """Add one item, streamed pieces first, its final form where nothing was streamed."""
        raw, where = item.final if item.final is not None else (item.raw, item.where)
        text, refusal = whole_text({"type": item.kind, **raw}, where)
        if item.streamed:
            if item.final is not None and text and text.text() != item.streamed.text():
                code = "arguments_differ" if item.kind in CALLS else "content_differs"
                self._context.about(
                    (item.where, where), code, f"the final form of output item {position} differs", f"item {position}"
                )
            text = item.streamed
        if item.refusal:
            refusal = item.refusal
        if item.kind == "message":
            role = text_of(raw.get("role")) or text_of(item.raw.get("role"))
            self._turn.role = role if role is not None else self._turn.role
            _extend(self._content, text)
            _extend(self._refusal, refusal)
        elif item.kind == "reasoning":
            _extend(self._reasoning, text)
            self._turn.reasoning_field = "reasoning"
        elif item.kind in CALLS:
            self._call(item, {**item.raw, **raw}, where, text)
        else:
            self._turn.parts.append({**item.raw, **raw})

    def _call(self, item: Item, raw: dict[str, object], where: Fragment, text: Pieces) -> None:
        field = CALLS[item.kind]
        call = ToolCall(id=text_of(raw.get("call_id")), name=text_of(raw.get("name")), kind=item.kind)
        call.where = (item.where,) if item.where == where else (item.where, where)
        call.where_name = ((where[0], (*where[1], "name")),)
        call.where_arguments = tuple(text.where)
        call.arguments_text = text.text() or ""
        call.extra = {key: raw[key] for key in raw.keys() - {"call_id", "name", "type", field}}
        subject = f"call {len(self._turn.tool_calls)}"
        arguments = raw.get(field)
        call.arguments_type = "string" if text.touched else json_type(arguments) if field in raw else "absent"
        if not call.name:
            self._context.about(call.where, "name_missing", f"{subject} has no name", subject)
        if not text.touched and arguments is not None:
            self._context.about(
                call.where, "arguments_type", f"{subject}: {field} is a JSON {json_type(arguments)}", subject
            )
            call.arguments = arguments
            call.where_arguments = ((where[0], (*where[1], field)),)
        elif not text.touched:
            self._context.about(call.where, "arguments_missing", f"{subject} ({call.name}) has no {field}", subject)
            call.arguments_error = "missing"
        elif item.kind == "custom_tool_call":
            call.arguments = call.arguments_text
        else:
            finish_arguments(call, self._context, subject)
        self._turn.tool_calls.append(call)

    def finish(self) -> None:
        """Put the joined texts into the turn."""
        turn = self._turn
        turn.content, turn.where_content = self._content.text(), tuple(self._content.where)
        turn.reasoning, turn.where_reasoning = self._reasoning.text(), tuple(self._reasoning.where)
        turn.refusal, turn.where_refusal = self._refusal.text(), tuple(self._refusal.where)


def _extend(target: Pieces, source: Pieces) -> None:
    target.touched |= source.touched
    target.texts += source.texts
    target.where += source.where
