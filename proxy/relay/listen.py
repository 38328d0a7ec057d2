"""Where the relay may listen: loopback unless told otherwise, and never in the open without a token."""

from __future__ import annotations

import contextlib
import errno
import socket

from proxy.relay.hosts import is_loopback

BACKLOG = 2048


class ListenError(Exception):
    """The relay cannot listen there; the message says why and what to do."""


def check_bind(host: str, *, allow_remote: bool, token: str | None) -> None:
    """Refuse an address that others can reach, unless that was asked for and a token is set. Raises ListenError."""
    if is_loopback(f"[{host}]" if ":" in host else host):
        return
    if not allow_remote:
        raise ListenError(
            f"{host or '(all addresses)'} can be reached from other machines; "
            "listen on 127.0.0.1, or add --allow-remote and --token TOKEN"
        )
    if not token:
        raise ListenError(f"listening on {host or '(all addresses)'} needs --token TOKEN: others can reach it")


def bind(host: str, port: int) -> socket.socket:
    """A listening TCP socket; port 0 takes a free one. Raises ListenError with the reason."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError, OverflowError) as error:
        raise ListenError(f"cannot listen on {host!r} port {port}: {error}") from error
    family, kind, protocol, _, address = sorted(found, key=lambda item: item[0] != socket.AF_INET)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind(address)
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ListenError(_reason(host, port, error)) from error
    return listener


def _reason(host: str, port: int, error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return f"port {port} on {host} is in use; stop what listens there or choose another port (0 takes a free one)"
    if number == errno.EACCES:
        return f"port {port} on {host} needs privileges; choose a port above 1023"
    if number == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this machine"
    return f"cannot listen on {host} port {port}: {error}"


def raise_file_limit() -> int:
    """Raise this process's soft limit of open files to its hard limit; returns the limit in force (0: unknown).

    Two sockets are open for each connection, and the usual soft limit of 1,024 files ends at 500 of them.
    """
    try:
        import resource  # noqa: PLC0415 - not on every platform
    except ImportError:
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            return hard
    return soft
