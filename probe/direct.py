"""Ask a server directly, without a relay and without a record: for a look at many ports (`stacktap doctor`)."""

from __future__ import annotations

import asyncio
import ssl
import time

import httpx

from proxy.relay.identifying import USER_AGENT
from stacks.serving.base import Answer, Ask, Steps, T

_ANSWER_SECONDS = 5.0
_CONNECT_SECONDS = 1.0
_MOST_BYTES = 4 << 20


class DirectAsker:
    """Asks one server by its URL (no trailing /v1). Requests that generate or change something are refused."""

    def __init__(self, url: str, headers: dict[str, str] | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self.asked = 0
        self._client = httpx.AsyncClient(
            trust_env=False,
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
            follow_redirects=False,
            headers={"User-Agent": USER_AGENT, **(headers or {})},
            verify=tls if tls is not None else True,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def __aenter__(self) -> DirectAsker:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._client.aclose()

    async def ask(self, ask: Ask, **tags: str) -> Answer:
        """Send one request; a failed one is an `Answer` with `failure`. Raises ValueError for one that does more than
        read."""
        if ask.generates or ask.changes:
            raise ValueError(f"{ask.method} {ask.path} does more than read")
        self.asked += 1
        status: int | None = None
        headers: tuple[tuple[str, str], ...] = ()
        body, failure = bytearray(), ""
        began = time.monotonic()
        try:
            async with (
                asyncio.timeout(ask.seconds or _ANSWER_SECONDS),
                self._client.stream(
                    ask.method,
                    self.url + ask.path,
                    json=None if ask.body is None else dict(ask.body),
                    headers=dict(ask.headers),
                ) as response,
            ):
                status, headers = response.status_code, tuple(response.headers.multi_items())
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > _MOST_BYTES:
                        failure = "too_long"
                        break
        except (TimeoutError, httpx.TimeoutException):
            failure = "timeout"
        except httpx.ConnectError:
            failure = "connect"
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            failure = "broken"
        return Answer(ask, status, headers, bytes(body), failure, time.monotonic() - began, self.asked)

    async def follow(self, steps: Steps[T], **tags: str) -> T:
        """Drive a stack's dialogue to its end. Raises as `ask`."""
        try:
            ask = next(steps)
            while True:
                ask = steps.send(await self.ask(ask))
        except StopIteration as done:
            result: T = done.value
            return result

    def identify(self, stack: str, version: str) -> None:
        """Nothing is judged here."""
