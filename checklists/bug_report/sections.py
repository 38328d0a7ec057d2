"""The sections of a bug report. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from checklists.bug_report import curl, expectations
from checklists.bug_report.advice import advice
from checklists.bug_report.case import Case
from checklists.bug_report.destination import Destination
from checklists.bug_report.known_bugs import known_bugs
from checklists.bug_report.markdown import code, cut, fenced, prose
from results.exchange import HttpResponse
from results.manifest import Fact
from results.outcomes import Outcome
from results.taxonomy import info
from stacks.serving.registry import title_of
from stacks.signatures.table import row as signature_row

LONGEST_BODY = 36_000
"""Characters of a request that are shown; a longer one is shown as an outline, since half of it cannot be sent."""
FOLDED = 6_000
"""A longer one is folded away."""
LONGEST_ANSWER = 12_000

GRADES = {
    "observed": "seen in the recorded traffic",
    "differential": "found by sending the same prompt through a second channel of the same server",
    "known-answer": "found with a model whose answer is known beforehand",
}
WROTE = {
    "valid_call": "a valid call to an offered tool",
    "malformed_call": "a call that does not parse",
    "unknown_tool": "a call to a tool that was not offered",
    "invalid_arguments": "a call whose arguments do not fit the tool's schema",
    "prose": "text without a call",
    "nothing": "nothing",
}


@dataclass(frozen=True, slots=True)
class Body:
    """The request's body, with people and machines taken out. `value` is its JSON value (None: it is none); `longest`
    how many characters of answers may be shown beside it."""

    value: Any
    longest: int = LONGEST_ANSWER


def shown_body(case: Case) -> Body:
    """The body of the request that is shown."""
    if case.smaller is not None and case.smaller.request is not None:
        return Body(case.hide.value(case.smaller.request))
    request = case.exchange.request
    try:
        return Body(case.hide.value(json.loads(request.body)) if request is not None else None)
    except (ValueError, RecursionError):
        return Body(None)


def what_happened(case: Case) -> Iterator[str]:
    """The outcome in words."""
    outcome = case.judged.outcome
    yield "## What happened"
    yield f"{_upper(info(outcome.name).meaning)}. {sentence(case, outcome.detail)}".strip()
    request = case.exchange.request
    if request is not None:
        status = case.judged.status
        came = f"status {status}" if status else "no answer"
        asked = code(case.hide.text(f"{request.method} {request.path}"))
        yield f"The request was {asked}; what came back: {came}, end of the exchange: {code(case.exchange.end)}."


def sentence(case: Case, text: str) -> str:
    """A sentence of the record's, with a capital and a full stop."""
    said = prose(_upper(case.hide.text(text))).rstrip(".")
    return f"{said}." if said else ""


def _upper(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def expected(outcome: Outcome) -> Iterator[str]:
    """What should have happened."""
    yield "## What was expected"
    yield expectations.expected(outcome.name, outcome.at_fault)


def why(case: Case, destination: Destination) -> Iterator[str]:
    """Why it is their fault: what the model did, and the quoted bytes."""
    outcome = case.judged.outcome
    whose = "the server" if outcome.at_fault == "stack" else prose(case.hide.text(destination.party))
    yield f"## Why the fault lies with {whose}"
    said = [f"The verdict ({code(outcome.name)}) was {GRADES[outcome.grade]}; confidence: {outcome.confidence}."]
    if outcome.model_ran != "unknown":
        said.append(f"The model {'ran' if outcome.model_ran == 'yes' else 'did not run'}.")
    if outcome.wrote in WROTE and outcome.model_ran != "no":
        said.append(f"It wrote {WROTE[outcome.wrote]}.")
    if outcome.delivery not in ("unknown", "refused"):
        said.append(f"What the server did with it: {outcome.delivery.replace('_', ' ')}.")
    yield " ".join(said)
    yield from evidence(case)


def evidence(case: Case) -> Iterator[str]:
    """Each citation with its reason and place."""
    for number, cited in enumerate(case.judged.outcome.evidence, 1):
        reason = prose(_upper(case.hide.text(cited.why))) or "Seen"
        yield f"{number}. {reason} ({cited.direction}, bytes {cited.start} to {cited.end}):"
        yield fenced(case.hide.text(cited.quote))


def steps(case: Case, body: Body, longest: int) -> Iterator[str]:
    """How to see it again."""
    yield "## Steps to reproduce"
    flags = case.fact("launch_flags").value
    number = 1
    if isinstance(flags, list | tuple) and flags:
        yield f"{number}. Start the server:"
        yield fenced(shlex.join(case.hide.flags([str(flag) for flag in flags])), "sh")
        number += 1
    request = case.exchange.request
    if request is None:
        yield f"{number}. What was sent is not HTTP; the first bytes:"
        yield fenced(_text(case, case.exchange.wire("request")[:1000]))
        return
    yield f"{number}. Send this request ({_made_smaller(case)}):"
    smaller = case.smaller.request if case.smaller is not None else None
    command = curl.curl(request, case.hide, url=_server_url(case), body=smaller)
    if command.body_size <= min(LONGEST_BODY, 3 * longest):
        block = fenced(command.text, "sh")
        summary = f"<summary>The whole request ({command.body_size:,} characters)</summary>"
        yield block if command.body_size <= FOLDED else f"<details>{summary}\n\n{block}\n\n</details>"
        if "***" in command.text:
            yield "Asterisks stand in place of what was masked."
        return
    yield (
        f"Its body has {command.body_size:,} characters and is left out here; {code('stacktap issue --minimise URL')} "
        "makes it smaller by sending it again. This is what it holds:"
    )
    yield fenced(outline(body.value))


def _server_url(case: Case) -> str:
    """Where the server was asked; its host only where it is this machine."""
    for upstream in case.manifest.upstreams if case.manifest is not None else ():
        if upstream.name == case.exchange.upstream:
            return case.hide.text(upstream.url)
    return "http://localhost:8080"


def _made_smaller(case: Case) -> str:
    smaller = case.smaller
    if smaller is None:
        return "as it was recorded"
    if smaller.request is None:
        return "as it was recorded: it could not be made smaller, " + (smaller.stopped or "it did not fail again")
    again = {True: "it failed once more at the end", False: "it did not fail each time", None: ""}[smaller.steady]
    parts = [f"the smallest found that fails alike: {smaller.after:,} of {smaller.before:,} bytes"]
    parts += [f"after {smaller.requests} tries", again, smaller.stopped]
    return ", ".join(part for part in parts if part)


def outline(value: Any) -> str:
    """What a long request holds, in a few lines."""
    if not isinstance(value, dict):
        return f"a body that is no JSON object ({type(value).__name__})"
    lines = []
    for key, each in value.items():
        if isinstance(each, list):
            names = [_named(one) for one in each]
            shown = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "")
            lines.append(f"{key[:60]}: {len(each)}: {shown}")
        else:
            lines.append(f"{key[:60]}: {json.dumps(each, ensure_ascii=True)[:120]}")
    return "\n".join(lines[:60])


def _named(one: Any) -> str:
    if not isinstance(one, dict):
        return str(one)[:40]
    inner = one.get("function")
    inside = inner if isinstance(inner, dict) else one
    return str(inside.get("name") or one.get("role") or one.get("type") or "?")[:40]


def answer(case: Case, longest: int) -> Iterator[str]:
    """What came back, as it came."""
    yield "## The answer"
    response = case.exchange.response
    if response is None:
        raw = case.exchange.wire("response")
        yield f"No HTTP response came ({code(case.exchange.end)})." if not raw else "This is not an HTTP response:"
        if raw:
            yield fenced(cut(_text(case, raw[:longest]), longest)[0])
        return
    head = _head(case, response)
    shown, note = cut(_text(case, response.body), longest)
    yield fenced(f"{head}\n\n{shown}", "http")
    notes = [note, *response.problems]
    if response.body != response.wire[response.body_start : response.body_end]:
        notes.append(
            f"Chunk framing or compression is taken off here: {response.body_end - response.body_start:,} bytes on the "
            f"wire, {len(response.body):,} bytes of body."
        )
    yield from [prose(case.hide.text(each)) for each in notes if each]


def _head(case: Case, response: HttpResponse) -> str:
    lines = [f"HTTP/1.1 {response.status} {response.reason}".rstrip()]
    lines += [f"{name}: {value}" for name, value in response.headers if name.lower() not in ("set-cookie", "date")]
    return case.hide.text(cut("\n".join(lines), 2000)[0])


def _text(case: Case, data: bytes) -> str:
    return case.hide.text(data.decode("utf-8", "backslashreplace"))


FACTS = (
    ("stack", "Server"),
    ("version", "Version"),
    ("model", "Model"),
    ("model_digest", "Model digest"),
    ("chat_template_hash", "Chat template (SHA-256)"),
    ("context_length", "Context length in force"),
    ("bits_per_weight", "Bits per weight"),
    ("sampling", "Sampling defaults"),
    ("kernel_backend", "Computes with"),
)
HOST = (("system", "System"), ("machine", "Architecture"), ("memory_bytes", "Memory (bytes)"), ("cpus", "Processors"))


def environment(case: Case, destination: Destination) -> Iterator[str]:
    """Versions and settings; what is not known is said to be unknown, with the reason."""
    yield "## Versions and settings"
    rows = []
    if destination.kind == "bug" and case.judged.outcome.at_fault == "client":
        rows.append(f"- Client: {_known(case, Fact(case.agent) if case.agent else Fact(unknown='it does not say'))}")
        request = case.exchange.request
        if request is not None and request.header("user-agent"):
            rows.append(f"- User-Agent: {code(case.hide.text(request.header('user-agent')))}")
    for name, title in FACTS:
        fact = case.fact(name)
        if name == "stack" and fact.value is None and case.stack:
            fact = Fact(case.stack)
        if name == "stack" and isinstance(fact.value, str):
            fact = Fact(title_of(fact.value))
        rows.append(f"- {title}: {_known(case, fact)}")
    host = case.manifest.host if case.manifest is not None else {}
    rows += [f"- {title}: {_known(case, host[name])}" for name, title in HOST if name in host]
    rows.append(f"- stacktap: {code(case.version)}")
    yield "\n".join(rows)


def _known(case: Case, fact: Fact) -> str:
    if fact.unknown is not None or fact.value is None:
        return f"unknown ({prose(case.hide.text(fact.unknown or 'not looked up'))})"
    value = fact.value
    if isinstance(value, str):
        value = case.hide.flags([value])[0]
        return code(value[:300])
    return code(json.dumps(case.hide.value(value), ensure_ascii=True, sort_keys=True)[:300])


def known(outcome: Outcome, destination: Destination) -> Iterator[str]:
    """Issues that look alike, where the signature table names any."""
    if outcome.signature is None:
        return
    issues = known_bugs(outcome)
    try:
        meaning = signature_row(outcome.signature).meaning
    except KeyError:
        return
    yield "## Known"
    yield f"This is what stacktap knows as {code(outcome.signature)}: {prose(meaning)}."
    own = destination.tracker.repository if destination.tracker is not None else ""
    for issue in issues:
        where = issue.url if issue.repository == own else code(f"{issue.repository} number {issue.number}")
        yield f"- Reported before, or something like it: {where}"
    if issues:
        yield "Look there first: a comment with your versions may help more than another report."


def remedy(case: Case) -> Iterator[str]:
    """What helps meanwhile."""
    said = advice(case)
    if said:
        yield "## What helps meanwhile"
        yield sentence(case, said)


def footer(case: Case) -> str:
    """What made this, and how to look again."""
    command = f"stacktap explain {shlex.quote(case.run)} {case.attempt}"
    return (
        f"Recorded and judged by stacktap {code(case.version)}; run {code(case.run)}, attempt {code(case.attempt)}: "
        f"{code(command)} shows each cited byte."
    )
