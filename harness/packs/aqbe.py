"""AQBE's own arithmetic, for the number that it would have printed, and the repairs of its published checks.

Source: minyang-chen/AQBE, aqbe.py at commit 69ac3dc (MIT). What differs from `scoring` is kept here on purpose: JSON
is the greedy span from the first bracket to the last; a number has no sign; an error of the transport is 0 of 10.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from harness.packs.model import Check, Evaluator, JsonFields, Numeric, Pack, PackTask, RegexChecks
from harness.packs.patterns import PatternError, compiled, found

ERROR_MAX = 10
"""Points out of which AQBE gives 0 where no answer came or its JSON cannot be read."""
_OPENING = re.compile(r"[{\[]")
_DIGITS = re.compile(r"\d+\.?\d*")
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
REPAIRS = Path(__file__).parent / "aqbe_repairs.json"


class Original(msgspec.Struct, frozen=True):
    """AQBE's verdict on an answer: `score` of `most` points; `error` where its own code would have raised one."""

    score: float
    most: float
    error: str = ""

    @property
    def percent(self) -> int:
        """As AQBE prints it: 0 where nothing could be won."""
        return round(self.score / self.most * 100) if self.most else 0


NO_ANSWER = Original(0, ERROR_MAX, "no answer")


def text_of(content: str | None, reasoning: str | None) -> str:
    """The text that AQBE judges: the answer, or where that is empty the reasoning, without `<think>` blocks."""
    return _THOUGHT.sub("", content or reasoning or "").strip()


def original(task: PackTask, text: str) -> Original | None:
    """What AQBE's code gives for an answer's text; None where the task is not of its kinds."""
    if len(task.evaluators) != 1:
        return None
    evaluator = task.evaluators[0]
    try:
        if isinstance(evaluator, RegexChecks):
            return _regex(evaluator.checks, text)
        if isinstance(evaluator, JsonFields):
            return _json(evaluator, text)
        return _numeric(evaluator, text) if isinstance(evaluator, Numeric) else None
    except (TypeError, AttributeError, KeyError, PatternError, RecursionError) as wrong:
        return Original(0, ERROR_MAX, f"{type(wrong).__name__}: {wrong}")


def _regex(checks: tuple[Check, ...], text: str) -> Original:
    score = 0.0
    for check in checks:
        if check.max_words is not None:
            passed = len(text.split()) <= check.max_words
        else:
            hit = found(compiled(check.pattern, ignore_case=check.case_insensitive), text) is not None
            passed = hit != check.invert
        score += check.points if passed else 0
    return Original(score, sum(check.points for check in checks))


def _span(text: str) -> str:
    """From the first bracket that has one of its kind behind it to the last of these, in one pass."""
    last = {"{": text.rfind("}"), "[": text.rfind("]")}
    for start in (match.start() for match in _OPENING.finditer(text)):
        if start < last[text[start]]:
            return text[start : last[text[start]] + 1]
    return ""


def _json(evaluator: JsonFields, text: str) -> Original:
    span = _span(text)
    try:
        data: Any = json.loads(span) if span else None
    except json.JSONDecodeError:
        span = ""
    if not span:
        return Original(0, ERROR_MAX, "no JSON")
    if isinstance(data, list):
        data = data[0] if data else {}
    score = sum(1 for name in evaluator.fields if name in data and data[name] not in (None, ""))
    for name, wanted in evaluator.values.items():
        score += str(data.get(name, "")).upper() == str(wanted).upper()
    return Original(score, len(evaluator.fields) + len(evaluator.values))


def _numeric(evaluator: Numeric, text: str) -> Original:
    numbers = [float(one) for one in _DIGITS.findall(text)]
    score = 0
    for name, wanted in evaluator.expected.items():
        if name == "verdict":
            passed = str(wanted).lower() in text.lower()
        else:
            passed = any(abs(one - float(wanted)) < float(wanted) * 0.05 for one in numbers)
        score += 2 if passed else 0
    return Original(score, 2 * len(evaluator.expected))


class Repair(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is wrong with one published check, and what it is with that put right: settings of the pattern, or `asks:
    false` where the prompt does not ask for what it demands."""

    pack: str
    task: str
    check: str
    why: str
    multiline: bool = False
    dot_all: bool = False
    fold: bool = False
    asks: bool = True


@cache
def known_repairs() -> tuple[Repair, ...]:
    """The repairs of AQBE's published packs."""
    return tuple(msgspec.json.decode(REPAIRS.read_bytes(), type=list[Repair]))


def repaired(pack: Pack) -> tuple[Pack, tuple[Repair, ...]]:
    """A pack with the known repairs of its checks, and those that were applied."""
    applied: list[Repair] = []
    tasks = tuple(_repaired_task(pack.name, task, applied) for task in pack.tasks)
    return msgspec.structs.replace(pack, tasks=tasks), tuple(applied)


def _repaired_task(pack: str, task: PackTask, applied: list[Repair]) -> PackTask:
    repairs = {one.check: one for one in known_repairs() if (one.pack, one.task) == (pack, task.id)}
    if not repairs:
        return task
    evaluators: list[Evaluator] = []
    for evaluator in task.evaluators:
        if isinstance(evaluator, RegexChecks):
            checks = tuple(_repaired_check(check, repairs.get(check.name), applied) for check in evaluator.checks)
            evaluators.append(RegexChecks(checks))
        else:
            evaluators.append(evaluator)
    return msgspec.structs.replace(task, evaluators=tuple(evaluators))


def _repaired_check(check: Check, repair: Repair | None, applied: list[Repair]) -> Check:
    if repair is None:
        return check
    applied.append(repair)
    return msgspec.structs.replace(
        check,
        multiline=check.multiline or repair.multiline,
        dot_all=check.dot_all or repair.dot_all,
        fold=check.fold or repair.fold,
        asks=check.asks and repair.asks,
    )
