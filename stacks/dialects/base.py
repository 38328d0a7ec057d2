"""What the assemblers of all dialects share: the context of one exchange, text put together from pieces, and the
finishing of tool calls and usage."""

from __future__ import annotations

from typing import Protocol

import orjson

from stacks.dialects.exchange import Event
from stacks.irregular import IrregularityLog
from stacks.strictjson import UNPARSED, Path, load, read
from stacks.turn import CanonicalRequest, Fragment, ToolCall, Turn, Usage, json_type


class Context:
    """One exchange while it is assembled: the request, whether a stream came, where irregularities go, and the event
    being read."""

    __slots__ = ("complete", "event", "length", "log", "request", "streamed")

    def __init__(
        self, request: CanonicalRequest | None, streamed: bool, log: IrregularityLog, length: int, complete: bool
    ) -> None:
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
    text = call.arguments_text
    if text == "{}":
        call.arguments = {}
        return
    if not text.strip():
        if call.arguments_type == "string":
            context.absent("arguments_empty", f"{subject} has an empty arguments text", subject)
        call.arguments_error = "empty"
        return
    encoded = text.encode("utf-8", "surrogatepass")
    value = load(encoded)
    if value is UNPARSED or (b":" in encoded and _needs_care(encoded, value)):
        reading = read(encoded)
        value = reading.value
        if not reading.valid:
            call.arguments_error = "; ".join(note.message for note in reading.notes)
            cut = " (cut)" if reading.has("truncated") else ""
            context.absent("arguments_not_json", f"{subject}: arguments are not JSON{cut}: {text[:80]!r}", subject)
            return
        if reading.has("duplicate_key"):
            context.absent("arguments_duplicate_key", f"{subject}: {reading.notes[0].message}", subject)
    call.arguments = value
    if not isinstance(value, dict):
        context.absent("arguments_not_object", f"{subject}: arguments are a JSON {json_type(value)}", subject)


def _needs_care(encoded: bytes, value: object) -> bool:
    """Whether the fast reader may have hidden something: a key may stand twice, or an integer beyond 64 bits became
    a float. One key with a string value is safe."""
    if isinstance(value, dict) and len(value) == 1 and encoded.count(b":") == 1 and encoded.count(b'"') <= 4:
        return any(isinstance(member, float) for member in value.values())
    return True


def compact(value: object) -> str:
    """JSON text of a value that the dialect sends as an object."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        return repr(value)


def integer(value: object) -> int | None:
    """A non-boolean integer (or a float without fraction), else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def text_of(value: object) -> str | None:
    """A string, else None."""
    return value if isinstance(value, str) else None


def read_usage(raw: object, event: int, path: Path, context: Context) -> Usage | None:
    """Canonical usage of an OpenAI or Anthropic usage object (their field names differ, their meaning does not)."""
    if not isinstance(raw, dict):
        context.flag("usage_type", f"usage is a JSON {json_type(raw)}")
        return None
    usage = Usage(raw=raw, where=((event, path),))
    prompt = raw.get("prompt_tokens", raw.get("input_tokens"))
    completion = raw.get("completion_tokens", raw.get("output_tokens"))
    total = raw.get("total_tokens")
    for name, value in (("prompt", prompt), ("completion", completion), ("total", total)):
        if value is not None and integer(value) is None:
            context.flag("usage_type", f"the {name} count is {value!r}", name)
    usage.prompt, usage.completion, usage.total = integer(prompt), integer(completion), integer(total)
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
            context.absent("id_missing", f"{subject} ({call.name}) has no id", subject)
        elif not call.id:
            context.absent("id_empty", f"{subject} ({call.name}) has an empty id", subject)
        elif call.id in seen:
            context.absent("id_duplicate", f"the id {call.id!r} names two calls", call.id)
        else:
            seen.add(call.id)


def check_counts(turn: Turn, context: Context) -> None:
    """Record a count of zero output tokens beside output."""
    if turn.usage is not None and turn.usage.completion == 0 and turn.has_payload:
        context.absent("usage_contradicts", "zero output tokens are counted although there is output")


def check_finish(turn: Turn, context: Context, forced: bool = False) -> None:
    """Record a finish reason that is absent or does not fit what came. With `forced` (a call forced by name) OpenAI
    documents `stop` as the finish reason of a call."""
    subject = f"choice {turn.index}"
    if turn.finish_raw is None:
        if context.complete:
            context.absent("finish_missing", "the answer ended without a finish reason", subject)
        return
    if turn.finish == "tool_calls" and not turn.tool_calls:
        context.absent("finish_without_calls", f"finish reason {turn.finish_raw!r}, and no call", subject)
    elif turn.finish == "stop" and turn.tool_calls and not forced:
        context.absent("finish_hides_calls", f"finish reason {turn.finish_raw!r} although there are calls", subject)
    if not turn.has_payload:
        context.absent("finish_without_payload", f"finish reason {turn.finish_raw!r}, and nothing came", subject)
