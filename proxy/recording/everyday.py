"""The everyday: a whole request in one read, a whole, plain response in one read, a stream chunk by chunk.

Nearly everything is such, and following it costs several times as much as saying what happened. The lines of such an
exchange are written at once; anything else that happens to it turns it into an ordinary attempt. Of a streamed
response, reads that are a whole chunk are, and everything else is followed.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from proxy import tap
from proxy.recording.attempts import Attempt, Connection
from proxy.recording.heads import RequestHead
from proxy.recording.outgoing import PayloadMask
from proxy.recording.responses import ResponseBuilder
from results.chunked import whole_chunk
from results.record import Chunk, End, Head, Part, Request, as_text
from results.window import Stored


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A whole request that is on record and waits for its answer. `stored` of its `size` bytes are in the journal."""

    attempt: int
    number: int
    started_ns: int
    generation: int
    examined: int
    head: RequestHead
    size: int
    stored: int


class Steady(NamedTuple):
    """A streamed answer, what masks its payload, and whether it comes in chunks (or until the connection's end)."""

    attempt: Attempt
    mask: PayloadMask
    chunked: bool


class EverydayBuilder(ResponseBuilder):
    """Takes the short way where it leads to the same lines."""

    def _connection(self, number: int) -> Connection:
        """A connection on which something out of the ordinary happens."""
        connection = super()._connection(number)
        connection.steady = None
        if connection.asked is not None:
            self._ordinary(connection, connection.asked)
        return connection

    def _ordinary(self, connection: Connection, asked: Asked) -> None:
        """Make an everyday exchange an attempt like any other."""
        connection.asked = None
        attempt = Attempt(asked.attempt, asked.number, asked.started_ns, asked.generation)
        attempt.head = asked.head
        attempt.examined = asked.examined
        attempt.request_complete = True
        attempt.request.read = asked.size
        attempt.request.stored = asked.stored
        connection.waiting.append(attempt)

    def _everyday_request(self, event: tap.RequestStarted) -> bool:
        """Put the line of an everyday request. False: it is none."""
        connection = self._connections.get(event.connection)
        redactor = self._redactor
        if connection is None or connection.busy or connection.client_left or not (event.complete and redactor.plain):
            return False
        head = redactor.request_head(event.head)
        body = event.body
        framed = not (head.chunked or head.content_encoding or head.upgrade) and (head.length or 0) == len(body)
        if not (framed and head.target_bytes):
            return False
        attempt, number = self._count(connection)
        examined = redactor.secrets.version
        masked, parts = self._masked(head, body, examined) if body else (head.masked, None)
        text, base64 = as_text(masked) if parts is None else (None, None)
        size = len(event.head) + len(body)
        self._put(
            Request(
                attempt,
                connection.number,
                number,
                event.upstream,
                (event.at_ns + self._offset_ns) // 1000,
                size,
                head.method,
                head.target,
                self._forwarded(event.target, head),
                connection.client,
                self._tags(event.tags),
                True,
                text,
                base64,
                parts,
            )
        )
        connection.asked = Asked(attempt, number, event.at_ns, self._generation, examined, head, size, len(masked))
        if body:
            self._window.add(Stored(attempt, masked, len(head.masked), examined))
        for fields in connection.connected:
            self._note_connected(fields, event.at_ns, attempt)
        connection.connected.clear()
        return True

    def _masked(self, head: RequestHead, body: bytes, examined: int) -> tuple[bytes, tuple[Part, ...] | None]:
        """A whole request, masked, and the references that may stand for it; what it repeats is not searched again."""
        window, secrets = self._window, self._redactor.secrets
        start, end = window.news(body, examined)
        known = (start > 0 or end < len(body)) and not secrets.may_hold_within(body, start, end)
        data = head.masked + (body if known else secrets.mask(body))
        parts = window.references(data, len(head.masked))
        return data, None if parts is None else tuple(parts)

    def _response_data(self, event: tap.ResponseData) -> None:
        connection = self._connections.get(event.connection)
        if connection is None:
            super()._response_data(event)
        elif connection.steady is not None:
            if not self._streamed(connection.steady, event):
                self._follow(connection, event)
        elif connection.asked is None or not self._answered(connection, connection.asked, event):
            self._follow(connection, event)

    def _follow(self, connection: Connection, event: tap.ResponseData) -> None:
        """Take in an unusual read; see whether the usual is awaited from there on."""
        super()._response_data(event)
        framer = connection.framer
        if framer.between_chunks or framer.until_close:
            attempt = connection.answering()
            mask = attempt.response.steady if attempt is not None else None
            if attempt is not None and mask is not None:
                connection.steady = Steady(attempt, mask, framer.between_chunks)

    def _streamed(self, steady: Steady, event: tap.ResponseData) -> bool:
        """Put the line of a usual read of a streamed answer. False: it is none, or has to be looked at closely."""
        data = event.data
        payload = data
        if steady.chunked:
            start = whole_chunk(data)
            if not start:
                return False
            payload = data[start:-2]
        if not steady.mask.passes(payload):
            return False
        attempt = steady.attempt
        out = attempt.response
        text, base64 = as_text(data)
        at, size = out.read, len(data)
        at_us = (event.at_ns - attempt.started_ns) // 1000
        self._put(Chunk(attempt.id, "response", at_us, at, size, False, None, text, base64))
        out.read = out.stored = at + size
        return True

    def _answered(self, connection: Connection, asked: Asked, event: tap.ResponseData) -> bool:
        """Put the lines of an everyday response, and of the end. False: it is none."""
        data = event.data
        length = data.find(b"\r\n\r\n") + 4
        if length < 4 or asked.head.method_bytes in (b"HEAD", b"CONNECT"):
            return False
        head = self._redactor.response_head(data[:length])
        size = len(data)
        if head.plain_length is None or length + head.plain_length != size:
            return False
        connection.asked = None
        text, base64 = as_text(head.raw + self._redactor.secrets.mask(data[length:]))
        attempt, at_us = asked.attempt, (event.at_ns - asked.started_ns) // 1000
        self._put(Chunk(attempt, "response", at_us, 0, size, False, None, text, base64))
        self._put(Head(attempt, at_us, head.status, head.reason, head.headers, 0, length))
        self._put(End(attempt, at_us, "complete", asked.size, size))
        self._count_end("complete")
        return True
