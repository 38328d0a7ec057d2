"""Faults where the gateway answers by itself."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from tests.support.faulty_gateway.fault import Fault

LARGEST = 2048
WAITS_SECONDS = 0.2


def _page(status: int, title: str) -> web.Response:
    page = f"<html><head><title>{title}</title></head><body><center><h1>{title}</h1></center><hr>nginx</body></html>"
    return web.Response(status=status, text=page, content_type="text/html")


class LimitsRateOnce(Fault):
    """Refuses the first request with 429 and lets the others pass."""

    async def instead(self, body: bytes) -> web.Response | None:
        """See the class."""
        if self.shared.setdefault("refused", 0) >= 1:
            return None
        self.shared["refused"] += 1
        said: dict[str, Any] = {"error": {"message": "Rate limit reached for requests", "type": "rate_limit_error"}}
        return web.json_response(said, status=429, headers={"Retry-After": "1"})


class TimesOut(Fault):
    """Waits a moment for every answer, then says 504 with a page of its own."""

    async def instead(self, body: bytes) -> web.Response | None:
        """See the class."""
        await asyncio.sleep(WAITS_SECONDS)
        return _page(504, "504 Gateway Time-out")


class TimesOutOnce(TimesOut):
    """Does so once, and works from then on."""

    async def instead(self, body: bytes) -> web.Response | None:
        """See the class."""
        if self.shared.setdefault("refused", 0) >= 1:
            return None
        self.shared["refused"] += 1
        return await super().instead(body)


class SmallBodies(Fault):
    """Refuses requests of more than two kilobytes, as nginx does at its limit."""

    async def instead(self, body: bytes) -> web.Response | None:
        """See the class."""
        return _page(413, "413 Request Entity Too Large") if len(body) > LARGEST else None
