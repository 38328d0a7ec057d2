"""The pairing of our little agent (`tests/support/agents/little_agent.py`) with a server that serves the captured
canary: its plan, and one recorded run judged."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from probe.canary.members import hermes_template
from probe.canary.spec import CanarySpec, Script
from probe.pairing.records import AgentRun, PairVerdict, Plan, PlannedTurn, Speech
from probe.pairing.verdict.judging import judge
from probe.pairing.verdict.server_side import ServerSide
from proxy.session import RecordingSession, SessionOptions
from results.exchange import Exchange
from results.reader import RunReader

AGENT = Path(__file__).parent / "agents" / "little_agent.py"
NOTE, NONCE = "canary_note.txt", "canary-4711"
_CALL = ("get_weather", {"city": "Paris"})


def weather_plan(good: str, answer: str, *, trigger: str = "good", once: bool = False) -> Plan:
    """What the captured canary writes for this agent: a call, and a sentence after its result. `trigger` chooses the
    call's text (`good` is the default); `once`: the agent ends after the call."""
    turns = [PlannedTurn("write", f"[[{trigger}]]", good, good.partition("<tool_call>")[0], (_CALL,), "")]
    if not once:
        turns.append(PlannedTurn("finish", "[[answer]]", answer, answer))
    speech = Speech("tool get_weather(city)", "tool", "native", "get_weather", "city")
    spec = CanarySpec("captured", (Script(trigger, good), Script("answer", answer)), hermes_template())
    return Plan(speech, tuple(turns), NONCE, NOTE, "Weather?", "hermes", spec)


@dataclass(frozen=True)
class Walked:
    """One run: what the agent's process did, what was recorded, and the verdict."""

    run: AgentRun
    exchanges: tuple[Exchange, ...]
    verdict: PairVerdict


async def walked(url: str, server: ServerSide, plan: Plan, folder: Path, *arguments: str) -> Walked:
    """Run the agent through a recording relay in a scratch folder, and judge."""
    work = folder / "work"
    work.mkdir(parents=True)
    async with RecordingSession(SessionOptions(upstreams=(url,), out=folder / "run")) as session:
        run = await _run(session.base_url(), server.model, work, *arguments)
    exchanges = tuple(RunReader(folder / "run"))
    return Walked(run, exchanges, judge(plan, exchanges, run, server=server, agent_name="the weather agent"))


async def _run(url: str, model: str, work: Path, *arguments: str) -> AgentRun:
    command = (sys.executable, str(AGENT), url, model, "--note", NONCE, *arguments)
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *command, cwd=work, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 60)
    finally:
        if process.returncode is None:
            process.kill()
    note = work / NOTE
    held = note.read_bytes() if note.exists() else None
    return AgentRun(command, "exited", process.returncode, time.monotonic() - began, output.decode(), held)
