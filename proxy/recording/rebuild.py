"""From what the relay saw on connections to what the journal says about attempts. Runs on the writer thread.

Requests are paired with responses here, responses are framed here (one read may hold the end of one and the beginning
of the next), secrets are learned and masked here, and it is decided here how each attempt ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from proxy import tap
from proxy.recording.attempts import REFUSALS, Attempt
from proxy.recording.everyday import EverydayBuilder
from proxy.recording.heads import RequestHead
from proxy.recording.outgoing import Outgoing
from proxy.recording.redact import Redactor
from results.record import Part, Request, as_text
from results.window import RequestReferences, RequestWindow, Stored


class Rebuilder(EverydayBuilder):
    """Turns events into encoded lines, which pile up in `lines` until the caller takes them."""

    def __init__(self, redactor: Redactor, window: RequestWindow, *, epoch_offset_ns: int | None = None) -> None:
        super().__init__(redactor, window, epoch_offset_ns=epoch_offset_ns)
        self._handlers: dict[type[tap.Event], Callable[[Any], None]] = {
            tap.ResponseData: self._response_data,
            tap.RequestStarted: self._request_started,
            tap.RequestData: self._request_data,
            tap.ConnectionOpened: self._connection_opened,
            tap.UpstreamConnected: self._upstream_connected,
            tap.OpaqueData: self._opaque_data,
            tap.SideClosed: self._side_closed,
            tap.RelayFault: self._relay_fault,
            tap.ConnectionClosed: self._connection_closed,
            tap.Note: self._note,
        }

    def handle(self, event: tap.Event) -> None:
        """Take in one event."""
        self._handlers[type(event)](event)

    def stop(self) -> None:
        """The recorder ends: every attempt still open ends with it."""
        now = time.monotonic_ns()
        for number in list(self._connections):
            connection = self._connection(number)
            self._flush_unsolicited(connection)
            for attempt in list(connection.waiting):
                if attempt.response_complete:
                    self._close(connection, attempt, now)
                else:
                    self._end(connection, attempt, "relay_stopped", "the recording was stopped", now)
        self._connections.clear()

    def _connection_opened(self, event: tap.ConnectionOpened) -> None:
        self._connection(event.connection).client = event.client

    def _upstream_connected(self, event: tap.UpstreamConnected) -> None:
        connection = self._connections.get(event.connection) or self._connection(event.connection)
        text = self._redactor.text
        upstream, address = text(event.upstream), text(event.address)
        fields = {"upstream": upstream, "address": address, "took_us": event.took_ns // 1000}
        attempt = connection.first()
        if attempt is None:
            connection.connected.append(fields)
        else:
            self._note_connected(fields, event.at_ns, attempt)

    def _request_started(self, event: tap.RequestStarted) -> None:
        if self._everyday_request(event):
            return
        connection = self._connection(event.connection)
        attempt = self._begin(connection, event.at_ns)
        head = self._redactor.request_head(event.head)
        attempt.head = head
        attempt.wants_upgrade = head.upgrade
        attempt.examined = self._redactor.secrets.version
        out = attempt.request
        out.head(head.masked)
        attempt.request_complete = event.complete
        self._begin_request_body(attempt, head)
        out.body(event.body)
        if event.complete:
            out.end_body()
        data = out.take()
        parts = self._parts(attempt, data, 0)
        text, base64 = as_text(data) if parts is None else (None, None)
        size = len(event.head) + len(event.body)
        self._put(
            Request(
                attempt.id,
                connection.number,
                attempt.number,
                event.upstream,
                (event.at_ns + self._offset_ns) // 1000,
                size,
                head.method,
                head.target,
                self._forwarded(event.target, head),
                connection.client,
                self._tags(event.tags),
                event.complete,
                text,
                base64,
                parts,
            )
        )
        out.read, out.stored = size, len(data)
        self._put_decoded(out)
        self._request_stored(attempt, data)
        self._began(connection, attempt)

    def _begin_request_body(self, attempt: Attempt, head: RequestHead) -> None:
        if head.has_body:
            mask = self._redactor.body_mask(chunked=head.chunked, content_encoding=head.content_encoding)
            attempt.request.begin_body(mask)
            attempt.kept = []
            total = None if head.length is None else len(head.masked) + head.length
            attempt.references = RequestReferences(self._window, len(head.masked), total)

    def _parts(self, attempt: Attempt, data: bytes, offset: int) -> tuple[Part, ...] | None:
        references = attempt.references
        if references is None or attempt.generation != self._generation or attempt.request.withheld:
            return None
        parts = references.encode(data, offset)
        return None if parts is None else tuple(parts)

    def _put_decoded(self, out: Outgoing) -> None:
        for line in out.decoded():
            self._put(line)

    def _request_stored(self, attempt: Attempt, data: bytes) -> None:
        if attempt.kept is None or attempt.head is None:
            return
        out = attempt.request
        if attempt.generation != self._generation or out.withheld or out.stored > self._window.max_bytes:
            attempt.kept = None
            return
        attempt.kept.append(data)
        if attempt.request_complete:
            self._window.add(Stored(attempt.id, b"".join(attempt.kept), len(attempt.head.masked), attempt.examined))
            attempt.kept = None

    def _request_data(self, event: tap.RequestData) -> None:
        connection = self._connection(event.connection)
        attempt = next((one for one in reversed(connection.waiting) if not one.request_complete), None)
        if attempt is None:
            fields = {"connection": event.connection, "bytes": len(event.data)}
            self._put_note("late_request_data", fields, event.at_ns, None)
            return
        out = attempt.request
        out.body(event.data)
        if event.complete:
            out.end_body()
            attempt.request_complete = True
        data = out.take()
        parts = self._parts(attempt, data, out.stored)
        for line in out.chunk(self._at_us(attempt, event.at_ns), len(event.data), data, parts, complete=event.complete):
            self._put(line)
        self._request_stored(attempt, data)
        if attempt.request_complete and (attempt.response_complete or attempt.fault is not None):
            self._close(connection, attempt, event.at_ns)

    def _opaque_data(self, event: tap.OpaqueData) -> None:
        connection = self._connection(event.connection)
        attempt = next((one for one in reversed(connection.waiting) if one.opaque or one.wants_upgrade), None)
        if event.side == "upstream" and connection.waiting and not (attempt is not None and attempt.opaque):
            self._respond(connection, event.data, event.at_ns)
            return
        if attempt is None:
            attempt = self._begin_opaque(connection, event.upstream, event.at_ns)
        out = attempt.request if event.side == "client" else attempt.response
        if event.side == "client" and not attempt.opaque and not attempt.masked_upgrade:
            out.begin_body(self._redactor.body_mask(chunked=False, content_encoding=""))
            attempt.masked_upgrade = True
        out.body(event.data)
        for line in out.chunk(self._at_us(attempt, event.at_ns), len(event.data), out.take()):
            self._put(line)

    def _side_closed(self, event: tap.SideClosed) -> None:
        if event.connection not in self._connections:
            return
        connection = self._connection(event.connection)
        connection.note_closed(event.side, event.how, event.at_ns)
        if event.side != "upstream" or event.how == "closed":
            return
        attempt = connection.answering()
        if attempt is not None and attempt.until_close and event.how == "fin" and connection.framer.eof():
            attempt.response_complete = True
        # An attempt without any answer may still get one from the relay: its end is told by what follows.
        for waiting in list(connection.waiting):
            undecided = waiting.response_complete and connection.client_left
            if waiting.response.read and not waiting.opaque and not undecided:
                self._close(connection, waiting, event.at_ns)

    def _relay_fault(self, event: tap.RelayFault) -> None:
        connection = self._connection(event.connection)
        refused = event.code in REFUSALS
        if not connection.waiting:
            if event.code == "relay_stopped":
                return
            self._begin_opaque(connection, "", event.at_ns)
        reason = "refused_by_relay" if refused else event.code
        detail = f"{event.code}: {event.detail}" if refused else event.detail
        last, answer = connection.waiting[-1], event.answer
        for attempt in list(connection.waiting):
            cut = event.code != "relay_stopped" or not (connection.upstream_left or connection.client_left)
            if attempt.response_complete or (refused and attempt is not last) or not cut:
                self._close(connection, attempt, event.at_ns)
                continue
            if attempt.request_complete:
                self._end(connection, attempt, reason, detail, event.at_ns, answer=answer)
            else:
                attempt.fault = (reason, detail, answer)
            answer = b""

    def _connection_closed(self, event: tap.ConnectionClosed) -> None:
        if event.connection not in self._connections:
            return
        connection = self._connection(event.connection)
        del self._connections[event.connection]
        self._flush_unsolicited(connection)
        for attempt in list(connection.waiting):
            self._close(connection, attempt, event.at_ns)

    def _note(self, event: tap.Note) -> None:
        attempt = None
        if event.exchange is not None:
            attempt = self._number(event.connection, event.exchange)
        fields = event.fields
        if event.exchange is not None and attempt is None:
            fields = {**fields, "connection": event.connection, "exchange": event.exchange}
        self._put_note(event.kind, fields, event.at_ns, attempt)
