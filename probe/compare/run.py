"""Sends every question to every target through one relay; servers that stacktap starts run one at a time."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from probe.asking import Asker, Budget, BudgetSpentError
from probe.compare.comparison import Cell, Comparison, paper_word, turn_text
from probe.compare.questions import Question
from probe.compare.targets import TargetSpec, distinct
from probe.diagnose import asked
from probe.diagnose.diagnosis import Diagnosis
from probe.diagnose.looking import RecordLostError, Seen, calls_of, look
from probe.diagnose.model_or_stack import examine_request, name_parser
from probe.diagnose.triage import Triage
from probe.diagnose.who import recognise
from probe.target import Target
from proxy.session import RecordingSession, SessionOptions
from stacks.launching.launch import LaunchError, LaunchOptions, running_server_async
from stacks.serving.base import Ask
from stacks.serving.openai import OpenAICompatible

PER_TARGET = Budget(requests=80, seconds=240.0)


async def compare(
    targets: Sequence[TargetSpec],
    questions: Sequence[Question],
    *,
    out: Path | None = None,
    words: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Ask all targets all questions. A target that cannot be started or asked becomes cells that say why.

    Raises TargetError, SessionError.
    """
    distinct(list(targets))
    placed = [_placed(target) for target in targets]
    names = [f"t{number}" for number in range(len(placed))]
    session = RecordingSession(
        SessionOptions(
            upstreams=tuple(f"{name}={target.where}" for name, target in zip(names, placed, strict=True)),
            out=out,
            command=("stacktap", "compare", *(target.name for target in targets)),
        )
    )
    found = Comparison([q.name for q in questions], [t.name for t in targets], words=words)
    numbers = itertools.count(1).__next__
    async with session:
        found.folder = str(session.folder)
        for upstream, target in zip(names, placed, strict=True):
            tell(f"{target.name} ...")
            try:
                async with AsyncExitStack() as running:
                    await _start(target, running)
                    budget = Budget(PER_TARGET.requests, PER_TARGET.seconds)
                    asker = await running.enter_async_context(Asker(session, upstream, budget=budget, numbers=numbers))
                    await _ask_all(asker, target, questions, found, tell)
            except LaunchError as failure:
                found.servers[target.name] = "could not be started"
                found.cells += [Cell(q.name, target.name, None, "not_probed", why=str(failure)) for q in questions]
    return found


def _placed(target: TargetSpec) -> TargetSpec:
    """A target with its URL; a server that is yet to be started gets a free port."""
    if not target.started_here:
        return target
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return replace(target, where=f"http://127.0.0.1:{free.getsockname()[1]}")


async def _start(target: TargetSpec, running: AsyncExitStack) -> None:
    if target.model_path is not None:
        port = int(target.where.rpartition(":")[2])
        options = LaunchOptions(port=port, flags=target.flags)
        await running.enter_async_context(running_server_async(target.stack, target.model_path, options))


async def _ask_all(
    asker: Asker, target: TargetSpec, questions: Sequence[Question], found: Comparison, tell: Callable[[str], None]
) -> None:
    diagnosis = Diagnosis(target.where, target.model or "")
    triage = Triage(Target(asker, OpenAICompatible(), ""), diagnosis, asked.OPENAI_CHAT, lambda step: None)
    try:
        await recognise(triage, target.model)
    except BudgetSpentError as spent:
        diagnosis.notes.append(str(spent))
    found.servers[target.name] = f"{diagnosis.stack} {diagnosis.version}, model {diagnosis.model}".replace(" ,", ",")
    known = dict(triage.facts)
    for question in questions:
        try:
            cell = await _asked(triage, target, question, known)
        except (BudgetSpentError, RecordLostError) as failure:
            cell = Cell(question.name, target.name, None, "not_probed", why=str(failure))
        found.cells.append(cell)
        tell(f"{target.name}: {question.name}: {cell.word if found.words else cell.shown}")


async def _asked(triage: Triage, target: TargetSpec, question: Question, known: Mapping[str, str]) -> Cell:
    """Ask one question; where no call comes although one is due, find out why."""
    triage.facts = {**known, "model": triage.target.model}
    triage.prompt = triage.raw = None
    diagnosis = triage.diagnosis = Diagnosis(target.where, triage.target.model)
    body = {"model": triage.target.model, **question.body}
    ask = Ask("POST", asked.OPENAI_CHAT, body, purpose=question.name, generates=True)
    seen = await look(triage.target.asker, ask, probe="compare", target=target.name)
    outcome = seen.outcome
    if question.call_due and not seen.called and outcome.layer not in ("transport", "gate", "request"):
        await examine_request(triage, seen, body, call_due=True)
        outcome = diagnosis.outcome or outcome
    else:
        triage.conclude(outcome, await name_parser(triage, seen, body))
        rendered = await triage.target.asker.follow(triage.target.stack.render(body), probe="render")
        triage.prompt = rendered.text
    return Cell(
        question=question.name,
        target=target.name,
        outcome=outcome,
        word=_word(seen),
        attempt=seen.exchange.attempt,
        turn=turn_text(seen.classified.facts.text, list(calls_of(seen))),
        prompt=triage.prompt,
        raw=triage.raw,
        remedy="" if outcome.layer == "ok" else diagnosis.remedy,
    )


def _word(seen: Seen) -> str:
    facts = seen.classified.facts
    block = bool(facts.scan.calls or facts.scan.problems)
    return paper_word(seen.outcome, has_calls=bool(facts.calls), has_text=bool(facts.text), has_block=block)
