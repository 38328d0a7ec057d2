"""The upstream's half of a relayed connection: connecting, bytes coming down, upgrades, read timeouts."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from time import monotonic_ns
from typing import cast

from proxy.relay.connect import ConnectError, connect
from proxy.relay.ends import DRAIN, HELD, OPAQUE, PEER_FULL, STALLED, WAITING, Ends
from proxy.relay.sockets import address_text, reset, tune
from proxy.relay.upstream import Upstream
from proxy.tap import OpaqueData, RelayFault, ResponseData, SideClosed, UpstreamConnected
from results.http1 import Framer, Kind, Piece

MAX_WAITING = 1 << 18
"""Bytes held for an upstream that cannot take them yet, before the client is no longer read."""


class UpstreamSide(asyncio.Protocol):
    """The upstream's half of a connection."""

    __slots__ = ("began_ns", "connection", "transport", "upstream")

    def __init__(self, connection: UpstreamHalf, upstream: Upstream) -> None:
        self.connection: UpstreamHalf | None = connection
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
        if client is not None and not client.is_closing():
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


class UpstreamHalf(Ends, ABC):
    """What a connection does about its upstream."""

    __slots__ = ()

    @abstractmethod
    def _release(self) -> None:
        """Take up the client's bytes that were held for an answer."""

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
            if not self.server.is_closing():
                self.server.write(data)
        elif not self.upstream_over and self.fault is None:
            self.unsent.append(data)
            self.unsent_bytes += len(data)
            if self.unsent_bytes > MAX_WAITING:
                self.stop_client(WAITING)

    def _upstream_name(self) -> str:
        return self.upstream.name if self.upstream is not None else ""

    # Bytes come down.

    def upstream_data(self, data: bytes, now: int) -> None:
        """Bytes from the upstream where more than passing them on is to be done."""
        if self.client is not None and not self.client.is_closing():
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
            self._finish_client()
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

    # Read timeouts.

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
            self._drop()
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
