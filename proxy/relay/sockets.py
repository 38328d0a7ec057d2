"""Small things done to sockets and their transports."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import Any

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


def finish(transport: asyncio.Transport) -> None:
    """Send FIN once what is buffered has gone out. A peer that has just reset shows itself by the next read."""
    if not transport.is_closing():
        with contextlib.suppress(OSError):
            transport.write_eof()


def reset(transport: asyncio.Transport) -> None:
    """Close with RST."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


def was_reset(transport: asyncio.Transport) -> bool:
    """Whether the peer answered with RST after its own FIN: no read tells, for none is made any more."""
    sock = transport.get_extra_info("socket")
    try:
        return sock is not None and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
    except OSError:
        return False


def address_text(name: Any) -> str:
    """`host:port` of a socket address."""
    if not isinstance(name, tuple):
        return str(name or "")
    return f"[{name[0]}]:{name[1]}" if ":" in str(name[0]) else f"{name[0]}:{name[1]}"
