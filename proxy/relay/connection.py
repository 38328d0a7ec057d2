"""One client connection and its upstream connection: bytes pass as they come, and the tap is told afterwards.

Requests are framed (to strip tags, rewrite Host and route); responses are framed only where the relay must know when
one ends: on a port that routes by prefix, with a read timeout, and while an answer to an upgrade is awaited.
"""

from __future__ import annotations

import asyncio
from time import monotonic_ns
from typing import cast

from proxy.relay.ends import DRAIN, HELD, HTTP, OPAQUE, PEER_FULL, STALLED, WAITING
from proxy.relay.hosts import is_loopback
from proxy.relay.plain import plain_request
from proxy.relay.rewrite import Request, read_request, rewrite_head
from proxy.relay.sockets import address_text, reset, tune
from proxy.relay.upstream import Upstream
from proxy.relay.upstream_half import MAX_WAITING, UpstreamHalf
from proxy.tap import ConnectionOpened, Event, OpaqueData, RequestData, RequestStarted, SideClosed
from results.http1 import Framer, Head, Kind, Piece

HEAD_SECONDS = 1.0
STALE_NS = 1_000_000_000
NO_NAMES: frozenset[str] = frozenset()


class Batch:
    """What one read from the client gives: bytes to forward in one write, and events to put after it."""

    __slots__ = ("events", "now", "out")

    def __init__(self, now: int) -> None:
        self.now = now
        self.out: list[bytes] = []
        self.events: list[Event] = []


class Connection(UpstreamHalf):
    """A client's connection."""

    __slots__ = ()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.client = cast(asyncio.Transport, transport)
        tune(self.client)
        relay = self.relay
        self.number = relay.opened(self)
        name = transport.get_extra_info("sockname")
        self.local_host = str(name[0]) if isinstance(name, tuple) else ""
        self.put(ConnectionOpened(self.number, monotonic_ns(), address_text(transport.get_extra_info("peername"))))
        if relay.stalled:
            self.stop_client(STALLED)
            self.stop_server(STALLED)
            relay.loop.call_soon(self._stay_stopped)
        if self.fixed is None or relay.config.read_timeout is not None:
            self._frame_responses()
        if self.fixed is not None:
            self._dial(self.fixed)

    def data_received(self, data: bytes) -> None:
        now = monotonic_ns()
        self.relay.stats.bytes_up += len(data)
        if self.mode == HTTP:
            if not (self.authority and self._pass(data, now)):
                self._take(data, now)
        elif self.mode == OPAQUE:
            self._send(data)
            self.put(OpaqueData(self.number, now, self._upstream_name(), "client", data))
        elif self.mode == HELD:
            self.held.append(data)
            if sum(map(len, self.held)) > MAX_WAITING:
                self.stop_client(WAITING)
        elif self.record_drain:
            self._record_drained(data, now)

    def eof_received(self) -> bool:
        self.client_ended = True
        self.put(SideClosed(self.number, monotonic_ns(), "client", "fin"))
        if self.mode == DRAIN:
            if self.answer_waits is None and not self.reset_after_flush:
                self._close()
            return True
        if self.mode == HTTP and self.requests.pending():
            rest = self.requests.become_opaque()
            if rest.strip(b"\r\n"):
                self._turn_opaque(rest, monotonic_ns())
            else:
                self._send(rest)
        nowhere = self.fixed is None and self.upstream is None
        if nowhere or (self.fault is not None and self.mode != DRAIN and not self.forwarded):
            self._close()
        elif not self.held or self.upstream_over:
            self._end_upstream()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None and not self.reset_told:
            self._tell_reset()
        self.client = None
        self._cancel_timers()
        if self.dialing is not None:
            self.dialing.cancel()
            self.dialing = None
        server = self.server
        if server is not None:
            if exc is not None:
                reset(server)
            else:
                server.close()
        if self.side is not None and self.server is None:
            self.side.connection = None
        self._closed_if_over()

    def pause_writing(self) -> None:
        self.stop_server(PEER_FULL)

    def resume_writing(self) -> None:
        if self.reset_after_flush:
            self._reset_client()
            return
        self.go_server(PEER_FULL)

    # Requests.

    def _pass(self, data: bytes, now: int) -> bool:
        """Pass an everyday request on without taking it apart. False: it is not one, or not everything is ready."""
        upstream = self.fixed
        ready = self.server is not None or self.dialing is not None
        if not ready or upstream is None or self.framed_down or self.requests.in_message or self.tap.refusing:
            return False
        plain = None if self.requests.pending() else plain_request(data)
        if plain is None or not is_loopback(data[plain.host_start : plain.host_end].decode("latin-1")):
            return False
        self._send(b"".join((data[: plain.host_start], self.authority, data[plain.host_end :])))
        if not self.forwarded:
            self.method = plain.method
        self.relay.stats.requests += 1
        self.exchange += 1
        self.forwarded += 1
        self.pipelines = self.pipelines or self.awaiting
        self.awaiting = True
        head, body = data[: plain.body_start], data[plain.body_start :]
        self.put(RequestStarted(self.number, now, upstream.name, (), head, body, plain.target, True))
        return True

    def _take(self, data: bytes, now: int) -> None:
        """Bytes of requests: forward what is complete in one write, then tell the tap."""
        pieces = self.requests.feed(data)
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
            if self.upstream_over:
                self._linger()
        batch = Batch(now)
        at, count = 0, len(pieces)
        while at < count:
            piece = pieces[at]
            following = at + 1
            body = b""
            if piece.kind is Kind.HEAD and following < count and pieces[following].kind is Kind.BODY:
                body = pieces[following].data
                following += 1
            complete = following < count and pieces[following].kind is Kind.END
            following += complete
            if piece.head is not None:
                if not self._begin(piece.head, body, complete, batch):
                    self._hold(pieces[at:], batch)
                    return
                if self.mode == DRAIN:
                    return
            elif piece.kind is Kind.BODY:
                batch.out.append(piece.data)
                batch.events.append(RequestData(self.number, now, piece.data, complete))
            elif piece.kind is Kind.OPAQUE:
                self._flush(batch)
                self._turn_opaque(piece.data, now)
                return
            at = following
            if self.upgrading and not self.requests.in_message:
                self._hold(pieces[at:], batch)
                return
        self._flush(batch)
        if self.requests.pending() and not self.upstream_over:
            self.timer = self.relay.loop.call_later(HEAD_SECONDS, self._head_overdue)

    def _flush(self, batch: Batch) -> None:
        out, events = batch.out, batch.events
        if out:
            self._send(out[0] if len(out) == 1 else b"".join(out))
            batch.out = []
        for event in events:
            self.put(event)
        batch.events = []

    def _hold(self, pieces: list[Piece], batch: Batch) -> None:
        """Keep what stands behind this point until the upstream's answer is known."""
        rest = b"".join([piece.data for piece in pieces]) + self.requests.pending()
        self.requests = Framer()
        self.held = [rest] if rest else []
        self.mode = HELD
        self._flush(batch)

    def _release(self) -> None:
        """Take up what was held."""
        held, self.held = b"".join(self.held), []
        self.mode = HTTP
        self.go_client(WAITING)
        if held:
            self._take(held, monotonic_ns())
        if self.client_ended and not self.held and self.mode != DRAIN:
            self._end_upstream()

    def _begin(self, head: Head, body: bytes, complete: bool, batch: Batch) -> bool:
        """One request head. False: it must wait for responses of another upstream."""
        relay = self.relay
        request = read_request(head, relay.names if self.fixed is None else NO_NAMES)
        upstream = self.fixed or relay.route(request)
        refusal = relay.refusal(request, upstream, self.local_host)
        if refusal is not None or upstream is None:
            code, detail = refusal or ("no_route", "no upstream")
            target = request.target.rest
        else:
            if upstream is not self.upstream:
                if self.outstanding:
                    return False
                if self.client_finished:
                    self._close()
                    return False
                self._switch(upstream)
            elif self.fault is not None and batch.now - self.fault_ns > STALE_NS and not self.forwarded:
                self._dial(upstream)
            target = self._forward(head, request, upstream, batch)
            if body:
                batch.out.append(body)
        self.exchange += 1
        name = upstream.name if upstream is not None else ""
        recorded = b"" if refusal is not None and refusal[0] == "token_required" else body
        batch.events.append(
            RequestStarted(self.number, batch.now, name, request.tags, request.recorded, recorded, target, complete)
        )
        if refusal is not None:
            relay.stats.refused += 1
            self._flush(batch)
            self._answer_fault(code, detail, head.method)
        elif self.fault is not None:
            self._flush(batch)
            self.record_drain = not complete
            self._answer_fault(self.fault.code, self.fault.detail, head.method)
        return True

    def _forward(self, head: Head, request: Request, upstream: Upstream, batch: Batch) -> bytes:
        """Put the head as it goes on into the batch; returns its target."""
        config = self.relay.config
        self.relay.stats.requests += 1
        mark = f"{self.number}/{self.exchange + 1}" if upstream.mark_exchanges else ""
        forwarded, target = rewrite_head(head, request, upstream, keep_host=config.keep_host, mark=mark)
        batch.out.append(forwarded)
        if not self.forwarded or (self.responses is not None and not self.outstanding):
            self.method = head.method
        if head.upgrade and self.responses is None and not self.awaiting:
            self._frame_responses()
        if self.responses is not None:
            self.responses.expect(head.method)
            self.upgrading = head.upgrade
            self.outstanding += 1
            if config.read_timeout is not None:
                self._watch_reads(batch.now)
        self.forwarded += 1
        self.pipelines = self.pipelines or self.awaiting
        self.awaiting = True
        return target

    def _turn_opaque(self, data: bytes, now: int) -> None:
        """The client's bytes are not HTTP (any more)."""
        refusal = self.relay.refuses_opaque(self.fixed)
        if refusal is not None:
            self._answer_fault(*refusal, b"")
            return
        self.relay.stats.opaque += 1
        self.mode = OPAQUE
        if self.fault is not None:
            self._fail_opaque(self.fault)
            return
        if not self.forwarded:
            self.opaque_down = self.framed_down = True
        if data:
            self._send(data)
            self.put(OpaqueData(self.number, now, self._upstream_name(), "client", data))

    def _head_overdue(self) -> None:
        self.timer = None
        pending = self.requests.pending()
        line = pending.lstrip(b"\r\n")
        if line and b"\n" not in line:
            self._turn_opaque(self.requests.become_opaque(), monotonic_ns())

    def _record_drained(self, data: bytes, now: int) -> None:
        for piece in self.requests.feed(data):
            if piece.kind is Kind.BODY:
                complete = not self.requests.in_message
                self.put(RequestData(self.number, now, piece.data, complete))
                if complete:
                    self.record_drain = False
                    return
