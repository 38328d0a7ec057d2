"""A walk of our little agent with a gateway between two relays, on the simulated server; what both sides recorded."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from probe.pairing.gateway.direct_again import ask_again
from probe.pairing.gateway.gateway_process import free_port
from proxy.session import RecordingSession, SessionOptions
from results.exchange import Exchange
from results.reader import RunReader
from tests.support.faulty_gateway.gateway import faulty_gateway
from tests.support.walking_agent import Api, WalkingAgent
from tests.support.walking_server import walking_server

NOTE = "canary_note.txt"
_PACE = 0.004


@dataclass
class Walked:
    """Whether the task was done, and the exchanges by upstream."""

    finished: bool
    note: bool
    agent: WalkingAgent
    exchanges: list[Exchange]

    def on(self, upstream: str) -> list[Exchange]:
        """The exchanges of one side."""
        return [exchange for exchange in self.exchanges if exchange.upstream == upstream]


@contextlib.asynccontextmanager
async def two_relays(server: str, fault: str, folder: Path) -> AsyncIterator[RecordingSession]:
    """A session with the gateway between `front` and `behind`, and `direct` past it."""
    port = free_port()
    upstreams = (f"front=http://127.0.0.1:{port}", f"behind={server}", f"direct={server}")
    async with RecordingSession(SessionOptions(upstreams=upstreams, out=folder / "run")) as session:
        with faulty_gateway(session.base_url("behind"), fault, port):
            yield session


def read_back(folder: Path) -> list[Exchange]:
    """All exchanges of the run in `folder`/run, by number."""
    return sorted(RunReader(folder / "run"), key=lambda exchange: exchange.attempt)


async def walked(
    fault: str, folder: Path, *, stream: bool, api: Api = "chat", server: str | None = None, again: bool = False
) -> Walked:
    """Walk once through the gateway with that fault; `again` asks everything once more straight from the server."""
    async with contextlib.AsyncExitStack() as stack:
        url = server or await stack.enter_async_context(walking_server(pause=_PACE if fault == "buffers" else 0.0))
        session = await stack.enter_async_context(two_relays(url, fault, folder))
        scratch = folder / "scratch"
        scratch.mkdir(parents=True)
        agent = WalkingAgent(session.base_url("front"), scratch, stream, api)
        finished = await agent.run()
        if again:
            assert await session.settled(30)
            await ask_again(session, [exchange for exchange in read_back(folder) if exchange.upstream == "front"])
    return Walked(finished, (scratch / NOTE).exists(), agent, read_back(folder))
