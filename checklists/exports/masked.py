"""What the recorder masked in a request, and the variable that is put there when it is sent again. Pure.

A masked secret reads as one asterisk for each of its bytes (`proxy.recording.redact`). In a header's value or a query
all of such a run is replaced; in a body it stays, and is told.
"""

from __future__ import annotations

import re

MASKED = re.compile(r"\*{4,}")
"""A run of asterisks that is taken for a masked secret."""

_NOT_IN_A_NAME = re.compile(r"[^A-Z0-9]+")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_OWN_BY_CONNECTION = frozenset(
    [
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-stacktap-tag",
        "x-stacktap-token",
    ]
)
"""Headers that belong to the connection, the body's coding or stacktap: a resent request has its own."""


def variable_for(header: str) -> str:
    """The environment variable whose value goes where the secret of a header was: `API_KEY`, `COOKIE` ..."""
    name = header.lower()
    if name in ("authorization", "x-api-key", "api-key", "proxy-authorization"):
        return "API_KEY"
    return _NOT_IN_A_NAME.sub("_", name.upper()).strip("_") or "API_KEY"


def parts_of(text: str) -> list[tuple[bool, str]]:
    """A text as (is masked, part) in order."""
    parts, at = [], 0
    for found in MASKED.finditer(text):
        if found.start() > at:
            parts.append((False, text[at : found.start()]))
        parts.append((True, found[0]))
        at = found.end()
    if at < len(text):
        parts.append((False, text[at:]))
    return parts


def sent_again(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers that a resent request carries: no others than those whose name HTTP allows, nor those that the new
    connection has of its own. Line ends in values become spaces."""
    return [
        (name, re.sub(r"[\r\n\0]+", " ", value))
        for name, value in headers
        if _TOKEN.match(name) and name.lower() not in _OWN_BY_CONNECTION
    ]
