"""A diagnosis from beginning to end: record, recognise, examine, and keep the result beside its run."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from probe.asking import Asker, Budget, BudgetSpentError
from probe.canary import CanaryError, member_spec
from probe.diagnose.around import DIRECT, KEPT, MAIN, against_direct, last_said, right_base, right_scheme, upstreams
from probe.diagnose.diagnosis import Diagnosis, Step, verdict_word
from probe.diagnose.recorded import RunSaid, run_said
from probe.diagnose.resent import resend
from probe.diagnose.triage import Triage
from probe.diagnose.who import is_canary, recognise
from probe.diagnose.words import headline, remedy
from probe.target import Target
from proxy.exchange_view import classify_run
from proxy.relay.upstream import without_user_info
from proxy.served import servers_of
from proxy.session import RecordingSession, SessionOptions
from results.exchange import Exchange
from results.manifest import known
from results.reader import JournalMissingError, RunReader
from results.runs import RunNotFoundError, find
from stacks.serving.openai import OpenAICompatible

_SPOKEN_WRONG = (
    "transport.connect",
    "transport.timeout_connect",
    "transport.reset",
    "transport.gateway",
    "transport.wrong_route",
    "transport.timeout_read",
)
"""What a port that speaks TLS to a plain client, or the other way round, looks like."""


class DiagnoseError(Exception):
    """No diagnosis can be made; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user said. `path`: where chat requests go (None: as the stack has it); `budget` in requests."""

    model: str | None = None
    run_name: str | None = None
    attempt: int | None = None
    direct: str | None = None
    path: str | None = None
    canary: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    budget: int = 60
    seconds: float = 300.0
    disruptive: bool = False
    out: Path | None = None


async def diagnose(url: str, options: Options, tell: Callable[[Step], None] | None = None) -> Diagnosis:
    """Examine the server at `url`; `tell` is called with each step. Raises DiagnoseError, SessionError."""
    began = time.monotonic()
    shown = without_user_info(url)
    said, recorded = _of_run(options)
    session = RecordingSession(
        SessionOptions(
            upstreams=upstreams(url, options.direct),
            out=options.out,
            command=("stacktap", "diagnose", shown),
            facts={"agent": known("stacktap diagnose", "this command")},
        )
    )
    budget = Budget(options.budget, options.seconds, options.disruptive)
    found = Diagnosis(shown, options.model or "")
    numbers = itertools.count(1).__next__
    async with session, AsyncExitStack() as open_askers:
        asker = await open_askers.enter_async_context(
            Asker(session, MAIN, budget=budget, headers=options.headers, numbers=numbers)
        )
        triage = await _begin(asker, found, options, tell or _silent)
        if recorded is None or not await resend(triage, recorded, said, chosen=options.attempt is not None):
            await triage.examine()
        if found.outcome is not None and found.outcome.layer == "transport":
            await _look_around(session, asker, found)
        if options.direct and found.outcome is not None:
            direct = await open_askers.enter_async_context(
                Asker(session, DIRECT, budget=budget, headers=options.headers, numbers=numbers)
            )
            await against_direct(triage, direct)
    found.recorded = said.facts() if said is not None else None
    found.requests, found.generations = budget.spent, budget.generations
    found.seconds = time.monotonic() - began
    _keep(found, session.folder)
    return found


async def _look_around(session: RecordingSession, asker: Asker, found: Diagnosis) -> None:
    """A wrong base path or a wrong scheme: look where the API is instead, and say that."""
    assert found.outcome is not None
    try:
        if found.outcome.name == "transport.wrong_route":
            base = await right_base(session, asker, found.url)
            if base:
                found.remedy = f"use the base URL {base.removesuffix('/v1')}/v1"
        elif found.outcome.name in _SPOKEN_WRONG:
            other = await right_scheme(session, asker, found.url)
            if other:
                found.outcome = msgspec.structs.replace(found.outcome, at_fault="client", decide_by=None)
                found.decide_by = ""
                found.remedy = f"this port speaks {other.partition(':')[0]}: use {other}"
    except BudgetSpentError as spent:
        found.notes.append(f"not looked for the right address: {spent}")


def diagnose_run(options: Options) -> Diagnosis:
    """What a recorded run says by itself; no server is asked. Raises DiagnoseError."""
    said, exchange = _of_run(options)
    if said is None:
        raise DiagnoseError("no run was given")
    found = Diagnosis("(recorded run)", "", folder=str(find(options.run_name or "")))
    found.recorded, found.explained = said.facts(), said.sentences()
    exemplar = said.exemplar
    if exemplar is None or exchange is None:
        found.headline = "Nothing went wrong in this run that its record shows."
        return found
    found.stack, found.outcome = exemplar.stack, exemplar.outcome
    found.headline = headline(exemplar.outcome)
    found.remedy = remedy(exemplar.outcome, OpenAICompatible(), {})
    found.decide_by = (exemplar.outcome.decide_by or "").partition(": ")[2]
    if exemplar.outcome.undetermined:
        found.notes.append(
            "the record alone does not tell who is at fault: run diagnose with the server's URL and this run"
        )
    return found


async def _begin(asker: Asker, found: Diagnosis, options: Options, tell: Callable[[Step], None]) -> Triage:
    """Recognise server and model; the triage that goes on from there."""
    target = Target(asker, OpenAICompatible(), options.model or "")
    triage = Triage(target, found, options.path or "", tell)
    try:
        await recognise(triage, wanted=options.model)
        if options.canary:
            target.known_text = _known(options.canary)
        elif await is_canary(triage):
            target.known_text = _known("hermes")
    except BudgetSpentError as spent:
        found.notes.append(f"the server was not fully recognised: {spent}")
    triage.path = options.path or target.stack.chat_path
    return triage


def _known(canary: str) -> str:
    try:
        spec = member_spec(canary)
    except CanaryError as failure:
        raise DiagnoseError(str(failure)) from None
    return spec.script(spec.default_script).text


def _of_run(options: Options) -> tuple[RunSaid | None, Exchange | None]:
    """What the given run says, and the recorded exchange to look at."""
    if options.run_name is None:
        return None, None
    try:
        folder = find(options.run_name)
        said = run_said(classify_run(RunReader(folder), servers_of(folder)))
        if options.attempt is not None:
            verdicts = classify_run(RunReader(folder), servers_of(folder))
            chosen = [one for one in verdicts if one.attempt == options.attempt]
            if not chosen:
                raise DiagnoseError(f"run {options.run_name} has no attempt {options.attempt}")
            said.exemplar = chosen[0]
        exchange = RunReader(folder).read(said.exemplar.attempt) if said.exemplar is not None else None
    except (RunNotFoundError, JournalMissingError, OSError) as failure:
        raise DiagnoseError(str(failure)) from None
    return said, exchange


def _keep(found: Diagnosis, folder: Path) -> None:
    """Lay the diagnosis beside its run, after looking up what the last one said."""
    found.folder = str(folder)
    found.before = last_said(found, folder)
    if found.before == verdict_word(found):
        found.before = ""
    kept = os.open(folder / KEPT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    # Half a surrogate pair in what a server says becomes its escape, which JSON takes.
    with open(kept, "w", encoding="utf-8", errors="backslashreplace") as out:
        out.write(json.dumps(found.facts(), ensure_ascii=False, indent=1) + "\n")


def _silent(step: Step) -> None:
    return None
