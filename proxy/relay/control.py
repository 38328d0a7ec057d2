"""The relay's own small HTTP endpoint, on a port of its own: `/health` and `/status`.

It is started after the relay listens, so that importing its server costs no start-up time. It never leaves loopback
and refuses foreign Hosts like the relay does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from proxy.relay.hosts import HostRule
from proxy.relay.listen import bind
from proxy.relay.server import Relay

Extra = Callable[[], Mapping[str, Any]]


class Control:
    """Serves health and counters of a relay. `extra` adds fields to `/status` (the record's own counters)."""

    def __init__(self, relay: Relay, *, port: int = 0, extra: Extra | None = None) -> None:
        self._relay = relay
        self._wanted = port
        self._extra = extra
        self._hosts = HostRule(relay.config.allow_host)
        self._runner: web.AppRunner | None = None
        self._began = time.monotonic()
        self.port = 0

    async def start(self) -> None:
        """Listen on 127.0.0.1. Raises ListenError when the port is taken."""
        application = web.Application(middlewares=[self._check_host])
        application.router.add_get("/health", self._health)
        application.router.add_get("/status", self._status)
        sock = bind("127.0.0.1", self._wanted)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        await web.SockSite(self._runner, sock).start()
        self.port = sock.getsockname()[1]

    async def stop(self) -> None:
        """Close the endpoint."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @web.middleware
    async def _check_host(self, request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        if not self._hosts.allows(request.headers.get("Host", "")):
            return web.json_response(
                {"error": {"code": "host_not_allowed", "message": "use http://127.0.0.1 to reach this endpoint"}},
                status=403,
                headers={"x-stacktap-error": "host_not_allowed"},
            )
        response: web.StreamResponse = await handler(request)
        return response

    async def _health(self, _: web.Request) -> web.Response:
        refusing = self._relay.tap.refusing
        return web.json_response({"status": "refusing" if refusing else "ok"}, status=503 if refusing else 200)

    async def _status(self, _: web.Request) -> web.Response:
        relay = self._relay
        status: dict[str, Any] = {
            "uptime_seconds": round(time.monotonic() - self._began, 3),
            "ports": relay.ports,
            "upstreams": {upstream.name: upstream.display for upstream in relay.config.upstreams},
            "stalled": relay.stalled,
            "recording": {"full": relay.tap.full, "refusing": relay.tap.refusing},
            **relay.stats.as_dict(),
        }
        if self._extra is not None:
            status.update(self._extra())
        return web.json_response(status)
