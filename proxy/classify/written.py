"""What a model is known to have written, judged like any text of a model."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from proxy.classify.facts import Facts
from results.outcomes import Wrote
from stacks.formats import TextCall, check_call, find_calls, find_markers, split_reasoning

_LOOP = re.compile(r"\s?@-\d+\Z")
"""Mark of a canary's script that repeats its last pieces for ever."""


@dataclass(frozen=True, slots=True)
class Written:
    """What the model wrote: `kind` in the words of `results.taxonomy.WROTE`, its calls as (name, arguments), the text
    around them, and whether the calls stand inside reasoning that is never closed."""

    kind: Wrote
    calls: tuple[tuple[str, str], ...]
    prose: str
    text: str
    reason: str = ""
    inside_reasoning: bool = False
    endless: bool = False


def read_written(text: str, facts: Facts) -> Written:
    """Judge a known text like any text of a model, against the tools of this request."""
    endless = bool(_LOOP.search(text))
    text = _untorn(_LOOP.sub("", text))
    if not text.strip():
        return Written("nothing", (), "", text)
    if not facts.offers or facts.choice == "none":
        return Written("prose", (), answer_part(text), text, endless=endless)
    scan = find_calls(text, facts.tools)
    inside = not scan.standing and bool(scan.in_reasoning)
    calls = [call for call in scan.calls if call.position in ("whole", "block", "tail", "line")]
    if inside:
        calls = list(scan.in_reasoning)
    pairs = tuple((call.call.name, canonical(call.call.arguments)) for call in calls)
    if calls:
        kind, reason = _kind(calls, facts)
        return Written(kind, pairs, scan.prose_text, text, reason, inside, endless)
    problem = next((problem for problem in scan.problems if problem.kind != "not_a_call"), None)
    if problem is not None or scan.problems:
        reason = (problem or scan.problems[0]).message
        return Written("malformed_call", (), scan.prose_text, text, reason, endless=endless)
    return Written("prose", (), scan.prose_text or text.strip(), text, endless=endless)


def answer_part(text: str) -> str:
    """The text outside of reasoning."""
    return "".join(span.of(text) for span in split_reasoning(text).answer).strip()


def _untorn(text: str) -> str:
    """The text without an incomplete UTF-8 sequence at its end (read as Latin-1 where it was written down)."""
    last = text[-1:]
    return text[:-1] if last and 0xC2 <= ord(last) <= 0xF4 and text[:-1].isascii() else text


def _kind(calls: list[TextCall], facts: Facts) -> tuple[Wrote, str]:
    for found in calls:
        call = found.call
        if call.repairs or not call.complete or not found.has_object:
            return "malformed_call", ", ".join(call.repairs) or "the call is not complete, or its arguments no object"
        if not found.offered:
            return "unknown_tool", f"{call.name!r} was not offered"
        check = check_call(call, facts.tools)
        if not check.ok:
            return "invalid_arguments", check.reason
    return "valid_call", ""


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=repr)


_SPACE = re.compile(r"\s+")


def squeeze(text: str) -> str:
    return _SPACE.sub("", text)


def bare(text: str) -> str:
    """The text without blanks and without the markers of every format and of reasoning."""
    for leak in reversed(find_markers(text)):
        text = text[: leak.span.start] + text[leak.span.end :]
    return squeeze(text)
