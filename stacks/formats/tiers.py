"""Two tiers of reading a reply that should be JSON: strict (the whole reply) and lenient (the first extractor).

The tiers are those of packs without tools and of text tools: the same scorer judges the value of either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from stacks.formats.json_reader import JsonReader
from stacks.formats.json_text import loads
from stacks.formats.model import Span
from stacks.formats.registry import format_named
from stacks.formats.tools import offered_tools

_FENCE = re.compile(r"```[ \t]*[\w+-]*[ \t]*\r?\n?\s*(?=[{\[])")
_BRACE = re.compile(r"[{\[](?=\s*[\[{\"'}\]\w-])")
_MAX_TRIES = 200


@dataclass(frozen=True, slots=True)
class ReplyReading:
    """A value read from a reply. extractor: `whole`, `native:FORMAT`, `fence` or `braces`."""

    value: Any
    extractor: str
    span: Span
    repairs: tuple[str, ...] = ()


def strict_reply(reply: str) -> ReplyReading | None:
    """The value that the whole reply is, white space around it apart; None when it is no JSON text (RFC 8259)."""
    body = reply.strip()
    try:
        value = loads(body)
    except ValueError:
        return None
    start = reply.find(body)
    return ReplyReading(value, "whole", Span(start, start + len(body)))


def lenient_reply(reply: str, declared: str | None = None, tools: Any = None) -> ReplyReading | None:
    """The first value that one of the extractors finds: the declared format's envelope, a fence, balanced braces.

    A call of the declared format reads as `{"name": ..., "arguments": ...}`. Raises KeyError for an unknown format.
    """
    if declared is not None:
        result = format_named(declared).parse(reply, "lenient", offered_tools(tools))
        for call in result.calls:
            if call.complete:
                value = {"name": call.name, "arguments": call.arguments}
                return ReplyReading(value, f"native:{declared}", call.span, call.repairs)
    whole = strict_reply(reply)
    if whole is not None:
        return whole
    return _first(reply, _FENCE, "fence", ("```",)) or _first(reply, _BRACE, "braces", ())


def _first(reply: str, start: re.Pattern[str], name: str, stops: tuple[str, ...]) -> ReplyReading | None:
    """The first complete container that begins where `start` matches."""
    reader = JsonReader(reply, stops)
    pos = 0
    for _ in range(_MAX_TRIES):
        match = start.search(reply, pos)
        if match is None:
            return None
        at = match.end() if stops else match.start()
        reading = reader.read(at)
        if reading.node is not None and reading.node.complete and (stops or not reading.stopped):
            return ReplyReading(reading.node.value, name, Span(at, reading.end), reading.repairs)
        pos = max(reading.end, match.end())
    return None
