"""One client connection and its upstream connection: bytes pass as they come, and the tap is told afterwards.

Requests are framed (to strip tags, rewrite Host and route); responses are framed only where the relay must know when
one ends: on a port that routes by prefix, with a read timeout, and while an answer to an upgrade is awaited.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Literal, cast

from proxy.answers import answer
from proxy.connect import ConnectError, connect
from proxy.rewrite import Request, read_request, rewrite_head
from proxy.tap import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    OpaqueData,
    RelayFault,
    RequestData,
    RequestStarted,
    ResponseData,
    SideClosed,
    UpstreamConnected,
)
from proxy.upstream import Upstream
from results.http1 import Framer, Head, Kind, Piece

if TYPE_CHECKING:
    from proxy.relay import Relay

HTTP, HELD, OPAQUE, DRAIN = 0, 1, 2, 3
"""What client bytes are: requests; requests that must wait; anything; to be read and dropped before closing."""

PEER_FULL, STALLED, WAITING = 1, 2, 4
"""Why a side is not read: the other side is full, the record is full, too much waits to be sent."""

MAX_WAITING = 1 << 18
"""Bytes held for an upstream that cannot take them yet, before the client is no longer read."""

HEAD_SECONDS = 1.0
DRAIN_SECONDS = 5.0
LINGER_SECONDS = 30.0
PENDING_SECONDS = 1.0
STALE_NS = 1_000_000_000

NO_NAMES: frozenset[str] = frozenset()
_RESET = struct.pack("ii", 1, 0)


def tune(transport: asyncio.Transport, *, encrypted: bool = False) -> None:
    """No Nagle delay, keep-alive probes for peers that vanish, and no buffering beyond one read.

    With a limit of 0 a write goes to the socket at once (uvloop would queue it to the end of the loop's turn), and
    the other side is paused as soon as the kernel takes no more.
    """
    sock = transport.get_extra_info("socket")
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    transport.set_write_buffer_limits(1 << 16 if encrypted else 0)


def reset(transport: asyncio.Transport) -> None:
    """Close with RST."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


def address_text(name: Any) -> str:
    """`host:port` of a socket address."""
    if not isinstance(name, tuple):
        return str(name or "")
    return f"[{name[0]}]:{name[1]}" if ":" in str(name[0]) else f"{name[0]}:{name[1]}"


class UpstreamSide(asyncio.Protocol):
    """The upstream's half of a connection."""

    __slots__ = ("began_ns", "connection", "transport", "upstream")

    def __init__(self, connection: Connection, upstream: Upstream) -> None:
        self.connection: Connection | None = connection
        self.upstream = upstream
        self.transport: asyncio.Transport | None = None
        self.began_ns = monotonic_ns()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if self.connection is None:
            self.transport.abort()
        else:
            self.connection.upstream_made(self, self.transport)

    def data_received(self, data: bytes) -> None:
        connection = self.connection
        if connection is None:
            return
        now = monotonic_ns()
        if connection.framed_down:
            connection.upstream_data(data, now)
            return
        client = connection.client
        if client is not None:
            client.write(data)
        connection.awaiting = False
        connection.relay.stats.bytes_down += len(data)
        connection.put(ResponseData(connection.number, now, data))

    def eof_received(self) -> bool:
        if self.connection is not None:
            self.connection.upstream_ended()
            return not self.upstream.tls
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.upstream_lost(exc)

    def pause_writing(self) -> None:
        if self.connection is not None:
            self.connection.stop_client(PEER_FULL)

    def resume_writing(self) -> None:
        if self.connection is not None:
            self.connection.go_client(PEER_FULL)


class Batch:
    """What one read from the client gives: bytes to forward in one write, and events to put after it."""

    __slots__ = ("events", "now", "out")

    def __init__(self, now: int) -> None:
        self.now = now
        self.out: list[bytes] = []
        self.events: list[Event] = []


class Connection(asyncio.Protocol):
    """A client's connection. `fixed` is the upstream of its port, or None where the path says which."""

    __slots__ = (
        "answer_waits",
        "awaiting",
        "client",
        "client_ended",
        "client_stops",
        "dialing",
        "exchange",
        "fault",
        "fault_ns",
        "fixed",
        "forwarded",
        "framed_down",
        "held",
        "local_host",
        "method",
        "mode",
        "moved",
        "number",
        "opaque_down",
        "outstanding",
        "pipelines",
        "quiet_ns",
        "record_drain",
        "relay",
        "requests",
        "reset_after_flush",
        "responses",
        "server",
        "server_stops",
        "side",
        "tap",
        "timer",
        "timer_read",
        "unsent",
        "unsent_bytes",
        "upgrading",
        "upstream",
        "upstream_over",
    )

    def __init__(self, relay: Relay, fixed: Upstream | None) -> None:
        self.relay = relay
        self.tap = relay.tap
        self.fixed = fixed
        self.number = 0
        self.exchange = 0
        self.mode = HTTP
        self.client: asyncio.Transport | None = None
        self.client_ended = False
        self.client_stops = 0
        self.server: asyncio.Transport | None = None
        self.server_stops = 0
        self.side: UpstreamSide | None = None
        self.upstream: Upstream | None = None
        self.upstream_over = False
        self.dialing: asyncio.Task[None] | None = None
        self.fault: ConnectError | None = None
        self.fault_ns = 0
        self.requests = Framer()
        self.responses: Framer | None = None
        self.framed_down = False
        self.opaque_down = False
        self.upgrading = False
        self.awaiting = False
        self.pipelines = False
        self.forwarded = 0
        self.outstanding = 0
        self.method = b""
        self.held: list[bytes] = []
        self.unsent: list[bytes] = []
        self.unsent_bytes = 0
        self.timer: asyncio.TimerHandle | None = None
        self.timer_read: asyncio.TimerHandle | None = None
        self.quiet_ns = 0
        self.moved = 0
        self.answer_waits: tuple[str, str, bytes] | None = None
        self.record_drain = False
        self.reset_after_flush = False
        self.local_host = ""

    # The client's half.

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
        elif not self.held:
            self._end_upstream()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        now = monotonic_ns()
        if exc is not None:
            self.put(SideClosed(self.number, now, "client", "rst"))
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

    # Reading stops and goes on.

    def _stay_stopped(self) -> None:
        """Pause once more: uvloop starts to read after `connection_made`, so one read may have slipped through."""
        if self.client_stops and self.client is not None:
            self.client.pause_reading()
        if self.server_stops and self.server is not None:
            self.server.pause_reading()

    def stop_client(self, why: int) -> None:
        """Do not read from the client for one more reason."""
        if not self.client_stops and self.client is not None:
            self.client.pause_reading()
        self.client_stops |= why

    def go_client(self, why: int) -> None:
        """One reason less; read again when none is left."""
        if self.client_stops:
            self.client_stops &= ~why
            if not self.client_stops and self.client is not None and not self.client.is_closing():
                self.client.resume_reading()

    def stop_server(self, why: int) -> None:
        """Do not read from the upstream for one more reason."""
        if not self.server_stops and self.server is not None:
            self.server.pause_reading()
        self.server_stops |= why

    def go_server(self, why: int) -> None:
        """One reason less; read again when none is left."""
        if self.server_stops:
            self.server_stops &= ~why
            if not self.server_stops and self.server is not None and not self.server.is_closing():
                self.server.resume_reading()

    def put(self, event: Event) -> None:
        """Hand one event to the tap; stop reading everywhere when it is full."""
        tap = self.tap
        tap.put(event)
        if tap.full and not self.relay.stalled:
            self.relay.stall()

    # Requests.

    def _take(self, data: bytes, now: int) -> None:
        """Bytes of requests: forward what is complete in one write, then tell the tap."""
        pieces = self.requests.feed(data)
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
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
        if self.requests.pending():
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
        if head.upgrade and self.responses is None and not self.awaiting:
            self._frame_responses()
        if self.responses is not None:
            self.responses.expect(head.method)
            self.upgrading = head.upgrade
            self.outstanding += 1
            if config.read_timeout is not None:
                self._watch_reads(batch.now)
        if not self.forwarded:
            self.method = head.method
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

    # The upstream's half.

    def _dial(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.fault = None
        self.upstream_over = False
        self.side = UpstreamSide(self, upstream)
        self.dialing = self.relay.loop.create_task(self._connect(self.side))

    async def _connect(self, side: UpstreamSide) -> None:
        relay = self.relay
        upstream = side.upstream
        try:
            await connect(
                upstream,
                lambda: side,
                tls=relay.tls if upstream.tls else None,
                timeout=relay.config.connect_timeout,
            )
        except ConnectError as fault:
            if side is self.side and self.client is not None:
                self.dialing = None
                self._connect_failed(fault)

    def _connect_failed(self, fault: ConnectError) -> None:
        self.fault, self.fault_ns = fault, monotonic_ns()
        self.unsent.clear()
        self.unsent_bytes = 0
        self.go_client(WAITING)
        if self.mode == OPAQUE:
            self._fail_opaque(fault)
        elif self.forwarded:
            self.record_drain = self.requests.in_message and self.mode != DRAIN
            self._answer_fault(fault.code, fault.detail, self.method)
        elif self.client_ended:
            self._close()

    def _fail_opaque(self, fault: ConnectError) -> None:
        self._count_fault(fault.code)
        self.put(RelayFault(self.number, monotonic_ns(), fault.code, fault.detail, b""))
        self._reset_client()

    def _switch(self, upstream: Upstream) -> None:
        """Leave the present upstream (its responses are complete) for another."""
        if self.side is not None:
            self.side.connection = None
            if self.server is not None:
                self.server.close()
                self.put(SideClosed(self.number, monotonic_ns(), "upstream", "closed"))
        if self.dialing is not None:
            self.dialing.cancel()
        self.server = None
        self.forwarded = 0
        self.server_stops &= STALLED
        self.go_client(PEER_FULL)
        self._frame_responses()
        self._dial(upstream)

    def _frame_responses(self) -> None:
        self.responses = Framer(response=True)
        self.framed_down = True

    def upstream_made(self, side: UpstreamSide, transport: asyncio.Transport) -> None:
        """The connection stands: send what waited for it."""
        if side is not self.side or self.client is None:
            side.connection = None
            transport.abort()
            return
        self.dialing = None
        self.server = transport
        tune(transport, encrypted=side.upstream.tls)
        now = monotonic_ns()
        if self.server_stops:
            transport.pause_reading()
            self.relay.loop.call_soon(self._stay_stopped)
        if self.unsent:
            transport.write(b"".join(self.unsent))
            self.unsent.clear()
            self.unsent_bytes = 0
            self.go_client(WAITING)
        peer = address_text(transport.get_extra_info("peername"))
        self.put(UpstreamConnected(self.number, now, side.upstream.name, peer, now - side.began_ns))
        if self.answer_waits is not None:
            self._end_upstream()
            self._answer_later()
        elif self.client_ended and not self.held:
            self._end_upstream()

    def _send(self, data: bytes) -> None:
        if self.server is not None:
            self.server.write(data)
        elif not self.upstream_over and self.fault is None:
            self.unsent.append(data)
            self.unsent_bytes += len(data)
            if self.unsent_bytes > MAX_WAITING:
                self.stop_client(WAITING)

    def upstream_data(self, data: bytes, now: int) -> None:
        """Bytes from the upstream where more than passing them on is to be done."""
        if self.client is not None:
            self.client.write(data)
        self.relay.stats.bytes_down += len(data)
        self.awaiting = False
        self.quiet_ns = now
        if self.opaque_down:
            self.put(OpaqueData(self.number, now, self._upstream_name(), "upstream", data))
            return
        if self.responses is None or self.mode == DRAIN:
            self.put(ResponseData(self.number, now, data))
            return
        responses = self.responses
        granted, rest = self._follow(responses.feed(data))
        if not granted:
            self.put(ResponseData(self.number, now, data))
            if self.upgrading and responses.opaque:
                self.outstanding = 0
                self._upgrade_refused()
            if self.mode == HELD and not self.upgrading and not self.outstanding:
                self._release()
            return
        if len(rest) < len(data):
            self.put(ResponseData(self.number, now, data[: len(data) - len(rest)]))
        if rest:
            self.put(OpaqueData(self.number, now, self._upstream_name(), "upstream", rest))
        self._upgraded(now)

    def _follow(self, pieces: list[Piece]) -> tuple[bool, bytes]:
        """Count responses; true, with the bytes behind the head, when an upgrade was granted."""
        for at, piece in enumerate(pieces):
            if piece.kind is Kind.HEAD and piece.head is not None and piece.head.upgrade:
                return True, b"".join([later.data for later in pieces[at + 1 :]])
            if piece.kind is Kind.END and self.outstanding:
                self.outstanding -= 1
                if not self.outstanding:
                    self._upgrade_refused()
        return False, b""

    def _upgrade_refused(self) -> None:
        """The last response is complete and no upgrade was granted: it stays HTTP."""
        if self.upgrading:
            self.upgrading = False
            if self.fixed is not None and self.relay.config.read_timeout is None:
                self.responses = None
                self.framed_down = False

    def _upgraded(self, now: int) -> None:
        self.relay.stats.opaque += 1
        self.opaque_down = True
        self.upgrading = False
        self.outstanding = 0
        held, self.held = b"".join(self.held), []
        held = self.requests.become_opaque() + held
        self.mode = OPAQUE
        self.go_client(WAITING)
        if held:
            self._send(held)
            self.put(OpaqueData(self.number, now, self._upstream_name(), "client", held))
        if self.client_ended:
            self._end_upstream()

    def _upstream_name(self) -> str:
        return self.upstream.name if self.upstream is not None else ""

    # Ends.

    def _end_upstream(self) -> None:
        """The client has ended its stream: so does the relay towards the upstream. TLS can only close."""
        server = self.server
        if server is None:
            if self.upstream_over and self.client is not None:
                self._close()
            return
        if self.upstream_over:
            self._close()
        elif self.side is not None and self.side.upstream.tls:
            self.upstream_over = True
            self.put(SideClosed(self.number, monotonic_ns(), "upstream", "closed"))
            server.close()
        elif server.can_write_eof():
            server.write_eof()

    def upstream_ended(self) -> None:
        """The upstream's FIN."""
        if self.upstream_over:
            return
        self.upstream_over = True
        self.put(SideClosed(self.number, monotonic_ns(), "upstream", "fin"))
        if self.answer_waits is not None:
            self._answer_now()
        elif self.client is None or self.mode == DRAIN:
            return
        elif self.client_ended:
            self._close()
        else:
            self.client.write_eof()
            if self.mode != OPAQUE:
                self._linger()

    def upstream_lost(self, exc: Exception | None) -> None:
        """The upstream's connection is gone: by reset, or closed by the relay."""
        self.server = None
        self.side = None
        if exc is not None:
            self.put(SideClosed(self.number, monotonic_ns(), "upstream", "rst"))
        was_over, self.upstream_over = self.upstream_over, True
        if self.answer_waits is not None:
            self._answer_now()
        elif self.client is not None and self.mode != DRAIN:
            if exc is not None:
                self._reset_client()
            elif self.client_ended or not was_over:
                self._close()
        self._closed_if_over()

    def _linger(self) -> None:
        """The upstream has ended: a client that neither sends nor leaves any more is not waited for for ever."""
        self.moved = self.relay.stats.bytes_up
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self.relay.loop.call_later(LINGER_SECONDS, self._close)

    def _close(self) -> None:
        """Close both sides once what is buffered has gone out."""
        self._cancel_timers()
        if self.client is not None:
            self.client.close()
        if self.server is not None:
            self.server.close()

    def _reset_client(self) -> None:
        """RST to the client, after the bytes that came before it."""
        client = self.client
        if client is None:
            return
        self._cancel_timers()
        self.mode = DRAIN
        if client.get_write_buffer_size() and not self.reset_after_flush:
            self.reset_after_flush = True
            self.timer = self.relay.loop.call_later(DRAIN_SECONDS, reset, client)
            return
        reset(client)

    def _closed_if_over(self) -> None:
        if self.client is None and self.server is None and self.number:
            number, self.number = self.number, 0
            self.relay.closed(number)
            self.tap.put(ConnectionClosed(number, monotonic_ns()))

    def _cancel_timers(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.timer_read is not None:
            self.timer_read.cancel()
            self.timer_read = None

    # The relay's own answers.

    def _answer_fault(self, code: str, detail: str, method: bytes) -> None:
        """Answer in the upstream's place. Where earlier requests may still be answered by it, let it end first."""
        self._cancel_timers()
        self.mode = DRAIN
        self.held.clear()
        self.go_client(WAITING | PEER_FULL)
        self.answer_waits = (code, detail, method)
        under_way = self.server is not None or self.dialing is not None
        if under_way and self.forwarded and not self.upstream_over:
            self.framed_down = True
            if self.server is not None:
                self._end_upstream()
                self._answer_later()
        else:
            self._answer_now()

    def _answer_later(self) -> None:
        self.quiet_ns = monotonic_ns()
        self.timer = self.relay.loop.call_later(PENDING_SECONDS, self._pending_over)

    def _pending_over(self) -> None:
        """The upstream did not end. Answer if it has been silent, and owes no response as far as is known."""
        if self.awaiting or self.pipelines or monotonic_ns() - self.quiet_ns < PENDING_SECONDS * 0.9e9:
            self.timer = self.relay.loop.call_later(PENDING_SECONDS, self._pending_over)
        else:
            self._answer_now()

    def _answer_now(self) -> None:
        self._cancel_timers()
        if self.answer_waits is None or self.client is None:
            return
        (code, detail, method), self.answer_waits = self.answer_waits, None
        data = answer(code, detail, method=method)
        self.client.write(data)
        self._count_fault(code)
        self.put(RelayFault(self.number, monotonic_ns(), code, detail, data))
        if self.side is not None:
            side, self.side = self.side, None
            side.connection = None
        if self.dialing is not None:
            self.dialing.cancel()
            self.dialing = None
        if self.server is not None:
            self.put(SideClosed(self.number, monotonic_ns(), "upstream", "closed"))
            self.server.close()
            self.server = None
        if self.client_ended:
            self._close()
            return
        self.client.write_eof()
        self.timer = self.relay.loop.call_later(DRAIN_SECONDS, self._close)

    def _count_fault(self, code: str) -> None:
        faults = self.relay.stats.faults
        faults[code] = faults.get(code, 0) + 1

    def _watch_reads(self, now: int) -> None:
        self.quiet_ns = now
        if self.timer_read is None:
            timeout = self.relay.config.read_timeout or 0.0
            self.timer_read = self.relay.loop.call_later(timeout, self._read_overdue)

    def _read_overdue(self) -> None:
        self.timer_read = None
        timeout = self.relay.config.read_timeout
        if timeout is None or not self.outstanding or self.mode in (OPAQUE, DRAIN) or self.upstream_over:
            return
        left = timeout - (monotonic_ns() - self.quiet_ns) / 1e9
        if left > 0 or self.server is None or self.client_stops & PEER_FULL or self.server_stops:
            self.timer_read = self.relay.loop.call_later(max(left, timeout / 4, 0.01), self._read_overdue)
            return
        detail = f"upstream {self._upstream_name()} sent nothing for {timeout:g} s (--read-timeout)"
        responses = self.responses
        if responses is not None and (responses.in_message or responses.pending()):
            self._count_fault("timeout_read")
            self.put(RelayFault(self.number, monotonic_ns(), "timeout_read", detail, b""))
            self._drop("closed")
            return
        server = self.server
        self.server = None
        if self.side is not None:
            self.side.connection = None
            self.side = None
        self.record_drain = self.requests.in_message
        self._answer_fault("timeout_read", detail, self.method)
        reset(server)
        self.put(SideClosed(self.number, monotonic_ns(), "upstream", "closed"))

    def _drop(self, how: Literal["closed"]) -> None:
        """Reset both sides."""
        now = monotonic_ns()
        if self.server is not None:
            self.put(SideClosed(self.number, now, "upstream", how))
            reset(self.server)
        if self.client is not None:
            self.put(SideClosed(self.number, now, "client", how))
            reset(self.client)

    def stop(self) -> None:
        """The relay ends: what is under way on this connection is cut, on record."""
        if self.forwarded or self.mode == OPAQUE:
            self.put(RelayFault(self.number, monotonic_ns(), "relay_stopped", "stacktap was stopped", b""))
        self._drop("closed")
