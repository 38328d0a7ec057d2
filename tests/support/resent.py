"""A recorded run asked again: each of its requests sent as it was, through a recording relay, to a replay of the run.

The client does what the recorded one did: it waits for the end, or leaves after so many bytes of the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterable
from pathlib import Path

from proxy.exchange_view import classify_run
from proxy.relay.server import RelayConfig
from proxy.replay.recordings import Recordings
from proxy.replay.server import ReplayServer
from proxy.replay.sources import answers_of_run
from proxy.session import RecordingSession, SessionOptions
from results.exchange import Exchange
from results.outcomes import Judged
from results.reader import RunReader

READ_TIMEOUT = 0.4


def replayable(exchange: Exchange) -> bool:
    """Whether a server can answer it again."""
    return next(iter(answers_of_run([exchange])), None) is not None


async def replayed_run(exchanges: Iterable[Exchange], folder: Path) -> dict[int, Judged]:
    """The verdicts on a run that is asked again of its own replay, by the attempt numbers of the original. `folder` is
    where the second run is recorded; attempts that reached no server are left out."""
    asked = [one for one in exchanges if replayable(one)]
    server = ReplayServer(Recordings(answers_of_run(asked)))
    url = await server.start()
    numbers: dict[int, int] = {}
    try:
        timed_out = any(one.end == "timeout_read" for one in asked)
        relay = RelayConfig(upstreams=(), read_timeout=READ_TIMEOUT if timed_out else None)
        options = SessionOptions(upstreams=(f"up={url}",), out=folder, relay=relay)
        async with RecordingSession(options) as session:
            host, port = session.base_url().removeprefix("http://").split(":")
            for number, exchange in enumerate(asked, 1):
                numbers[number] = exchange.attempt
                await asyncio.wait_for(_ask(exchange, host, int(port.split("/")[0])), 30)
    finally:
        await server.stop()
    assert not server.statistics.unseen, server.statistics.unseen[:3]
    judged = list(classify_run(RunReader(folder)))
    assert len(judged) == len(asked), [one.outcome.name for one in judged if one.attempt not in numbers]
    return {numbers[one.attempt]: one for one in judged}


async def _ask(exchange: Exchange, host: str, port: int) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    request = exchange.request
    assert request is not None
    head, body = exchange.wire("request")[: request.body_start], exchange.wire("request")[request.body_start :]
    head = head.replace(request.target.encode("latin-1"), request.forwarded_target.encode("latin-1"), 1)
    # The relay takes no Host but this machine's.
    head = re.sub(rb"\r\nHost:[^\r]*", b"\r\nHost: %s:%d" % (host.encode(), port), head, count=1, flags=re.IGNORECASE)
    writer.write(head + body)
    expected = len(exchange.wire("response"))
    received = 0
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        while exchange.end != "complete" or received < expected:
            if exchange.end == "client_gone" and received >= expected:
                break
            data = await reader.read(65536)
            if not data:
                break
            received += len(data)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    # The next request comes after the end of this one is recorded, so that attempts keep their order.
    await asyncio.sleep(0)
