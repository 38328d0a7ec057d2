"""Model: what came through whole is the model's own, and it is not a usable call."""

from __future__ import annotations

import re

from proxy.classify.facts import Facts, JudgedCall
from proxy.classify.judged import Judgement
from proxy.classify.layers.parser import soft_repairs
from proxy.classify.verdict import RAW, Verdict
from results.outcomes import Evidence
from stacks.formats import TextCall, check_call, format_named

_ENDS = "comparison_request: the same request with a larger output limit and no stop strings, or through raw completion"
_NUMBER = re.compile(r"\A\s*[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\s*\Z|\A(?:true|false|null)\Z", re.IGNORECASE)


def model(judgement: Judgement) -> Verdict | None:
    """Delivered calls that do not fit, and calls in the text that do not parse. Never for the absence of a call."""
    facts = judgement.facts
    if judgement.diagnosis is not None:
        return judgement.diagnosis
    if facts.turn is None or not facts.generates:
        return None
    return _delivered(facts) or _written(facts)


def _delivered(facts: Facts) -> Verdict | None:
    if not facts.offers:
        return None
    for judged in facts.calls:
        verdict = _of(facts, judged)
        if verdict is not None:
            return verdict
    return None


def _of(facts: Facts, judged: JudgedCall) -> Verdict | None:
    if judged.verdict == "ok":
        return None
    call = judged.call
    evidence = [facts.cite_call(call, judged.reason)]
    if judged.verdict == "unknown_tool":
        return Verdict(
            "model.unknown_tool",
            wrote="unknown_tool",
            evidence=evidence,
            detail=judged.reason,
            remedy="answer the call with the list of offered names; shorten or rename tools that look alike",
        )
    if judged.verdict == "invalid_arguments":
        verdict = Verdict(
            "model.invalid_arguments",
            wrote="invalid_arguments",
            evidence=evidence,
            detail=judged.reason,
            remedy="answer the call with the schema's complaint; use a stronger model or a constrained mode",
        )
        if (
            _types_may_be_lost(facts, judged)
            or _foreign_keys(facts, judged)
            or (facts.constrains and facts.choice != "auto")
        ):
            verdict.wrote = "unknown"
            return verdict.undetermined(RAW)
        return verdict
    if judged.verdict in ("not_json", "no_name"):
        verdict = Verdict("model.malformed_call", evidence=evidence, confidence="medium", detail=judged.reason)
        verdict.remedy = "look at the raw text; the server may have made these arguments out of good ones"
        return verdict.undetermined(RAW)
    return None


def _foreign_keys(facts: Facts, judged: JudgedCall) -> bool:
    """Whether not one argument is a parameter of the tool: another object may have been taken for the arguments, or
    they were lost and an empty object put in their place."""
    schema = facts.tools.schema(judged.call.name or "")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    arguments = judged.call.arguments
    if not isinstance(properties, dict) or not isinstance(arguments, dict):
        return False
    return not arguments.keys() & properties.keys()


def _types_may_be_lost(facts: Facts, judged: JudgedCall) -> bool:
    """Whether the fault is one that a parser makes: numbers as strings (formats without types), or parts of streamed
    arguments missing."""
    value = _at(judged.call.arguments, judged.path)
    if isinstance(value, str) and _NUMBER.match(value) and re.search(r"is not of type", judged.reason):
        return True
    return facts.assembled.streamed and len(judged.call.where_arguments) > 1 and "required" in judged.reason


def _at(value: object, path: str) -> object:
    for key, index in re.findall(r"\.([^.\[\]]+)|\[(\d+)\]", path):
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and index and int(index) < len(value):
            value = value[int(index)]
    return value


# ---------------------------------------------------------------------- calls written in text
def _written(facts: Facts) -> Verdict | None:
    """A call in the answer's text that is broken, names no offered tool, or does not fit its schema."""
    if not facts.offers or facts.choice == "none" or facts.calls:
        return None
    scan = facts.scan
    meant = [found for found in scan.calls if _meant(found)]
    for found in meant:
        verdict = _of_text(facts, found)
        if verdict is not None:
            return verdict
    marked = bool(scan.format) and format_named(scan.format).delimited
    problem = next((problem for problem in scan.problems if marked or problem.kind != "not_a_call"), None)
    if problem is None or (not scan.cut and not _looks_meant(facts, problem.span.start)):
        return None
    return Verdict(
        "model.malformed_call",
        delivery="left_as_text",
        wrote="malformed_call",
        confidence="medium",
        evidence=[facts.cite_text(problem.span.start, problem.span.end, problem.message)],
        detail=f"the text holds a call that does not parse: {problem.message}",
        remedy="retry, lower the temperature, or use a larger model",
    )


def _meant(found: TextCall) -> bool:
    """Whether a call in text is meant as one, and not quoted, shown as an example, or thought about."""
    return found.position in ("whole", "block", "tail")


def _looks_meant(facts: Facts, start: int) -> bool:
    """Whether a broken call, or the marked block it stands in, begins a line of its own (or the text)."""
    blocks = facts.scan.lenient.blocks
    start = next((block.start for block in blocks if block.start <= start < block.end), start)
    line = facts.text[:start].rpartition("\n")[2]
    return not line.strip()


def _of_text(facts: Facts, found: TextCall) -> Verdict | None:
    call = found.call

    def cited() -> list[Evidence]:
        return [facts.cite_text(call.span.start, call.span.end, "a call in the text")]

    if not soft_repairs(found) or not call.complete or not found.has_object:
        why = ", ".join(call.repairs) or ("it ends early" if not call.complete else "its arguments are no object")
        verdict = Verdict(
            "model.malformed_call",
            delivery="left_as_text",
            wrote="malformed_call",
            confidence="medium",
            evidence=cited(),
            detail=f"a call in the text is not written as its format demands: {why}",
            remedy="a tolerant parser would read it; else retry, lower the temperature, or use a larger model",
        )
        if "cut" in call.repairs and not facts.text[call.span.end :].strip():
            verdict.detail += "; the text ends inside it, and nothing says whether the model ended it there"
            return verdict.undetermined(_ENDS)
        return verdict
    if not found.offered:
        return Verdict(
            "model.unknown_tool",
            delivery="left_as_text",
            wrote="unknown_tool",
            evidence=cited(),
            detail=f"the call in the text names {call.name!r}, which was not offered",
        )
    check = check_call(call, facts.tools)
    if not check.ok:
        return Verdict(
            "model.invalid_arguments",
            delivery="left_as_text",
            wrote="invalid_arguments",
            evidence=cited(),
            detail=check.reason,
        )
    return None
