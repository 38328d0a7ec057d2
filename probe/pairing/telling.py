"""A finished pairing for people and as JSON. Pure: the caller prints. What was recorded is shown, never sent to the
terminal as it is."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import msgspec

from probe.pairing.records import Demands, Finding, Pairing, Plan, StepSeen
from proxy.present import counted, printable
from stacks.serving.registry import title_of

VERSION = 1
"""Version of the JSON shape that `facts` makes."""
_WIDTH = 100
_QUOTED = 120
_QUOTED_LINES = 4
STEP_WORDS = {
    "look": "list the folder",
    "write": "write a file",
    "read": "read it back",
    "finish": "say that it is done",
}


# ---------------------------------------------------------------------- before
def notice(agents: str, *, learning: bool = False) -> str:
    """What is about to run, and where; with ``learning`` only the run in which the agent is learned."""
    walk = (
        "  what    the model has it list that folder, write canary_note.txt, read it back, end; a shell tool runs\n"
        "          ls, echo NOTE > canary_note.txt, cat canary_note.txt, each with an echo of a mark"
    )
    listened = "  what    a listener answers it in a model's place until it has shown how it calls tools"
    return "\n".join(
        (
            f"This runs {agents} on this host, as you, without a sandbox.",
            "  where   in a new scratch folder, with its own HOME and configuration; both are removed afterwards",
            listened if learning else walk,
            "  yours   no key or setting of yours is handed to it; what the agent does besides is its own doing",
        )
    )


# ---------------------------------------------------------------------- text
def text(pairing: Pairing) -> str:
    """The verdict, the steps, what broke it with its bytes and its remedy, other faults, and the agent's demands."""
    return "\n".join(_lines(pairing)) + "\n"


def headline(pairing: Pairing) -> str:
    """The answer in one sentence."""
    agent, server, verdict = pairing.agent, _server(pairing), pairing.verdict
    if _only_learned(pairing) and verdict.kind == "broken":
        return f"{agent} does not work with any server as it was called: it breaks before it asks for an answer."
    if verdict.kind == "pairs":
        return f"{agent} works with {server}."
    if verdict.kind == "pairs_with_faults":
        return f"{agent} works with {server}, with {counted(len(verdict.faults), 'fault')} on the way."
    broken = verdict.broken
    if verdict.kind == "undecided" or broken is None:
        return f"Whether {agent} works with {server} is still open."
    step = f" at the step `{broken.step}`" if broken.step else " before the first step"
    return f"{agent} does not work with {server}: it breaks{step}."


def _lines(pairing: Pairing) -> Iterator[str]:
    verdict = pairing.verdict
    yield printable(headline(pairing))
    yield ""
    if verdict.broken is not None:
        yield from _finding(verdict.broken, "  ")
    if not _only_learned(pairing):
        if verdict.broken is not None:
            yield ""
        yield from _table(verdict.steps)
    if verdict.faults:
        yield ""
        yield "What else was wrong" if verdict.broken else "What was wrong on the way (it did not stop them)"
        for fault in verdict.faults:
            yield from _finding(fault, "- ")
    if pairing.demands is not None:
        yield ""
        yield f"What {printable(pairing.agent)} asks of a server"
        yield from _demands(pairing.demands)
    yield ""
    yield from _end(pairing)


def _only_learned(pairing: Pairing) -> bool:
    """Whether the agent never got as far as a server: it asked for nothing while it was learned."""
    return pairing.plan is None and not pairing.stack


def _server(pairing: Pairing) -> str:
    title = title_of(pairing.stack) if pairing.stack else "this server"
    return f"{title} {pairing.stack_version}".strip()


def _table(steps: tuple[StepSeen, ...]) -> Iterator[str]:
    yield f"  {'step':<30}{'came as written':<17}{'agent did it':<14}attempt"
    for step in steps:
        name = f"{step.step}: {STEP_WORDS[step.step]}"
        came = "yes" if step.delivered else ("NO" if step.attempt is not None else "-")
        done = "yes" if step.done else ("NO" if step.attempt is not None else "-")
        attempt = "-" if step.attempt is None else str(step.attempt)
        note = f"  {step.note}" if step.note else ""
        yield f"  {name:<30}{came:<17}{done:<14}{attempt}{note}".rstrip()


def _finding(finding: Finding, start: str) -> Iterator[str]:
    """Who, what, what to change, and the bytes it rests on."""
    rows = (
        ("who", finding.who),
        ("what", finding.said),
        ("change", finding.remedy),
        ("decide by", said_of_deciding(finding.decide_by)),
        ("verdict", f"{finding.code} (at fault: {finding.at_fault})"),
    )
    for number, (name, said) in enumerate(row for row in rows if row[1]):
        yield from _wrapped(said, f"{start if number == 0 else '  '}{name:<11}")
    yield from _bytes(finding)


def said_of_deciding(decide_by: str) -> str:
    """What would decide an open verdict, without the outcome's own word for the kind of it (``server_log: ...``)."""
    kind, colon, said = decide_by.partition(": ")
    return said if colon and re.fullmatch(r"[a-z_]+", kind) else decide_by


def _bytes(finding: Finding) -> Iterator[str]:
    if finding.wire is not None and finding.attempt is not None:
        yield f"  {'bytes':<11}attempt {finding.attempt}, {finding.direction} bytes {finding.wire[0]}-{finding.wire[1]}"
    lines = [line.rstrip() for line in printable(finding.quote).splitlines() if line.strip()]
    name = "" if finding.wire is not None else "said"
    for number, line in enumerate(lines[:_QUOTED_LINES]):
        shown = line if len(line) <= _QUOTED else f"{line[:_QUOTED]}..."
        yield f"  {name if number == 0 else '':<11}| {shown}"


def _wrapped(said: str, start: str) -> Iterator[str]:
    yield from textwrap.wrap(
        printable(said),
        _WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _demands(demands: Demands) -> Iterator[str]:
    if demands.api:
        yield f"  API        {demands.api}"
    how = "by the server's count" if demands.tokens_from == "server" else "estimated"
    if demands.tokens_before_task is not None:
        yield f"  prompt     {demands.tokens_before_task:,} tokens before the user's first word ({how})"
    if demands.tools:
        yield f"  tools      {demands.tools}, {demands.tools_bytes:,} bytes"
    if demands.context_needed is not None:
        most = f" (its longest prompt here had {demands.most_prompt_tokens:,})" if demands.most_prompt_tokens else ""
        yield f"  context    {demands.context_needed:,} tokens or more{most}"
    if demands.features:
        yield from _wrapped(", ".join(demands.features), "  uses       ")
    beside = f"; beside the task: {', '.join(demands.side_requests)}" if demands.side_requests else ""
    again = f"; {counted(demands.retries, 'request')} sent again" if demands.retries else ""
    yield f"  requests   {demands.requests}, {demands.task_requests} for the task{beside}{again}"
    if demands.reads:
        yield from _wrapped(", ".join(demands.reads), "  reads      ")


def _end(pairing: Pairing) -> Iterator[str]:
    for note in pairing.notes:
        yield from _wrapped(note, "note: ")
    if _only_learned(pairing):
        yield "No model took part: the agent never asked for an answer."
    else:
        yield "The model was a canary: what it wrote is known, so nothing of this is the model's doing."
    if pairing.run_folder is not None:
        yield f"The recording: {pairing.run_folder}"


# ---------------------------------------------------------------------- JSON
def facts(pairing: Pairing) -> dict[str, Any]:
    """The pairing as a JSON object; `version` is that of its shape."""
    return {
        "version": VERSION,
        "kind": "pairing",
        "agent": {"name": pairing.agent, "version": pairing.agent_version, "command": list(pairing.command)},
        "server": {"stack": pairing.stack, "version": pairing.stack_version},
        "verdict": pairing.verdict.kind,
        "headline": headline(pairing),
        "said": pairing.verdict.said,
        "steps": [asdict(step) for step in pairing.verdict.steps],
        "broken": _finding_facts(pairing.verdict.broken) if pairing.verdict.broken is not None else None,
        "faults": [_finding_facts(fault) for fault in pairing.verdict.faults],
        "demands": _plain(asdict(pairing.demands)) if pairing.demands is not None else None,
        "plan": _plan_facts(pairing.plan) if pairing.plan is not None else None,
        "agent_run": _run_facts(pairing),
        "run_folder": str(pairing.run_folder) if pairing.run_folder is not None else None,
        "notes": list(pairing.notes),
    }


def _finding_facts(finding: Finding) -> dict[str, Any]:
    outcome = finding.outcome
    return {
        "code": finding.code,
        "at_fault": finding.at_fault,
        "who": finding.who,
        "said": finding.said,
        "step": finding.step,
        "attempt": finding.attempt,
        "direction": finding.direction or None,
        "wire": list(finding.wire) if finding.wire is not None else None,
        "quote": _writable(finding.quote),
        "remedy": finding.remedy or None,
        "decide_by": finding.decide_by or None,
        "outcome": msgspec.to_builtins(outcome) if outcome is not None else None,
    }


def _plan_facts(plan: Plan) -> dict[str, Any]:
    speech = plan.speech
    return {
        "speech": {
            "name": speech.name,
            "kind": speech.kind,
            "channel": speech.channel,
            "tool": speech.tool,
            "argument": speech.argument,
            "why": speech.why,
        },
        "call_format": plan.call_format,
        "task": plan.task,
        "file": plan.file,
        "nonce": plan.nonce,
        "turns": [{"step": turn.step, "trigger": turn.trigger, "text": _writable(turn.text)} for turn in plan.turns],
        "canary": plan.spec.digest(),
    }


def _run_facts(pairing: Pairing) -> dict[str, Any]:
    run = pairing.agent_run
    return {
        "ending": run.ending,
        "exit_code": run.exit_code,
        "seconds": round(run.seconds, 3),
        "output": _writable(run.output),
        "file": run.file.decode("utf-8", "backslashreplace") if run.file is not None else None,
        "changed": list(run.changed),
        "left_running": run.left_running,
        "problem": run.problem or None,
    }


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    return {name: list(item) if isinstance(item, tuple) else item for name, item in value.items()}


def _writable(said: str) -> str:
    """Text that UTF-8 can hold: lone surrogates as their escapes."""
    return said.encode("utf-8", "backslashreplace").decode("utf-8")
