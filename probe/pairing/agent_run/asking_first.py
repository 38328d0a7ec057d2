"""What an agent asks first: run it against a listener until its requests tell enough."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from probe.pairing.agent_run.agent_process import Limits, run_agent
from probe.pairing.agent_run.listener import Enough, Listener, enough_to_learn
from probe.pairing.agent_run.scratch import Scratch
from probe.pairing.records import AgentRun
from stacks.turn import CanonicalRequest


async def first_requests(
    listener: Listener,
    command: Sequence[str],
    scratch: Scratch,
    environment: Mapping[str, str],
    limits: Limits,
    *,
    enough: Enough = enough_to_learn,
    on_output: Callable[[bytes], None] | None = None,
) -> tuple[list[CanonicalRequest], AgentRun]:
    """Run an agent that is pointed at ``listener`` (by ``environment`` and ``command``) until ``enough``.

    Returns its generating requests in order and what its process did: ``stopped`` where they were enough, else how it
    ended. The agent has ended when this returns; the listener goes on.
    """
    stop = asyncio.Event()

    async def stop_when_learned() -> None:
        await listener.learned(enough)
        stop.set()

    learning = asyncio.ensure_future(stop_when_learned())
    try:
        await asyncio.sleep(0)  # so that it listens before the agent asks
        run = await run_agent(
            command, environment, scratch.work, limits=limits, watch=listener.activity, on_output=on_output, stop=stop
        )
    finally:
        learning.cancel()
    return listener.requests, run
