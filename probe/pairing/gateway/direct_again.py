"""A walk's requests sent once more, straight to the server, where what stands before it cannot be recorded behind.

Sound since the model's answer is certain: what comes intact this way and did not on the other, the gateway did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import httpx

from proxy.session import RecordingSession
from results.exchange import Exchange

AGAIN_SECONDS = 60.0
MOST_REQUESTS = 24
TAG = "again"
_LEFT_OUT = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "accept-encoding",
        "authorization",
        "x-api-key",
        "api-key",
        "cookie",
        "x-stacktap-tag",
    }
)
"""Of one connection, or masked in the record."""


async def ask_again(
    session: RecordingSession,
    exchanges: Sequence[Exchange],
    upstream: str = "direct",
    *,
    key: str | None = None,
    seconds: float = AGAIN_SECONDS,
) -> int:
    """Send the requests for generations of `exchanges` once more to the session's upstream of that name, one after the
    other, each tagged ``again=ATTEMPT``; how many were sent. One that was sent several times (a retry) is sent once.
    `key` is the server's API key (the record masks keys).

    What comes back, or does not, is on the record (`answered_again`). Stops after `seconds` and `MOST_REQUESTS`.
    """
    asked: set[tuple[str, bytes]] = set()
    base = session.base_url(upstream)
    headers = {"authorization": f"Bearer {key}"} if key else {}
    # A connection each: one that was kept may be closed by the server just as it is used again.
    once = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=httpx.Timeout(seconds), trust_env=False, limits=once) as client:
        try:
            async with asyncio.timeout(seconds):
                for exchange in exchanges:
                    request = exchange.request
                    if request is None or request.method != "POST" or not request.complete:
                        continue
                    what = (request.forwarded_target, request.body)
                    if what in asked or len(asked) >= MOST_REQUESTS:
                        continue
                    asked.add(what)
                    own = [(name, value) for name, value in request.headers if name.lower() not in _LEFT_OUT]
                    url = f"{base}/t/{TAG}={exchange.attempt}{request.forwarded_target}"
                    try:
                        await client.post(url, content=request.body, headers=[*own, *headers.items()])
                    except httpx.HTTPError:
                        continue  # What came of it is on the record.
        except TimeoutError:
            return len(asked)
    return len(asked)


def answered_again(exchanges: Iterable[Exchange]) -> list[tuple[Exchange, Exchange]]:
    """Each exchange that was asked again, with the answer straight from the server; retries share one."""
    listed = sorted(exchanges, key=lambda exchange: exchange.attempt)
    first = {exchange.attempt: exchange for exchange in listed if not exchange.tag(TAG)}
    answers: dict[tuple[str, bytes], Exchange] = {}
    upstreams = set()
    for exchange in listed:
        attempt = exchange.tag(TAG)
        original = first.get(int(attempt)) if attempt.isdigit() else None
        if original is not None and original.request is not None:
            answers[original.request.forwarded_target, original.request.body] = exchange
            upstreams.add(original.upstream)
    return [
        (exchange, answers[what])
        for exchange in first.values()
        if exchange.request is not None and exchange.upstream in upstreams
        if (what := (exchange.request.forwarded_target, exchange.request.body)) in answers
    ]
