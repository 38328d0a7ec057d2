"""Sighted judgement: what the model is known to have written is laid beside what came back.

The known text is what the model writes when nothing stops or constrains it. Where the model did not run, or a limit
ended it, the blind verdict stands; everywhere else the difference between the two texts is the verdict.
"""

from __future__ import annotations

import re

from proxy.classify.facts import Facts
from proxy.classify.raw_text import lift
from proxy.classify.sighted_text import MODEL_CODES, in_text, must_call, nothing
from proxy.classify.verdict import Verdict, outcome_of
from proxy.classify.written import Written, answer_part, bare, canonical, read_written, squeeze
from results.outcomes import Delivery, Evidence, Outcome
from stacks.formats import find_calls

_FENCE = re.compile(r"```[\w+-]*")
"""The marks of a code fence around a call say nothing that could be lost."""
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
        return nothing(facts)
    return in_text(facts, written)


# ---------------------------------------------------------------------- errors
def _failed(facts: Facts, blind: Outcome, written: Written) -> Verdict:
    """The server failed after the model ran."""
    evidence = [facts.cite_error("the error")]
    limited = blind.name in _LIMITS and not _ends_so(facts, written)
    if limited and written.endless:
        return Verdict(blind.name, fault="config", delivery="refused", evidence=evidence, detail=blind.detail)
    if written.endless and blind.layer not in ("engine", "transport"):
        name = "truncation.cut_inside_call" if written.kind in MODEL_CODES else "truncation.output_budget"
        verdict = Verdict(name, fault="config", delivery="refused", evidence=evidence)
        verdict.detail = "the model never ends, a limit cut its text, and the server answered that with an error"
        return verdict
    if written.kind in MODEL_CODES:
        verdict = Verdict(MODEL_CODES[written.kind], delivery="refused", evidence=evidence)
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
    verdict.fault = "config" if facts.forced_format or must_call(facts) else "stack"
    verdict.detail = "the form that was forced is not the known text, and a limit ended it"
    verdict.remedy = "leave the forced form out (no response format, `tool_choice` auto or none), or raise the limit"


def _may_be_forced(facts: Facts) -> bool:
    return facts.forced_format or facts.constrains or must_call(facts)


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
    return bool(known) and (known == came if facts.forced_format or must_call(facts) else known in came)


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
    if written.kind in MODEL_CODES:
        kept = same and written.kind != "malformed_call"
        delivery: Delivery = "intact" if kept else _what_became(facts, fine=fine)
        verdict = Verdict(MODEL_CODES[written.kind], delivery=delivery, evidence=evidence, detail=written.reason)
        if delivery == "constrained":
            verdict.flags.append("engine.constrained")
        return verdict
    if must_call(facts) or facts.constrains:
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
        beside = squeeze(_FENCE.sub("", written.prose))
        if beside and beside not in squeeze(_FENCE.sub("", facts.text + facts.reasoning)):
            verdict.flags.append("parser.dropped")
            free = _prose_first(facts, written) or not (facts.constrains or must_call(facts))
            verdict.delivery = "altered" if free else "constrained"
            verdict.detail += "; text beside the call is missing"
        return verdict
    if set(delivered) < set(written.calls):
        if facts.request.parallel_tool_calls is False or facts.constrains or must_call(facts):
            verdict = Verdict("ok.native_call", delivery="constrained", evidence=evidence)
            verdict.flags.append("engine.constrained")
            verdict.detail = "fewer calls than the model writes when it runs freely"
            return verdict
        return Verdict("parser.dropped", delivery="dropped", evidence=evidence, detail="some of the calls are missing")
    if set(delivered) > set(written.calls):
        return Verdict("parser.phantom", delivery="phantom", evidence=evidence, detail="more calls than were written")
    if facts.constrains or must_call(facts):
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
    if facts.constrains or must_call(facts):
        return "constrained"
    return "repaired" if fine else "altered"
