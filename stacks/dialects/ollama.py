"""Ollama /api/chat and /api/generate: plain bodies and newline-delimited streams that end in a line with `done: true`.

Source of the form: Ollama's api/types.go (ChatResponse, GenerateResponse, Metrics) and docs/api.md. Arguments are JSON
objects, an id and an index of a call are optional, counts of zero are left out (Go's omitempty), so that an absent
count is no irregularity.
"""

from __future__ import annotations

from stacks.dialects.base import (
    Context,
    Pieces,
    check_counts,
    finish_arguments,
    integer,
    take_object_arguments,
    text_of,
)
from stacks.dialects.exchange import Event
from stacks.strictjson import Path
from stacks.turn import Fragment, ToolCall, Turn, Usage, json_type

FINISH = {"stop": "stop", "length": "length", "load": "load", "unload": "unload"}
_COMMON = frozenset(("model", "created_at", "message", "response", "thinking", "tool_calls", "done", "done_reason",
                     "prompt_eval_count", "eval_count", "error"))  # fmt: skip
_COUNTS = ("prompt_eval_count", "eval_count", "total_duration", "load_duration", "prompt_eval_duration",
           "eval_duration")  # fmt: skip
_MESSAGE_FIELDS = frozenset(("role", "content", "thinking", "tool_calls"))
_CALL_FIELDS = frozenset(("id", "type", "function"))
_FUNCTION_FIELDS = frozenset(("index", "name", "arguments"))


class OllamaAssembler:
    """What both routes share; `_payload` reads the part that differs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._turn = Turn()
        self._content = Pieces()
        self._thinking = Pieces()
        self._calls: list[ToolCall] = []
        self._indexes: set[int | None] = set()
        self._ids: set[str | None] = set()
        self._finished = False

    @property
    def ended(self) -> bool | None:
        """Whether the line with `done: true` came."""
        return self._finished if self._context.streamed else None

    def done(self, event: Event) -> None:
        """Take an end mark that does not belong here."""
        self._context.flag("done_unexpected", "[DONE] in an Ollama stream")

    def add(self, event: Event, value: dict[str, object]) -> None:
        """Take a line or the plain body."""
        context, turn = self._context, self._turn
        if self._finished:
            context.flag("data_after_done", "a line follows the one with done: true")
        model = value.get("model")
        if isinstance(model, str):
            if turn.model is None:
                turn.model = model
            elif model != turn.model:
                context.flag("model_changed", f"the model changed from {turn.model!r} to {model!r}")
        payload = self._payload(event.number, value)
        if self._finished and payload:
            context.flag("payload_after_finish", "text or calls came after done: true")
        done = value.get("done")
        if done is True:
            self._end(event.number, value)
        elif done is not False and "error" not in value:
            context.flag("finish_type", f"done is a JSON {json_type(done) if 'done' in value else 'absent'}")
        for key in value.keys() - _COMMON:
            turn.extra[key] = value[key]

    def _payload(self, event: int, value: dict[str, object]) -> bool:
        """Read an /api/generate line; returns whether it held anything."""
        return self._texts(value, "response", event, ()) | self._tool_calls(value.get("tool_calls"), event, ())

    def _texts(self, holder: dict[str, object], field: str, event: int, path: Path) -> bool:
        content, thinking = holder.get(field), holder.get("thinking")
        if isinstance(content, str):
            self._content.add(content, event, (*path, field))
        elif content is not None:
            self._context.flag("content_type", f"{field} is a JSON {json_type(content)}")
        if isinstance(thinking, str):
            self._turn.reasoning_field = "thinking"
            self._thinking.add(thinking, event, (*path, "thinking"))
        return bool(content) or bool(thinking)

    def _tool_calls(self, entries: object, event: int, path: Path) -> bool:
        if entries is None:
            return False
        if not isinstance(entries, list):
            self._context.flag("calls_type", f"tool_calls is a JSON {json_type(entries)}")
            return False
        for position, entry in enumerate(entries):
            if isinstance(entry, dict):
                self._call(entry, event, (*path, "tool_calls", position))
            else:
                self._context.flag("call_not_object", f"a tool call entry is a JSON {json_type(entry)}")
        return bool(entries)

    def _call(self, entry: dict[str, object], event: int, path: Path) -> None:
        function = entry.get("function")
        if not isinstance(function, dict):
            self._context.flag("call_not_object", f"function is a JSON {json_type(function)}")
            return
        where: Fragment = (event, (*path, "function", "arguments"))
        arguments, name = function.get("arguments"), function.get("name")
        call = ToolCall(id=text_of(entry.get("id")), name=text_of(name), where=((event, path),))
        call.where_name = ((event, (*path, "function", "name")),)
        call.where_arguments = (where,)
        subject = f"call {len(self._calls)}"
        index = function.get("index", entry.get("index"))
        call.index = index if type(index) is int else integer(index)
        if call.index in self._indexes:
            self._context.flag("index_reused", f"two calls share index {call.index}", f"index {call.index}")
        if call.id in self._ids:
            self._context.flag("id_duplicate", f"the id {call.id!r} names two calls", str(call.id))
        if not call.name:
            self._context.flag("name_missing", f"{subject} has no name", subject)
        self._arguments(call, arguments, "arguments" in function, subject)
        for key in entry.keys() - _CALL_FIELDS:
            call.extra[key] = entry[key]
        for key in function.keys() - _FUNCTION_FIELDS:
            call.extra[key] = function[key]
        self._calls.append(call)
        if call.index is not None:
            self._indexes.add(call.index)
        if call.id:
            self._ids.add(call.id)

    def _arguments(self, call: ToolCall, arguments: object, present: bool, subject: str) -> None:
        call.arguments_type = json_type(arguments) if present else "absent"
        if isinstance(arguments, dict):
            take_object_arguments(call, arguments, self._context)
        elif isinstance(arguments, str):
            self._context.flag("arguments_type", "arguments are a JSON string, not an object", subject)
            call.arguments_text = arguments
            finish_arguments(call, self._context, subject)
        elif arguments is None:
            self._context.flag("arguments_missing", f"{subject} ({call.name}) has no arguments", subject)
            call.arguments_error = "missing"
        else:
            self._context.flag("arguments_type", f"arguments are a JSON {call.arguments_type}", subject)
            take_object_arguments(call, arguments, self._context)

    def _end(self, event: int, value: dict[str, object]) -> None:
        turn, reason = self._turn, value.get("done_reason")
        if self._finished:
            self._context.flag("finish_repeated", "done: true was sent again")
        self._finished = True
        turn.where_finish = ((event, ("done_reason",) if reason is not None else ("done",)),)
        if isinstance(reason, str) and reason:
            turn.finish_raw, turn.finish = reason, FINISH.get(reason, "other")
            if reason not in FINISH:
                self._context.flag("finish_unknown", f"done_reason is {reason!r}", reason)
            if reason in ("load", "unload"):
                self._context.flag("load_only", f"done_reason is {reason!r}: the model was not prompted")
        else:
            turn.finish = "stop"  # early releases send no done_reason
        raw = {key: value[key] for key in _COUNTS if key in value}
        if "prompt_eval_count" in raw or "eval_count" in raw:
            usage = Usage(integer(raw.get("prompt_eval_count")), integer(raw.get("eval_count")), raw=raw)
            usage.where = tuple((event, (key,)) for key in _COUNTS[:2] if key in raw)
            turn.usage = usage

    def finish(self, failed: bool) -> list[Turn]:
        """The one turn."""
        context, turn = self._context, self._turn
        context.event = None
        turn.content, turn.where_content = self._content.text(), tuple(self._content.where)
        turn.reasoning, turn.where_reasoning = self._thinking.text(), tuple(self._thinking.where)
        turn.tool_calls = self._calls
        if failed:
            return [turn] if turn.has_payload or self._finished else []
        if "_debug_info" in turn.extra:
            return []  # a rendered prompt was asked for, nothing was generated
        if not self._finished:
            if context.complete:
                context.absent("done_missing", "no line with done: true came")
        elif not turn.has_payload and turn.finish not in ("load", "unload"):
            message = f"finish reason {turn.finish_raw!r}, and nothing came"
            context.about(turn.where_finish, "finish_without_payload", message, "choice 0")
        check_counts(turn, context)
        return [turn]


class OllamaGenerateAssembler(OllamaAssembler):
    """Assembler of one /api/generate answer."""


class OllamaChatAssembler(OllamaAssembler):
    """Assembler of one /api/chat answer."""

    def _payload(self, event: int, value: dict[str, object]) -> bool:
        """Read an /api/chat line; returns whether it held anything."""
        message = value.get("message")
        if not isinstance(message, dict):
            if message is not None or (value.get("done") is not True and "error" not in value):
                self._context.flag("message_missing", f"message is a JSON {json_type(message)}")
            return False
        role = message.get("role")
        if role is not None:
            if role != "assistant" and "_debug_info" not in value:
                self._context.flag("role_unexpected", f"the role is {role!r}")
            self._turn.role = text_of(role)
        payload = self._texts(message, "content", event, ("message",))
        payload |= self._tool_calls(message.get("tool_calls"), event, ("message",))
        for key in message.keys() - _MESSAGE_FIELDS:
            self._turn.extra[key] = message[key]
        return payload
