"""What the relay tells the recorder: small facts about connections, in the order in which they happened.

The relay calls `Tap.put` on its event loop right after it has forwarded the bytes; `put` must do no more than queue
the event. Times are `time.monotonic_ns()`. Connections are numbered from 1 in order of acceptance; an exchange is the
n-th request of a connection. Bytes are as the client sent them (before tags are stripped and Host is rewritten) and as
the upstream sent them.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

Side = Literal["client", "upstream"]


class Event(msgspec.Struct, frozen=True, gc=False):
    """Base: which connection, when."""

    connection: int
    at_ns: int


class ConnectionOpened(Event, frozen=True, gc=False):
    """A client connected. `client` is its address as text."""

    client: str


class UpstreamConnected(Event, frozen=True, gc=False):
    """The connection to an upstream stands; `address` is the peer, `took_ns` since the attempt to connect began."""

    upstream: str
    address: str
    took_ns: int


class RequestStarted(Event, frozen=True, gc=False):
    """A whole request head, and what of its body came in the same read. Later parts come as `RequestData`.

    `head` and `body` are wire bytes as the client sent them; `target` is what went on to the upstream;
    `complete` says that the request ended within this read.
    """

    upstream: str
    tags: tuple[tuple[str, str], ...]
    head: bytes
    body: bytes
    target: bytes
    complete: bool


class RequestData(Event, frozen=True, gc=False):
    """One further read of a request body (wire bytes); `data` may be empty when only `complete` is news."""

    data: bytes
    complete: bool


class ResponseData(Event, frozen=True, gc=False):
    """One read from the upstream's socket, not parsed: it may hold part of a response, or several."""

    data: bytes


class OpaqueData(Event, frozen=True, gc=False):
    """One read of a connection that is not HTTP, or is no longer (after an upgrade)."""

    upstream: str
    side: Side
    data: bytes


class SideClosed(Event, frozen=True, gc=False):
    """One side closed: `fin` (orderly end of its stream), `rst` (reset), or `closed` by the relay itself."""

    side: Side
    how: Literal["fin", "rst", "closed"]


class RelayFault(Event, frozen=True, gc=False):
    """The relay could not go on by itself. `code` is one of `FAULTS`; `answer` is what it sent to the client."""

    code: str
    detail: str
    answer: bytes


class ConnectionClosed(Event, frozen=True, gc=False):
    """Both sides are gone; nothing more will come from this connection."""


class Note(Event, frozen=True, gc=False):
    """Something worth keeping about an exchange (its number on the connection, from 1) or the run (None)."""

    exchange: int | None
    kind: str
    fields: dict[str, Any]


FAULTS = frozenset(
    {
        "upstream_refused",
        "upstream_unreachable",
        "name_not_resolved",
        "tls_failed",
        "timeout_connect",
        "timeout_read",
        "no_route",
        "host_not_allowed",
        "token_required",
        "journal_failed",
        "relay_stopped",
    }
)
"""Codes of `RelayFault`: what the relay met that is neither the client's nor the upstream's message."""


class Tap(Protocol):
    """Receives events. `full` asks the relay to stop reading from sockets until `wait_drained` returns."""

    full: bool
    refusing: bool
    """True when the record is required (`--strict`) and cannot be written: new requests are answered 503."""

    def put(self, event: Event) -> None:
        """Queue one event; never blocks, never raises."""

    async def wait_drained(self) -> None:
        """Return when there is room again."""
