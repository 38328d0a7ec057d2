"""The control endpoint, over real sockets."""

from __future__ import annotations

import json

import pytest

from proxy.relay.control import Control
from proxy.relay.listen import ListenError
from tests.proxy.relay.support import Peer, dial, relayed

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


async def ask(port: int, path: str, host: str = "localhost") -> tuple[int, dict[str, object]]:
    client = await dial(port)
    await client.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await client.read_all()).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


async def test_health_and_counters() -> None:
    async def handler(peer: Peer) -> None:
        await peer.read_until(b"\r\n\r\n")
        await peer.send(OK)
        await peer.read_all()

    async with relayed(handler) as bench:
        control = Control(bench.relay, extra=lambda: {"record": {"written": 3}})
        await control.start()
        client = await bench.client()
        await client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await client.read_exactly(len(OK))
        status, body = await ask(control.port, "/status")
        assert status == 200
        assert (body["requests"], body["open"], body["bytes_down"]) == (1, 1, len(OK))
        assert body["ports"] == {"one": bench.port}
        assert body["record"] == {"written": 3}
        assert await ask(control.port, "/health") == (200, {"status": "ok"})
        bench.tap.refusing = True
        assert await ask(control.port, "/health") == (503, {"status": "refusing"})
        assert (await ask(control.port, "/status", "evil.example"))[0] == 403
        with pytest.raises(ListenError, match="in use"):
            await Control(bench.relay, port=control.port).start()
        await control.stop()
