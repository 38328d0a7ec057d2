"""Sighted judgement where text came, or nothing: where the known text is, and what became of it."""

from __future__ import annotations

from proxy.classify.expected import blame_for_text, is_free_form
from proxy.classify.facts import Facts
from proxy.classify.layers.remedies import parser_remedy
from proxy.classify.verdict import FLAGS, Verdict
from proxy.classify.written import Written, answer_part, bare, canonical, squeeze
from results.outcomes import Delivery
from stacks.formats import find_calls

MODEL_CODES: dict[str, str] = {
    "malformed_call": "model.malformed_call",
    "unknown_tool": "model.unknown_tool",
    "invalid_arguments": "model.invalid_arguments",
}


def must_call(facts: Facts) -> bool:
    """Whether the request requires a call."""
    return facts.choice in ("required", "named")


def nothing(facts: Facts) -> Verdict:
    if not facts.text.strip() and not facts.reasoning.strip():
        detail = "the model ends at once; nothing was lost"
        evidence = [facts.cite_body("nothing in it")]
        return Verdict(
            "nonresponse.empty", fault="model", ran="yes", delivery="intact", evidence=evidence, detail=detail
        )
    verdict = Verdict("ok.final_answer", delivery="constrained", evidence=[facts.cite_body("what came")])
    verdict.flags.append("engine.constrained")
    verdict.detail = "the model writes nothing when it runs freely"
    return verdict


def in_text(facts: Facts, written: Written) -> Verdict:
    where = _where(facts, written)
    evidence = [facts.cite_body("what came")]
    if written.kind in MODEL_CODES:
        return Verdict(MODEL_CODES[written.kind], delivery=where, evidence=evidence, detail=written.reason)
    if written.kind == "valid_call":
        return _lost_call(facts, written, where)
    if where == "left_as_text":
        verdict = Verdict("ok.final_answer", delivery="intact", evidence=evidence, detail="delivered as written")
        if facts.choice in ("required", "named"):
            verdict.flags.append("protocol.choice_ignored")
        return verdict
    if where == "in_reasoning":
        return _answer_in_reasoning(facts, written)
    if where == "dropped" and _call_like(written):
        return Verdict("parser.dropped", delivery="dropped", evidence=evidence, detail="the call markup was lost")
    if where == "dropped":
        return Verdict("nonresponse.swallowed", delivery="dropped", evidence=evidence, detail="the answer was lost")
    if where == "constrained":
        verdict = Verdict("ok.final_answer", delivery="constrained", evidence=evidence)
        verdict.flags.append("engine.constrained")
        return verdict
    return Verdict("parser.altered", delivery="altered", evidence=evidence, detail="the text was changed on its way")


def _call_like(written: Written) -> bool:
    """Whether the text is call markup, although no call was asked for."""
    scan = find_calls(written.text)
    return bool(scan.calls or scan.problems)


def _answer_in_reasoning(facts: Facts, written: Written) -> Verdict:
    evidence = [facts.cite_body("what came")]
    if not answer_part(written.text):
        verdict = Verdict("nonresponse.reasoning_only", fault="model", delivery="intact", evidence=evidence)
        verdict.detail = "the model wrote reasoning and nothing else"
        return verdict
    verdict = Verdict("parser.in_reasoning", delivery="in_reasoning", evidence=evidence)
    verdict.detail = "the answer stands in the reasoning field"
    return verdict


def _lost_call(facts: Facts, written: Written, where: Delivery) -> Verdict:
    """A good call that is not in its field."""
    evidence = [facts.cite_body("what came")]
    if where == "left_as_text":
        span = facts.scan.calls[0].call.span if facts.scan.calls else None
        if span is not None:
            evidence = [facts.cite_text(span.start, span.end, "the call")]
        name = "parser.in_reasoning" if written.inside_reasoning else "parser.left_as_text"
        verdict = Verdict(name, delivery="left_as_text", evidence=evidence, detail="the call came as text")
        return verdict if written.inside_reasoning else _blamed(facts, verdict, written)
    if where == "in_reasoning":
        return Verdict(
            "parser.in_reasoning", delivery="in_reasoning", evidence=evidence, detail="the call is in reasoning"
        )
    if where == "constrained":
        verdict = Verdict("ok.final_answer", delivery="constrained", evidence=evidence)
        verdict.flags.append("engine.constrained")
        verdict.detail = "the response format kept the model from its call"
        return verdict
    if where == "altered":
        return Verdict("parser.altered", delivery="altered", evidence=evidence, detail="the call came as other text")
    return Verdict("parser.dropped", delivery="dropped", evidence=evidence, detail="the call is missing")


def _blamed(facts: Facts, verdict: Verdict, written: Written) -> Verdict:
    """The verdict on a call left as text, with its fault by the parser that was to read it."""
    name = find_calls(written.text, facts.tools).format
    fault, why, decide_by = blame_for_text(facts, name)
    verdict.detail += f"; {why}"
    verdict.remedy = parser_remedy(facts)
    if fault != "undetermined":
        verdict.fault = fault
    elif is_free_form(name):
        return verdict.undetermined(decide_by or FLAGS)
    else:
        verdict.fault, verdict.confidence = "config", "medium"
        verdict.detail += "; no parser for this format is in force, or the one in force failed"
    return verdict


def _where(facts: Facts, written: Written) -> Delivery:
    """Where the known text is in the answer: as text, in the reasoning field, nowhere, or as another text."""
    text, reasoning = squeeze(facts.text), squeeze(facts.reasoning)
    known = squeeze(written.text)
    core = bare(written.text)
    prose = squeeze(written.prose)
    if known and (known in text or (core and core == bare(facts.text))):
        return "left_as_text" if known in text or not facts.forced_format else "constrained"
    if (
        written.kind == "prose"
        and prose
        and (prose in text or (text and bare(written.prose).endswith(bare(facts.text))))
    ):
        return "left_as_text"
    if known in reasoning or (core and core == bare(facts.reasoning + facts.text) and not text):
        return "in_reasoning"
    if not text and not reasoning:
        return "dropped"
    if (
        written.kind != "prose"
        and core.startswith(bare(facts.reasoning + facts.text))
        and not find_calls(facts.text).calls
    ):
        return "dropped"
    if written.calls and any(name in text for name, _ in written.calls):
        return "left_as_text" if _same_calls(facts, written) else "altered"
    if written.kind != "prose" and (not text or (prose and text in prose) or text == prose):
        return "dropped"
    if facts.forced_format or must_call(facts):
        return "constrained"
    return "dropped" if not text else "altered"


def _same_calls(facts: Facts, written: Written) -> bool:
    return tuple((found.call.name, canonical(found.call.arguments)) for found in facts.scan.calls) == written.calls
