"""Anthropic messages: plain bodies of content blocks, and streams of typed events.

Source of the form: Anthropic API reference, "Messages" and "Streaming messages": message_start, then for each block
content_block_start, deltas, content_block_stop, then message_delta with the stop reason and usage, then message_stop;
ping anywhere; an error event ends the stream.
"""

from __future__ import annotations

from stacks.dialects.anthropic_blocks import Block, call_of
from stacks.dialects.base import (
    Context,
    Pieces,
    check_call_ids,
    check_counts,
    check_finish,
    read_usage,
    text_of,
)
from stacks.dialects.exchange import Event
from stacks.strictjson import Path
from stacks.turn import Fragment, Turn, json_type

FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "pause_turn": "pause",
    "refusal": "content_filter",
}
_DELTAS = {"text_delta": ("text", "text"), "thinking_delta": ("thinking", "thinking"),
           "input_json_delta": ("tool_use", "partial_json")}  # fmt: skip
_PARTS = frozenset(("redacted_thinking", "server_tool_use", "web_search_tool_result", "code_execution_tool_result",
                    "mcp_tool_use", "mcp_tool_result", "container_upload"))  # fmt: skip
_MESSAGE_FIELDS = frozenset(
    ("id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage", "error")
)


class MessagesAssembler:
    """Assembler of one message, plain or streamed."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._turn = Turn()
        self._blocks: dict[int, Block] = {}
        self._top = -1
        self._usage: dict[str, object] = {}
        self._where_usage: list[Fragment] = []
        self._started = False
        self._stopped = False

    @property
    def ended(self) -> bool | None:
        """Whether message_stop came."""
        return self._stopped if self._context.streamed else None

    def done(self, event: Event) -> None:
        """Take an end mark that does not belong here."""
        self._context.flag("done_unexpected", "[DONE] in an Anthropic stream")

    def add(self, event: Event, value: dict[str, object]) -> None:
        """Take an event or the plain body."""
        kind = value.get("type")
        if event.name not in ("", "message") and isinstance(kind, str) and event.name != kind:
            self._context.flag("event_name_differs", f"the event is named {event.name!r}, its type is {kind!r}")
        if self._stopped and kind != "ping":
            self._context.flag("data_after_done", "an event follows message_stop")
        if kind == "message" or ("content" in value and "role" in value):
            self._plain(event.number, value)
            return
        if kind not in ("message_start", "ping", "error") and not self._started:
            self._context.flag("event_out_of_order", f"{kind} comes before message_start", "message_start")
        self._event(event, kind, value)

    def _event(self, event: Event, kind: object, value: dict[str, object]) -> None:
        if kind == "content_block_delta":
            self._delta(event, value)
        elif kind == "content_block_start":
            self._open(event.number, value)
        elif kind == "content_block_stop":
            block = self._blocks.get(self._index(value))
            if block is None or block.closed:
                self._context.flag("event_out_of_order", "content_block_stop for a block that is not open")
            else:
                block.closed = True
        elif kind == "message_start":
            message = value.get("message")
            if self._started:
                self._context.flag("event_out_of_order", "message_start came again")
            self._started = True
            if isinstance(message, dict):
                self._head(event.number, message, ("message",))
        elif kind == "message_delta":
            self._message_delta(event.number, value)
        elif kind == "message_stop":
            self._stopped = True
        elif kind not in ("ping", "error"):
            self._context.flag("event_unknown", f"an event of type {kind!r}", str(kind))

    def _plain(self, event: int, value: dict[str, object]) -> None:
        if self._context.streamed:
            self._context.flag("message_in_stream", "a streamed event carries a whole message")
        self._started = True
        self._head(event, value, ())
        content = value.get("content")
        if isinstance(content, str):
            self._context.flag("content_type", "the content is a JSON string, not a list of blocks")
            block = self._blocks[0] = Block("text", {}, (event, ("content",)))
            block.pieces.add(content, event, ("content",))
            block.closed = True
        elif isinstance(content, list):
            for position, raw in enumerate(content):
                if isinstance(raw, dict):
                    self._block(position, raw, event, ("content", position)).closed = True
        else:
            self._context.flag("content_type", f"the content is a JSON {json_type(content)}, not a list of blocks")

    def _head(self, event: int, message: dict[str, object], path: Path) -> None:
        turn = self._turn
        turn.response_id, turn.model = text_of(message.get("id")), text_of(message.get("model"))
        turn.role = text_of(message.get("role"))
        if turn.role is not None and turn.role != "assistant":
            self._context.flag("role_unexpected", f"the role is {turn.role!r}")
        self._stop(message, event, path)
        self._take_usage(message.get("usage"), event, path)
        for key in message.keys() - _MESSAGE_FIELDS:
            turn.extra[key] = message[key]

    def _stop(self, holder: dict[str, object], event: int, path: Path) -> None:
        reason, turn = holder.get("stop_reason"), self._turn
        if holder.get("stop_sequence") is not None:
            turn.stop_detail = holder["stop_sequence"]
        if reason is None:
            return
        if not isinstance(reason, str):
            self._context.flag("finish_type", f"stop_reason is a JSON {json_type(reason)}")
            return
        if turn.finish_raw is not None:
            self._context.flag(
                "finish_repeated" if reason == turn.finish_raw else "finish_changed",
                f"stop_reason {reason!r} after {turn.finish_raw!r}",
            )
        if reason not in FINISH:
            self._context.flag("finish_unknown", f"stop_reason is {reason!r}", reason)
        turn.finish_raw, turn.finish = reason, FINISH.get(reason, "other")
        turn.where_finish = ((event, (*path, "stop_reason")),)

    def _take_usage(self, usage: object, event: int, path: Path) -> None:
        if isinstance(usage, dict):
            self._usage.update({key: count for key, count in usage.items() if count is not None})
            self._where_usage.append((event, (*path, "usage")))
        elif usage is not None:
            self._context.flag("usage_type", f"usage is a JSON {json_type(usage)}")

    def _index(self, value: dict[str, object]) -> int:
        index = value.get("index")
        if type(index) is int:
            return index
        self._context.flag("index_missing" if index is None else "index_type", f"the block index is {index!r}")
        return max(self._top, 0)

    def _open(self, event: int, value: dict[str, object]) -> None:
        raw = value.get("content_block")
        index = self._index(value)
        if index in self._blocks:
            self._context.flag("index_reused", f"two blocks share index {index}", f"index {index}")
            index = self._top + 1
        self._block(index, raw if isinstance(raw, dict) else {}, event, ("content_block",))

    def _block(self, index: int, raw: dict[str, object], event: int, path: Path) -> Block:
        """Open a block with what it already carries."""
        kind = text_of(raw.get("type")) or ""
        self._top = max(self._top, index)
        block = self._blocks[index] = Block(kind, raw, (event, path))
        if kind in ("text", "thinking"):
            text = raw.get(kind)
            if isinstance(text, str):
                block.pieces.add(text, event, (*path, kind))
        elif kind != "tool_use" and kind not in _PARTS:
            self._context.flag("block_unknown", f"a content block of type {raw.get('type')!r}", kind)
        return block

    def _delta(self, event: Event, value: dict[str, object]) -> None:
        context, delta = self._context, value.get("delta")
        if not isinstance(delta, dict):
            context.flag("event_not_object", "a delta that is no object")
            return
        kind = delta.get("type")
        known = _DELTAS.get(kind) if isinstance(kind, str) else None
        index = self._index(value)
        block = self._blocks.get(index)
        if block is None:
            context.flag("block_missing", f"a delta for block {index}, which was never opened", f"block {index}")
            block = self._blocks[index] = Block(known[0] if known else "", {}, (event.number, ()))
        elif block.closed:
            context.flag("event_out_of_order", f"a delta for block {index} after its end", f"block {index}")
        if known is None:
            if kind in ("signature_delta", "citations_delta"):
                block.raw.setdefault(str(kind), delta)
            else:
                context.flag("event_unknown", f"a delta of type {kind!r}", str(kind))
            return
        if block.kind != known[0] and block.kind not in _PARTS:
            context.flag("event_out_of_order", f"a {kind} in a block of type {block.kind!r}", f"block {index}")
        text = delta.get(known[1])
        if isinstance(text, str):
            block.pieces.add(text, event.number, ("delta", known[1]))
        else:
            context.flag(
                "arguments_type" if known[0] == "tool_use" else "content_type",
                f"{known[1]} is a JSON {json_type(text)}",
            )

    def _message_delta(self, event: int, value: dict[str, object]) -> None:
        delta = value.get("delta")
        if isinstance(delta, dict):
            self._stop(delta, event, ("delta",))
        if value.get("usage") is None:
            self._context.flag("usage_absent", "message_delta carries no usage")
        self._take_usage(value.get("usage"), event, ())

    def finish(self, failed: bool) -> list[Turn]:
        """The one turn."""
        context, turn = self._context, self._turn
        context.event = None
        content, thinking = Pieces(), Pieces()
        for index in sorted(self._blocks):
            self._close(index, self._blocks[index], content, thinking, failed)
        turn.content, turn.where_content = content.text(), tuple(content.where)
        turn.reasoning, turn.where_reasoning = thinking.text(), tuple(thinking.where)
        if self._usage:
            number, path = self._where_usage[-1]
            turn.usage = read_usage(self._usage, number, path, context)
            if turn.usage is not None:
                turn.usage.where = tuple(self._where_usage)
        if failed:
            return [turn] if turn.has_payload or self._started else []
        check_call_ids(turn.tool_calls, context)
        if context.complete:
            self._check_frame()
        check_finish(turn, context)
        check_counts(turn, context)
        return [turn]

    def _check_frame(self) -> None:
        context = self._context
        if context.streamed and not self._started:
            context.absent("event_missing", "message_start never came")
        if context.streamed and not self._stopped:
            context.absent("done_missing", "message_stop never came")
        if not context.streamed and not self._usage:
            context.absent("usage_absent", "the message carries no usage")

    def _close(self, index: int, block: Block, content: Pieces, thinking: Pieces, failed: bool) -> None:
        """Turn one block into text, reasoning, a call or a part."""
        turn, pieces = self._turn, block.pieces
        if not block.closed and not failed and self._context.complete:
            self._context.about((block.where,), "block_open", f"block {index} was never closed", f"block {index}")
        if block.kind in ("text", "thinking"):
            target = content if block.kind == "text" else thinking
            target.touched = True
            target.texts += pieces.texts
            target.where += pieces.where
            if block.kind == "thinking":
                turn.reasoning_field = "thinking"
        elif block.kind == "tool_use":
            turn.tool_calls.append(call_of(index, block, len(turn.tool_calls), self._context))
        else:
            turn.parts.append(block.raw)
