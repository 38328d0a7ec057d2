"""Random peers that send, stop, end and reset in any order: no callback fails, no connection stays."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest

from proxy.relay.server import Listener
from proxy.relay.upstream import parse_upstreams
from proxy.tap import ConnectionOpened, Event, SideClosed
from tests.proxy.relay.support import (
    ListTap,
    Peer,
    Upstreams,
    closed,
    dial,
    eventually,
    free_port,
    hang_up,
    relay_to,
)

CLIENT = [
    b"GET /a/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /b/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /c/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"HEAD /a/t/x=1/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"POST /a/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
    b"POST /b/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"GET /a/ HTTP/1.1\r\nHost: localhost\r\nUpgrade: x\r\n\r\n",
    b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n",
    b"GET /a/ HTTP",
    b"\r\n",
    b"\x00garbage",
    b"x" * 300_000,
]
SERVER = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
    b"HTTP/1.1 101 Go\r\nUpgrade: x\r\n\r\n\x00\x01",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 204 No\r\n\r\n",
    b"nonsense",
    b"y" * 300_000,
]


async def act(peer: Peer, said: list[bytes], dice: random.Random) -> None:
    """Do a few random things, then end in a random way."""
    with contextlib.suppress(OSError, TimeoutError):
        for _ in range(dice.randrange(6)):
            what = dice.randrange(10)
            if what < 5:
                async with asyncio.timeout(0.05):
                    await peer.send(dice.choice(said))
            elif what < 8:
                async with asyncio.timeout(0.02):
                    await peer.read()
            elif what == 8:
                await asyncio.sleep(dice.random() * 0.02)
            else:
                peer.fin()
        if dice.random() < 0.3:
            peer.rst()
    peer.close()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("config", [{}, {"read_timeout": 0.05}, {"token": "x"}], ids=["plain", "timeout", "token"])
async def test_nothing_fails_and_nothing_stays(
    seed: int, config: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in (("connection", "HEAD"), ("ends", "DRAIN"), ("ends", "LINGER"), ("ends", "PENDING")):
        monkeypatch.setattr(f"proxy.relay.{module}.{name}_SECONDS", 0.03)
    monkeypatch.setattr("proxy.relay.connection.STALE_NS", 0)
    dice = random.Random(seed)

    async def handler(peer: Peer) -> None:
        await act(peer, SERVER, dice)

    first, second = Upstreams(handler), Upstreams(handler)
    upstreams = parse_upstreams(
        [f"a=http://127.0.0.1:{first.port}", f"b=http://127.0.0.1:{second.port}", f"c=http://127.0.0.1:{free_port()}"]
    )
    listeners = (Listener(0), Listener(0, "a"), Listener(0, "c"))
    async with relay_to(*upstreams, listeners=listeners, **config) as (relay, tap):

        async def one() -> None:
            await asyncio.sleep(dice.random() * 0.3)
            await act(await dial(dice.choice([*relay.ports.values(), relay.ports[""], relay.ports["a"]])), CLIENT, dice)

        await asyncio.gather(*(one() for _ in range(150)))
        await eventually(lambda: relay.stats.open == 0, 30)
        check_events(tap)
    hang_up()
    await first.stop()
    await second.stop()


def check_events(tap: ListTap) -> None:
    """Each connection opens once, closes once and last, and each of its sides ends at most once in one way."""
    by_connection: dict[int, list[Event]] = {}
    for event in tap.events:
        by_connection.setdefault(event.connection, []).append(event)
    assert sorted(closed(tap)) == sorted(by_connection)
    for events in by_connection.values():
        assert isinstance(events[0], ConnectionOpened)
        assert events[-1].connection in closed(tap)
        assert type(events[-1]).__name__ == "ConnectionClosed"
        ways = [(event.side, event.how) for event in events if isinstance(event, SideClosed)]
        assert ways.count(("client", "fin")) <= 1
        assert ways.count(("client", "rst")) <= 1
