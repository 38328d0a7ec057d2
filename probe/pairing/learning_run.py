"""Learning an agent: it is run against a listener in a model's place, recorded, until its requests tell enough."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from probe.pairing.agent_run.asking_first import first_requests
from probe.pairing.agent_run.listener import Listener
from probe.pairing.agent_run.scratch import anchored_command, scratch_folder
from probe.pairing.agent_run.subject import Subject
from probe.pairing.learning.learn import NotLearntError, learn
from probe.pairing.records import Pairing, Speech
from probe.pairing.verdict.judging import judge
from probe.pairing.verdict.server_side import ServerSide
from probe.pairing.walking import FRONT, WalkSettings, agent_facts, write_pairing
from proxy.agents.invocation import Place
from proxy.session import RecordingSession, SessionOptions
from results import runs
from results.reader import RunReader

MODEL = "stacktap-canary"


@dataclass(frozen=True, slots=True)
class LearningRun:
    """What came of it: the speech; or, of an agent that never asked, a pairing that says so; or why neither."""

    speech: Speech | None = None
    pairing: Pairing | None = None
    problem: str = ""


async def learning_run(subject: Subject, task: str, settings: WalkSettings) -> LearningRun:
    """Run the agent until it can be learned. Its recording is kept only where it could not.

    Raises SessionError, ScratchError, SubjectError, OSError, and KeyboardInterrupt where the user ended it by Ctrl-C.
    """
    with scratch_folder() as scratch:
        async with Listener(MODEL) as listener:
            options = SessionOptions(
                upstreams=(f"{FRONT}={listener.url}",),
                out=settings.out,
                command=settings.command,
                environment=dict(os.environ),
                facts=agent_facts(subject),
            )
            async with RecordingSession(options) as session:
                place = Place(session.base_url(), MODEL, task, scratch.home, scratch.work)
                invocation = subject.invocation(place)
                invocation.write_files()
                requests, run = await first_requests(
                    listener,
                    anchored_command(invocation.command, Path.cwd()),
                    scratch,
                    scratch.environment(os.environ, place.relay_url, extra=invocation.environment),
                    settings.limits,
                )
        if run.ending == "interrupted":
            raise KeyboardInterrupt
        run = scratch.traced(run, "")
    try:
        speech = learn(requests)
    except NotLearntError as wrong:
        if requests:
            return LearningRun(problem=f"{subject.name} cannot be walked: {wrong}\n  its requests: {session.folder}")
    else:
        with suppress(runs.RunFolderError):
            runs.remove(session.folder)
        return LearningRun(speech)
    verdict = judge(None, list(RunReader(session.folder)), run, server=ServerSide(), agent_name=subject.name)
    pairing = Pairing(subject.name, subject.version, "", "", run.command, None, session.folder, run, None, verdict)
    write_pairing(pairing)
    return LearningRun(pairing=pairing)
