"""One walk: a scratch folder, a recording relay before the server, the unchanged agent, the verdict.

With a gateway of the user's there are two relays, before it and behind it, in one recording.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from probe.pairing.agent_run.agent_process import Activity, Limits, run_agent
from probe.pairing.agent_run.scratch import Scratch, anchored_command
from probe.pairing.agent_run.stuck import Refusals
from probe.pairing.agent_run.subject import Subject
from probe.pairing.gateway.direct_again import answered_again, ask_again
from probe.pairing.gateway.gateway_process import free_port, running_gateway_async
from probe.pairing.records import AgentRun, Pairing, Plan
from probe.pairing.serving.served import Served
from probe.pairing.telling import facts
from probe.pairing.verdict.demands import demands_of
from probe.pairing.verdict.judging import judge
from probe.pairing.verdict.server_side import ServerSide
from proxy.agents.invocation import Invocation, Place
from proxy.session import RecordingSession, SessionOptions
from results.exchange import Exchange
from results.follow import JournalFollower
from results.manifest import Fact, known
from results.reader import RunReader
from results.whole_files import write_whole

FILE = "pairing.json"
"""Where the whole pairing is kept in its run folder."""
_LOOK_SECONDS = 0.5
FRONT, BEHIND, DIRECT = "agent", "server", "direct"
"""The upstreams of a run with a gateway: before it, behind it, and the server asked again past it."""


@dataclass(frozen=True, slots=True)
class WalkSettings:
    """How walks are run. ``timeout`` is in seconds for one run of the agent; ``say`` is told what happens, a line each;
    ``keep`` leaves a copy of the scratch folder; ``command`` is stacktap's own command line, for the record.

    ``gateway`` is the command of one to start between agent and server; ``direct`` the server behind one that runs.
    """

    timeout: float = 120.0
    out: Path | None = None
    keep: bool = False
    command: tuple[str, ...] = ()
    gateway: tuple[str, ...] = ()
    direct: str = ""
    say: Callable[[str], None] = field(default=lambda line: None)

    @property
    def limits(self) -> Limits:
        """When the agent is ended."""
        usual = Limits()
        return replace(
            usual,
            total_seconds=self.timeout,
            silent_seconds=min(usual.silent_seconds, self.timeout),
            first_request_seconds=min(usual.first_request_seconds, self.timeout),
        )


async def walk(subject: Subject, plan: Plan, served: Served, scratch: Scratch, settings: WalkSettings) -> Pairing:
    """Walk the agent through the plan on a server that serves its canary, recorded, and judge it.

    Raises SessionError, GatewayError, SubjectError, OSError, and KeyboardInterrupt where the user ended the agent by
    Ctrl-C. Whatever the agent and the server do is a verdict.
    """
    port = free_port() if settings.gateway else 0
    session = RecordingSession(_session_options(subject, plan, served, settings, port))
    async with AsyncExitStack() as running:
        await running.enter_async_context(session)
        if settings.gateway:
            gateway = running_gateway_async(
                settings.gateway, session.base_url(BEHIND), scratch.places.root / "gateway", port=port
            )
            await running.enter_async_context(gateway)
        _prepare(plan, scratch)
        before = scratch.contents()
        place = Place(session.base_url(), served.model, plan.task, scratch.home, scratch.work)
        async with _stopping_when_stuck(session) as stop:
            invocation = subject.invocation(place)
            run = await run_in(invocation, place, scratch, settings.limits, watching(session), stop)
        server = server_side(served)
        if settings.direct:
            settings.say("asking the server behind the gateway the same again")
            await session.settled()
            await ask_again(session, _of(list(RunReader(session.folder)), FRONT), DIRECT)
    if settings.keep:
        settings.say(f"the agent's scratch folder is kept in {_kept(scratch)}")
    pairing = _judged(subject, plan, server, session.folder, scratch.traced(run, plan.file, before))
    write_pairing(pairing)
    return pairing


def _session_options(
    subject: Subject, plan: Plan, served: Served, settings: WalkSettings, gateway_port: int
) -> SessionOptions:
    upstreams: tuple[str, ...] = (f"{FRONT}={served.url}",)
    if gateway_port:
        upstreams = (f"{FRONT}=http://127.0.0.1:{gateway_port}", f"{BEHIND}={served.url}")
    elif settings.direct:
        upstreams = (*upstreams, f"{DIRECT}={settings.direct}")
    described = {**served.facts(), "model_digest": known(plan.spec.digest(), "canary specification")}
    return SessionOptions(
        upstreams=upstreams,
        out=settings.out,
        command=settings.command,
        environment=dict(os.environ),
        facts={
            **agent_facts(subject),
            "plan": known([turn.text for turn in plan.turns], "stacktap pair"),
            "call_format": known(plan.call_format, "stacktap pair"),
        },
        upstream_facts={} if gateway_port else described,
    )


def agent_facts(subject: Subject) -> dict[str, Fact]:
    """What a run's manifest states of the agent."""
    told = {"agent": known(subject.name, "stacktap pair")}
    return told | ({"agent_version": known(subject.version, "its installation")} if subject.version else {})


def watching(session: RecordingSession) -> Callable[[], Activity]:
    """What an agent has asked through a relay so far."""

    def watch() -> Activity:
        status = session.recorder.status()
        return Activity(status["attempts"], status["open_attempts"])

    return watch


@asynccontextmanager
async def _stopping_when_stuck(session: RecordingSession) -> AsyncIterator[asyncio.Event]:
    """An event that is set when the agent's request was refused again and again (``probe.pairing.agent_run.stuck``)."""
    stop = asyncio.Event()
    watcher = asyncio.create_task(_watch_refusals(session.folder, stop))
    try:
        yield stop
    finally:
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher


async def _watch_refusals(folder: Path, stop: asyncio.Event) -> None:
    follower, refusals = JournalFollower(folder), Refusals()
    try:
        while not refusals.stuck:
            await asyncio.sleep(_LOOK_SECONDS)
            with suppress(OSError):
                refusals.take(each for each in follower.poll() if each.upstream == FRONT)
        stop.set()
    finally:
        follower.close()


async def run_in(  # noqa: PLR0917
    invocation: Invocation,
    place: Place,
    scratch: Scratch,
    limits: Limits,
    watch: Callable[[], Activity],
    stop: asyncio.Event | None = None,
) -> AgentRun:
    """Run an agent in its scratch folder. Raises KeyboardInterrupt where Ctrl-C ended it, OSError."""
    invocation.write_files()
    run = await run_agent(
        anchored_command(invocation.command, Path.cwd()),
        scratch.environment(os.environ, place.relay_url, extra=invocation.environment),
        scratch.work,
        limits=limits,
        watch=watch,
        stop=stop,
    )
    if run.ending == "interrupted":
        raise KeyboardInterrupt
    return run


def _prepare(plan: Plan, scratch: Scratch) -> None:
    for name, text in plan.prepared.items():
        path = scratch.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _kept(scratch: Scratch) -> Path:
    copy = Path(tempfile.mkdtemp(prefix="stacktap-kept-"))
    shutil.copytree(scratch.places.root, copy, symlinks=True, dirs_exist_ok=True, ignore_dangling_symlinks=True)
    return copy


def server_side(served: Served) -> ServerSide:
    """What a judge wants to know of a server, and how it ended where stacktap started it."""
    process = served.process
    code = process.exit_code() if process is not None else None
    return ServerSide(
        stack=served.stack,
        version=served.version,
        launch_flags=served.flags,
        context=served.context,
        template=served.template,
        parser=served.parser,
        mode=served.mode,
        model=served.model,
        direct=process is not None,
        exit_code=code,
        died=code is not None,
        log_tail=process.log_tail() if process is not None and code is not None else "",
    )


def _judged(subject: Subject, plan: Plan, server: ServerSide, folder: Path, run: AgentRun) -> Pairing:
    exchanges = list(RunReader(folder))
    front, behind = _of(exchanges, FRONT), _of(exchanges, BEHIND)
    sides = {exchange.upstream for exchange in exchanges}
    verdict = judge(
        plan,
        front,
        run,
        behind=behind if BEHIND in sides else None,
        again=answered_again(exchanges) if DIRECT in sides else None,
        server=server,
        agent_name=subject.name,
    )
    return Pairing(
        subject.name,
        subject.version,
        server.stack,
        server.version,
        run.command,
        plan,
        folder,
        run,
        demands_of(plan, front) if front else None,
        verdict,
    )


def _of(exchanges: Sequence[Exchange], upstream: str) -> list[Exchange]:
    return [exchange for exchange in exchanges if exchange.upstream == upstream]


def write_pairing(pairing: Pairing) -> None:
    """Keep the whole pairing in its run folder. Raises OSError."""
    assert pairing.run_folder is not None
    write_whole(pairing.run_folder / FILE, (json.dumps(facts(pairing), ensure_ascii=True, indent=1) + "\n").encode())
