"""What an answer is worth by a task's checks. Pure: the same task and answer give the same points.

A check that cannot be applied (a pattern that runs for ever, a schema whose reference leads nowhere) is the pack's
fault: it has a `checker.*` outcome and no points, and stands outside the denominator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Literal

import msgspec

from harness.packs.model import (
    Arguments,
    Check,
    Evaluator,
    JsonFields,
    Numeric,
    PackTask,
    RegexChecks,
    Rule,
    SchemaCheck,
)
from harness.packs.patterns import PatternError, compiled, folded, found
from harness.packs.rules import same
from harness.packs.schemas import SchemaFaultError, first_error
from harness.packs.structured import Call, Reader, call_in, lenient_reply, numbers_in

PASSED = "ok.task_done"
FAILED = "task.check_failed"
BROKEN = "checker.config_error"
UNSATISFIABLE = "checker.unsatisfiable"
EXACT = Rule()
MOST_READ = 200_000
"""Characters of an answer in which a JSON value is looked for: an answer that is all brackets must not stop a run."""

Kind = Literal[
    "pattern",
    "forbidden",
    "length",
    "json_missing",
    "json_value",
    "numeric",
    "verdict",
    "parse",
    "schema",
    "tool",
    "arguments",
    "argument",
]


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is judged: the text of an answer without its reasoning, and the calls that came in their field."""

    text: str = ""
    calls: tuple[Call, ...] = ()


class CheckResult(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What became of one check. `passed` is None where the check itself is at fault. `detail`: what was found."""

    name: str
    kind: Kind
    passed: bool | None
    points: float
    detail: str = ""
    outcome: str = PASSED
    hard: bool = False

    @property
    def earned(self) -> float:
        """Points won."""
        return self.points if self.passed else 0.0


class Scored(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An answer's points. `outcome`: `ok.task_done` (every check that can be applied holds), `task.check_failed`, or
    `checker.*` where no check can be applied, and then there is no score. `hard_fail`: worth nothing, either because
    no check holds or because one that is `hard` does not: a blocker of deployment in AQBE's words."""

    task: str
    checks: tuple[CheckResult, ...]
    outcome: str
    earned: float
    possible: float
    hard_fail: bool = False

    @property
    def share(self) -> float | None:
        """Points won over points to be won, in [0, 1]; None where there is none to be won."""
        return self.earned / self.possible if self.possible else None

    @property
    def percent(self) -> int | None:
        """`share` in percent, rounded as Python rounds (a half to the even number); None where it is undefined."""
        return None if self.share is None else round(self.share * 100)

    @property
    def broken(self) -> tuple[CheckResult, ...]:
        """The checks that are at fault themselves."""
        return tuple(check for check in self.checks if check.passed is None)


def score(task: PackTask, answer: Answer | str, *, reader: Reader = lenient_reply) -> Scored:
    """Judge an answer. `reader` finds the JSON value in a text: `lenient_reply`, or `strict_reply`."""
    given = Answer(answer) if isinstance(answer, str) else answer
    once = cache(lambda text: reader(text[:MOST_READ]))
    return summed(task, [result for each in task.evaluators for result in results_of(task, each, given, once)])


def summed(task: PackTask, results: Iterable[CheckResult]) -> Scored:
    """The points of a task's checks."""
    checks = tuple(results)
    usable = [check for check in checks if check.passed is not None]
    possible = sum(check.points for check in usable)
    failed_hard = any(check.hard and not check.passed for check in usable)
    earned = 0.0 if failed_hard else sum(check.earned for check in usable)
    if not usable:
        outcome = checks[0].outcome if checks else UNSATISFIABLE
    else:
        outcome = PASSED if all(check.passed for check in usable) else FAILED
    hard_fail = failed_hard or (bool(possible) and not earned)
    return Scored(task=task.id, checks=checks, outcome=outcome, earned=earned, possible=possible, hard_fail=hard_fail)


def results_of(task: PackTask, evaluator: Evaluator, answer: Answer, reader: Reader) -> list[CheckResult]:
    """The checks of one evaluator, in the order of `building.check_names`."""
    if isinstance(evaluator, RegexChecks):
        return [check_text(check, answer.text) for check in evaluator.checks if check.asks]
    if isinstance(evaluator, JsonFields):
        return _json_fields(evaluator, answer.text, reader)
    if isinstance(evaluator, Numeric):
        return _numeric(evaluator, answer.text)
    if isinstance(evaluator, SchemaCheck):
        return _schema(evaluator, answer.text, reader)
    return _arguments(task, evaluator, answer, reader)


def _result(name: str, kind: Kind, passed: bool, points: float, detail: str = "", *, hard: bool = False) -> CheckResult:
    outcome = PASSED if passed else FAILED
    return CheckResult(name=name, kind=kind, passed=passed, points=points, detail=detail, outcome=outcome, hard=hard)


def _broken(name: str, kind: Kind, points: float, why: str) -> CheckResult:
    return CheckResult(name=name, kind=kind, passed=None, points=points, detail=why, outcome=BROKEN)


def check_text(check: Check, text: str) -> CheckResult:
    """One check of `regex_checks` on a text."""
    if check.max_words is not None:
        words = len(text.split())
        said = f"{words} words, at most {check.max_words}"
        return _result(check.name, "length", words <= check.max_words, check.points, said, hard=check.hard)
    kind: Kind = "forbidden" if check.invert else "pattern"
    pattern, read = (folded(check.pattern), folded(text)) if check.fold else (check.pattern, text)
    try:
        rule = compiled(pattern, ignore_case=check.case_insensitive, multiline=check.multiline, dot_all=check.dot_all)
        match = found(rule, read)
    except PatternError as wrong:
        return _broken(check.name, kind, check.points, str(wrong))
    said = "" if match is None else f"found {_cut(match.group())!r}"
    passed = (match is None) if check.invert else match is not None
    return _result(check.name, kind, passed, check.points, said, hard=check.hard)


def _cut(text: Any) -> str:
    said = str(text)
    return said if len(said) <= 80 else said[:79] + "…"


def _json_fields(evaluator: JsonFields, text: str, reader: Reader) -> list[CheckResult]:
    read = reader(text)
    value = None if read is None else read.value
    # A list is judged by its first element, as AQBE does.
    first = value[0] if isinstance(value, list) and value else value
    data: dict[str, Any] = first if isinstance(first, dict) else {}
    why = "" if isinstance(first, dict) else "no JSON object in the answer"

    def judged(name: str, kind: Kind, passed: bool, said: str) -> CheckResult:
        return _result(name, kind, passed, evaluator.points, why or said, hard=evaluator.hard)

    fields = [
        judged(f"field:{name}", "json_missing", data.get(name) not in (None, ""), _cut(data.get(name, "missing")))
        for name in evaluator.fields
    ]
    return fields + [
        judged(f"value:{name}", "json_value", _as_text(data.get(name)) == _as_text(wanted), _cut(data.get(name)))
        for name, wanted in evaluator.values.items()
    ]


def _as_text(value: Any) -> str:
    return "" if value is None else str(value).strip().casefold()


def _numeric(evaluator: Numeric, text: str) -> list[CheckResult]:
    numbers = numbers_in(text)
    results = []
    for name, wanted in evaluator.expected.items():
        if name == "verdict":
            passed, kind = folded(str(wanted)).casefold() in folded(text).casefold(), "verdict"
        else:
            target = float(str(wanted).replace(",", ""))
            passed, kind = any(abs(one - target) <= abs(target) * evaluator.tolerance for one in numbers), "numeric"
        said = f"wanted {wanted!r}; numbers found: {', '.join(f'{one:g}' for one in numbers[:8]) or 'none'}"
        results.append(_result(name, kind, passed, evaluator.points, said, hard=evaluator.hard))  # type: ignore[arg-type]
    return results


def _schema(evaluator: SchemaCheck, text: str, reader: Reader) -> list[CheckResult]:
    judged = _judge(evaluator)
    read = reader(text)
    parsed, value = read is not None, None if read is None else read.value
    results = [judged("parse", "parse", parsed, "" if parsed else "no JSON value can be read")]
    results.append(_valid(evaluator, "schema", "schema", value if parsed else _NOTHING, evaluator.schema))
    data = value if isinstance(value, dict) else {}
    return results + _compared(evaluator, "value:", "json_value", data, valid=bool(results[-1].passed))


def _arguments(task: PackTask, evaluator: Arguments, answer: Answer, reader: Reader) -> list[CheckResult]:
    judged = _judge(evaluator)
    call, why = call_in(answer.text, answer.calls, reader)
    right = call is not None and call.name == evaluator.tool
    results = [
        judged("call", "parse", call is not None, why),
        judged("tool", "tool", right, "" if call is None else call.name),
    ]
    given = call.arguments if call is not None and right else {}
    schema = next(tool["function"]["parameters"] for tool in task.tools if tool["function"]["name"] == evaluator.tool)
    valid = _valid(evaluator, "arguments", "arguments", given if right else _NOTHING, schema)
    extra = sorted(given.keys() - evaluator.expected.keys() - set(evaluator.optional))
    if valid.passed and extra:
        valid = judged("arguments", "arguments", False, f"not asked for: {_cut(', '.join(extra))}")
    results.append(valid)
    return results + _compared(evaluator, "argument:", "argument", given, valid=right)


_NOTHING: Any = object()


def _judge(evaluator: SchemaCheck | Arguments) -> Callable[[str, Kind, bool, str], CheckResult]:
    return lambda name, kind, passed, said: _result(name, kind, passed, evaluator.points, said, hard=evaluator.hard)


def _valid(
    evaluator: SchemaCheck | Arguments, name: str, kind: Kind, value: Any, schema: dict[str, Any]
) -> CheckResult:
    if value is _NOTHING:
        return _judge(evaluator)(name, kind, False, "nothing to check")
    try:
        error = first_error(value, schema)
    except SchemaFaultError as wrong:
        return _broken(name, kind, evaluator.points, str(wrong))
    return _judge(evaluator)(name, kind, error is None, "" if error is None else f"{error[0]}: {error[1]}")


def _compared(
    evaluator: SchemaCheck | Arguments, prefix: str, kind: Kind, given: dict[str, Any], *, valid: bool
) -> list[CheckResult]:
    results = []
    for name, wanted in evaluator.expected.items():
        rule = evaluator.rules.get(name, EXACT)
        passed = valid and name in given and same(wanted, given[name], rule)
        said = f"{rule.kind}: {_cut(given[name])!r}" if name in given else "missing"
        results.append(_judge(evaluator)(prefix + name, kind, passed, said))
    return results
