"""What the assemblers of all dialects share: the context of one exchange, text put together from pieces, and the
finishing of tool calls and usage."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

import orjson

from stacks.dialects.exchange import Event
from stacks.irregular import IrregularityLog
from stacks.jsonspans import span_of
from stacks.strictjson import UNPARSED, Path, load, read
from stacks.turn import CanonicalRequest, Fragment, ToolCall, Turn, Usage, json_type


class Context:
    """One exchange while it is assembled: the request, whether a stream came, where irregularities go, and the event
    being read."""

    __slots__ = ("complete", "event", "events", "length", "log", "request", "streamed")

    def __init__(  # noqa: PLR0917
        self,
        request: CanonicalRequest | None,
        streamed: bool,
        log: IrregularityLog,
        events: list[Event],
        length: int,
        complete: bool,
    ) -> None:
        self.events = events
        self.request = request
        self.streamed = streamed
        self.log = log
        self.length = length
        self.complete = complete
        self.event: Event | None = None

    def flag(self, code: str, message: str, subject: str = "") -> None:
        """Record an irregularity of the event being read."""
        event = self.event
        if event is None:
            self.log.add(code, message, self.length, self.length, -1, subject)
        else:
            self.log.add(code, message, event.start, event.end, event.number, subject)

    def about(self, where: Sequence[Fragment], code: str, message: str, subject: str = "") -> None:
        """Record an irregularity of something that was put together from fragments: from the first event to the
        last."""
        if not where:
            self.absent(code, message, subject)
            return
        first, last = self.events[where[0][0]], self.events[where[-1][0]]
        self.log.add(code, message, first.start, last.end, first.number, subject)

    def absent(self, code: str, message: str, subject: str = "") -> None:
        """Record that something never came: it stands at the end of the body."""
        self.log.add(code, message, self.length, self.length, -1, subject)


class Assembler(Protocol):
    """Reads the events of one answer in one dialect."""

    def add(self, event: Event, value: dict[str, object]) -> None:
        """Take the next event's JSON object."""

    def done(self, event: Event) -> None:
        """Take an OpenAI-style end mark."""

    def finish(self, failed: bool) -> list[Turn]:
        """The turns, one per choice; `failed` when an error ended the answer, so that absences are no surprise."""

    @property
    def ended(self) -> bool | None:
        """Whether the dialect's end mark came; None where the answer is no stream."""


class Pieces:
    """A text that comes in pieces, with the fragment each came in. `touched` is true once a text (even "") came."""

    __slots__ = ("texts", "touched", "where")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.where: list[Fragment] = []
        self.touched = False

    def add(self, text: str, event: int, path: Path) -> None:
        """Append a piece."""
        self.touched = True
        if text:
            self.texts.append(text)
            self.where.append((event, path))

    def text(self) -> str | None:
        """The joined text, None where no text ever came."""
        if not self.touched:
            return None
        return self.texts[0] if len(self.texts) == 1 else "".join(self.texts)

    def __bool__(self) -> bool:
        return bool(self.texts)


def finish_arguments(call: ToolCall, context: Context, subject: str) -> None:
    """Parse a call's arguments text and record what is wrong with it. Duplicate keys are seen, exact integers kept."""
    text, where = call.arguments_text, call.where_arguments or call.where
    if text == "{}":
        call.arguments = {}
        return
    if not text.strip():
        if call.arguments_type == "string":
            context.about(where, "arguments_empty", f"{subject} has an empty arguments text", subject)
        call.arguments_error = "empty"
        return
    encoded = text.encode("utf-8", "surrogatepass")
    value = load(encoded)
    if value is UNPARSED or has_rounded(value):
        reading = read(encoded)
        value = reading.value
        if not reading.valid:
            call.arguments_error = "; ".join(note.message for note in reading.notes[:4])
            cut = " (cut)" if reading.has("truncated") else ""
            context.about(
                where, "arguments_not_json", f"{subject}: arguments are not JSON{cut}: {text[:80]!r}", subject
            )
            return
        for note in reading.notes:
            if note.code == "duplicate_key":
                context.about(where, "arguments_duplicate_key", f"{subject}: {note.message}", subject)
    call.arguments = value
    if not isinstance(value, dict):
        message = f"{subject}: arguments are a JSON {json_type(value)}"
        context.about(where, "arguments_not_object", message, subject)


def take_object_arguments(call: ToolCall, value: object, context: Context) -> None:
    """Take arguments that the dialect sends as a JSON value; integers that the fast reader rounded are read again."""
    if has_rounded(value) and call.where_arguments:
        number, path = call.where_arguments[0]
        data = context.events[number].data
        span = span_of(data, path)
        if span is not None:
            value = read(data[span[0] : span[1]]).value
    call.arguments, call.arguments_text = value, compact(value)


_EXACT = float(2**63)


def has_rounded(value: object) -> bool:
    """Whether a value from the fast reader holds a float that may stand for an integer beyond 64 bits."""
    if isinstance(value, float):
        return abs(value) >= _EXACT
    level: list[object] = [value] if isinstance(value, (dict, list)) else []
    while level:
        container = level.pop()
        for member in container.values() if isinstance(container, dict) else container:  # type: ignore[attr-defined]
            if isinstance(member, float):
                if abs(member) >= _EXACT:
                    return True
            elif isinstance(member, (dict, list)):
                level.append(member)
    return False


def compact(value: object) -> str:
    """JSON text of a value that the dialect sends as an object."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        # Lone surrogates and integers beyond 64 bits; the readers bound the depth, so that this cannot recurse far.
        return json.dumps(value, separators=(",", ":"))


def integer(value: object) -> int | None:
    """A non-boolean integer (or a float without fraction), else None."""
    if type(value) is int:
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def text_of(value: object) -> str | None:
    """A string, else None."""
    return value if isinstance(value, str) else None


def read_usage(raw: object, event: int, path: Path, context: Context) -> Usage | None:
    """Canonical usage of an OpenAI or Anthropic usage object.

    OpenAI's prompt count holds the cached tokens; Anthropic's `input_tokens` leaves out what was read from or written
    to the cache (Messages API reference, `usage`; llama-server does the same), so those are added here.
    """
    if not isinstance(raw, dict):
        context.flag("usage_type", f"usage is a JSON {json_type(raw)}")
        return None
    usage = Usage(raw=raw, where=((event, path),))
    prompt = raw.get("prompt_tokens", raw.get("input_tokens"))
    completion = raw.get("completion_tokens", raw.get("output_tokens"))
    total = raw.get("total_tokens")
    usage.prompt, usage.completion, usage.total = integer(prompt), integer(completion), integer(total)
    if usage.prompt is None or usage.completion is None or usage.total is None:
        for name, value in (("prompt", prompt), ("completion", completion), ("total", total)):
            if value is not None and integer(value) is None:
                context.flag("usage_type", f"the {name} count is {value!r}", name)
    details = raw.get("completion_tokens_details") or raw.get("output_tokens_details")
    if isinstance(details, dict):
        usage.reasoning = integer(details.get("reasoning_tokens"))
    if usage.reasoning is None:
        usage.reasoning = integer(raw.get("reasoning_tokens"))
    details = raw.get("prompt_tokens_details") or raw.get("input_tokens_details")
    if isinstance(details, dict):
        usage.cached = integer(details.get("cached_tokens"))
    if usage.cached is None:
        usage.cached = integer(raw.get("cache_read_input_tokens"))
    if usage.prompt is not None and "input_tokens" in raw:
        beside = (integer(raw.get(name)) for name in ("cache_read_input_tokens", "cache_creation_input_tokens"))
        usage.prompt += sum(count for count in beside if count is not None and count > 0)
    if (
        usage.total is not None
        and usage.prompt is not None
        and usage.completion is not None
        and usage.total != usage.prompt + usage.completion
    ):
        context.flag("usage_inconsistent", f"{usage.prompt} + {usage.completion} is not {usage.total}")
    return usage


def check_call_ids(calls: list[ToolCall], context: Context) -> None:
    """Record ids that are missing, empty or shared."""
    seen: set[str] = set()
    for position, call in enumerate(calls):
        subject = f"call {position}"
        if call.id is None:
            context.about(call.where, "id_missing", f"{subject} ({call.name}) has no id", subject)
        elif not call.id:
            context.about(call.where, "id_empty", f"{subject} ({call.name}) has an empty id", subject)
        elif call.id in seen:
            context.about(call.where, "id_duplicate", f"the id {call.id!r} names two calls", call.id)
        else:
            seen.add(call.id)


def check_counts(turn: Turn, context: Context) -> None:
    """Record a count of zero output tokens beside output."""
    if turn.usage is not None and turn.usage.completion == 0 and turn.has_payload:
        context.about(turn.usage.where, "usage_contradicts", "zero output tokens are counted although there is output")


def check_finish(turn: Turn, context: Context, forced: bool = False) -> None:
    """Record a finish reason that is absent or does not fit what came. With `forced` (a call forced by name) OpenAI
    documents `stop` as the finish reason of a call."""
    subject = f"choice {turn.index}"
    if turn.finish_raw is None:
        if context.complete:
            context.absent("finish_missing", "the answer ended without a finish reason", subject)
        return
    where, said = turn.where_finish, f"finish reason {turn.finish_raw!r}"
    if turn.finish == "tool_calls" and not turn.tool_calls:
        context.about(where, "finish_without_calls", f"{said}, and no call", subject)
    elif turn.finish == "stop" and turn.tool_calls and not forced:
        context.about(where, "finish_hides_calls", f"{said} although there are calls", subject)
    if not turn.has_payload:
        context.about(where, "finish_without_payload", f"{said}, and nothing came", subject)
