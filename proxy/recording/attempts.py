"""What the recorder remembers of attempts and connections that are not over, and how an attempt's end is named."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any

from proxy.recording.heads import RequestHead
from proxy.recording.outgoing import Outgoing
from results.http1 import Framer
from results.record import NOT_TAKEN
from results.window import RequestReferences

if TYPE_CHECKING:
    from proxy.recording.everyday import Asked, Steady

REFUSALS = frozenset({"no_route", "host_not_allowed", "token_required", "journal_failed"})
"""Fault codes by which the relay itself turned a request down."""


class Attempt:
    """One attempt that has not ended."""

    __slots__ = (
        "broken",
        "detail",
        "examined",
        "expected",
        "fault",
        "generation",
        "head",
        "id",
        "kept",
        "late",
        "masked_upgrade",
        "number",
        "opaque",
        "references",
        "request",
        "request_complete",
        "responded",
        "response",
        "response_complete",
        "started_ns",
        "until_close",
        "upgraded",
        "wants_upgrade",
    )

    def __init__(self, attempt: int, number: int, started_ns: int, generation: int) -> None:
        self.id = attempt
        self.number = number
        self.started_ns = started_ns
        self.generation = generation
        """Which stretch of the journal it began in; references reach no further back."""
        self.request = Outgoing(attempt, "request")
        self.response = Outgoing(attempt, "response")
        self.head: RequestHead | None = None
        self.kept: list[bytes] | None = None
        self.references: RequestReferences | None = None
        self.detail = ""
        self.late = b""
        """What came for a client that had ended its stream: the beginning, more than an end mark is long."""
        self.examined = 0
        """Which secrets were known when its request's masking began."""
        self.expected = False
        """Whether the framing of responses knows of this request."""
        self.fault: tuple[str, str, bytes] | None = None
        """(end, detail, answer) of a fault that came while the request was still being sent."""
        self.request_complete = False
        self.response_complete = False
        self.responded = False
        """Whether the final response's head is whole."""
        self.until_close = False
        self.broken = False
        """Whether the upstream sent something that cannot be framed as HTTP."""
        self.opaque = False
        self.upgraded = False
        self.wants_upgrade = False
        self.masked_upgrade = False


class Connection:
    """One client connection: its attempts, the framing of its response direction, who closed first."""

    __slots__ = (
        "asked",
        "client",
        "client_reset",
        "connected",
        "count",
        "first_closed",
        "first_closed_ns",
        "framer",
        "number",
        "steady",
        "unsolicited",
        "waiting",
    )

    def __init__(self, number: int, client: str) -> None:
        self.number = number
        self.client = client
        self.count = 0
        self.framer = Framer(response=True)
        self.waiting: deque[Attempt] = deque()
        """Attempts that have not ended, in order; the first is the one being answered."""
        self.asked: Asked | None = None
        """An everyday request that waits for its answer; then nothing else does."""
        self.first_closed: tuple[str, str] | None = None
        """(side, how) of whoever ended first; the relay's own closing does not count."""
        self.first_closed_ns = 0
        self.client_reset = False
        """Whether the client refused bytes (by RST), at whatever time."""
        self.connected: list[dict[str, Any]] = []
        self.steady: Steady | None = None
        """The streamed answer under way, while nothing else has come since."""
        self.unsolicited: list[tuple[int, bytes]] = []

    @property
    def busy(self) -> bool:
        """Whether anything is under way, or was left over, that the next request has to do with."""
        framer = self.framer
        return bool(
            self.waiting
            or self.asked is not None
            or self.unsolicited
            or framer.opaque
            or framer.in_message
            or framer.pending()
        )

    def first(self) -> int | None:
        """The number of the first attempt that has not ended."""
        if self.asked is not None:
            return self.asked.attempt
        return self.waiting[0].id if self.waiting else None

    def answering(self) -> Attempt | None:
        """The attempt that the next bytes from the upstream belong to."""
        for attempt in self.waiting:
            if not attempt.response_complete:
                return attempt
        return None

    @property
    def upstream_left(self) -> bool:
        """Whether the upstream ended first: nothing more comes from it, however long the client stays."""
        return self.first_closed is not None and self.first_closed[0] == "upstream"

    @property
    def client_left(self) -> bool:
        """Whether the client ended its stream first; it may still read, or be gone."""
        return self.first_closed is not None and self.first_closed[0] == "client"

    def note_closed(self, side: str, how: str, at_ns: int) -> None:
        """Remember which side ended first, and whether the client refused what was sent to it."""
        if side == "client" and how == "rst":
            self.client_reset = True
        if how != "closed" and self.first_closed is None:
            self.first_closed = (side, how)
            self.first_closed_ns = at_ns


_END_MARKS = re.compile(rb"(?:[0-9a-fA-F]+\r\n)?(?:\s*data: ?\[DONE\]\s*)?(?:\r\n)?(?:0\r\n\r\n)?")
"""What may follow the last word of an answer. A client that knows it does not wait for this, and so refuses it."""
LATE_BYTES = 64


def ending(attempt: Attempt, connection: Connection) -> tuple[str, str]:
    """(end, detail) of an attempt whose connection is over, without a fault of the relay's own.

    A client that ends its stream may only have nothing more to ask. It is gone where it refused the answer.
    """
    first_closed = connection.first_closed
    waited = (connection.first_closed_ns - attempt.started_ns) / 1e6
    after = f"the client stopped listening after {waited:.0f} ms"
    if attempt.opaque or attempt.upgraded:
        return "opaque", attempt.detail or ("after an upgrade" if attempt.upgraded else "")
    refused = connection.client_left and connection.client_reset and _END_MARKS.fullmatch(attempt.late) is None
    if attempt.response_complete and refused:
        return "client_gone", f"{after} {NOT_TAKEN}"
    if attempt.response_complete:
        return "complete", "" if attempt.request_complete else "the request was not sent whole"
    if attempt.broken and not attempt.responded:
        return "not_http", "the upstream answered something that is not HTTP/1"
    if attempt.responded or attempt.response.read:
        moment = "during the answer" if attempt.responded else "in the head of the answer"
    else:
        moment = "before the answer" if attempt.request_complete else "before the request was whole"
    if attempt.broken:
        moment = "after its framing broke"
    if first_closed is None:
        return "relay_stopped", f"closed by stacktap {moment}"
    side, how = first_closed
    if side == "client":
        return "client_gone", f"{how} {moment}: {after}"
    return ("upstream_reset" if how == "rst" else "upstream_closed"), moment
