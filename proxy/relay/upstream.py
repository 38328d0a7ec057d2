"""Where requests go: upstream specifications (`NAME=URL`, `URL`, `mlx:DIR`, `llamacpp:FILE`) as typed values.

Pure: nothing is resolved or opened here. What a URL's user-info holds is a secret: it is kept out of `repr`, of
`display` and of every error message.
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import unquote, urlsplit

Kind = Literal["url", "mlx", "llamacpp"]

_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.\-]*)=(.*)\Z", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*\Z")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_BARE_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.\-]+):[0-9]{1,5}(/.*)?\Z")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ENGINES: dict[str, Kind] = {"mlx": "mlx", "llamacpp": "llamacpp"}
RESERVED_NAMES = frozenset({"k", "t"})
"""Path segments that the prefix grammar uses itself, so that no upstream can have them as a name."""


class UpstreamError(ValueError):
    """An upstream specification that cannot be used; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """One place that requests are sent to.

    `host` has no brackets; `prefix` is the URL's path without a trailing slash, joined in front of each request
    target. For an in-process engine (`kind` other than "url") `location` names the model, and host and port stay
    empty until the engine is served (`served_at`). `mark_exchanges` asks the relay to add `x-stacktap-exchange`.
    """

    name: str
    kind: Kind = "url"
    scheme: str = "http"
    host: str = ""
    port: int = 0
    prefix: str = ""
    location: str = ""
    mark_exchanges: bool = False
    authorization: str | None = field(default=None, repr=False)

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """Host and port as they stand in a Host header; a scheme's default port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS.get(self.scheme) else f"{host}:{self.port}"

    @property
    def display(self) -> str:
        """The specification without secrets, for messages and manifests."""
        if self.kind != "url":
            return f"{self.kind}:{self.location}"
        return f"{self.scheme}://{self.authority}{self.prefix}"

    def served_at(self, host: str, port: int) -> Upstream:
        """This engine upstream, reachable on a private loopback port; its exchanges are marked."""
        return replace(self, host=host, port=port, mark_exchanges=True)


def parse_upstream(spec: str, default_name: str = "") -> Upstream:
    """Read `NAME=URL` or `URL`. Raises UpstreamError with what is wrong and what is accepted."""
    name, rest = default_name, spec.strip()
    named = _NAMED.match(rest)
    if named is not None:
        name, rest = named[1], named[2].strip()
    if name in RESERVED_NAMES:
        raise UpstreamError(f"upstream name {name!r} is reserved for path prefixes; choose another name")
    if name and not _NAME.match(name):
        raise UpstreamError(f"upstream name {name!r} may hold letters, digits, dot, dash and underscore only")
    scheme = _SCHEME.match(rest)
    if scheme is not None and scheme[1].lower() in _ENGINES:
        kind = _ENGINES[scheme[1].lower()]
        location = rest[scheme.end() :]
        if not location:
            raise UpstreamError(f"{kind}: needs a model after the colon, for example {kind}:/models/qwen3")
        return Upstream(name or kind, kind=kind, location=location)
    return _parse_url(name or "upstream", rest)


def _parse_url(name: str, url: str) -> Upstream:
    shown = without_user_info(url)
    if _BARE_ADDRESS.match(url):
        raise UpstreamError(f"upstream {shown!r} has no scheme; write http://{shown} (or https://{shown})")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UpstreamError(f"upstream {shown!r} is not a URL: {_plain(error)}") from None
    scheme = parts.scheme.lower()
    if scheme not in _DEFAULT_PORTS:
        what = f"unknown scheme {scheme!r}" if scheme else "no scheme"
        raise UpstreamError(
            f"upstream {shown!r}: {what}; use http://HOST:PORT, https://HOST:PORT, mlx:MODEL_DIR or llamacpp:MODEL.gguf"
        )
    host = parts.hostname
    if not host:
        raise UpstreamError(f"upstream {shown!r} names no host; write {scheme}://HOST:PORT")
    if port == 0:
        raise UpstreamError(f"upstream {shown!r}: port 0 cannot be connected to")
    if parts.query or parts.fragment:
        raise UpstreamError(f"upstream {shown!r}: a base URL has no query or fragment; give the path alone")
    if re.search(r"[\s\x00-\x1f\x7f]", host + parts.path) or not _valid_host(host):
        raise UpstreamError(f"upstream {shown!r}: {host!r} is no host name or address")
    prefix = parts.path.rstrip("/")
    if not prefix.isascii():
        raise UpstreamError(f"upstream {shown!r}: write the path percent-encoded")
    return Upstream(
        name,
        scheme=scheme,
        host=host,
        port=port or _DEFAULT_PORTS[scheme],
        prefix=prefix,
        authorization=_basic(parts.username, parts.password),
    )


def _valid_host(host: str) -> bool:
    if ":" in host:
        try:
            ipaddress.IPv6Address(host.partition("%")[0])
        except ValueError:
            return False
        return True
    return host.isascii() and re.fullmatch(r"[A-Za-z0-9._\-]{1,253}", host) is not None


def _basic(user: str | None, password: str | None) -> str | None:
    """The Basic credentials (RFC 7617) that a URL's user-info stands for."""
    if user is None:
        return None
    pair = f"{unquote(user)}:{unquote(password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def without_user_info(url: str) -> str:
    """A URL, with or without its scheme, less the user and password before the host: to be shown or kept."""
    return re.sub(r"(://|^)[^/?#]*@", r"\1", url)


def _plain(error: ValueError) -> str:
    return str(error).split(":")[0]


def parse_upstreams(specs: Iterable[str]) -> tuple[Upstream, ...]:
    """Read several specifications; unnamed ones beyond the first get numbered names. Raises UpstreamError."""
    found: dict[str, Upstream] = {}
    for spec in specs:
        upstream = parse_upstream(spec)
        name, count = upstream.name, 1
        while name in found:
            if _NAMED.match(spec.strip()):
                raise UpstreamError(f"two upstreams are named {name!r}; give each its own name (NAME=URL)")
            count += 1
            name = f"{upstream.name}{count}"
        found[name] = replace(upstream, name=name)
    if not found:
        raise UpstreamError("no upstream given; use --upstream http://HOST:PORT (or NAME=URL, several times)")
    return tuple(found.values())
