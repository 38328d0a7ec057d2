"""What changes in a request head on its way up: stacktap's tags go, `Host` names the upstream. Nothing else changes.

Grammar of a request target: `/UPSTREAM/k/TOKEN/t/k=v,k=v/rest`, each part optional; UPSTREAM only on a port that
routes by prefix. A `/t/` segment that is no `k=v` list is the server's own path. Headers `x-stacktap-tag` (`k=v,k=v`)
and `x-stacktap-token` are taken out whole. Pure: bytes in, bytes out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from proxy.relay.upstream import Upstream
from results.http1 import Head

Tags = tuple[tuple[str, str], ...]

_ABSOLUTE = re.compile(rb"(https?)://([^/?#]*)", re.IGNORECASE)
_SEGMENT = re.compile(rb"/([^/?#]*)")
_FIELDS = re.compile(rb"\n(host|authorization|x-stacktap-[a-z]+)[ \t]*:[ \t]*([^\n]*(?:\n[ \t][^\n]*)*)", re.IGNORECASE)
_OWN = {b"x-stacktap-tag", b"x-stacktap-token"}


@dataclass(frozen=True, slots=True)
class Target:
    """A request target taken apart. `authority` is set for the absolute form; `rest` is what the server is asked for.

    `token_at` is where the token stands in the target (start, end), so that it can be masked in the record.
    """

    authority: str
    upstream: str | None
    token: bytes | None
    token_at: tuple[int, int]
    tags: Tags
    rest: bytes


@dataclass(slots=True)
class Request:
    """A request head as the relay understands it. `hosts` are the values of all its Host headers.

    Not frozen: one is made for each request, and freezing costs a microsecond.
    """

    target: Target
    tags: Tags
    token: bytes | None
    hosts: tuple[str, ...]
    recorded: bytes
    """The head as sent, with the token's bytes masked (same length)."""
    fields: tuple[tuple[bytes, int, int, int, int], ...]
    """Fields of interest: lower-case name, start and end of the line, start and end of the value."""


def parse_tags(text: bytes) -> Tags | None:
    """Read `k=v,k=v`, percent-decoded. None where it is no such list."""
    if b"=" not in text:
        text = unquote_to_bytes(text)
    tags = []
    for part in text.split(b","):
        key, equals, value = part.strip().partition(b"=")
        if not equals or not key:
            return None
        tags.append((_decode(key), _decode(value)))
    return tuple(tags)


def _decode(text: bytes) -> str:
    return unquote_to_bytes(text).decode("utf-8", "replace")


def parse_target(target: bytes, names: frozenset[str]) -> Target:
    """Take a target apart; `names` are the upstreams that may lead it (empty: the port has one upstream)."""
    return _remembered(target, names) if len(target) < 1024 else _taken_apart(target, names)


def _taken_apart(target: bytes, names: frozenset[str]) -> Target:
    absolute = _ABSOLUTE.match(target)
    authority = absolute[2].decode("latin-1") if absolute else ""
    position = absolute.end() if absolute else 0
    upstream: str | None = None
    if names:
        lead = _SEGMENT.match(target, position)
        name = _decode(lead[1]) if lead else ""
        if lead and name in names:
            upstream, position = name, lead.end()
    token: bytes | None = None
    token_at = (0, 0)
    tags: Tags = ()
    while True:
        marker = _SEGMENT.match(target, position)
        value = _SEGMENT.match(target, marker.end()) if marker else None
        if marker is None or value is None or not value[1]:
            break
        if marker[1] == b"k" and token is None:
            token, token_at = unquote_to_bytes(value[1]), value.span(1)
        elif marker[1] == b"t" and (found := parse_tags(value[1])) is not None:
            tags += found
        else:
            break
        position = value.end()
    rest = target[position:]
    if position and rest[:1] != b"/":
        rest = b"/" + rest
    return Target(authority, upstream, token, token_at, tags, rest)


_remembered = lru_cache(maxsize=512)(_taken_apart)
_PLAIN = frozenset[str]()


def read_request(head: Head, names: frozenset[str] = _PLAIN) -> Request:
    """Find what the relay needs in a request head."""
    raw = head.raw
    target = parse_target(head.target, names)
    tags, token, recorded = target.tags, target.token, raw
    hosts: tuple[str, ...] = ()
    fields = []
    if token is not None:
        start = raw.index(b" ") + 1
        recorded = _mask(recorded, start + target.token_at[0], start + target.token_at[1])
    for match in _FIELDS.finditer(raw, raw.index(b" ")):
        name = match[1].lower()
        start = match.start(2)
        value = match[2].rstrip()
        fields.append((name, match.start() + 1, match.end() + 1, start, start + len(value)))
        if name == b"host":
            hosts += (value.decode("latin-1"),)
        elif name == b"x-stacktap-token":
            token = value if token is None else token
            recorded = _mask(recorded, start, start + len(value))
        elif name == b"x-stacktap-tag":
            tags += parse_tags(value) or ()
    return Request(target, tags, token, hosts, recorded, tuple(fields))


def _mask(raw: bytes, start: int, end: int) -> bytes:
    return raw[:start] + b"*" * (end - start) + raw[end:]


def upstream_target(rest: bytes, prefix: str) -> bytes:
    """Join an upstream URL's own path in front of a target in origin form."""
    return prefix.encode("ascii") + rest if prefix and rest[:1] == b"/" else rest


def rewrite_head(
    head: Head, request: Request, upstream: Upstream, *, keep_host: bool = False, mark: str = ""
) -> tuple[bytes, bytes]:
    """The head as it goes on, and its target. `mark` is the value of `x-stacktap-exchange`, if one is to be added."""
    raw = head.raw
    target = upstream_target(request.target.rest, upstream.prefix)
    start = raw.index(b" ") + 1
    parts = [raw[:start], target]
    position = start + len(head.target)
    authorized = False
    for name, line, line_end, value, value_end in request.fields:
        if name == b"host":
            if not keep_host:
                parts += (raw[position:value], upstream.authority.encode("ascii"))
                position = value_end
        elif name in _OWN or (mark and name == b"x-stacktap-exchange"):
            parts.append(raw[position:line])
            position = line_end
        authorized = authorized or name == b"authorization"
    added: Sequence[str] = ()
    if mark:
        added = (f"x-stacktap-exchange: {mark}",)
    if upstream.authorization is not None and not authorized:
        added = (*added, f"authorization: {upstream.authorization}")
    if added:
        blank = len(raw) - (2 if raw.endswith(b"\r\n") else 1)
        parts.append(raw[position:blank])
        parts += [line.encode("latin-1") + raw[blank:] for line in added]
        position = blank
    parts.append(raw[position:])
    return b"".join(parts), target
