"""What is said where there is no bug to report: why, what to change, and what would decide it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from checklists.bug_report import sections
from checklists.bug_report.advice import advice
from checklists.bug_report.case import Case
from checklists.bug_report.destination import Destination
from checklists.bug_report.markdown import code, fenced, prose
from checklists.bug_report.sections import Body

TITLES = {
    "nothing": "Nothing to report",
    "setting": "No bug: a setting",
    "model": "No bug of the server: the model",
    "network": "No bug of the server: the network",
    "undetermined": "Not decided yet",
    "wait": "No bug: not ready yet",
}
_REASONS = {
    "nothing": "This exchange came out well: there is no fault in it.",
    "setting": "At fault is {party}, which is yours to change: its makers need no report.",
    "model": "The server delivered what the model wrote, and that is what went wrong. A report to the server's makers "
    "would not help; another model, another quantisation or other sampling may.",
    "network": "At fault is {party}: a gateway, a limit, or the connection itself. The server's makers cannot mend it.",
    "undetermined": "The record alone does not tell who is at fault. A report now might go to the wrong place.",
    "wait": "{party} works as it should and was only not ready. Send the request again later.",
}


def page(case: Case, destination: Destination, body: Body) -> str:
    """The whole text."""
    return "\n\n".join(_parts(case, destination, body)) + "\n"


def _parts(case: Case, destination: Destination, body: Body) -> Iterator[str]:
    outcome = case.judged.outcome
    yield f"# {TITLES[destination.kind]} (attempt {code(case.attempt)}: {code(outcome.name)})"
    yield _REASONS[destination.kind].format(party=prose(case.hide.text(destination.party)))
    if destination.kind == "nothing":
        if outcome.flags:
            yield f"What was odd, and stopped nothing: {code(', '.join(outcome.flags))}."
        yield from _decide(case)
        return
    yield from sections.what_happened(case)
    if outcome.evidence:
        yield "## What shows it"
        yield from sections.evidence(case)
    yield from _decide(case)
    said = advice(case)
    if said:
        yield "## What may help" if case.judged.outcome.undetermined else "## What to change"
        yield sections.sentence(case, said)
    if destination.kind in ("undetermined", "model"):
        yield "To find out on the server itself, with the same request:"
        yield fenced(f"stacktap diagnose URL --run {shlex.quote(case.run)} --attempt {case.attempt}", "sh")
    if case.smaller is not None:
        yield from sections.steps(case, body, sections.LONGEST_ANSWER)
        yield from sections.answer(case, sections.LONGEST_ANSWER)
    yield sections.footer(case)


def _decide(case: Case) -> Iterator[str]:
    decide_by = case.judged.outcome.decide_by
    if decide_by:
        kind, _, request = decide_by.partition(":")
        yield "## What would decide it"
        yield f"{sections.sentence(case, request.strip())} ({kind.replace('_', ' ')})"
