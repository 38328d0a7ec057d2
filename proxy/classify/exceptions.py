"""Exceptions of the server's own program, and what explains them: the request's shape, or a turn of its history."""

from __future__ import annotations

import re

from proxy.classify.facts import Facts
from proxy.classify.history import BrokenTurn
from proxy.classify.shape import EXCEPTION, misshapen
from proxy.classify.verdict import LOG, RAW, Verdict

_READ = 20_000
"""Characters of an error that are looked through for words of programs."""


def bad_history(facts: Facts, broken: BrokenTurn, confidence: str = "high") -> Verdict:
    """`request.bad_history`, naming turn and message."""
    return Verdict(
        "request.bad_history",
        confidence="high" if confidence == "high" else "medium",
        detail=f"the fault entered in turn {broken.turn}, message {broken.message}: {broken.text}",
        evidence=[facts.cite_request(broken.path, broken.text), facts.cite_error("the error")],
        remedy=f"repair or drop message {broken.message} of the history before it is sent again",
    )


def by_shape(facts: Facts) -> Verdict | None:
    """An exception of the server's own program, while the request is not of the shape that it takes for granted."""
    if not facts.generates or facts.view.request_unseen or not EXCEPTION.search(facts.all_error_text[:_READ].lower()):
        return None
    wrong = misshapen(facts.view.wire.request_body)
    if wrong is None:
        return None
    path, why = wrong
    return Verdict(
        "request.invalid_schema",
        detail=f"the server's program failed on the request's shape: {why}",
        evidence=[facts.cite_request(path, why), facts.cite_error("the error")],
        remedy=f"correct the request: {why}",
    )


_REFUSALS = ("gate", "request", "template")


def late(verdict: Verdict, text: str) -> Verdict:
    """The verdict on an error that came after part of an answer: no refusal of the request, whose words it may have,
    since the server had taken it and the model was writing."""
    if verdict.name.partition(".")[0] not in _REFUSALS:
        return verdict
    if verdict.name == "request.context_exceeded":
        verdict.name, verdict.ran = "truncation.output_budget", "yes"
        return verdict
    if EXCEPTION.search(text[:_READ].lower()):
        found = Verdict("parser.server_error", confidence="medium")
        found.detail = (
            "an exception of the server's program while the model was writing: its reader is the likely place"
        )
        return found.undetermined(LOG)
    found = Verdict("engine.error_in_stream", ran="yes", confidence="medium")
    found.detail = "the words are those of a refusal, and they came after part of the answer"
    return found.undetermined(LOG)


def elsewhere(facts: Facts, verdict: Verdict, text: str) -> Verdict | None:
    """The verdict on an error whose words belong to another layer than they say; None where they do not."""
    text = text[:_READ]
    return _in_own_code(verdict.name, text) or _of_a_message(facts, verdict, text) or _exception(facts, verdict, text)


def _of_a_message(facts: Facts, verdict: Verdict, text: str) -> Verdict | None:
    """A refusal of calls in a message of the history, which is no refusal of tools."""
    if verdict.name != "gate.tools_unsupported" or not _OF_A_MESSAGE.search(text):
        return None
    if facts.history:
        return bad_history(facts, facts.history[0])
    return Verdict("request.bad_history", confidence="medium", remedy="send the turns of the history otherwise")


def _exception(facts: Facts, verdict: Verdict, text: str) -> Verdict | None:
    """An exception of the server's program that nothing shows to come out of a template."""
    if (
        verdict.name != "template.render_error"
        or not _OWN_EXCEPTION.search(text[:_READ].lower())
        or _OF_A_TEMPLATE.search(text)
    ):
        return None
    if facts.history:
        return bad_history(facts, facts.history[0], "medium")
    verdict.detail = "an exception of the server's program; that its template raised it is likely, not shown"
    return verdict.undetermined(LOG)


_OF_A_MESSAGE = re.compile(r"\btool_calls\b.{0,40}\bin (?:an? |the )?(?:\w+ )?messages?\b", re.IGNORECASE)
_READS_ANSWER = re.compile(
    r"transform_response|(?:parse|process|handle|convert)_\w{0,40}(?:response|output|completion)|extract_tool_calls|"
    r"tool_parser|parse_tool_calls?",
)
_READS_REQUEST = re.compile(
    r"transform_request|map_openai_params|prompt_templates|(?:convert|prepare)_\w{0,40}messages"
)
_OWN_ANSWER = re.compile(
    r"\bvalidation errors? for (?!\w{0,80}Request)(?:Chat)?\w{0,60}"
    r"(?:Message|Response|Choice|Chunk|Delta|Completion|Output)\b"
)
"""Frames of a traceback, and names of the type that a value did not fit: what the program was about when it failed."""


def _in_own_code(name: str, text: str) -> Verdict | None:
    """What a traceback or a validator says of where the program failed: reading an answer, writing its own, or building
    the request to a server behind it."""
    if name == "request.invalid_param" and _OWN_ANSWER.search(text):
        verdict = Verdict("engine.response_invalid", delivery="refused", confidence="medium")
        verdict.detail = "the server's own answer does not fit the server's own type"
        return verdict.undetermined(LOG)
    if name != "template.render_error":
        return None
    if _READS_ANSWER.search(text):
        verdict = Verdict("parser.server_error", delivery="refused", confidence="medium")
        verdict.detail = "the program failed while it read the model's answer"
        return verdict.undetermined(RAW)
    if _READS_REQUEST.search(text):
        verdict = Verdict("request.invalid_param", confidence="medium")
        verdict.detail = "the gateway failed while it built the request to the server behind it"
        return verdict.undetermined(LOG)
    return None


_OWN_EXCEPTION = re.compile(
    r"'\w+' object (?:has no attribute|is not|does not)|list index out of range|unhashable type|\bkeyerror\b|"
    r"indices must be|argument of type '",
    re.IGNORECASE,
)
"""Python's own words. (Jinja's differ: `'dict object' has no attribute 'x'`, with the quote behind "object".)"""
_OF_A_TEMPLATE = re.compile(r"jinja|template|raise_exception|' object' has no|render", re.IGNORECASE)
