"""OpenAI responses: plain response objects, and streams of typed events that end in response.completed (or
incomplete, failed, cancelled).

Source of the form: OpenAI API reference, "The response object" and "Streaming events". Items are told apart by their
id, or by output_index where a server sends no id; llama.cpp sends no output_index at all.
"""

from __future__ import annotations

from stacks.dialects.base import Context, check_call_ids, check_counts, check_finish, read_usage, text_of
from stacks.dialects.exchange import Event
from stacks.dialects.responses_items import CALLS, Item, ItemReader, whole_text
from stacks.strictjson import Path
from stacks.turn import Turn, json_type

_ENDS = frozenset(("response.completed", "response.incomplete", "response.failed", "response.cancelled"))
_BEGINS = frozenset(("response.created", "response.in_progress", "response.queued"))
_DELTAS = {
    "response.output_text.delta": "message",
    "response.function_call_arguments.delta": "function_call",
    "response.custom_tool_call_input.delta": "custom_tool_call",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
    "response.refusal.delta": "message",
}
_DONES = {
    "response.output_text.done": "text",
    "response.function_call_arguments.done": "arguments",
    "response.custom_tool_call_input.done": "input",
    "response.reasoning_summary_text.done": "text",
    "response.reasoning_text.done": "text",
}
_QUIET = frozenset(("response.content_part.added", "response.content_part.done", "response.refusal.done",
                    "response.reasoning_summary_part.added", "response.reasoning_summary_part.done",
                    "response.reasoning_part.added", "response.reasoning_part.done",
                    "response.output_text.annotation.added", "keepalive"))  # fmt: skip
_BUILT_IN = ("response.file_search_call.", "response.web_search_call.", "response.image_generation_call.",
             "response.mcp_", "response.code_interpreter_call", "response.audio.")  # fmt: skip
_FIELDS = frozenset(("id", "object", "model", "output", "status", "incomplete_details", "usage", "error", "created_at"))
_STATUS = {"failed": "error", "cancelled": "aborted", "in_progress": None, "queued": None}


class ResponsesAssembler:
    """Assembler of one response, plain or streamed."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._turn = Turn()
        self._items: list[Item] = []
        self._by_id: dict[str, Item] = {}
        self._by_index: dict[int, Item] = {}
        self._final_items: int | None = None
        self._status: str | None = None
        self._sequence = -1
        self._started = False
        self._stopped = False

    @property
    def ended(self) -> bool | None:
        """Whether a closing event came."""
        return self._stopped if self._context.streamed else None

    def done(self, event: Event) -> None:
        """Take an end mark that does not belong here."""
        self._context.flag("done_unexpected", "[DONE] in a responses stream")

    def add(self, event: Event, value: dict[str, object]) -> None:
        """Take an event or the plain body."""
        kind = value.get("type")
        if not isinstance(kind, str):
            if self._context.streamed:
                self._context.flag("message_in_stream", "a streamed event is a whole response")
            self._response(event.number, value, (), final=True)
            self._stopped = True
            return
        if event.name not in ("", "message") and event.name != kind:
            self._context.flag("event_name_differs", f"the event is named {event.name!r}, its type is {kind!r}")
        if self._stopped:
            self._context.flag("data_after_done", "an event follows the closing one")
        self._order(value)
        self._event(event.number, kind, value)

    def _order(self, value: dict[str, object]) -> None:
        number = value.get("sequence_number")
        if type(number) is int:
            if number <= self._sequence:
                self._context.flag("event_out_of_order", f"sequence number {number} after {self._sequence}", "sequence")
            self._sequence = number

    def _event(self, event: int, kind: str, value: dict[str, object]) -> None:
        if kind in _DELTAS:
            self._delta(event, kind, value)
        elif kind == "response.output_item.added":
            self._added(event, value)
        elif kind == "response.output_item.done":
            raw = value.get("item")
            if isinstance(raw, dict):
                self._item_of(event, value, raw).finish_with(raw, (event, ("item",)))
        elif kind in _DONES:
            self._text_done(event, kind, value)
        elif kind in _BEGINS or kind in _ENDS:
            if not self._started and kind not in _BEGINS:
                self._context.flag("event_out_of_order", f"{kind} comes before response.created", "response.created")
            self._started = True
            self._stopped |= kind in _ENDS
            response = value.get("response")
            if isinstance(response, dict):
                self._response(event, response, ("response",), final=kind in _ENDS)
            for key in value.keys() - {"type", "response", "sequence_number"}:
                self._turn.extra[key] = value[key]
        elif kind not in _QUIET and kind != "error" and not kind.startswith(_BUILT_IN):
            self._context.flag("event_unknown", f"an event of type {kind!r}", kind)

    def _added(self, event: int, value: dict[str, object]) -> None:
        raw = value.get("item")
        if not isinstance(raw, dict):
            self._context.flag("event_not_object", "an added output item that is no object")
            return
        index, item_id = value.get("output_index"), raw.get("id")
        if type(index) is int and index in self._by_index:
            self._context.flag("index_reused", f"two output items share index {index}", f"index {index}")
        if isinstance(item_id, str) and item_id in self._by_id:
            self._context.flag("id_duplicate", f"the item id {item_id!r} names two output items", item_id)
        self._open(Item(raw, (event, ("item",))), index, item_id)

    def _open(self, item: Item, index: object, item_id: object) -> Item:
        item.number = len(self._items)
        self._items.append(item)
        if isinstance(item_id, str) and item_id:
            self._by_id[item_id] = item
        if type(index) is int:
            self._by_index[index] = item
        return item

    def _item_of(self, event: int, value: dict[str, object], raw: dict[str, object]) -> Item:
        """The item an event speaks of; opened, and flagged, when it never was."""
        item_id, index = value.get("item_id", raw.get("id")), value.get("output_index")
        known = self._by_id.get(item_id) if isinstance(item_id, str) else None
        if known is None and type(index) is int:
            known = self._by_index.get(index)
        if known is not None:
            return known
        self._context.flag(
            "block_missing", f"an event for output item {item_id or index!r}, never added", str(item_id or index)
        )
        return self._open(Item(raw, (event, ("item",) if "item" in value else ())), index, item_id)

    def _delta(self, event: int, kind: str, value: dict[str, object]) -> None:
        text = value.get("delta")
        item = self._item_of(event, value, {"type": _DELTAS[kind]})
        if item.closed:
            self._context.flag("event_out_of_order", "a delta for an output item after its end")
        if not isinstance(text, str):
            code = "arguments_type" if _DELTAS[kind] in CALLS else "content_type"
            self._context.flag(code, f"a delta is a JSON {json_type(text)}")
        elif kind == "response.refusal.delta":
            item.refusal.add(text, event, ("delta",))
        else:
            item.streamed.add(text, event, ("delta",))

    def _text_done(self, event: int, kind: str, value: dict[str, object]) -> None:
        """A closing text event: compared with a sole streamed text, or taken where no delta came."""
        field = _DONES[kind]
        text = value.get(field)
        item = self._item_of(event, value, {"type": _DELTAS[kind.removesuffix("done") + "delta"]})
        if not isinstance(text, str):
            return
        if not item.streamed.touched:
            item.streamed.add(text, event, (field,))
        elif item.kind in CALLS and not item.compared and text != item.streamed.text():
            self._context.flag(
                "arguments_differ",
                "the closing arguments differ from the streamed ones",
                f"item {item.number}",
            )
        item.compared = True

    def _response(self, event: int, response: dict[str, object], path: Path, final: bool) -> None:
        turn = self._turn
        response_id = text_of(response.get("id"))
        if response_id is not None:
            if turn.response_id is not None and response_id != turn.response_id:
                self._context.flag(
                    "response_id_changed", f"the id changed from {turn.response_id!r} to {response_id!r}"
                )
            turn.response_id = response_id
        turn.model = text_of(response.get("model")) or turn.model
        if not final:
            return
        for key in response.keys() - _FIELDS:
            turn.extra[key] = response[key]
        self._status = text_of(response.get("status"))
        turn.where_finish = ((event, (*path, "status")),)
        turn.stop_detail = response.get("incomplete_details")
        usage = response.get("usage")
        if usage is not None:
            turn.usage = read_usage(usage, event, (*path, "usage"), self._context)
        output = response.get("output")
        if isinstance(output, list):
            self._output(event, output, (*path, "output"))
        elif output is not None:
            self._context.flag("content_type", f"output is a JSON {json_type(output)}")

    def _output(self, event: int, output: list[object], path: Path) -> None:
        """Take the final output; of a stream it is compared with what was streamed and fills what was not."""
        if self._final_items is not None:
            return
        raws = [(raw, (*path, at)) for at, raw in enumerate(output) if isinstance(raw, dict)]
        self._final_items = len(raws)
        if not self._items:
            for raw, where in raws:
                item = self._open(Item(raw, (event, where)), None, raw.get("id"))
                item.finish_with(raw, (event, where))
            return
        if [item.kind for item in self._items] != [raw.get("type") for raw, _ in raws]:
            kinds = ", ".join(str(raw.get("type")) for raw, _ in raws) or "nothing"
            self._context.flag("output_differs", f"the final output holds {kinds}")
            return
        for item, (raw, where) in zip(self._items, raws, strict=True):
            whole, _ = whole_text(raw, (event, where))
            if item.streamed and whole and whole.text() != item.streamed.text():
                self._context.flag("output_differs", f"the final form of a {item.kind} differs from the streamed one")

    def finish(self, failed: bool) -> list[Turn]:
        """The one turn."""
        context, turn = self._context, self._turn
        context.event = None
        reader = ItemReader(turn, context)
        for position, item in enumerate(self._items):
            if not item.closed and not failed and context.complete:
                message = f"output item {position} was never closed"
                context.about((item.where,), "block_open", message, f"item {position}")
            reader.take(position, item)
        reader.finish()
        self._finish_reason()
        if failed:
            return [turn] if turn.has_payload or turn.response_id is not None else []
        check_call_ids(turn.tool_calls, context)
        if context.complete:
            self._check_frame()
        check_finish(turn, context)
        check_counts(turn, context)
        return [turn]

    def _check_frame(self) -> None:
        context = self._context
        if context.streamed and not self._started and self._items:
            context.absent("event_missing", "response.created never came")
        if context.streamed and not self._stopped:
            context.absent("done_missing", "no closing event (response.completed) came")
        elif self._turn.usage is None:
            context.absent("usage_absent", "the response carries no usage")

    def _finish_reason(self) -> None:
        turn, status = self._turn, self._status
        if status is None:
            return
        turn.finish_raw = status
        if status == "completed":
            turn.finish = "tool_calls" if turn.tool_calls else "stop"
        elif status == "incomplete":
            detail = turn.stop_detail
            reason = detail.get("reason") if isinstance(detail, dict) else None
            turn.finish = {"max_output_tokens": "length", "content_filter": "content_filter"}.get(str(reason), "other")
        elif status in _STATUS:
            turn.finish = _STATUS[status]
        else:
            turn.finish = "other"
            self._context.absent("finish_unknown", f"the status is {status!r}", status)
