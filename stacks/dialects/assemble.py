"""The one entry: a wire exchange in, what it says and what is irregular in it out. Pure, never raises on any bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stacks.dialects.anthropic_messages import MessagesAssembler
from stacks.dialects.anthropic_requests import read_messages_request
from stacks.dialects.asked import read_body
from stacks.dialects.base import Assembler, Context
from stacks.dialects.body import body_kind, json_events, ndjson_events, sse_events
from stacks.dialects.check import check_body
from stacks.dialects.exchange import Assembled, Event, WireExchange, header
from stacks.dialects.native import NativeAssembler
from stacks.dialects.ollama import OllamaChatAssembler, OllamaGenerateAssembler
from stacks.dialects.ollama_requests import read_ollama_request
from stacks.dialects.openai_chat import ChatAssembler
from stacks.dialects.openai_completions import CompletionsAssembler
from stacks.dialects.openai_requests import read_chat_request, read_completions_request
from stacks.dialects.openai_responses import ResponsesAssembler
from stacks.dialects.recognise import (
    ANTHROPIC_MESSAGES,
    OLLAMA_CHAT,
    OLLAMA_GENERATE,
    OPENAI_CHAT,
    OPENAI_COMPLETIONS,
    OPENAI_RESPONSES,
    OTHER,
    STREAM_BY_DEFAULT,
    dialect_of_request,
    dialect_of_value,
    route_of,
)
from stacks.dialects.responses_requests import read_responses_request
from stacks.errors import error_in, error_object, text_error
from stacks.irregular import IrregularityLog
from stacks.strictjson import UNPARSED
from stacks.turn import CanonicalRequest, ErrorObject, json_type

_READERS: dict[str, Callable[[CanonicalRequest, dict[str, object]], None]] = {
    OPENAI_CHAT: read_chat_request,
    OPENAI_COMPLETIONS: read_completions_request,
    OPENAI_RESPONSES: read_responses_request,
    OLLAMA_CHAT: read_ollama_request,
    OLLAMA_GENERATE: read_ollama_request,
    ANTHROPIC_MESSAGES: read_messages_request,
}
_ASSEMBLERS: dict[str, Callable[[Context], Assembler]] = {
    OPENAI_CHAT: ChatAssembler,
    OPENAI_COMPLETIONS: CompletionsAssembler,
    OPENAI_RESPONSES: ResponsesAssembler,
    OLLAMA_CHAT: OllamaChatAssembler,
    OLLAMA_GENERATE: OllamaGenerateAssembler,
    ANTHROPIC_MESSAGES: MessagesAssembler,
}


def read_request(method: str, target: str, body: bytes) -> CanonicalRequest:
    """The canonical form of a request, whatever its dialect; `body_error` where its body could not be read."""
    dialect, route = route_of(target)
    value, fault = read_body(body)
    if dialect == OTHER and route == "unknown":
        dialect = dialect_of_request(value)
    request = CanonicalRequest(dialect, route, method.upper(), raw=None if value is UNPARSED else value)
    request.body_error = fault
    if isinstance(value, dict):
        request.stream = dialect in STREAM_BY_DEFAULT
        reader = _READERS.get(dialect)
        if reader is not None:
            reader(request, value)
        else:
            _read_other(request, value)
    elif value is not UNPARSED:
        request.body_error = f"the body is a JSON {json_type(value)}, not an object"
    return request


def _read_other(request: CanonicalRequest, body: dict[str, object]) -> None:
    model, stream = body.get("model"), body.get("stream")
    request.model = model if isinstance(model, str) else None
    request.prompt = body.get("prompt", body.get("text"))
    if isinstance(stream, bool):
        request.stream = request.stream_stated = stream
    request.extra = body


def assemble(exchange: WireExchange, pieces: Sequence[bytes] | None = None) -> Assembled:
    """Read one exchange: its request, its answer turn by turn, the errors in it and everything irregular.

    `pieces` are the response body as it was read, where the caller has it so; the result does not depend on them.
    """
    request = read_request(exchange.method, exchange.target, exchange.request_body)
    body, log = exchange.response_body, IrregularityLog()
    kind = body_kind(body)
    content_type = header(exchange.response_headers, "content-type")
    comments = 0
    if kind == "sse":
        events, parser = sse_events(pieces or (body,), log)
        comments = parser.comments
    elif kind == "ndjson":
        events = ndjson_events(pieces or (body,), log)
    else:
        events = json_events(body, log) if kind == "json" else []
    if kind == "json" and len(events) > 1:
        kind = "ndjson"
    streamed = _is_stream(kind, request, events, content_type)
    if streamed and kind == "json":
        kind = "ndjson"
    result = Assembled(
        request.dialect, request.route, request, None, [], events, log.items, [], streamed, kind, content_type
    )
    result.body, result.request_body, result.comments = body, exchange.request_body, comments
    context = Context(request, streamed, log, events, len(body), exchange.response_complete)
    failed_status = exchange.status >= 400
    understood = False
    if events:
        understood = _Reader(result, context, failed_status).run()
    elif kind != "empty" and failed_status:
        result.errors.append(text_error(body, kind))
    check_body(result, context, exchange, understood)
    return result


def _is_stream(kind: str, request: CanonicalRequest, events: list[Event], content_type: str | None) -> bool:
    """Whether the answer came as a stream. A single JSON line is one only where Ollama was asked to stream and the
    content type says so, since it could as well be a plain body."""
    if kind in ("sse", "ndjson"):
        return True
    if kind != "json" or request.dialect not in STREAM_BY_DEFAULT:
        return False
    return content_type is not None and "ndjson" in content_type.lower() and bool(events)


_ANSWERS = frozenset(("choices", "done", "output", "content", "message", "response"))


class _Reader:
    """Feeds the events of one response to the assembler of the dialect they speak."""

    def __init__(self, result: Assembled, context: Context, failed_status: bool) -> None:
        self._result = result
        self._context = context
        self._failed_status = failed_status
        self._assembler: Assembler | None = None
        self._done = False

    def run(self) -> bool:
        """Read all events; returns whether any was in the form of a known dialect."""
        context, result = self._context, self._result
        for event in result.events:
            context.event = event
            if self._done and event.kind != "done":
                context.flag("data_after_done", "an event follows [DONE]")
            value = event.read() if event.value is UNPARSED else event.value
            if event.kind == "done":
                self._end_mark(event)
            elif isinstance(value, dict):
                self._object(event, value)
            else:
                self._odd(event)
        context.event = None
        if self._assembler is not None:
            result.turns = self._assembler.finish(bool(result.errors))
            result.turn = result.turns[0] if result.turns else None
            result.done_mark = self._assembler.ended
        elif result.streamed and self._result.dialect != OTHER:
            result.done_mark = self._done
        return self._assembler is not None or bool(result.errors)

    def _end_mark(self, event: Event) -> None:
        if self._assembler is not None:
            self._assembler.done(event)
        self._done = True

    def _object(self, event: Event, value: dict[str, object]) -> None:
        context, result = self._context, self._result
        if event.kind in ("partial", "broken"):
            if result.streamed:  # a client drops it, so that it must not enter the turn
                self._odd(event)
                return
            if event.kind == "partial":
                context.flag("body_truncated", "the JSON ends inside a value")
            else:
                context.flag("body_not_json", "the JSON has a syntax error")
        spoken = dialect_of_value(value)
        found = error_in(value, event.name == "error" or (self._failed_status and not result.streamed))
        if found is not None:
            result.errors.append(error_object(event, found))
            self._flag_error()
            if spoken is None:
                return
        if self._assembler is None:
            self._choose(spoken, value, found is not None)
        elif spoken is not None and spoken != result.dialect:
            context.flag("mixed_dialects", f"an event in the form of {spoken} within {result.dialect}")
            return
        if self._assembler is not None:
            self._assembler.add(event, value)

    def _fits(self, value: dict[str, object]) -> bool:
        """Whether a value that names no dialect is to be read in the route's: any event, or a plain body with one of
        the fields that carry answers."""
        if self._failed_status:
            return False
        return self._result.streamed or not _ANSWERS.isdisjoint(value)

    def _choose(self, spoken: str | None, value: dict[str, object], failed: bool) -> None:
        """Pick the assembler: by the shape of the answer, and by the route where the shape does not say."""
        result = self._result
        asked = result.dialect
        dialect = spoken or asked
        if spoken == OTHER:  # the answer of a native route, such as llama.cpp's /completion
            result.dialect = OTHER
            self._assembler = NativeAssembler(self._context)
            return
        if spoken is not None and asked not in (OTHER, spoken):
            self._context.flag("mixed_dialects", f"the route is {asked}, the answer is {spoken}")
        if failed and spoken is None:
            return
        maker = _ASSEMBLERS.get(dialect)
        if maker is not None and (spoken is not None or self._fits(value)):
            result.dialect = dialect
            self._assembler = maker(self._context)

    def _flag_error(self) -> None:
        if self._failed_status:
            return
        if self._result.streamed:
            self._context.flag("error_in_stream", "an error event under a success status")
        else:
            self._context.flag("error_under_success", "an error object under a success status")

    def _odd(self, event: Event) -> None:
        """An event that holds no whole JSON object."""
        context, result = self._context, self._result
        if event.kind in ("text", "partial", "broken"):
            if not result.streamed:
                context.flag("body_not_json", "the body is not JSON")
            elif event.number == len(result.events) - 1 and not event.closed:
                context.flag("event_truncated", "the last event is cut")
            else:
                context.flag("event_not_json", "the data of an event is not JSON")
        elif result.dialect != OTHER:
            code = "event_not_object" if result.streamed else "shape_unknown"
            context.flag(code, f"a JSON {json_type(event.read())} where an object belongs")
        found = error_in(event.read(), self._failed_status)
        if found is not None:
            result.errors.append(error_object(event, found))
        elif event.name == "error" and event.kind == "text":
            result.errors.append(_text_event_error(event))
            self._flag_error()


def _text_event_error(event: Event) -> ErrorObject:
    error = text_error(event.data, "text")
    error.event, error.start, error.end = event.number, event.start, event.end
    error.inner_start, error.inner_end = event.start, event.end
    return error
