"""Judging an answer in layers: it can be parsed, it fits the schema, its content is right; each implies the one before.

An answer that was cut off by the token limit is counted as truncated, whatever stands in it: it is neither right nor
wrong, and is told apart from answers that came to their end and could not be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.packs.structured import Call
from harness.structured.questions import Calling, Question
from harness.structured.reading import TIERS, Read, Tier, is_native, read_answer
from stacks.formats.check import check_call, check_value

Layer = Literal["", "truncated", "parse", "schema", "content"]
Content = Callable[[Any], Sequence[str]]
"""Given the value that was read (for a call its name and arguments), what is wrong with its content; empty: right."""

TRUNCATED = frozenset({"length", "context"})
"""Reasons for which a generation ends before its text does (``GenerationReport.finish_reason``)."""


@dataclass(frozen=True, slots=True)
class Layers:
    """The verdict of one tier. ``died_in`` is the first layer that failed, empty where none did; ``why`` says more."""

    parse_ok: bool
    schema_valid: bool
    content_correct: bool
    died_in: Layer = ""
    why: str = ""
    extractor: str = ""
    native: bool = False


def judge(question: Question, calling: Calling, text: str, finish_reason: str, content: Content) -> dict[Tier, Layers]:
    """The verdict of every tier on one answer."""
    if finish_reason in TRUNCATED:
        cut = Layers(False, False, False, "truncated", f"the answer was cut off ({finish_reason})")
        return dict.fromkeys(TIERS, cut)
    native = is_native(text, question, calling)
    return {tier: _judged(read_answer(text, tier, question, calling), question, content, native) for tier in TIERS}


def _judged(found: Read | None, question: Question, content: Content, native: bool) -> Layers:
    if found is None:
        asked = "no call can be read" if question.asks_call else "no JSON value can be read"
        return Layers(False, False, False, "parse", asked, "", native)
    problem = _schema_problem(found, question)
    if problem:
        return Layers(True, False, False, "schema", problem, found.extractor, native)
    wrong = content(found.value)
    if wrong:
        return Layers(True, True, False, "content", "; ".join(wrong), found.extractor, native)
    return Layers(True, True, True, "", "", found.extractor, native)


def _schema_problem(found: Read, question: Question) -> str:
    if not question.asks_call:
        checked = check_value(found.value, question.schema)
        return "" if checked.ok else f"{checked.path}: {checked.reason}"
    if found.count > 1:
        return f"{found.count} calls, one is asked for"
    checked = check_call(Call(found.value["name"], found.value["arguments"]), list(question.tools))
    return "" if checked.ok else f"{checked.path or '$'}: {checked.reason}"


@dataclass(frozen=True, slots=True)
class Tally:
    """How many answers reached each layer, and where the others died."""

    answers: int
    parse_ok: int
    schema_valid: int
    content_correct: int
    died: Mapping[str, int]

    @property
    def truncated(self) -> int:
        """Answers that were cut off; they are not among the wrong ones."""
        return self.died.get("truncated", 0)

    @property
    def wrong(self) -> int:
        """Answers that came to their end and are not right."""
        return self.answers - self.content_correct - self.truncated


def tally(verdicts: Iterable[Layers]) -> Tally:
    """Count the verdicts of one tier."""
    listed = list(verdicts)
    died: dict[str, int] = {}
    for verdict in listed:
        if verdict.died_in:
            died[verdict.died_in] = died.get(verdict.died_in, 0) + 1
    return Tally(
        len(listed),
        sum(verdict.parse_ok for verdict in listed),
        sum(verdict.schema_valid for verdict in listed),
        sum(verdict.content_correct for verdict in listed),
        dict(sorted(died.items())),
    )
