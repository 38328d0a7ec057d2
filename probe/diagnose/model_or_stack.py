"""The model ran and no usable call arrived: was the tool in its prompt, did it write a call, who lost it?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from probe.diagnose.asked import as_openai
from probe.diagnose.diagnosis import Step
from probe.diagnose.looking import Seen, look
from probe.diagnose.on_ollama import OFFER, known_answer
from probe.differential import Differential, differential
from probe.result import ProbeEvidence
from proxy.classify.sighted import sighted
from results.outcomes import Evidence, Outcome
from stacks.formats import format_named
from stacks.serving.base import Ask, Rendered

if TYPE_CHECKING:
    from probe.diagnose.triage import Triage

RAW_TOKENS = 256
_TEXT_LIMIT = 120


async def examine(triage: Triage, seen: Seen) -> None:
    """Conclude on an answer to the diagnosis' own question, where a call is due."""
    await examine_request(triage, seen, seen.answer.ask.body or {}, call_due=True)


async def name_parser(triage: Triage, seen: Seen, body: Mapping[str, Any]) -> list[str]:
    """Where tools are refused for want of a parser: which one does the model need? What to say of it.

    With `tool_choice` none such a server renders the tools all the same and hands on what the model writes (vLLM).
    """
    if seen.name != "gate.parser_not_configured" or not _tool_names(body):
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
    _name_format(triage, seen)
    form = as_openai(seen.answer.ask.path, body)
    present = await tools_present(triage, seen, body)
    if present is False:
        return
    if triage.target.known_text is not None and call_due and seen.outcome.layer in ("parser", "protocol"):
        triage.conclude(blamed(triage, seen.outcome))
        return
    found = await differential(triage.target, {**form, "max_tokens": RAW_TOKENS}) if form is not None else None
    if found is None or found.wrote is None or found.outcome is None:
        _undecided(triage, seen, found, call_due=call_due)
        await _by_known_answer(triage)
        return
    _decided(triage, seen, found, present, call_due=call_due)


async def tools_present(triage: Triage, seen: Seen, body: Mapping[str, Any], *, by_count: bool = True) -> bool | None:
    """Whether the tools of a chat request are in the prompt; concludes where they are not. None: nobody can see.

    `by_count`: where no prompt is shown, a generation without tools tells by its number of tokens.
    """
    form = as_openai(seen.answer.ask.path, body)
    tools = _tool_names(body)
    if form is None or not tools:
        return None
    rendered = await _rendered(triage, form)
    present = await _present(triage, form, rendered, tools)
    if present is None and by_count and seen.prompt_tokens is not None:
        present = await _present_by_count(triage, seen, form)
    if present is False:
        triage.conclude(await _absent(triage, seen, rendered, tools))
    return present


def rambles(seen: Seen) -> bool:
    """Whether an answer is text up to its limit: no thinking that used it up, no call that was begun."""
    facts = seen.classified.facts
    return seen.name == "truncation.output_budget" and bool(facts.text) and not (facts.reasoning or facts.scan.format)


def _decided(triage: Triage, seen: Seen, found: Differential, present: bool | None, *, call_due: bool) -> None:
    """What the model wrote is known from another channel, and was laid beside what came."""
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
    if outcome.layer == "ok":
        triage.diagnosis.headline = "Nothing is lost: the server delivers what the model writes."
        return
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


def blamed(triage: Triage, outcome: Outcome) -> Outcome:
    """A call left in text, or dropped: the stack's fault where its parser is one for this very format, else the
    configuration's. A dropped call is the stack's, too, where the parser in force is not known."""
    identity = triage.target.identity
    parser = str(identity.parser.value or "") if identity is not None else ""
    parser = parser or triage.facts.get("in_force", "")
    known = outcome.name == "parser.dropped" and parser not in ("", "none") and "format" in triage.facts
    if outcome.name != "parser.left_as_text" and not known:
        return outcome
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


async def _rendered(triage: Triage, form: Mapping[str, Any]) -> Rendered:
    target = triage.target
    rendered = await target.asker.follow(target.stack.render(form), probe="render")
    triage.prompt = rendered.text
    return rendered


def _tool_names(body: Mapping[str, Any]) -> list[str]:
    tools = body.get("tools")
    if not isinstance(tools, list):
        return []
    functions = [tool.get("function", tool) for tool in tools if isinstance(tool, dict)]
    return [str(f["name"]) for f in functions if isinstance(f, dict) and isinstance(f.get("name"), str)]


async def _present(triage: Triage, form: Mapping[str, Any], rendered: Rendered, tools: list[str]) -> bool | None:
    """Whether the tools are in the prompt: each name must stand there more often than without tools."""
    if rendered.text is None:
        return None
    target = triage.target
    bare = {name: value for name, value in form.items() if name not in ("tools", "tool_choice")}
    without = await target.asker.follow(target.stack.render(bare), probe="render")
    if without.text is None:
        return None
    text, base = rendered.text, without.text
    named = [name for name in tools if text.count(name) > base.count(name)]
    said = f"{len(text)} characters, {len(base)} without tools; tools in it: {', '.join(named[:8]) or 'none'}"
    triage.note(Step("the rendered prompt", said))
    return bool(named)


async def _present_by_count(triage: Triage, seen: Seen, form: Mapping[str, Any]) -> bool | None:
    """Where no prompt can be seen: does it grow by about the size of the tools when they are offered?"""
    messages = list(form["messages"])
    bare = await triage.see(
        "no tools, for the count", stream=False, tools=False, messages=messages, max_tokens=1, judged_step=False
    )
    if bare.prompt_tokens is None or seen.prompt_tokens is None:
        return None
    grown = seen.prompt_tokens - bare.prompt_tokens
    size = len(json.dumps(form.get("tools", [])))
    triage.note(Step("prompt tokens", f"{seen.prompt_tokens} with tools, {bare.prompt_tokens} without"))
    # No tokenizer writes more than some 12 characters of JSON to a token; a bare mention of tools costs a few.
    return grown >= size / 12


async def _absent(triage: Triage, seen: Seen, rendered: Rendered, tools: list[str]) -> Outcome:
    cited = await _cite(triage, rendered.asks, rendered.text or "", "the rendered prompt, without the tools")
    evidence = (cited,) if cited is not None else seen.outcome.evidence
    called = "; a call came all the same, for the question names the tool" if seen.called else ""
    how = "the rendered prompt does not hold" if rendered.text is not None else "the prompt is no longer for"
    return Outcome(
        layer="template",
        code="tools_absent",
        at_fault="config",
        model_ran="yes",
        grade="differential",
        delivery=seen.outcome.delivery,
        evidence=evidence,
        detail=f"{how} {', '.join(tools)}: the chat template renders no tools{called}",
        remedy="use a chat template that renders tools (the model's own, where it has one)",
    )


async def _cite(triage: Triage, asks: tuple[int, ...], text: str, why: str) -> Evidence | None:
    """A citation of the body in which a rendering or a raw text came."""
    for number in reversed(asks):
        exchange = await triage.target.asker.recorded(number)
        response = exchange.response if exchange is not None else None
        if exchange is not None and response is not None and response.body:
            start, end = response.wire_range(0, len(response.body))
            return Evidence(
                attempt=exchange.attempt,
                direction="response",
                start=start,
                end=end,
                quote=(text or response.body.decode("utf-8", "replace"))[:400],
                why=why,
            )
    return None


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
