"""Which `Host` a request may carry, and whether its token is the right one.

The relay replaces `Host` by the upstream's, so the upstream can no longer refuse a foreign one. DNS rebinding (a page
of evil.example whose name is re-pointed at 127.0.0.1) reaches the relay as a same-origin request: it needs no CORS
permission, and only its Host tells it from a local client. So the relay refuses every Host that is not loopback, or
listed. A foreign `Origin` is another case: there the browser itself enforces CORS by the server's answer, the header
is forwarded untouched, and the server decides (Ollama and others have settings for it that must keep working).
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache

_PORT = re.compile(r":[0-9]*\Z")
_SHORT_LOOPBACK = re.compile(r"127(?:\.[0-9]{1,10}){1,3}\Z")


def host_of(authority: str) -> str:
    """The host of `host[:port]`, lower-case, without brackets, port, user-info and a trailing dot."""
    host = _PORT.sub("", authority.strip().rpartition("@")[2]).lower()
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host.removesuffix(".")


@lru_cache(maxsize=256)
def is_loopback(authority: str) -> bool:
    """Whether `host[:port]` names this machine's loopback: localhost, *.localhost, 127.0.0.0/8, ::1."""
    host = host_of(authority)
    if host == "localhost" or host.endswith(".localhost"):
        return re.fullmatch(r"[a-z0-9._\-]+", host) is not None
    if _SHORT_LOOPBACK.match(host):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


class HostRule:
    """Loopback names, plus those the user listed: `name`, `name:port`, `*.domain`, or `*` for any."""

    __slots__ = ("_any", "_exact", "_suffixes")

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        entries = [entry.strip().lower() for entry in allowed]
        self._any = "*" in entries
        self._suffixes = tuple(entry[1:] for entry in entries if entry.startswith("*."))
        self._exact = frozenset(entry for entry in entries if "*" not in entry)

    def allows(self, authority: str) -> bool:
        """Whether a request with this Host value is served. An empty value counts as a missing one."""
        if is_loopback(authority) or self._any or not authority.strip():
            return True
        lowered, host = authority.strip().lower(), host_of(authority)
        return lowered in self._exact or host in self._exact or (bool(self._suffixes) and host.endswith(self._suffixes))


def token_matches(given: bytes | None, wanted: str) -> bool:
    """Compare in constant time."""
    return given is not None and hmac.compare_digest(given, wanted.encode())
