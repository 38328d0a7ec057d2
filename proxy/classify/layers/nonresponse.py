"""Nonresponse: a success status, and nothing that an agent could use. Never the model's fault by default."""

from __future__ import annotations

from proxy.classify.judged import Judgement
from proxy.classify.layers.engine import unfinished
from proxy.classify.layers.parser import call_in_reasoning
from proxy.classify.verdict import RAW, Verdict

_ONE = 1
"""Tokens that an immediate end of turn is counted as (some servers count the end token, some do not)."""


def nonresponse(judgement: Judgement) -> Verdict | None:
    """Load-only answers, empty ones, swallowed ones, and answers that are reasoning alone."""
    facts = judgement.facts
    if judgement.diagnosis is not None or not facts.generates:
        return None
    turn = facts.turn
    if turn is None:
        return _no_turn(judgement)
    if turn.finish in ("load", "unload"):
        return _load_only(judgement)
    if facts.calls or facts.text.strip() or turn.parts:
        return None
    if facts.reasoning.strip():
        return _reasoning_only(judgement)
    if facts.limit_reached and facts.completion_tokens != 0:
        return None
    return unfinished(judgement) or _empty(judgement)


def _no_turn(judgement: Judgement) -> Verdict | None:
    facts = judgement.facts
    verdict = unfinished(judgement)
    if verdict is not None:
        return verdict
    verdict = Verdict("nonresponse.empty", evidence=[facts.cite_body("no answer in it")], confidence="medium")
    verdict.detail = "a success status without an answer"
    return verdict.undetermined(RAW)


def _load_only(judgement: Judgement) -> Verdict:
    facts = judgement.facts
    turn = facts.turn
    fragments = turn.where_finish if turn is not None else ()
    asked = "there are no messages in the request" if not facts.request.messages else "the request holds messages"
    return Verdict(
        "nonresponse.load_only",
        evidence=[facts.cite_fragments(fragments, "the server only loaded or unloaded the model")],
        detail=f"the server only loaded or unloaded the model; {asked}",
        remedy="send the messages in the field `messages` (or the text in `prompt`)",
    )


def _reasoning_only(judgement: Judgement) -> Verdict | None:
    facts = judgement.facts
    if facts.limit_reached:
        return None
    call = call_in_reasoning(facts)
    if call is not None:
        return call
    turn = facts.turn
    verdict = Verdict(
        "nonresponse.reasoning_only",
        delivery="in_reasoning",
        evidence=[facts.cite_fragments(turn.where_reasoning if turn is not None else (), "reasoning is all there is")],
        detail="finished with reasoning and no answer: the model never closed its reasoning, or the server put the "
        "answer into it",
        remedy="turn thinking off for this request, or fix the template or reasoning parser",
    )
    return verdict.undetermined(RAW)


def _empty(judgement: Judgement) -> Verdict:
    """Nothing came. The token count tells a swallowed answer from an immediate end."""
    facts = judgement.facts
    tokens = facts.completion_tokens
    turn = facts.turn
    evidence = [facts.cite_body("nothing in it")]
    if turn is not None and turn.finish == "tool_calls":
        verdict = Verdict(
            "parser.dropped",
            delivery="dropped",
            confidence="medium",
            evidence=[facts.cite_fragments(turn.where_finish, "announces tool calls"), *evidence],
            detail="the finish reason announces tool calls and there are none: what the model wrote was dropped",
            remedy="match the tool parser to the model's format; look at the raw text",
        )
        return verdict.undetermined(RAW)
    if tokens is not None and tokens > _ONE:
        verdict = Verdict(
            "nonresponse.swallowed",
            delivery="dropped",
            evidence=[facts.cite_usage(f"{tokens} tokens were generated"), *evidence],
            detail=f"{tokens} tokens were generated and none of them was delivered",
            remedy="match the tool parser (and reasoning parser) to the model's format; look at the raw text",
        )
        return verdict.undetermined(RAW)
    verdict = Verdict(
        "nonresponse.empty",
        evidence=evidence,
        confidence="medium",
        detail="an empty answer" + ("" if tokens is None else f" ({tokens} tokens)"),
        remedy="send the same prompt through raw completion to see whether the model ends at once",
    )
    return verdict.undetermined(RAW)
