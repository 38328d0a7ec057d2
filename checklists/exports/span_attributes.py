"""What of an exchange becomes which attribute of an OpenTelemetry span: the one table. Pure.

Names, types and the closed lists of values are those of the OpenTelemetry semantic conventions for generative AI,
version 1.41.1 (status "development"; opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans), and for HTTP.
`stacktap.*` are our own. Nothing is made up: an attribute whose value the wire does not give is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from checklists.exports.selection import ExportRun, place_of
from checklists.exports.span_messages import input_messages, output_messages, system_instructions, tool_definitions
from checklists.exports.targets import parts_of_url
from checklists.reading import Seen
from stacks.dialects import OTHER
from stacks.turn import CanonicalRequest, Turn

CONVENTIONS_VERSION = "1.41.1"
SCHEMA_URL = f"https://opentelemetry.io/schemas/{CONVENTIONS_VERSION}"

Kind = Literal["string", "int", "double", "bool", "string[]"]
Value = str | int | float | bool | list[str]

OPERATIONS = {
    "openai_chat": "chat",
    "openai_responses": "chat",
    "anthropic_messages": "chat",
    "ollama_chat": "chat",
    "openai_completions": "text_completion",
    "ollama_generate": "text_completion",
}
"""`gen_ai.operation.name` by dialect; embeddings are told by their route."""

PROVIDERS = {"anthropic_messages": "anthropic", "ollama_chat": "ollama", "ollama_generate": "ollama"}
"""`gen_ai.provider.name` where the serving stack is not known: whose interface is spoken, else `openai`."""

_LARGEST = 1e300


class Asked(NamedTuple):
    """An exchange, and what its attributes are taken from."""

    run: ExportRun
    seen: Seen

    @property
    def request(self) -> CanonicalRequest | None:
        """What was asked, where it could be read."""
        asked = self.seen.classified.facts.assembled.request
        return asked if asked is not None and asked.body_error is None else None

    @property
    def turn(self) -> Turn | None:
        """The first answer."""
        return self.seen.classified.facts.assembled.turn


class Row(NamedTuple):
    """One attribute: its name, type, where its value is from. `content` ones hold what was said, and are opt-in."""

    name: str
    kind: Kind
    value: Callable[[Asked], Any]
    content: bool = False


def operation_of(seen: Seen) -> str | None:
    """`gen_ai.operation.name`; None for requests that ask no model for anything."""
    assembled = seen.classified.facts.assembled
    if assembled.route == "embeddings":
        return "embeddings"
    asked = assembled.request
    return OPERATIONS.get(asked.dialect if asked is not None and asked.dialect != OTHER else assembled.dialect)


def _provider(asked: Asked) -> str:
    judged = asked.seen.judged
    return judged.stack or PROVIDERS.get(judged.dialect, "openai")


def _sampling(name: str) -> Callable[[Asked], Any]:
    return lambda asked: asked.request.sampling.get(name) if asked.request is not None else None


def _usage(name: str) -> Callable[[Asked], Any]:
    return lambda asked: getattr(asked.turn.usage, name) if asked.turn is not None and asked.turn.usage else None


def _of_request(name: str) -> Callable[[Asked], Any]:
    return lambda asked: getattr(asked.request, name) if asked.request is not None else None


def _of_turn(name: str) -> Callable[[Asked], Any]:
    return lambda asked: getattr(asked.turn, name) if asked.turn is not None else None


def _choices(asked: Asked) -> int | None:
    stated = asked.request.choices if asked.request is not None else None
    return stated if stated != 1 else None


def _stop(asked: Asked) -> Any:
    stop = asked.request.stop if asked.request is not None else None
    return [stop] if isinstance(stop, str) else stop


def _output_type(asked: Asked) -> str | None:
    return "json" if asked.request is not None and asked.request.response_format else None


def _finish(asked: Asked) -> list[str] | None:
    turns = asked.seen.classified.facts.assembled.turns
    return [turn.finish for turn in turns if turn.finish is not None] or None


def _first_chunk(asked: Asked) -> float | None:
    came = asked.seen.exchange.pieces("response")
    streamed = asked.seen.classified.facts.assembled.streamed
    return came[0].at_us / 1e6 if came and streamed else None


def _error(asked: Asked) -> str | None:
    outcome = asked.seen.judged.outcome
    return None if outcome.layer == "ok" else outcome.name


def _server(which: Literal["hostname", "port"]) -> Callable[[Asked], Any]:
    def found(asked: Asked) -> Any:
        upstream = asked.run.upstream(asked.seen)
        parts = parts_of_url(upstream.url) if upstream is not None else None
        if parts is None:
            return None
        return parts.hostname if which == "hostname" else parts.port or (443 if parts.scheme == "https" else 80)

    return found


def _path(asked: Asked) -> str | None:
    request = asked.seen.exchange.request
    return request.path if request is not None else None


def _method(asked: Asked) -> str | None:
    request = asked.seen.exchange.request
    return request.method if request is not None else None


def _status(asked: Asked) -> int | None:
    response = asked.seen.exchange.response
    return response.status if response is not None else None


GEN_AI: tuple[Row, ...] = (
    Row("gen_ai.operation.name", "string", lambda asked: operation_of(asked.seen)),
    Row("gen_ai.provider.name", "string", _provider),
    Row("gen_ai.conversation.id", "string", lambda asked: asked.seen.exchange.tag("episode") or None),
    Row("gen_ai.request.model", "string", _of_request("model")),
    Row("gen_ai.request.choice.count", "int", _choices),
    Row("gen_ai.request.max_tokens", "int", _of_request("max_tokens")),
    Row("gen_ai.request.seed", "int", _sampling("seed")),
    Row("gen_ai.request.temperature", "double", _sampling("temperature")),
    Row("gen_ai.request.top_p", "double", _sampling("top_p")),
    Row("gen_ai.request.top_k", "double", _sampling("top_k")),
    Row("gen_ai.request.frequency_penalty", "double", _sampling("frequency_penalty")),
    Row("gen_ai.request.presence_penalty", "double", _sampling("presence_penalty")),
    Row("gen_ai.request.stop_sequences", "string[]", _stop),
    Row("gen_ai.request.stream", "bool", _of_request("stream")),
    Row("gen_ai.output.type", "string", _output_type),
    Row("gen_ai.response.id", "string", _of_turn("response_id")),
    Row("gen_ai.response.model", "string", _of_turn("model")),
    Row("gen_ai.response.finish_reasons", "string[]", _finish),
    Row("gen_ai.response.time_to_first_chunk", "double", _first_chunk),
    Row("gen_ai.usage.input_tokens", "int", _usage("prompt")),
    Row("gen_ai.usage.output_tokens", "int", _usage("completion")),
    Row("gen_ai.usage.cache_read.input_tokens", "int", _usage("cached")),
    Row("gen_ai.usage.reasoning.output_tokens", "int", _usage("reasoning")),
    Row("gen_ai.system_instructions", "string", lambda asked: system_instructions(asked.request), content=True),
    Row("gen_ai.input.messages", "string", lambda asked: input_messages(asked.request), content=True),
    Row(
        "gen_ai.output.messages",
        "string",
        lambda asked: output_messages(asked.seen.classified.facts.assembled.turns),
        content=True,
    ),
    Row("gen_ai.tool.definitions", "string", lambda asked: tool_definitions(asked.request), content=True),
)
"""Of requests that ask a model."""

HTTP: tuple[Row, ...] = (
    Row("http.request.method", "string", _method),
    Row("http.response.status_code", "int", _status),
    Row("url.path", "string", _path),
    Row("server.address", "string", _server("hostname")),
    Row("server.port", "int", _server("port")),
    Row("error.type", "string", _error),
)
"""Of every exchange."""

OWN: tuple[Row, ...] = (
    Row("stacktap.attempt", "string", lambda asked: place_of(asked.seen)),
    Row("stacktap.outcome", "string", lambda asked: asked.seen.judged.outcome.name),
    Row("stacktap.at_fault", "string", lambda asked: asked.seen.judged.outcome.at_fault),
    Row("stacktap.model_ran", "string", lambda asked: asked.seen.judged.outcome.model_ran),
    Row("stacktap.delivery", "string", lambda asked: asked.seen.judged.outcome.delivery),
    Row("stacktap.confidence", "string", lambda asked: asked.seen.judged.outcome.confidence),
    Row("stacktap.detail", "string", lambda asked: asked.seen.judged.outcome.detail or None, content=True),
    Row("stacktap.remedy", "string", lambda asked: asked.seen.judged.outcome.remedy),
    Row("stacktap.flags", "string[]", lambda asked: list(asked.seen.judged.outcome.flags) or None),
    Row("stacktap.end", "string", lambda asked: asked.seen.exchange.end),
    Row("stacktap.upstream", "string", lambda asked: asked.seen.exchange.upstream or None),
    Row("stacktap.tools_offered", "int", lambda asked: len(asked.request.tools) if asked.request else None),
    Row("stacktap.tools_called", "int", lambda asked: len(asked.turn.tool_calls) if asked.turn else None),
)
"""The verdict. `stacktap.detail` may quote what was said."""


def attributes_of(asked: Asked, *, content: bool) -> list[tuple[str, Value]]:
    """The attributes of an exchange's span, in the order of the table, those that quote only with `content`."""
    rows = (*(GEN_AI if operation_of(asked.seen) is not None else ()), *HTTP, *OWN)
    found = []
    for row in rows:
        value = typed(row.kind, row.value(asked)) if content or not row.content else None
        if value is not None:
            found.append((row.name, value))
    for name, text in asked.seen.exchange.tags:
        found.append((f"stacktap.tag.{name}", text))
    return found


def typed(kind: Kind, value: Any) -> Value | None:
    """A value as the type that its attribute has; None where it is none of it: what a client sent may be anything."""
    if kind == "string":
        return value if isinstance(value, str) else None
    if kind == "bool":
        return value if isinstance(value, bool) else None
    if kind == "string[]":
        return [str(item) for item in value] if isinstance(value, list | tuple) and value else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_LARGEST < value < _LARGEST:
        return None
    if kind == "double":
        return float(value)
    return int(value) if value == int(value) and -(1 << 63) <= value < 1 << 63 else None
