"""Real, unchanged agents walked on a real llama-server, with our faulty gateway between two relays, or without it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from probe.canary import BuiltCanary, ensure_built
from probe.pairing.agent_run.agent_process import Activity, Limits, run_agent
from probe.pairing.agent_run.asking_first import first_requests
from probe.pairing.agent_run.listener import Listener
from probe.pairing.agent_run.scratch import Scratch, scratch_folder
from probe.pairing.gateway.direct_again import answered_again, ask_again
from probe.pairing.gateway.gateway_process import free_port, running_gateway_async
from probe.pairing.learning.learn import learn
from probe.pairing.planning import plan as plan_walk
from probe.pairing.records import AgentRun, PairVerdict, Plan
from probe.pairing.verdict.judging import judge
from probe.pairing.verdict.server_side import ServerSide
from proxy.agents.installed import InstalledAgent, installed
from proxy.agents.invocation import Invocation, Place
from proxy.agents.profile import AgentProfile, profile_named
from proxy.session import RecordingSession, SessionOptions
from results.exchange import Exchange
from results.reader import RunReader
from tests.support.paced import paced
from tests.support.servers import ROOT

MODEL = "canary"
MOST_REQUESTS = 12
MOST_RETRIES = 3
"""An agent that asks more, or the same more often, goes round in circles, and has shown what it can."""
_PAUSE = 0.004
LIMITS = Limits(total_seconds=90.0, silent_seconds=60.0, first_request_seconds=60.0)
LEARNING = Limits(total_seconds=240.0, silent_seconds=180.0, first_request_seconds=180.0)
"""For the first start, which reads an agent of some hundred megabytes from the disk."""
LLAMA_FLAGS = ("--jinja", "--parallel", "1", "-t", "1", "--no-warmup")
_MODULE = "tests.support.faulty_gateway"
GATEWAY = (sys.executable, "-m", _MODULE, "--upstream", "{upstream}", "--port", "{port}", "--fault")


@dataclass(frozen=True)
class RealAgent:
    """An installed agent, how it is walked, and the canary that does it."""

    profile: AgentProfile
    program: InstalledAgent
    plan: Plan
    canary: BuiltCanary

    def invocation(self, place: Place) -> Invocation:
        """The agent run on this place."""
        return self.profile.invocation(
            self.program.programs,
            task=place.task,
            model=place.model,
            relay_url=place.relay_url,
            home=place.home,
            work=place.work,
        )


@dataclass(frozen=True)
class RealWalk:
    """What the agent did, and all that was recorded."""

    run: AgentRun
    exchanges: list[Exchange]

    def on(self, upstream: str) -> list[Exchange]:
        """The exchanges of one side."""
        return [exchange for exchange in self.exchanges if exchange.upstream == upstream]


async def real_agent(name: str, folder: Path) -> RealAgent:
    """Learn an installed agent from its own first request, and build its canary. Skips where it is not installed."""
    profile = profile_named(name)
    assert profile is not None
    program = installed(profile)
    if program is None:
        pytest.skip(f"{name} is not installed: python -m proxy.agents.install {name}")
    with scratch_folder() as scratch:
        async with Listener(MODEL) as listener:
            place = Place(listener.url, MODEL, "Leave a note.", scratch.home, scratch.work)
            unlearnt = RealAgent(profile, program, None, None)  # type: ignore[arg-type]
            invocation = unlearnt.invocation(place)
            invocation.write_files()
            variables = _variables(scratch, place, invocation)
            requests, _ = await first_requests(listener, invocation.command, scratch, variables, LEARNING)
    plan = plan_walk(learn(requests), nonce="canary-4711", file="canary_note.txt")
    return RealAgent(profile, program, plan, ensure_built(plan.spec, folder / name))


def _variables(scratch: Scratch, place: Place, invocation: Invocation) -> dict[str, str]:
    return scratch.environment(os.environ, place.relay_url, extra=invocation.environment)


async def _until_in_circles(folder: Path, told: asyncio.Event) -> None:
    while True:
        await asyncio.sleep(0.5)
        front = [each for each in RunReader(folder) if each.upstream == "front" and each.request is not None]
        bodies = Counter(each.request.body for each in front if each.request is not None and each.end != "open")
        if len(front) > MOST_REQUESTS or max(bodies.values(), default=0) > MOST_RETRIES:
            told.set()
            return


@asynccontextmanager
async def _relays(server: str, fault: str | None, folder: Path, both: bool) -> AsyncIterator[RecordingSession]:
    """`both`: with a relay behind the gateway; else it goes straight to the server, and only `front` is recorded."""
    async with AsyncExitStack() as stack:
        if fault == "buffers":
            server = await stack.enter_async_context(paced(server, _PAUSE))
        yield await stack.enter_async_context(_between(server, fault, folder, both))


@asynccontextmanager
async def _between(server: str, fault: str | None, folder: Path, both: bool) -> AsyncIterator[RecordingSession]:
    port = free_port()
    front = server if fault is None else f"http://127.0.0.1:{port}"
    upstreams = (f"front={front}", f"behind={server}", f"direct={server}")
    options = SessionOptions(upstreams=upstreams, out=folder / "run")
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(RecordingSession(options))
        if fault is not None:
            upstream = session.base_url("behind") if both else server
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            gateway = running_gateway_async((*GATEWAY, fault), upstream, folder, port=port, environment=environment)
            await stack.enter_async_context(gateway)
        yield session


async def real_walk(
    agent: RealAgent, server: str, fault: str | None, folder: Path, *, both: bool = True, again: bool = False
) -> RealWalk:
    """Walk the agent once. `again` sends its requests once more straight to the server."""
    folder.mkdir(parents=True, exist_ok=True)
    with scratch_folder() as scratch:
        async with _relays(server, fault, folder, both) as session:
            place = Place(session.base_url("front"), MODEL, agent.plan.task, scratch.home, scratch.work)
            invocation = agent.invocation(place)
            invocation.write_files()

            def watch() -> Activity:
                status = session.recorder.status()
                return Activity(status["attempts"], status["open_attempts"])

            variables = _variables(scratch, place, invocation)
            before = scratch.contents()
            stop = asyncio.Event()
            looking = asyncio.create_task(_until_in_circles(session.folder, stop))
            run = await run_agent(invocation.command, variables, scratch.work, limits=LIMITS, watch=watch, stop=stop)
            looking.cancel()
            run = scratch.traced(run, agent.plan.file, before)
            if again:
                assert await session.settled(30)
                asked = [each for each in RunReader(session.folder) if each.upstream == "front"]
                await ask_again(session, sorted(asked, key=lambda each: each.attempt))
    return RealWalk(run, sorted(RunReader(folder / "run"), key=lambda each: each.attempt))


@dataclass(frozen=True)
class Verdicts:
    """One walk judged three times: with both sides of the gateway, past it (asked again), and by the agent's side."""

    both: PairVerdict
    again: PairVerdict
    alone: PairVerdict


def verdicts_on(agent: RealAgent, walk: RealWalk, version: str) -> Verdicts:
    """Judge a walk that was recorded on both sides and asked again, as it would have been with less of it recorded."""
    front, behind = walk.on("front"), walk.on("behind")
    server = ServerSide(stack="llamacpp", version=version, launch_flags=LLAMA_FLAGS)
    name = agent.profile.name
    return Verdicts(
        judge(agent.plan, front, walk.run, behind=behind, server=server, agent_name=name),
        judge(agent.plan, front, walk.run, again=answered_again(walk.exchanges), server=server, agent_name=name),
        judge(agent.plan, front, walk.run, server=server, agent_name=name),
    )
