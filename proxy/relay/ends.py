"""The state of a relayed connection, and how it ends: orderly, by reset, or with the relay's own answer."""

from __future__ import annotations

import asyncio
from time import monotonic_ns
from typing import TYPE_CHECKING

from proxy.relay.answers import answer
from proxy.relay.connect import ConnectError
from proxy.relay.sockets import finish, reset, was_reset
from proxy.relay.upstream import Upstream
from proxy.tap import ConnectionClosed, Event, RelayFault, SideClosed
from results.http1 import Framer

if TYPE_CHECKING:
    from proxy.relay.server import Relay
    from proxy.relay.upstream_half import UpstreamSide

HTTP, HELD, OPAQUE, DRAIN = 0, 1, 2, 3
"""What client bytes are: requests; requests that must wait; anything; to be read and dropped before closing."""

PEER_FULL, STALLED, WAITING = 1, 2, 4
"""Why a side is not read: the other side is full, the record is full, too much waits to be sent."""

DRAIN_SECONDS = 5.0
LINGER_SECONDS = 30.0
PENDING_SECONDS = 1.0


class Ends(asyncio.Protocol):
    """Both transports of a connection, why each is not read, and every way to end them.

    `fixed` is the upstream of the client's port, or None where the path says which.
    """

    __slots__ = (
        "answer_waits",
        "authority",
        "awaiting",
        "client",
        "client_ended",
        "client_finished",
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
        "number",
        "opaque_down",
        "outstanding",
        "pipelines",
        "quiet_ns",
        "record_drain",
        "relay",
        "requests",
        "reset_after_flush",
        "reset_told",
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
        self.authority = relay.plain_authority(fixed)
        self.number = 0
        self.exchange = 0
        self.mode = HTTP
        self.client: asyncio.Transport | None = None
        self.client_ended = False
        self.client_finished = False
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
        self.answer_waits: tuple[str, str, bytes] | None = None
        self.record_drain = False
        self.reset_after_flush = False
        self.reset_told = False
        self.local_host = ""

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
            if self.client is None or self.client_ended or self.client.is_closing():
                return
            if not self.client_stops:
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
            if self.server is None or self.upstream_over or self.server.is_closing():
                return
            if not self.server_stops:
                self.server.resume_reading()

    def put(self, event: Event) -> None:
        """Hand one event to the tap; stop reading everywhere when it is full."""
        tap = self.tap
        tap.put(event)
        if tap.full and not self.relay.stalled:
            self.relay.stall()

    def _cancel_timers(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.timer_read is not None:
            self.timer_read.cancel()
            self.timer_read = None

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
        else:
            finish(server)

    def _finish_client(self) -> None:
        """Send FIN to the client once what is buffered has gone out; nothing may be written after it."""
        self.client_finished = True
        if self.client is not None:
            finish(self.client)

    def _linger(self) -> None:
        """The upstream has ended: a client that neither sends nor leaves any more is not waited for for ever."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self.relay.loop.call_later(LINGER_SECONDS, self._close)

    def _close(self) -> None:
        """Close both sides once what is buffered has gone out."""
        self._cancel_timers()
        if self.client is not None:
            if self.client_ended and not self.reset_told and was_reset(self.client):
                self._tell_reset()
            self.client.close()
        if self.server is not None:
            self.server.close()

    def _tell_reset(self) -> None:
        self.reset_told = True
        self.put(SideClosed(self.number, monotonic_ns(), "client", "rst"))

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

    def _fail_opaque(self, fault: ConnectError) -> None:
        self._count_fault(fault.code)
        self.put(RelayFault(self.number, monotonic_ns(), fault.code, fault.detail, b""))
        self._reset_client()

    def _closed_if_over(self) -> None:
        if self.client is None and self.server is None and self.number:
            number, self.number = self.number, 0
            self.relay.closed(number)
            self.tap.put(ConnectionClosed(number, monotonic_ns()))

    def _drop(self) -> None:
        """Reset both sides."""
        now = monotonic_ns()
        if self.server is not None:
            self.put(SideClosed(self.number, now, "upstream", "closed"))
            reset(self.server)
        if self.client is not None:
            self.put(SideClosed(self.number, now, "client", "closed"))
            reset(self.client)

    def stop(self) -> None:
        """The relay ends: what is under way on this connection is cut, on record."""
        if self.forwarded or self.mode == OPAQUE:
            self.put(RelayFault(self.number, monotonic_ns(), "relay_stopped", "stacktap was stopped", b""))
        self._drop()

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
        data = b"" if self.client_finished else answer(code, detail, method=method)
        if data and not self.client.is_closing():
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
        if self.client_ended or self.client_finished:
            self._close()
            return
        self._finish_client()
        self.timer = self.relay.loop.call_later(DRAIN_SECONDS, self._close)

    def _count_fault(self, code: str) -> None:
        faults = self.relay.stats.faults
        faults[code] = faults.get(code, 0) + 1
