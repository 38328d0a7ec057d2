"""Every installed agent, run as its profile says, walks four steps on a real llama-server with a self-driving canary.

Agents are where ``make agents`` (or ``make agents-all``, ``make agent-NAME``) puts them; one that is not there is
skipped by name. Text protocols that no call format writes are walked by the tests of pairing.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from probe.canary import Script, build, note_steps
from probe.canary.call_formats import write_call
from probe.canary.members import hermes_template
from probe.canary.selfdriving import trigger_command
from probe.canary.spec import CanarySpec
from proxy.agents.installed import installed
from proxy.agents.invocation import Invocation, clean_environment
from proxy.agents.profile import AgentProfile, profiles
from proxy.event_loop import run
from proxy.session import RecordingSession, SessionOptions
from results.reader import RunReader
from stacks.launching.launch import EnvironmentMissingError, LaunchOptions, find_server, recipe_for, running_server
from tests.support.processes import session_members

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

NONCE = "note-4127"
SECONDS = 600
FENCES = {"mini-swe-agent-text": "mswea_bash_command"}
"""Agents whose text protocol is a fenced block: the fence's language."""
CASES = [profile for profile in profiles() if profile.run and (profile.calls.tool or profile.name in FENCES)]


def walk(profile: AgentProfile) -> CanarySpec:
    """A canary that calls the agent's own shell tool as its profile describes it."""
    calls, scripts = profile.calls, []
    steps = note_steps(NONCE, finish_command=calls.finish_command or None)
    for number, step in enumerate(steps, start=1):
        text = step.say
        if step.command is not None:
            command = trigger_command(step.command, f"k{number + 1}") if number < len(steps) else step.command
            value = [command] if calls.argument_is_list else command
            name = FENCES.get(profile.name)
            if name is not None:
                call = write_call("fenced", name, {"command": command})
            else:
                call = write_call("hermes", calls.tool, {calls.argument: value, **calls.extra})
            text = f"{text}\n{call}"
        scripts.append(Script(f"k{number}", text, about=step.say))
    return CanarySpec("canary-walk", tuple(scripts), hermes_template(), context=65536)


def ended(invocation: Invocation, work: Path, output: Path) -> int | None:
    """Run the agent in a session of its own and return its exit code; nothing of that session is left running."""
    environment = {**clean_environment(os.environ), **invocation.environment}
    with output.open("wb") as printed:
        process = subprocess.Popen(
            invocation.command,
            env=environment,
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            start_new_session=True,
        )
        try:
            return process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            return None
        finally:
            for member in session_members(process.pid):
                os.kill(member, signal.SIGKILL)
            process.wait()


@pytest.mark.parametrize("profile", CASES, ids=lambda profile: profile.name)
def test_an_agent_run_as_its_profile_says_walks_the_four_steps(profile: AgentProfile, tmp_path: Path) -> None:
    found = installed(profile)
    if found is None:
        pytest.skip(f"{profile.title} is not installed: make agent-{profile.variant_of or profile.name}")
    try:
        find_server(recipe_for("llamacpp"))
    except EnvironmentMissingError as missing:
        pytest.skip(f"llamacpp: {missing}")
    home, work, output = tmp_path / "home", tmp_path / "work", tmp_path / "output"
    home.mkdir()
    work.mkdir()
    built = build(walk(profile), tmp_path / "canary")

    async def session(url: str) -> int | None:
        async with RecordingSession(SessionOptions(upstreams=(url,), out=tmp_path / "run")) as recording:
            invocation = profile.invocation(
                found.programs,
                task="Leave a note.",
                model="canary",
                relay_url=recording.base_url(),
                home=home,
                work=work,
            )
            invocation.write_files()
            return await asyncio.to_thread(ended, invocation, work, output)

    options = LaunchOptions(context_length=65536, flags=("--jinja", "--parallel", "1"))
    with running_server("llamacpp", built.gguf, options) as server:
        code = run(session(server.url))
    said = output.read_text(errors="replace")[-2000:]
    assert code == 0, said
    assert (work / "canary_note.txt").read_text().strip() == NONCE, said
    paths = {exchange.request.target.partition("?")[0] for exchange in RunReader(tmp_path / "run") if exchange.request}
    expected = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}[profile.api]
    assert expected in paths
