"""Parser: the model wrote something good and the stack lost, left or changed it."""

from __future__ import annotations

import re

from proxy.classify.expected import blame_for_text
from proxy.classify.facts import Facts
from proxy.classify.judged import Judgement
from proxy.classify.layers.delivered import changed_on_the_way
from proxy.classify.layers.remedies import parser_remedy
from proxy.classify.verdict import RAW, Verdict
from stacks.formats import CallScan, Span, TextCall, check_call, find_calls


def parser(judgement: Judgement) -> Verdict | None:
    """What an error's diagnosis puts here; valid calls in text or reasoning; calls nobody wrote; broken splicing."""
    diagnosis = judgement.diagnosis
    if diagnosis is not None:
        return diagnosis if diagnosis.name.startswith("parser.") else None
    facts = judgement.facts
    if facts.turn is None or not facts.generates:
        return None
    return _in_text(facts) or call_in_reasoning(facts) or changed_on_the_way(facts)


# ---------------------------------------------------------------------- calls that stand in text
def _in_text(facts: Facts) -> Verdict | None:
    """A valid call to an offered tool in the answer's text, where a native call was asked for."""
    if not facts.offers or facts.choice == "none" or facts.calls:
        return None
    good = [call for call in facts.scan.standing if _fits(facts, call)]
    if not good:
        return _out_of_place(facts)
    if not all(_clean(call) for call in good):
        return None
    span = good[0].call.span
    verdict = Verdict(
        "parser.left_as_text",
        delivery="left_as_text",
        wrote="valid_call",
        evidence=[facts.cite_text(span.start, span.end, "a valid call to an offered tool")],
        detail=_what(facts.scan, good) + _finish_says(facts),
        remedy=parser_remedy(facts),
    )
    return _with_doubt(facts, verdict, good)


def _with_doubt(facts: Facts, verdict: Verdict, good: list[TextCall]) -> Verdict:
    """The verdict on calls left in text, with the fault left open where the model may have had a part in it."""
    if any(_WRAPPER & set(call.call.repairs) for call in good):
        verdict.detail += "; a marker around it is missing, which the server may have taken off"
    elif any(call.call.repairs for call in good) and good[0].call.format in _LOOSE:
        verdict.detail += "; in a spelling of its own"
    else:
        return _blamed(facts, verdict, good[0].call.format)
    verdict.wrote = "unknown"
    return verdict.undetermined(RAW)


def _blamed(facts: Facts, verdict: Verdict, written: str) -> Verdict:
    fault, why, decide_by = blame_for_text(facts, written)
    verdict.detail += f"; {why}" if why not in verdict.detail else ""
    if fault == "undetermined":
        return verdict.undetermined(decide_by or RAW)
    verdict.fault = fault
    return verdict


_ONE_CALL = re.compile(r"\A\s*[A-Za-z_][\w.-]*\(.*\)\s*\Z", re.DOTALL)
_WRAPPED = re.compile(
    r"\A\s*<(?P<tag>[\w:|.-]{1,40})>\s*(?P<inner>[\[{].*[\]}])\s*(?:</?[\w:|.-]{1,40}>\s*)?\Z", re.DOTALL
)


def _out_of_place(facts: Facts) -> Verdict | None:
    """A whole call to an offered tool that no format puts there: between tags that belong to none, or bare on a line of
    its own behind prose. Meant as a call, as far as can be seen; whose fault the place is cannot be seen."""
    text = facts.text
    wrapped = _WRAPPED.match(text)
    python = len(text) < _LONGEST_LINE and _ONE_CALL.match(text) is not None
    shift = wrapped.start("inner") if wrapped is not None else -1 if python else 0
    scan = facts.scan
    if wrapped is not None or python:
        scan = find_calls(wrapped["inner"] if wrapped is not None else f"[{text.strip()}]", facts.tools)
    found = [call for call in scan.calls if _fits(facts, call) and call.call.complete]
    if not found or (wrapped is None and not python and not _own_last_line(text, found[-1])):
        return None
    span = Span(1, len(text) + 1) if python else found[0].call.span
    verdict = Verdict(
        "parser.left_as_text",
        delivery="left_as_text",
        confidence="medium",
        evidence=[facts.cite_text(span.start + shift, span.end + shift, "a call to an offered tool")],
        detail=_what(scan, found) + ", in a place where no format has it",
        remedy=parser_remedy(facts),
    )
    return verdict.undetermined(RAW)


def _own_last_line(text: str, found: TextCall) -> bool:
    span = found.call.span
    before = text[: span.start]
    return found.position in ("tail", "line") and not text[span.end :].strip() and before.endswith("\n")


_LONGEST_LINE = 20_000
_WRAPPER = frozenset({"missing_open_tag", "missing_close_tag", "missing_call_close", "header_spelling"})
"""Repairs that servers cause as often as models: a marker that is a special token vanishes when text is decoded."""
_SPELLING = {"llama4_python_start": frozenset({"key_parameters"})}
"""Repairs that are a format's own other spelling."""


_LOOSE = frozenset({"bare_json", "fenced_json", "json_list", "llama3_json", "llama3_python_tag"})
"""Formats that are JSON and little else; other keys and one more wrapping are spellings of them."""


def soft_repairs(found: TextCall) -> bool:
    """Whether what had to be rescued in a call, if anything, says nothing against the model."""
    call = found.call
    allowed = _WRAPPER | _SPELLING.get(call.format, frozenset())
    if call.format in _LOOSE:
        allowed |= {"wrapped_object", "list_of_calls"}
        allowed |= {"arguments_as_string"} if "wrapped_object" in call.repairs else set()
        allowed |= {word for word in call.repairs if word.startswith("key_")}
    return set(call.repairs) <= allowed


def _clean(found: TextCall) -> bool:
    return found.call.complete and soft_repairs(found)


def _fits(facts: Facts, found: TextCall) -> bool:
    return found.offered and found.has_object and check_call(found.call, facts.tools).ok


def _what(scan: CallScan, good: list[TextCall]) -> str:
    names = ", ".join(dict.fromkeys(call.call.name for call in good))
    return f"{len(good)} call{'s' if len(good) > 1 else ''} ({names}) in the format {scan.format} stand in the text"


def _finish_says(facts: Facts) -> str:
    turn = facts.turn
    if turn is not None and turn.finish == "tool_calls":
        return "; the finish reason announces tool calls and there are none"
    return ""


# ---------------------------------------------------------------------- reasoning
def call_in_reasoning(facts: Facts) -> Verdict | None:
    """A whole call to an offered tool in the reasoning, and nothing else in the answer."""
    if not facts.offers or facts.choice == "none" or facts.calls or facts.text.strip():
        return _inline_reasoning(facts)
    scan = facts.reasoning_scan
    found = [call for call in (*scan.standing, *scan.in_reasoning, *scan.calls) if _fits(facts, call) and _clean(call)]
    if not found:
        return None
    span = found[0].call.span
    verdict = Verdict(
        "parser.in_reasoning",
        delivery="in_reasoning",
        evidence=[facts.cite_text(span.start, span.end, "a valid call to an offered tool", reasoning=True)],
        detail="the call stands in the reasoning field and nothing else came",
        remedy="turn thinking off for this request, or fix the reasoning parser and template",
    )
    if facts.reasoning[: span.start].strip() or _WRAPPER & set(found[0].call.repairs):
        return verdict.undetermined(RAW)
    verdict.wrote = "valid_call"
    return verdict


def _inline_reasoning(facts: Facts) -> Verdict | None:
    """The answer's text is a think block that was not split off, with the call inside and nothing after it."""
    if not facts.offers or facts.choice == "none" or facts.calls:
        return None
    scan = facts.scan
    found = [call for call in scan.in_reasoning if _fits(facts, call) and call.exact]
    if not found or scan.prose_text or not scan.reasoning.unclosed:
        return None
    span = found[0].call.span
    verdict = Verdict(
        "parser.in_reasoning",
        delivery="left_as_text",
        evidence=[facts.cite_text(span.start, span.end, "a call inside an unclosed think block")],
        detail="the call stands inside a think block that is never closed",
        remedy="turn thinking off for this request, or fix the reasoning parser and template",
    )
    return verdict.undetermined(RAW)
