"""What the classifier looks at: one exchange as it stood on the wire, wherever it came from.

An `ExchangeView` is built from the journal, a case file, a line of captures, a HAR entry or a pasted transcript; the
classifier does not know which. It does no I/O.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Protocol

import msgspec

from stacks.dialects.exchange import WireExchange

COMPLETE = "complete"
CLIENT_GONE = "client_gone"
RESET = "upstream_reset"
CLOSED_EARLY = "upstream_closed"
REFUSED = "upstream_refused"
TIMEOUT = "timeout_read"
CONNECT_TIMEOUT = "timeout_connect"
RECORDER_KILLED = "recorder_killed"

NO_CONNECTION = frozenset({REFUSED, "upstream_unreachable", "name_not_resolved", "tls_failed", CONNECT_TIMEOUT})
"""Ends of attempts that never reached a server."""

ENDS = frozenset(
    {COMPLETE, CLIENT_GONE, RESET, CLOSED_EARLY, TIMEOUT, RECORDER_KILLED, *NO_CONNECTION}
    | {"not_http", "refused_by_relay", "opaque", "relay_stopped", "open"}
)
"""How an exchange can end; the words are those of the journal (`results.record.EndReason`), with `recorder_killed` and
`open` for what a reader adds. `upstream_closed` is an orderly close before the message was whole."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of body bytes that stands unbroken on the wire: `length` bytes at `body` of the de-chunked body are at
    `wire` of the message."""

    body: int
    wire: int
    length: int


class BodyMap(msgspec.Struct):
    """Leads offsets in a decoded body back to offsets in the message on the wire.

    `segments` in order of the body. A body under a content coding has no such map; `whole` (the range of the coded
    body) is then the answer to every question. Without either, offsets are taken as they are.
    """

    segments: list[Segment] = msgspec.field(default_factory=list)
    whole: tuple[int, int] | None = None

    def wire(self, start: int, end: int) -> tuple[int, int]:
        """Wire range from the first to the last byte of body range `start`..`end` (framing in between included)."""
        if self.whole is not None:
            return self.whole
        if not self.segments:
            return start, end
        first = self._at(start)
        last = self._at(end - 1) + 1 if end > start else first
        return first, max(first, last)

    def _at(self, offset: int) -> int:
        index = max(0, bisect_right(self.segments, offset, key=lambda segment: segment.body) - 1)
        segment = self.segments[index]
        return segment.wire + min(max(offset - segment.body, 0), segment.length)


class WireMap(Protocol):
    """Leads offsets in a decoded body back to offsets in the message on the wire."""

    def wire(self, start: int, end: int) -> tuple[int, int]:
        """The wire range of body bytes `start` to `end`."""


class ExchangeView(msgspec.Struct):
    """One attempt.

    `end` is one of `ENDS`, `end_detail` the words that came with it (an error text, a relay fault's code). `stack` and
    `stack_version` are what the run's manifest knows, "" where nothing is known, `launch_flags` how the server was
    started, None where that is not known. `request_head` and `response_head` are
    the wire ranges of the heads, `response_length` the bytes of the whole response; `request_map` and `response_map`
    lead body offsets to the wire. `first_byte_us` and `duration_us` count from the request; None where not recorded.
    `prompt_tokens_estimate` is an outside estimate of the prompt's size for a request whose text was cut. `unreadable`
    says why bytes could not be read as HTTP, "" otherwise; `miscoded` what a false content coding in the head claims of
    a body that is no such thing, "" where the coding is true. `request_unseen`: the request's body is not at hand (a
    transcript shows the response alone), which is not the same as an empty one.
    """

    attempt: int
    wire: WireExchange
    end: str = COMPLETE
    end_detail: str = ""
    request_map: WireMap = msgspec.field(default_factory=BodyMap)
    response_map: WireMap = msgspec.field(default_factory=BodyMap)
    response_head: tuple[int, int] = (0, 0)
    request_head: tuple[int, int] = (0, 0)
    response_length: int = 0
    stack: str = ""
    stack_version: str = ""
    launch_flags: tuple[str, ...] | None = None
    first_byte_us: int | None = None
    duration_us: int | None = None
    prompt_tokens_estimate: int | None = None
    unreadable: str = ""
    miscoded: str = ""
    request_unseen: bool = False
    upstream: str = ""
    tags: dict[str, str] = msgspec.field(default_factory=dict)
