"""The model ran and no usable call arrived: was the tool in its prompt, did it write a call, who lost it?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from probe.diagnose.asked import as_openai
from probe.diagnose.diagnosis import Step
from probe.diagnose.looking import Seen, graded, look
from probe.diagnose.on_ollama import OFFER, known_answer
from probe.diagnose.prompt import tool_names, tools_present
from probe.differential import Differential, differential
from probe.result import ProbeEvidence
from proxy.classify.sighted import sighted
from results.outcomes import Evidence, Outcome
from stacks.formats import format_named
from stacks.formats.reasoning import split_reasoning
from stacks.serving.base import Ask
from stacks.serving.ollama_modes import BUILT_IN

if TYPE_CHECKING:
    from probe.diagnose.triage import Triage

RAW_TOKENS = 256
_IN_THE_PROMPT = "rendered_prompt: whether the tools are in the prompt (the server's log, or its chat template)"
_TEXT_LIMIT = 120


async def examine(triage: Triage, seen: Seen) -> None:
    """Conclude on an answer to the diagnosis' own question, where a call is due."""
    await examine_request(triage, seen, seen.answer.ask.body or {}, call_due=True)


async def name_parser(triage: Triage, seen: Seen, body: Mapping[str, Any]) -> list[str]:
    """Where tools are refused for want of a parser: which one does the model need? What to say of it.

    With `tool_choice` none such a server renders the tools all the same and hands on what the model writes (vLLM).
    """
    if seen.name != "gate.parser_not_configured" or not tool_names(body):
        return []
    left_out = ("tool_choice", "stream", "stream_options")
    without = {name: value for name, value in body.items() if name not in left_out}
    request = {**without, "tool_choice": "none", "stream": False}
    path = seen.answer.ask.path
    ask = Ask("POST", path, request, purpose="the same with tool_choice none: nothing parsed", generates=True)
    free = await look(triage.target.asker, ask, probe="diagnose")
    triage.seen[free.exchange.attempt] = free
    if not free.classified.facts.text:
        return []
    _name_format(triage, free)
    triage.raw = free.classified.facts.text
    triage.note(Step("what the model writes", f"{_quoted(triage.raw)} (tool_choice none)", "", free.exchange.attempt))
    if "format" not in triage.facts:
        return []
    title = format_named(triage.facts["format"]).title
    return [f"With tool_choice none, where nothing is parsed, the model writes a call: {title}."]


async def examine_request(triage: Triage, seen: Seen, body: Mapping[str, Any], *, call_due: bool = False) -> None:
    """Conclude on the answer to a chat request; `call_due`: prose without a call is the wrong answer to it."""
    version = str(triage.target.version.value or "")
    stuck = triage.target.stack.stuck_after(seen.name, version, parser_in_force(triage))
    if stuck:
        triage.diagnosis.notes.append(stuck)
        triage.conclude(blamed(triage, seen.outcome))
        return
    _name_format(triage, seen)
    form = as_openai(seen.answer.ask.path, body)
    present = await tools_present(triage, seen, body)
    if present is False:
        return
    if triage.silent:
        triage.diagnosis.notes.append("the server answers no more since then: it was not asked what the model writes")
        _undecided(triage, seen, None, call_due=call_due)
        return
    if triage.target.known_text is not None and call_due and seen.outcome.layer in ("parser", "protocol"):
        triage.conclude(blamed(triage, seen.outcome))
        return
    found = await differential(triage.target, {**form, "max_tokens": RAW_TOKENS}) if form is not None else None
    if found is None or found.wrote is None or found.outcome is None:
        _undecided(triage, seen, found, call_due=call_due)
        await _by_known_answer(triage)
        return
    # A client that describes its tools in its own words has shown them: no template stands in between.
    unseen = present is None and bool(tool_names(body))
    _decided(triage, seen, found, present, call_due=call_due, unseen=unseen)


def rambles(seen: Seen) -> bool:
    """Whether an answer is text up to its limit: no thinking that used it up, no call that was begun."""
    facts = seen.classified.facts
    if seen.name != "truncation.output_budget" or not facts.text or facts.reasoning or facts.scan.format:
        return False
    return not split_reasoning(facts.text).reasoning


def _decided(
    triage: Triage, seen: Seen, found: Differential, present: bool | None, *, call_due: bool, unseen: bool
) -> None:
    """What the model wrote is known from another channel, and was laid beside what came. `unseen`: whether the model
    was shown its tools cannot be told."""
    outcome, text = found.outcome, found.wrote or ""
    triage.raw = text
    assert outcome is not None
    if found.scan is not None and found.scan.format:
        _format_is(triage, found.scan.format)
    triage.note(Step("what the model writes", f"{_quoted(text)} ({found.channel})"))
    triage.diagnosis.notes += found.conditions
    if "event-stream" in (seen.answer.header("content-type") or ""):
        outcome = _as_streamed(triage, seen, found, outcome)
    endless = rambles(seen) or (outcome.name == "truncation.output_budget" and seen.ok)
    if (outcome.layer == "ok" or endless) and call_due and not seen.called and not (found.scan and found.scan.calls):
        outcome = _no_call(outcome, found.channel, present)
        if endless:
            outcome = msgspec.structs.replace(outcome, confidence="medium")
            triage.diagnosis.notes.append(
                "the text was ended by a limit: a call after that much of it was not waited for"
            )
    if outcome.layer == "ok" and seen.outcome.layer == "truncation":
        # With a limit of its own the comparison had more room: the limit is what is wrong.
        outcome = graded(seen.outcome, "differential")
    if outcome.layer == "ok":
        triage.diagnosis.headline = "Nothing is lost: the server delivers what the model writes."
        return
    if outcome.name == "model.no_call" and unseen:
        outcome = msgspec.structs.replace(
            outcome,
            at_fault="undetermined",
            confidence="low",
            decide_by=_IN_THE_PROMPT,
            detail="the model wrote no call, and whether it was shown the tools cannot be seen on this server",
        )
    cited = tuple(_as_evidence(each) for each in found.result.evidence[:1])
    outcome = msgspec.structs.replace(outcome, evidence=(*outcome.evidence[:2], *cited))
    triage.conclude(blamed(triage, outcome), [f"By {found.channel}, which parses nothing, it wrote: {_quoted(text)}"])


def _as_streamed(triage: Triage, seen: Seen, found: Differential, outcome: Outcome) -> Outcome:
    """The comparison asks without stream: a streamed answer that is another one is judged itself by the same text."""
    plain, streamed = found.delivered.facts, seen.classified.facts
    if plain is None or found.wrote is None:
        return outcome
    if (plain.text.strip(), len(plain.calls)) == (streamed.text.strip(), len(streamed.calls)):
        return outcome
    triage.diagnosis.explained.append(f"Plain, the same request comes back otherwise: {outcome.name}.")
    return msgspec.structs.replace(sighted(streamed, seen.outcome, found.wrote), grade="differential")


def _as_evidence(cited: ProbeEvidence) -> Evidence:
    direction: Literal["request", "response"] = "request" if cited.direction == "request" else "response"
    return Evidence(
        attempt=cited.attempt,
        direction=direction,
        start=cited.start,
        end=cited.end,
        quote=cited.quote,
        why="what the model wrote, by another channel",
    )


async def _by_known_answer(triage: Triage) -> None:
    """A verdict that is still open, on a server where a known-answer model can be installed: let that decide."""
    open_verdict = triage.diagnosis.outcome
    if open_verdict is None or not open_verdict.undetermined or triage.target.stack.name != "ollama":
        return
    seen = await known_answer(triage)
    if seen is None:
        if not triage.target.asker.budget.disruptive:
            triage.diagnosis.decide_by = OFFER
        return
    if seen.called:
        said = "A known correct call arrives behind the same template and parser: the model wrote none."
        outcome = msgspec.structs.replace(
            open_verdict,
            layer="model",
            code="no_call",
            at_fault="model",
            model_ran="yes",
            grade="known-answer",
            decide_by=None,
            remedy=None,
            evidence=(*open_verdict.evidence[:2], *seen.outcome.evidence[:1]),
            confidence="medium",
        )
        triage.conclude(outcome, [said])
        return
    if not seen.ok:
        said = "A known correct call does not arrive behind the same template and parser: the model is not to blame."
        triage.conclude(seen.outcome, [said])


def _undecided(triage: Triage, seen: Seen, found: Differential | None, *, call_due: bool) -> None:
    """No other channel shows the model's text: the verdict by the wire stands, with the reason."""
    if found is not None:
        triage.diagnosis.notes += found.tried
    outcome = seen.outcome
    if outcome.layer == "ok" and call_due and not seen.called:
        outcome = msgspec.structs.replace(
            outcome,
            layer="model",
            code="no_call",
            at_fault="undetermined",
            confidence="low",
            decide_by="comparison_request: the same model on a server that shows its prompt and its raw text",
            detail="text came and no call; whether the model wrote one cannot be seen on this server",
        )
    if outcome.layer == "ok":
        triage.diagnosis.headline = "Nothing is wrong with this exchange as far as the wire shows."
        return
    triage.conclude(blamed(triage, outcome))


def parser_in_force(triage: Triage) -> str:
    """The parser that reads calls, as the server tells; empty where it does not."""
    identity = triage.target.identity
    told = str(identity.parser.value or "") if identity is not None else ""
    return told or triage.facts.get("in_force", "")


def blamed(triage: Triage, outcome: Outcome) -> Outcome:
    """A call left in text, or dropped: the stack's fault where its parser is one for this very format, else the
    configuration's. A dropped call is the stack's, too, where the parser in force is not known.

    A parser that was chosen by name and fails on what came: most often it is one for another format.
    """
    parser = parser_in_force(triage)
    if outcome.name == "parser.server_error" and outcome.undetermined and parser.endswith(BUILT_IN):
        detail = f"the parser in force, {parser}, failed on what the model wrote: it is one for another format"
        return msgspec.structs.replace(outcome, at_fault="config", confidence="medium", decide_by=None, detail=detail)
    known = outcome.name == "parser.dropped" and parser not in ("", "none") and "format" in triage.facts
    if outcome.name != "parser.left_as_text" and not known:
        return outcome
    parser = parser.removesuffix(BUILT_IN)
    fits = (
        parser in format_named(triage.facts["format"]).parsers.get(triage.target.stack.name, ())
        if ("format" in triage.facts)
        else False
    )
    if fits:
        detail = f"the parser in force ({parser}) is the one for this format, and did not take the call"
        return msgspec.structs.replace(outcome, at_fault="stack", decide_by=None, detail=detail)
    detail = "no parser for the format that the model writes is in force" + (f" (in force: {parser})" if parser else "")
    return msgspec.structs.replace(outcome, at_fault="config", decide_by=None, detail=detail)


def _no_call(outcome: Outcome, channel: str, present: bool | None) -> Outcome:
    """Prose where a call was due, delivered as it was written."""
    detail = f"{channel} shows the same text without a call; nothing was lost on the way"
    if present:
        detail += ", and the tools were in the prompt"
    return msgspec.structs.replace(
        outcome,
        layer="model",
        code="no_call",
        at_fault="model",
        model_ran="yes",
        wrote="prose",
        decide_by=None,
        remedy=None,
        detail=detail,
    )


def _name_format(triage: Triage, seen: Seen) -> None:
    """Tell the remedies which call format the text holds, and which parser of this stack reads it."""
    facts = seen.classified.facts
    scan = facts.scan if facts.scan.format else facts.reasoning_scan
    if scan.format:
        _format_is(triage, scan.format)


def _format_is(triage: Triage, name: str) -> None:
    triage.facts["format"] = name
    parsers = format_named(name).parsers.get(triage.target.stack.name, ())
    if parsers:
        triage.facts["parser"] = parsers[0]


def _quoted(text: str) -> str:
    shown = " ".join(text.split())
    return f'"{shown[:_TEXT_LIMIT]}{"..." if len(shown) > _TEXT_LIMIT else ""}"' if shown else "nothing"
