"""A run as spans: each exchange is one, below a span of what it belongs to. Pure.

A trace is one episode of a grid; elsewhere, what has the same tags; without tags, one recording. Ids are hashes of
names, so that a run that is exported twice gives the same spans.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from msgspec.structs import replace

from checklists.exports.encoding import json_text
from checklists.exports.selection import ExportRun
from checklists.exports.span_attributes import Asked, Value, attributes_of, operation_of
from checklists.reading import Seen
from results.episode_journal import EpisodeJournalError, EpisodeReader
from results.episodes import EpisodeRecord

INTERNAL, CLIENT = 1, 3
"""Kinds of spans (`opentelemetry/proto/trace/v1/trace.proto`, SpanKind)."""

UNSET, OK, ERROR = 0, 1, 2
"""Codes of a span's status (the same file, Status.StatusCode)."""

_LONGEST_NAME = 200


@dataclass(frozen=True)
class SpanEvent:
    """Something at one moment of a span, nanoseconds since the Unix epoch."""

    at_ns: int
    name: str


@dataclass(frozen=True)
class Span:
    """One span; ids in hexadecimal (32 and 16 digits), times in nanoseconds since the Unix epoch."""

    trace: str
    span: str
    parent: str
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: list[tuple[str, Value]]
    status: int = UNSET
    message: str = ""
    events: list[SpanEvent] = field(default_factory=list)


@dataclass
class _Trace:
    name: str
    tags: tuple[tuple[str, str], ...]
    start_ns: int
    end_ns: int
    exchanges: int = 0
    stopped: int = 0


def spans_of(run: ExportRun, *, content: bool) -> Iterator[Span]:
    """The spans of a run, exchanges first, then the spans that hold them. Raises ExportError as `ExportRun` does.

    Memory grows with the number of traces (a few hundred bytes each), not with what was said in them.
    """
    traces: dict[str, _Trace] = {}
    for seen in run:
        yield _exchange_span(run, seen, traces, content=content)
    episodes = _episodes(run)
    for trace, facts in traces.items():
        yield _holder(run, trace, facts, episodes.get(facts.name))


def _key(seen: Seen) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """(name of what an exchange belongs to, for people; what makes it one; tags of all of it)."""
    episode = seen.exchange.tag("episode")
    if episode:
        kept = tuple((name, value) for name, value in seen.exchange.tags if name not in ("turn", "attempt", "probe"))
        return episode, json_text([seen.recording, "episode", episode]), kept
    tags = seen.exchange.tags
    name = ", ".join(f"{name}={value}" for name, value in tags) or seen.recording
    return name, json_text([seen.recording, "tags", [list(tag) for tag in tags]]), tags


def _exchange_span(run: ExportRun, seen: Seen, traces: dict[str, _Trace], *, content: bool) -> Span:
    exchange, outcome = seen.exchange, seen.judged.outcome
    name, key, tags = _key(seen)
    trace = _hash(16, run.run, key)
    start = max(exchange.started_us, 0) * 1000
    end = start + max(exchange.ended_at_us or 0, 0) * 1000
    facts = traces.setdefault(trace, _Trace(name, tags, start, end))
    facts.start_ns, facts.end_ns = min(facts.start_ns, start), max(facts.end_ns, end)
    facts.exchanges += 1
    stopped = outcome.layer != "ok"
    facts.stopped += stopped
    asked = Asked(run, seen)
    came = exchange.pieces("response")
    return Span(
        trace=trace,
        span=_hash(8, trace, seen.recording, str(exchange.attempt)),
        parent=_hash(8, trace),
        name=_name(asked),
        kind=CLIENT,
        start_ns=start,
        end_ns=end,
        attributes=attributes_of(asked, content=content),
        status=ERROR if stopped else UNSET,
        message=outcome.name if stopped else "",
        events=[SpanEvent(start + came[0].at_us * 1000, "stacktap.first_byte")] if came else [],
    )


def _name(asked: Asked) -> str:
    """`{operation} {model}`, as the conventions want it; method and path of what asks no model."""
    operation = operation_of(asked.seen)
    request = asked.seen.exchange.request
    if operation is not None:
        model = asked.request.model if asked.request is not None else None
        name = f"{operation} {model}" if isinstance(model, str) and model else operation
    else:
        name = f"{request.method} {request.path}" if request is not None else "not HTTP"
    return name[:_LONGEST_NAME]


def _holder(run: ExportRun, trace: str, facts: _Trace, episode: EpisodeRecord | None) -> Span:
    attributes: list[tuple[str, Value]] = [
        ("stacktap.run", run.run),
        ("stacktap.exchanges", facts.exchanges),
        ("stacktap.stopped", facts.stopped),
        *((f"stacktap.tag.{name}", value) for name, value in facts.tags),
    ]
    start, end, status, message = facts.start_ns, facts.end_ns, UNSET, ""
    name = f"run {facts.name}".strip()
    if episode is not None:
        name = f"invoke_agent {episode.cell.task}"
        start, end = min(start, episode.started_us * 1000), max(end, episode.ended_us * 1000)
        message = "" if episode.succeeded else episode.outcome.name
        status = OK if episode.succeeded else ERROR
        attributes = [
            ("gen_ai.operation.name", "invoke_agent"),
            ("gen_ai.provider.name", "stacktap"),
            ("gen_ai.agent.name", "stacktap harness"),
            ("gen_ai.conversation.id", episode.episode),
            ("gen_ai.request.model", episode.cell.model),
            *([] if episode.succeeded else [("error.type", episode.outcome.name)]),
            *attributes,
            ("stacktap.outcome", episode.outcome.name),
            ("stacktap.ended_by", episode.ended_by),
            ("stacktap.cell.stack", episode.cell.stack),
            ("stacktap.cell.condition", episode.cell.condition),
            ("stacktap.cell.task", episode.cell.task),
        ]
    return Span(trace, _hash(8, trace), "", name[:_LONGEST_NAME], INTERNAL, start, end, attributes, status, message)


def _episodes(run: ExportRun) -> dict[str, EpisodeRecord]:
    """The episodes of a grid's run by their name, without their turns; none where it has none that can be read."""
    if not run.source.has_episodes:
        return {}
    try:
        return {one.episode: replace(one, turns=(), answer=None) for one in EpisodeReader(run.source.folder)}
    except EpisodeJournalError:
        return {}


def _hash(size: int, *words: str) -> str:
    """An id of `size` bytes in hexadecimal, never all zeros (which stands for none)."""
    digest = blake2b(json_text(words).encode(), digest_size=size).hexdigest()
    return digest if digest.strip("0") else digest[:-1] + "1"
