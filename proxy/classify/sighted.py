"""Sighted judgement: what the model is known to have written is laid beside what came back.

The known text is what the model writes when nothing stops or constrains it. Where the model did not run, or a limit
ended it, the blind verdict stands; everywhere else the difference between the two texts is the verdict.
"""

from __future__ import annotations

from proxy.classify.expected import blame_for_text, is_free_form
from proxy.classify.facts import Facts
from proxy.classify.layers.remedies import parser_remedy
from proxy.classify.raw_text import lift
from proxy.classify.verdict import FLAGS, Verdict, outcome_of
from proxy.classify.written import Written, answer_part, bare, canonical, read_written, squeeze
from results.outcomes import Delivery, Evidence, Outcome
from stacks.formats import find_calls

_MODEL_CODES: dict[str, str] = {
    "malformed_call": "model.malformed_call",
    "unknown_tool": "model.unknown_tool",
    "invalid_arguments": "model.invalid_arguments",
}
_LIMITS = ("truncation.output_budget", "truncation.cut_inside_call")


def sighted(facts: Facts, blind: Outcome, known_text: str) -> Outcome:
    """The outcome of an exchange whose model text is known; `blind` is the verdict by the wire alone."""
    if not facts.generates or _never_ran(facts, blind):
        return blind
    written = read_written(known_text, facts)
    verdict = _compare(facts, blind, written)
    if verdict.wrote == "unknown":
        verdict.wrote = written.kind
    if not verdict.evidence:
        verdict.evidence = list(blind.evidence) or [facts.cite_body()]
    flags = [flag for flag in blind.flags if flag != "parser.dropped"]
    return outcome_of(verdict, flags, "known-answer")


_BEFORE_MODEL = ("gate.", "request.", "template.")


def _never_ran(facts: Facts, blind: Outcome) -> bool:
    """Whether nothing of the model's text can have been in play: refused before it ran, or no server answered."""
    if blind.name.startswith(_BEFORE_MODEL) and facts.failed:
        return True
    if blind.layer == "transport" and not (facts.turn is not None and facts.turn.has_payload):
        return True
    if facts.turn is None and not facts.view.wire.response_body.strip():
        return True
    return blind.name in ("engine.wedged", "nonresponse.load_only", "truncation.context_cut_silently")


def _compare(facts: Facts, blind: Outcome, written: Written) -> Verdict:
    if facts.failed:
        return _failed(facts, blind, written)
    limited = _limited(facts, blind, written)
    if limited is not None:
        return limited
    if facts.calls:
        return _native(facts, written)
    if written.kind == "nothing":
        return _nothing(facts)
    return _in_text(facts, written)


# ---------------------------------------------------------------------- errors
def _failed(facts: Facts, blind: Outcome, written: Written) -> Verdict:
    """The server failed after the model ran."""
    evidence = [facts.cite_error("the error")]
    limited = blind.name in _LIMITS and not _ends_so(facts, written)
    if limited and written.endless:
        return Verdict(blind.name, fault="config", delivery="refused", evidence=evidence, detail=blind.detail)
    if written.kind in _MODEL_CODES:
        verdict = Verdict(_MODEL_CODES[written.kind], delivery="refused", evidence=evidence)
        verdict.detail = (
            f"the model's text is no good call ({written.reason}), and the server answered it with an error"
        )
        return verdict
    if blind.layer == "engine":
        return Verdict(blind.name, fault="stack", delivery="refused", evidence=evidence, detail=blind.detail)
    if limited and facts.request.max_tokens is not None:
        return Verdict(blind.name, fault="config", delivery="refused", evidence=evidence, detail=blind.detail)
    verdict = Verdict("parser.server_error", fault="stack", delivery="refused", evidence=evidence)
    said = "a valid call" if written.kind == "valid_call" else "good text"
    verdict.detail = f"the model wrote {said}, and the server answered it with an error"
    return verdict


def _ends_so(facts: Facts, written: Written) -> bool:
    """Whether the error quotes the end of the known text: then no limit cut it, the model ends so."""
    quoted = next((found.text for text in facts.error_messages if (found := lift(text, facts.tools)) is not None), "")
    return bool(quoted.strip()) and squeeze(written.text).endswith(squeeze(quoted))


# ---------------------------------------------------------------------- limits
def _limited(facts: Facts, blind: Outcome, written: Written) -> Verdict | None:
    """A limit ended the answer before the known text was complete."""
    turn = facts.turn
    if turn is None or not facts.limit_reached or _complete(facts, written):
        return None
    if turn.finish != "length" and not written.endless and blind.name not in _LIMITS:
        return None
    name = blind.name if blind.name in _LIMITS else "truncation.output_budget"
    verdict = Verdict(name, fault="config", delivery="cut", wrote="unknown", evidence=list(blind.evidence))
    verdict.detail = "a limit ended the answer before the known text was complete"
    verdict.remedy = "raise the output limit"
    if facts.constrains and not facts.text and not facts.calls:
        verdict.flags.append("engine.constrained")
    elif _may_be_forced(facts) and not written.endless and not _begun(facts, written):
        _as_forced(facts, verdict)
    return verdict


def _as_forced(facts: Facts, verdict: Verdict) -> None:
    """What came up to the limit is no beginning of the known text: a form was forced in its place."""
    verdict.delivery = "constrained"
    verdict.flags.append("engine.constrained")
    verdict.fault = "config" if facts.forced_format or _forced(facts) else "stack"
    verdict.detail = "the form that was forced is not the known text, and a limit ended it"
    verdict.remedy = "leave the forced form out (no response format, `tool_choice` auto or none), or raise the limit"


def _may_be_forced(facts: Facts) -> bool:
    return facts.forced_format or facts.constrains or _forced(facts)


def _begun(facts: Facts, written: Written) -> bool:
    """Whether what came is a piece of the known text."""
    arguments = "".join(judged.call.arguments_text for judged in facts.calls)
    return squeeze(facts.text + arguments) in squeeze(written.text)


def _complete(facts: Facts, written: Written) -> bool:
    if written.endless:
        return False
    if written.calls and _delivered(facts) == written.calls:
        return True
    known, came = squeeze(written.text), squeeze(facts.reasoning + facts.text)
    return bool(known) and (known == came if facts.forced_format or _forced(facts) else known in came)


def _delivered(facts: Facts) -> tuple[tuple[str, str], ...]:
    return tuple((judged.call.name or "", canonical(judged.call.arguments)) for judged in facts.calls)


# ---------------------------------------------------------------------- native calls
def _native(facts: Facts, written: Written) -> Verdict:
    delivered = _delivered(facts)
    evidence = [facts.cite_call(facts.calls[0].call, "what was delivered")]
    fine = all(judged.verdict == "ok" for judged in facts.calls)
    if not facts.offers:
        return Verdict(
            "parser.phantom",
            delivery="phantom",
            evidence=evidence,
            detail="the request offers no tools, and the server made a call out of the text",
        )
    if facts.choice == "none":
        return Verdict("protocol.choice_ignored", delivery="phantom", evidence=evidence, detail="calls were forbidden")
    same = delivered == written.calls
    if written.kind == "valid_call":
        return _good_call(facts, written, evidence, same=same)
    if written.kind in _MODEL_CODES:
        kept = same and written.kind != "malformed_call"
        delivery: Delivery = "intact" if kept else _what_became(facts, fine=fine)
        verdict = Verdict(_MODEL_CODES[written.kind], delivery=delivery, evidence=evidence, detail=written.reason)
        if delivery == "constrained":
            verdict.flags.append("engine.constrained")
        return verdict
    if _forced(facts) or facts.constrains:
        verdict = Verdict("ok.native_call" if fine else "parser.altered", delivery="constrained", evidence=evidence)
        verdict.flags.append("engine.constrained")
        verdict.detail = "the model wrote no call; the server forced this one"
        return verdict
    detail = "the model wrote no call, and the server delivered one"
    return Verdict("parser.phantom", delivery="phantom", evidence=evidence, detail=detail)


def _good_call(facts: Facts, written: Written, evidence: list[Evidence], *, same: bool) -> Verdict:
    delivered = _delivered(facts)
    if same:
        verdict = Verdict("ok.native_call", delivery="intact", evidence=evidence, detail="delivered as written")
        if written.prose and squeeze(written.prose) not in squeeze(facts.text + facts.reasoning):
            verdict.flags.append("parser.dropped")
            free = _prose_first(facts, written) or not (facts.constrains or _forced(facts))
            verdict.delivery = "altered" if free else "constrained"
            verdict.detail += "; text beside the call is missing"
        return verdict
    if set(delivered) < set(written.calls):
        if facts.request.parallel_tool_calls is False or facts.constrains or _forced(facts):
            verdict = Verdict("ok.native_call", delivery="constrained", evidence=evidence)
            verdict.flags.append("engine.constrained")
            verdict.detail = "fewer calls than the model writes when it runs freely"
            return verdict
        return Verdict("parser.dropped", delivery="dropped", evidence=evidence, detail="some of the calls are missing")
    if set(delivered) > set(written.calls):
        return Verdict("parser.phantom", delivery="phantom", evidence=evidence, detail="more calls than were written")
    if facts.constrains or _forced(facts):
        fine = all(judged.verdict == "ok" for judged in facts.calls)
        verdict = Verdict("ok.native_call" if fine else "parser.altered", delivery="constrained", evidence=evidence)
        verdict.flags.append("engine.constrained")
        verdict.detail = "not what the model writes when it runs freely"
        return verdict
    return Verdict("parser.altered", delivery="altered", evidence=evidence, detail="the call was changed on its way")


def _prose_first(facts: Facts, written: Written) -> bool:
    """Whether the lost text stands before the call: no grammar that begins with the call kept it from being written."""
    scan = find_calls(written.text, facts.tools)
    before = written.text[: scan.calls[0].call.span.start] if scan.calls else ""
    return bool(bare(answer_part(before)))


def _what_became(facts: Facts, *, fine: bool) -> Delivery:
    if facts.constrains or _forced(facts):
        return "constrained"
    return "repaired" if fine else "altered"


def _forced(facts: Facts) -> bool:
    return facts.choice in ("required", "named")


# ---------------------------------------------------------------------- text, or nothing
def _nothing(facts: Facts) -> Verdict:
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


def _in_text(facts: Facts, written: Written) -> Verdict:
    where = _where(facts, written)
    evidence = [facts.cite_body("what came")]
    if written.kind in _MODEL_CODES:
        return Verdict(_MODEL_CODES[written.kind], delivery=where, evidence=evidence, detail=written.reason)
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
    if facts.forced_format or _forced(facts):
        return "constrained"
    return "dropped" if not text else "altered"


def _same_calls(facts: Facts, written: Written) -> bool:
    return tuple((found.call.name, canonical(found.call.arguments)) for found in facts.scan.calls) == written.calls
