"""Raw model text quoted inside an error: lifted out, and judged like any text that a model wrote."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from stacks.formats import CallScan, OfferedTools, check_call, find_calls, format_named

_QUOTED = (
    ("raw", re.compile(r"\braw ?= ?'(.*?)'(?:, ?err\b|\Z)", re.DOTALL)),
    ("raw", re.compile(r"\braw ?= ?\"(.*?)\"(?:, ?err\b|\Z)", re.DOTALL)),
    ("value", re.compile(r"(?:input|output|text)_?value ?= ?'(.*?)'(?:, ?input_type|\]|\Z)", re.DOTALL)),
    ("at pos", re.compile(r"\bat pos(?:ition)? \d+: ?(.*)\Z", re.DOTALL)),
    (
        ":",
        re.compile(r"\b(?:model|raw|unparsed)[\w -]{0,30} (?:output|text|response)\b[^:\n]{0,60}: ?(.*)\Z", re.DOTALL),
    ),
)
"""How errors quote raw text, each with a word that must stand in the message."""
_CUT = re.compile(r"unexpected end|unterminated|EOF|incomplete|premature", re.IGNORECASE)
_ELIDED = re.compile(r"\.\.\.|…")


@dataclass(frozen=True, slots=True)
class Lifted:
    """Raw text found in an error and what it is: `valid_call`, `malformed_call`, `unknown_tool`, `invalid_arguments`,
    `cut` (it ends inside a call), `elided` (the error shortened it, so nothing can be said) or `prose`."""

    text: str
    verdict: str
    reason: str = ""


def lift(message: str, tools: OfferedTools) -> Lifted | None:
    """The raw model text that an error message quotes, judged; None where it quotes none."""
    for word, pattern in _QUOTED:
        found = pattern.search(message) if word in message else None
        if found is not None and found[1].strip():
            return _judge(found[1], message[: found.start(1)] + message[found.end(1) :], tools)
    if "<" not in message and "[" not in message:
        return None
    scan = find_calls(message, tools)
    if _marked(scan) and any(call.offered and call.exact and call.call.closed for call in scan.calls):
        return _judged_scan(message, scan, tools)
    return None


def _marked(scan: CallScan) -> bool:
    """Whether the calls stand between markers of a format: bare JSON in an error is a quoted request, not an answer."""
    return bool(scan.format) and format_named(scan.format).delimited and bool(format_named(scan.format).openers)


def _judge(raw: str, around: str, tools: OfferedTools) -> Lifted:
    scan = find_calls(raw, tools)
    if scan.calls or scan.problems:
        judged = _judged_scan(raw, scan, tools)
        if judged.verdict != "valid_call" and _ELIDED.search(raw):
            return Lifted(raw, "elided")
        return judged
    if _ELIDED.search(raw):
        return Lifted(raw, "elided")
    if raw.lstrip()[:1] in ("{", "["):
        return _judge_arguments(raw, around)
    return Lifted(raw, "prose")


def _judge_arguments(raw: str, around: str) -> Lifted:
    """Arguments alone (the parser had already taken the call's name off)."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        if _CUT.search(around) or "Unterminated" in str(error) or _ends_early(raw, error):
            return Lifted(raw, "cut", str(error))
        return Lifted(raw, "malformed_call", str(error))
    if isinstance(value, dict):
        return Lifted(raw, "valid_call")
    return Lifted(raw, "malformed_call", "the arguments are JSON but no object")


def _ends_early(raw: str, error: Exception) -> bool:
    return isinstance(error, json.JSONDecodeError) and error.pos >= len(raw.rstrip())


def _judged_scan(raw: str, scan: CallScan, tools: OfferedTools) -> Lifted:
    if scan.cut:
        return Lifted(raw, "cut")
    if scan.problems and not scan.standing:
        return Lifted(raw, "malformed_call", scan.problems[0].message)
    for found in scan.calls:
        if not found.offered:
            return Lifted(raw, "unknown_tool", f"{found.call.name!r} was not offered")
        if found.call.repairs or not found.has_object:
            return Lifted(raw, "malformed_call", ", ".join(found.call.repairs) or "the arguments are no object")
        check = check_call(found.call, tools)
        if not check.ok:
            return Lifted(raw, "invalid_arguments", check.reason)
    return Lifted(raw, "valid_call") if scan.calls else Lifted(raw, "prose")
