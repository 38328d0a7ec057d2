"""Run as a program: relay real traffic while the journal may not grow, then let it grow again; print what happened.

Arguments: the run folder, `strict`, `strict-large` (answers that
do not fit where short lines still do) or `lenient`. A file-size limit stands for a full disk (the write fails alike).
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path

from proxy.recording.recorder import Recorder
from proxy.recording.redact import Redactor
from proxy.relay.server import Relay, RelayConfig
from proxy.relay.upstream import parse_upstream
from tests.proxy.relay.support import Peer, Upstreams, dial

BODY = b"y" * (20_000 if "large" in sys.argv[2] else 2000)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY


async def handler(peer: Peer) -> None:
    await peer.read_until(b"\r\n\r\n")
    await peer.send(OK)


async def ask(port: int) -> str:
    client = await dial(port)
    await client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    got = await client.read_all()
    client.close()
    assert got == OK or b"x-stacktap-error: journal_failed" in got, got
    return got[9:12].decode()


async def main() -> None:
    recorder = Recorder(Path(sys.argv[1]), "full", Redactor(), strict=sys.argv[2].startswith("strict"))
    recorder.start()
    upstreams = Upstreams(handler)
    relay = Relay(RelayConfig((parse_upstream(f"one=http://127.0.0.1:{upstreams.port}"),)), recorder)
    await relay.start()
    port = relay.ports["one"]
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    full = []
    for _ in range(60):
        full.append(await ask(port))
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    failing = recorder.status()
    on_disk = json.loads((Path(sys.argv[1]) / "status.json").read_text())
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await asyncio.sleep(1.2)
    again = [await ask(port) for _ in range(3)]
    await relay.stop()
    await upstreams.stop()
    recorder.close()
    print(json.dumps({"full": full, "failing": failing, "on_disk": on_disk, "again": again, "end": recorder.status()}))


asyncio.run(main())
