"""The transparent relay: listeners, configuration, counters.

`Relay(config, tap)`; `await start()`; `ports`; `await stop(grace)`. Imports stay light: listening within 300 ms of
the process's start is one of its promises.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote

from proxy.relay.connect import tls_context
from proxy.relay.connection import Connection
from proxy.relay.ends import STALLED
from proxy.relay.hosts import HostRule, host_of, token_matches
from proxy.relay.listen import ListenError, bind, check_bind
from proxy.relay.rewrite import Request
from proxy.relay.upstream import Upstream
from proxy.tap import Tap


@dataclass(frozen=True, slots=True)
class Listener:
    """One port. `upstream` is the name of the one it leads to, or None where the path's first segment says which."""

    port: int = 0
    upstream: str | None = None


@dataclass(frozen=True, slots=True)
class RelayConfig:
    """What a relay is to do. Times are seconds; None means no limit."""

    upstreams: tuple[Upstream, ...]
    listeners: tuple[Listener, ...] = ()
    """Empty: a free port of its own for each upstream."""
    host: str = "127.0.0.1"
    allow_remote: bool = False
    token: str | None = field(default=None, repr=False)
    allow_host: tuple[str, ...] = ()
    keep_host: bool = False
    connect_timeout: float | None = 10.0
    read_timeout: float | None = None
    cacert: str | None = None
    insecure: bool = False


def listeners_for(upstreams: Iterable[Upstream], *, port: int = 0, by_prefix: bool = False) -> tuple[Listener, ...]:
    """One listener that routes by prefix, or one for each upstream: `port`, `port` + 1, ... (0: free ports)."""
    if by_prefix:
        return (Listener(port),)
    return tuple(Listener(port + at if port else 0, upstream.name) for at, upstream in enumerate(upstreams))


@dataclass(slots=True)
class Stats:
    """Counters since the start."""

    connections: int = 0
    open: int = 0
    requests: int = 0
    refused: int = 0
    opaque: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    stalls: int = 0
    stalled_seconds: float = 0.0
    faults: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The counters by name."""
        return asdict(self)


class Relay:
    """Listens, and passes every connection on to its upstream while `tap` is told what passes."""

    def __init__(self, config: RelayConfig, tap: Tap) -> None:
        self.config = config
        self.tap = tap
        self.stats = Stats()
        self.stalled = False
        self.ports: dict[str, int] = {}
        """Port by upstream name; the port that routes by prefix stands under the empty name."""
        self.tls: ssl.SSLContext | None = None
        self.loop: asyncio.AbstractEventLoop
        self._upstreams = {upstream.name: upstream for upstream in config.upstreams}
        self.names = frozenset(self._upstreams)
        self._hosts = HostRule(config.allow_host)
        self._own = HostRule([*config.allow_host, *(upstream.authority for upstream in config.upstreams)])
        self._servers: list[asyncio.Server] = []
        self._connections: dict[int, Connection] = {}
        self._draining: asyncio.Task[None] | None = None
        self._idle: asyncio.Event | None = None

    async def start(self) -> None:
        """Listen. Raises ListenError (address, port, token) and ValueError (CA file, no such upstream)."""
        config = self.config
        check_bind(config.host, allow_remote=config.allow_remote, token=config.token)
        self.loop = asyncio.get_running_loop()
        for upstream in config.upstreams:
            if not upstream.host:
                raise ValueError(f"upstream {upstream.name!r} ({upstream.display}) is not served yet")
        if any(upstream.tls for upstream in config.upstreams):
            self.tls = tls_context(config.cacert, config.insecure)
        try:
            for listener in config.listeners or listeners_for(config.upstreams):
                await self._listen(listener)
        except BaseException:
            await self.stop()
            raise

    async def _listen(self, listener: Listener) -> None:
        upstream: Upstream | None = None
        if listener.upstream is not None:
            upstream = self._upstreams.get(listener.upstream)
            if upstream is None:
                raise ValueError(f"no upstream is named {listener.upstream!r}; there are {sorted(self.names)}")
        name = listener.upstream or ""
        if name in self.ports:
            raise ListenError(f"two ports were asked for upstream {name!r}")
        sock = bind(self.config.host, listener.port)
        self.ports[name] = sock.getsockname()[1]
        self._servers.append(await self.loop.create_server(lambda: Connection(self, upstream), sock=sock, backlog=2048))

    def base_url(self, name: str = "") -> str:
        """Where clients find an upstream through this relay, without a trailing slash; the token is part of it."""
        host = self.config.host or "127.0.0.1"
        if host in ("0.0.0.0", "::"):
            host = "127.0.0.1" if host == "0.0.0.0" else "::1"
        path = f"/k/{quote(self.config.token, safe='')}" if self.config.token else ""
        port = self.ports.get(name)
        if port is None:
            port, path = self.ports[""], f"/{name}{path}"
        return f"http://{f'[{host}]' if ':' in host else host}:{port}{path}"

    # What connections ask.

    def opened(self, connection: Connection) -> int:
        """Register a connection; returns its number."""
        self.stats.connections += 1
        self.stats.open += 1
        self._connections[self.stats.connections] = connection
        return self.stats.connections

    def closed(self, number: int) -> None:
        """Forget a connection."""
        self.stats.open -= 1
        self._connections.pop(number, None)
        if self._idle is not None and not self._connections:
            self._idle.set()

    def route(self, request: Request) -> Upstream | None:
        """The upstream that a request names on a port that routes by prefix, or by its absolute target."""
        target = request.target
        if target.upstream is not None:
            return self._upstreams[target.upstream]
        for upstream in self.config.upstreams:
            if target.authority and target.authority.lower() == upstream.authority.lower():
                return upstream
        return None

    def plain_authority(self, upstream: Upstream | None) -> bytes:
        """Host's new value where nothing else in a head may have to change on the way to `upstream`, else empty."""
        if upstream is None or self.config.token is not None or self.config.keep_host:
            return b""
        changes = upstream.prefix or upstream.authorization is not None or upstream.mark_exchanges
        return b"" if changes else upstream.authority.encode("ascii")

    def refusal(self, request: Request, upstream: Upstream | None, local_host: str) -> tuple[str, str] | None:
        """Why a request is not served, as code and detail; None where it is."""
        config, target = self.config, request.target
        rule = self._own if target.authority else self._hosts
        for authority in (target.authority, *request.hosts):
            if not rule.allows(authority) and not (config.allow_remote and host_of(authority) == local_host):
                return "host_not_allowed", (
                    f"Host {authority!r} is not this machine's loopback; "
                    f"use http://127.0.0.1 as the base URL, or start with --allow-host {host_of(authority)}"
                )
        if config.token is not None and not token_matches(request.token, config.token):
            wrong = "is wrong" if request.token is not None else "is missing"
            return "token_required", f"the token {wrong}: use /k/TOKEN in the base URL or the header x-stacktap-token"
        if upstream is None:
            known = ", ".join(f"/{name}/" for name in sorted(self.names))
            return "no_route", f"this port routes by path prefix, and the path starts with none of {known}"
        if self.tap.refusing:
            return (
                "journal_failed",
                "the record cannot be written (disk full?) and --strict refuses to go on without it",
            )
        return None

    def refuses_opaque(self, fixed: Upstream | None) -> tuple[str, str] | None:
        """Why bytes that are not HTTP are not passed on; None where they are."""
        if fixed is None:
            return "no_route", "this port routes by path prefix, and what was sent is not HTTP/1.x"
        if self.config.token is not None:
            return "token_required", "bytes that are not HTTP/1.x carry no token"
        if self.tap.refusing:
            return (
                "journal_failed",
                "the record cannot be written (disk full?) and --strict refuses to go on without it",
            )
        return None

    # The record is full.

    def stall(self) -> None:
        """Stop reading from all sockets until the tap has room."""
        self.stalled = True
        self.stats.stalls += 1
        for connection in self._connections.values():
            connection.stop_client(STALLED)
            connection.stop_server(STALLED)
        self._draining = self.loop.create_task(self._resume())

    async def _resume(self) -> None:
        began = self.loop.time()
        try:
            await self.tap.wait_drained()
        finally:
            self.stats.stalled_seconds += self.loop.time() - began
            self.stalled = False
            self._draining = None
            for connection in list(self._connections.values()):
                connection.go_client(STALLED)
                connection.go_server(STALLED)

    async def stop(self, grace: float = 0.0) -> None:
        """Stop listening; connections get `grace` seconds to end by themselves, then they are cut, on record."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        await self._wait_idle(grace)
        for connection in list(self._connections.values()):
            connection.stop()
        await self._wait_idle(2.0)
        if self._draining is not None:
            self._draining.cancel()

    async def _wait_idle(self, seconds: float) -> None:
        if not self._connections or seconds <= 0:
            return
        self._idle = asyncio.Event()
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            pass
        finally:
            self._idle = None
