"""What an error answer means: signatures first, then the kind of its words, then its status.

One diagnosis per exchange; the layer modules pick it up when it is theirs. Status codes are evidence and never decide
alone where a text says more.
"""

from __future__ import annotations

import json
import re

from proxy.classify.exceptions import bad_history, by_shape, elsewhere, late
from proxy.classify.facts import Facts
from proxy.classify.history import ARGUMENT_KINDS, BrokenTurn, message_index
from proxy.classify.pages import by_page
from proxy.classify.raw_text import Lifted, lift
from proxy.classify.signed import signed
from proxy.classify.verdict import LOG, RAW, Verdict
from proxy.classify.words import HISTORY_WORDS, JSON_WORDS, kind_of

_BIGGER = "comparison_request: the same request with a larger output limit"


def diagnose(facts: Facts) -> Verdict | None:
    """The verdict on an exchange whose answer is an error; None where it is none."""
    if not facts.failed:
        return None
    steps = (
        by_page, _by_body, _by_raw_text, _by_history_first, by_shape, _by_signature, _by_words, _by_history, _by_status
    )  # fmt: skip
    for step in steps:
        verdict = step(facts)
        if verdict is not None:
            return _finish(facts, late(verdict, facts.all_error_text) if _came(facts) else verdict)
    return None


def _finish(facts: Facts, verdict: Verdict) -> Verdict:
    if not verdict.evidence:
        verdict.evidence = [facts.cite_error("the error")]
    verdict.evidence.append(facts.cite_head("the status"))
    came = _came(facts)
    if verdict.delivery == "unknown":
        verdict.delivery = "cut" if came else "refused"
    if came:
        verdict.ran = "yes"
    return verdict


def _came(facts: Facts) -> bool:
    """Whether part of an answer came before the error, under a success status."""
    return facts.status == 200 and facts.turn is not None and facts.turn.has_payload


# ---------------------------------------------------------------------- the request itself
def _by_body(facts: Facts) -> Verdict | None:
    """The request's own body is not JSON: whatever the server calls that."""
    request = facts.request
    body = facts.view.wire.request_body
    if (
        not facts.generates
        or facts.view.request_unseen
        or facts.status < 400
        or (request.body_error is None and body.strip())
    ):
        return None
    if request.body_error is not None and not _unreadable(facts):
        return None
    why = request.body_error or "the body is empty"
    return Verdict(
        "request.invalid_json",
        detail=f"the request's body is not JSON: {why}",
        evidence=[facts.cite_request((), why), facts.cite_error("the error")],
        remedy="send a JSON object as the body",
    )


def _unreadable(facts: Facts) -> bool:
    """Whether a strict reader refuses the request's body."""
    try:
        json.loads(facts.view.wire.request_body)
    except (ValueError, RecursionError):
        return True
    return False


# ---------------------------------------------------------------------- raw text inside the error
def _by_raw_text(facts: Facts) -> Verdict | None:
    if facts.status not in (0, 200) and facts.status < 400:
        return None
    lifted = next((found for text in facts.error_messages if (found := lift(text, facts.tools)) is not None), None)
    return None if lifted is None else _verdict_on(facts, lifted)


def _verdict_on(facts: Facts, lifted: Lifted) -> Verdict | None:
    remedy = "match the server's tool parser to the model's format, or upgrade the server"
    if lifted.verdict == "valid_call":
        return Verdict(
            "parser.server_error",
            delivery="refused",
            wrote="valid_call",
            detail="the model's text, quoted in the error, is a valid call to an offered tool",
            remedy=remedy,
        )
    if lifted.verdict == "cut":
        verdict = Verdict(
            "truncation.cut_inside_call",
            delivery="refused",
            detail="the model's text, quoted in the error, ends inside a call",
            remedy="raise the output limit",
        )
        return verdict.undetermined(_BIGGER)
    if lifted.verdict == "elided":
        verdict = Verdict("parser.server_error", delivery="refused", remedy=remedy)
        verdict.detail = "the error quotes model text, shortened"
        return verdict.undetermined(RAW)
    if lifted.verdict == "malformed_call":
        return Verdict(
            "model.malformed_call",
            delivery="refused",
            wrote="malformed_call",
            detail=f"the model's text, quoted in the error, is no valid call: {lifted.reason}",
            remedy="retry, lower the temperature, or use a larger model; a tolerant parser would have to repair it",
        )
    if lifted.verdict == "unknown_tool" and facts.offers:
        return Verdict("model.unknown_tool", delivery="refused", wrote="unknown_tool", detail=lifted.reason)
    if lifted.verdict == "invalid_arguments":
        return Verdict("model.invalid_arguments", delivery="refused", wrote="invalid_arguments", detail=lifted.reason)
    return None


# ---------------------------------------------------------------------- the history of the request
def _by_history_first(facts: Facts) -> Verdict | None:
    """A JSON reader's complaint, while the request replays arguments that are no JSON: the history is what failed."""
    broken = next((turn for turn in facts.history if turn.kind in ARGUMENT_KINDS), None)
    text = facts.all_error_text
    if broken is None or not (JSON_WORDS.search(text) or re.search(r"arguments|concatenate|unmarshal", text, re.I)):
        return None
    if re.search(r"returned invalid tool call|raw ?=", text):
        return None
    return bad_history(facts, broken)


def _by_history(facts: Facts) -> Verdict | None:
    if facts.history and HISTORY_WORDS.search(facts.all_error_text):
        return bad_history(facts, facts.history[0], "medium")
    return None


def _named_message(facts: Facts, text: str) -> Verdict | None:
    """An error that names a message by its index."""
    index = message_index(text)
    if index is None or index >= len(facts.request.messages):
        return None
    if not re.search(r"messages|\binput\b|body\.\d", text):
        return None
    broken = next((turn for turn in facts.history if turn.message == index), None)
    if broken is None:
        turn = max(1, sum(message.role == "assistant" for message in facts.request.messages[: index + 1]))
        path = facts.request.messages[index].path
        broken = BrokenTurn("refused", index, turn, "the server refuses this message", path)
    return bad_history(facts, broken)


# ---------------------------------------------------------------------- signatures, words, status
def _by_signature(facts: Facts) -> Verdict | None:
    named = _named_message(facts, facts.all_error_text)
    if named is not None:
        return named
    verdict = signed(facts)
    return None if verdict is None else refine(facts, verdict)


def _by_words(facts: Facts) -> Verdict | None:
    row = next((found for text in facts.error_messages if (found := kind_of(text)) is not None), None)
    if row is None or (row.name == "request.invalid_param" and _reader_failed(facts)):
        return None
    return refine(facts, Verdict(row.name, remedy=row.remedy, confidence="medium"))


def refine(facts: Facts, verdict: Verdict) -> Verdict:
    """Correct what the words alone say by what the request shows."""
    name, text = verdict.name, facts.all_error_text
    if name == "template.render_error" and _lost_user_turn(facts, text):
        return Verdict(
            "truncation.context_cut_silently",
            ran="no",
            delivery="refused",
            detail="the template finds no user turn although the request holds one: the prompt was cut to fit",
            remedy="raise the context length (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx), or send less",
        )
    another = elsewhere(facts, verdict, text)
    if another is not None:
        return another
    if name == "request.bad_history" and facts.history:
        return bad_history(facts, facts.history[0])
    if name == "parser.server_error":
        return _server_error(facts, verdict)
    if name == "engine.grammar_compile" and verdict.fault == "client" and facts.status == 400:
        verdict.name = "request.invalid_schema"
    if name == "engine.grammar_deadlock":
        return verdict.undetermined(RAW)
    if name == "truncation.cut_inside_call" and facts.request.max_tokens is None:
        return verdict.undetermined(_BIGGER)
    asked = facts.view.wire.request_body.strip()
    if name == "gate.tools_unsupported" and asked and facts.request.tools_state == "absent":
        verdict.name = "gate.capability_unsupported"
    if name in ("transport.queue_full", "transport.loading") and facts.status and facts.status < 500:
        verdict.confidence = "low"
    return verdict


_SERVERS_OWN = re.compile(r"invalid diff|extra content after end|parser error|function-wrap", re.IGNORECASE)
_CUT = re.compile(r"unexpected end of json|unexpected end of (?:content|input)|unterminated|incomplete", re.IGNORECASE)


def _server_error(facts: Facts, verdict: Verdict) -> Verdict:
    text = facts.all_error_text
    verdict.delivery = "refused"
    if _SERVERS_OWN.search(text):
        verdict.fault = "stack"
        return verdict
    if _CUT.search(text) and _limit_says_something(facts):
        cut = Verdict(
            "truncation.cut_inside_call",
            delivery="refused",
            detail="the server failed on a call that ends early; the request sets an output limit",
            remedy="raise the output limit",
        )
        return cut.undetermined(_BIGGER)
    return verdict.undetermined(RAW)


_AMPLE = 4096


def _limit_says_something(facts: Facts) -> bool:
    """Whether the request sets an output limit of its own will: the Messages API demands one, and a large one there is
    a formality."""
    limit = facts.request.max_tokens
    return limit is not None and (facts.request.dialect != "anthropic_messages" or limit < _AMPLE)


def _lost_user_turn(facts: Facts, text: str) -> bool:
    if not re.search(
        r"no user (?:query|message|turn|content)|(?:missing|without) (?:a )?user (?:message|turn)", text, re.I
    ):
        return False
    return any(message.role == "user" and message.content for message in facts.request.messages)


def _reader_failed(facts: Facts) -> bool:
    """Whether a JSON or XML reader complains although the request's body is fine: what it read can only be the model's
    output. (A failed request of the server's own, which names an address, is not meant.)"""
    text = facts.error_text
    if facts.request.body_error is not None or re.search(r"https?://|\b(?:post|get) \"", text, re.IGNORECASE):
        return False
    forced = facts.choice in ("required", "named")
    return facts.generates and (facts.status != 400 or forced) and bool(JSON_WORDS.search(text))


def _by_status(facts: Facts) -> Verdict | None:
    status = facts.status
    if status == 404:
        return Verdict("transport.wrong_route", confidence="low", remedy="correct the base URL").undetermined(LOG)
    if status == 413:
        return Verdict("request.context_exceeded", confidence="medium", remedy="send a smaller request")
    if status == 503:
        return Verdict("transport.loading", confidence="low", remedy="wait, then retry").undetermined(LOG)
    if 400 <= status < 500:
        return Verdict("request.invalid_param", confidence="low").undetermined(LOG)
    if _reader_failed(facts):
        return _server_error(facts, Verdict("parser.server_error", confidence="medium", remedy=RAW.partition(": ")[2]))
    if status >= 500:
        return Verdict("engine.crash", confidence="low", remedy="look into the server's log").undetermined(LOG)
    return Verdict("engine.error_in_stream", remedy="look into the server's log").undetermined(LOG)
