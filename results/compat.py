"""The originals' own predicates, defects included: what their code would have said of the same attempt.

paper-compat: `analyze_protocol.classify_dir` of the serving-confound repository; dense-compat: the seven modes with a
word forced on every failure; aqbe-compat: AQBE's scores, in which an error is 0 of 10 and an unknown check 0 of 2.
Source of the predicates: the documents named in docs/outcomes.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from results.labels import aqbe, dense
from results.outcomes import Outcome

_CALL_LIKE = re.compile(r"```|\"name\" ?:|\b(?:function|tool_call)\b", re.IGNORECASE)
_NOT_FOUND = re.compile(r"not found|no such tool|unknown tool", re.IGNORECASE)
_GAVE_UP = "Failed to get response"


@dataclass(frozen=True, slots=True)
class TurnText:
    """What the paper's harness sees of a turn: the text, whether it has calls (native or added by its own fallback
    parser), and the first tool message among the next three."""

    content: str = ""
    has_calls: bool = False
    first_result: str | None = None


def paper_compat(turn: TurnText) -> str | None:
    """The paper's label of a turn by its own predicates; None where the original does not count the turn at all.

    Differs from `labels.paper`: any code fence is call-like, "not found" inside a normal tool result makes a
    hallucination, an empty turn vanishes.
    """
    if _GAVE_UP in turn.content:
        return "non-response"
    if turn.has_calls:
        failed = turn.first_result is not None and _NOT_FOUND.search(turn.first_result)
        return "hallucinated" if failed else "valid"
    if _CALL_LIKE.search(turn.content):
        return "unparseable"
    return "prose" if turn.content.strip() else None


_FENCED = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL)


def fallback_has_calls(content: str) -> bool:
    """Whether the paper's client-side parser finds a call: a fenced JSON object, else one greedy span that holds
    "name" and "arguments" (S2-12)."""
    if any('"name"' in found for found in _FENCED.findall(content)):
        return True
    start, end = content.find("{"), content.rfind("}")
    span = content[start : end + 1] if 0 <= start < end else ""
    return '"name"' in span and '"arguments"' in span


def dense_compat(outcome: Outcome) -> str:
    """Dense Bench's mode with a word for everything that reached the harness: what has none of its own becomes
    `right_tool_wrong_args`."""
    mode = dense(outcome)
    return "right_tool_wrong_args" if mode == "none" else mode


@dataclass(frozen=True, slots=True)
class Score:
    """Points of points possible, and the note that AQBE prints."""

    points: int
    possible: int
    note: str


def aqbe_compat(outcome: Outcome) -> Score | None:
    """AQBE's score of an attempt that did not reach a check of its own: an error is 0 of 10 and stays in the average,
    an unknown check 0 of 2, an answer without JSON 0 of its fields. None where the pack's own checks decide."""
    label = aqbe(outcome)
    if label == "error":
        return Score(0, 10, f"ERROR: {outcome.name}")
    if label == "unknown_type":
        return Score(0, 2, "unknown eval type")
    if label == "no_json":
        return Score(0, 2, "No JSON found")
    return Score(0, 2, "JSON error") if label == "json_error" else None
