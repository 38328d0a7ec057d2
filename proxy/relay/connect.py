"""Opening the connection to an upstream, with each way to fail named."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import ssl
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from proxy.relay.upstream import Upstream

_UNREACHABLE = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN, errno.EADDRNOTAVAIL}


class ConnectError(Exception):
    """No connection came about. `code` is one of `proxy.tap.FAULTS`; the message is for the user."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def tls_context(cacert: str | None, insecure: bool) -> ssl.SSLContext:
    """The TLS settings for upstreams. Raises ValueError where the CA file cannot be used."""
    try:
        context = ssl.create_default_context(cafile=cacert)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"--cacert {cacert}: {Path(cacert or '').name} is no readable PEM file ({error})") from error
    context.set_alpn_protocols(["http/1.1"])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


async def connect(
    upstream: Upstream,
    factory: Callable[[], asyncio.Protocol],
    *,
    tls: ssl.SSLContext | None,
    timeout: float | None,
) -> None:
    """Connect to the first address that answers; the protocol's `connection_made` takes it from there.

    Raises ConnectError. `timeout` is in seconds for everything together: name, TCP and TLS.
    """
    try:
        async with asyncio.timeout(timeout):
            addresses = [upstream.host] if _is_address(upstream.host) else await _addresses(upstream)
            errors = await _attempt(upstream, addresses, factory, tls, timeout)
    except TimeoutError:
        raise _timed_out(upstream, timeout) from None
    if errors:
        raise _named(upstream, errors, timeout)


async def _attempt(
    upstream: Upstream,
    addresses: list[str],
    factory: Callable[[], asyncio.Protocol],
    tls: ssl.SSLContext | None,
    timeout: float | None,
) -> list[Exception]:
    connecting = asyncio.get_running_loop().create_connection
    share = None if timeout is None or len(addresses) == 1 else timeout / len(addresses)
    name = _sni(upstream) if tls else None
    errors: list[Exception] = []
    for address in addresses:
        try:
            if share is None:
                await connecting(factory, address, upstream.port, ssl=tls, server_hostname=name)
            else:
                async with asyncio.timeout(share):
                    await connecting(factory, address, upstream.port, ssl=tls, server_hostname=name)
        except (OSError, ssl.SSLError, EOFError) as error:
            errors.append(error)
        else:
            return []
    return errors


def _sni(upstream: Upstream) -> str:
    return upstream.host.partition("%")[0].removesuffix(".")


@lru_cache(maxsize=256)
def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _addresses(upstream: Upstream) -> list[str]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(upstream.host, upstream.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConnectError(
            "name_not_resolved", f"the name {upstream.host!r} of upstream {upstream.display} has no address ({reason})"
        ) from None
    return list(dict.fromkeys(str(address[0]) for _, _, _, _, address in found))


def _timed_out(upstream: Upstream, timeout: float | None) -> ConnectError:
    return ConnectError(
        "timeout_connect", f"upstream {upstream.display} did not accept a connection within {timeout:g} s"
    )


def _named(upstream: Upstream, errors: list[Exception], timeout: float | None) -> ConnectError:
    """Name the failure of the addresses tried; what a server itself said wins over silence."""
    for error in errors:
        if isinstance(error, ssl.SSLCertVerificationError):
            return ConnectError(
                "tls_failed",
                f"the certificate of {upstream.display} is not trusted: {error.verify_message or error.reason}; "
                "give its CA with --cacert FILE, or accept any certificate with --insecure",
            )
        if isinstance(error, ssl.SSLError):
            hint = "; does it speak plain http?" if "WRONG_VERSION" in (error.reason or "") else ""
            return ConnectError("tls_failed", f"no TLS connection to {upstream.display}: {error.reason or error}{hint}")
    for error in errors:
        if isinstance(error, ConnectionRefusedError):
            return ConnectError(
                "upstream_refused",
                f"nothing listens at {upstream.display} (connection refused); start the server, or correct its URL",
            )
    if any(isinstance(error, TimeoutError) for error in errors):
        return _timed_out(upstream, timeout)
    error = errors[0]
    if upstream.tls and isinstance(error, (ConnectionResetError, ConnectionAbortedError, EOFError)):
        return ConnectError("tls_failed", f"{upstream.display} closed the connection during the TLS handshake")
    number = getattr(error, "errno", None)
    reason = errno.errorcode.get(number, str(number)) if number in _UNREACHABLE else str(error)
    return ConnectError("upstream_unreachable", f"upstream {upstream.display} cannot be reached: {reason}")
