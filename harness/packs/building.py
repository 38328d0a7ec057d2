"""From a file's plain values to tasks: the format's JSON Schema first, then what no schema can say. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from referencing import Registry

from harness.packs.document import Document
from harness.packs.model import (
    EVALUATORS,
    FORMAT,
    Arguments,
    Check,
    Dialect,
    Evaluator,
    JsonFields,
    Message,
    Numeric,
    PackError,
    PackTask,
    RegexChecks,
    Rule,
    Sample,
    SchemaCheck,
)
from harness.packs.patterns import PatternError, compiled
from harness.packs.rules import iso_minute, names_one_thing, number
from harness.packs.schemas import SchemaFaultError, check_schema

MOST_TEXT = 1 << 20
"""Characters of a task's messages together."""
SCHEMAS = {"stacktap": "pack.schema.json", "aqbe": "aqbe.schema.json"}
Where = tuple[str | int, ...]
ReadText = Callable[[str], str]


def dialect_of(document: Document) -> Dialect:
    """Whose form a file has. Raises PackError where it is no pack, or of a newer format."""
    value = document.value
    if not isinstance(value, dict):
        raise document.error((), "a pack holds fields: `format: 1`, `pack:`, `tasks:` (docs/packs.md)")
    if "format" not in value:
        return "aqbe"
    if value["format"] != FORMAT:
        raise document.error(("format",), f"format {value['format']!r} is not known; this stacktap reads {FORMAT}")
    return "stacktap"


@cache
def format_schema(dialect: Dialect) -> dict[str, Any]:
    """The JSON Schema of a dialect, as it is shipped."""
    loaded: dict[str, Any] = json.loads((Path(__file__).parent / SCHEMAS[dialect]).read_text(encoding="utf-8"))
    return loaded


@cache
def _validator(dialect: Dialect) -> Any:
    return Draft202012Validator(format_schema(dialect), registry=Registry())


def check_form(document: Document, dialect: Dialect) -> None:
    """Raise PackError, with its line, at the first place that breaks the dialect's schema."""
    errors: list[ValidationError] = list(_validator(dialect).iter_errors(document.value))
    if not errors:
        return
    error = min(errors, key=lambda one: (_weight(one), document.line(one.absolute_path)))
    while error.context and error.validator in ("oneOf", "anyOf"):
        inner = best_match(error.context)
        if inner is None or inner.validator == "required":
            break
        error = inner
    raise document.error(tuple(error.absolute_path), _said(error))


def _weight(error: ValidationError) -> int:
    """An unknown kind of evaluator explains the fields that are then out of place."""
    if list(error.absolute_path)[-1:] == ["eval"]:
        return 0
    return 2 if error.validator == "unevaluatedProperties" else 1


def _said(error: ValidationError) -> str:
    path = list(error.absolute_path)
    at = ".".join(str(part) for part in path)
    if path[-1:] == ["eval"]:
        return f"no evaluator {error.instance!r}; there are {', '.join(EVALUATORS)}"
    if error.validator in ("oneOf", "anyOf") and all(one.validator == "required" for one in error.context or ()):
        wanted = " or ".join(str(next(iter(one.validator_value))) for one in error.context or ())  # type: ignore[arg-type]
        return f"{at or 'the pack'}: one of these is needed, and one only: {wanted}"
    said = error.message.replace("Unevaluated properties are not allowed", "there is no such field")
    said = said.replace("Additional properties are not allowed", "there is no such field")
    return f"{at or 'the pack'}: {said[:300]}"


class Builder:
    """Builds the tasks of one file. `read_text` reads a skill's file; `warnings` are what AQBE's form lets pass."""

    def __init__(self, document: Document, dialect: Dialect, read_text: ReadText) -> None:
        self.document = document
        self.dialect = dialect
        self.read_text = read_text
        self.warnings: list[str] = []

    def tasks(self) -> Iterator[PackTask]:
        """Every task of the file, in its order. Raises PackError."""
        for at, row in enumerate(self.document.value["tasks"]):
            yield self._task(row, ("tasks", at))

    def _fail(self, where: Where, what: str) -> NoReturn:
        raise self.document.error(where, what)

    def _task(self, row: Mapping[str, Any], where: Where) -> PackTask:
        task = PackTask(
            id=str(row["id"]),
            category=row.get("category") or "",
            description=row.get("description") or "",
            messages=self._messages(row, where),
            tools=tuple({"type": "function", "function": dict(tool)} for tool in row.get("tools", ())),
            evaluators=tuple(self._evaluators(row, where)),
            samples=tuple(self._samples(row.get("samples", {}), (*where, "samples"))),
            labels=dict(row.get("labels", {})) if self.dialect == "stacktap" else {},
            max_tokens=row.get("max_tokens") if self.dialect == "stacktap" else None,
            file=self.document.name,
            line=self.document.line(where),
        )
        self._check_tools(task, row, where)
        self._check_names(task, where)
        return task

    def _messages(self, row: Mapping[str, Any], where: Where) -> tuple[Message, ...]:
        if self.dialect == "aqbe":
            messages = [Message("system", row["system"] or ""), Message("user", row["prompt"])]
        else:
            messages = [Message(one["role"], one["content"]) for one in row.get("messages", ())]
            if bool(messages) == ("prompt" in row):
                self._fail(where, f"task {row['id']}: give `prompt` or `messages`, one of the two")
            if "prompt" in row:
                messages = [Message("user", row["prompt"])]
            system = [row["system"]] if "system" in row else []
            if "skill" in row:
                system.append(self.read_text(row["skill"]))
            if system:
                messages.insert(0, Message("system", "\n\n".join(system)))
            if messages[-1].role != "user":
                self._fail((*where, "messages"), f"task {row['id']}: the last message is the user's")
        size = sum(len(message.content) for message in messages)
        if size > MOST_TEXT:
            self._fail(where, f"task {row['id']}: its messages hold {size} characters; they may hold {MOST_TEXT}")
        return tuple(messages)

    def _evaluators(self, row: Mapping[str, Any], where: Where) -> Iterator[Evaluator]:
        if "evaluators" not in row or self.dialect == "aqbe":
            yield self._evaluator(row, where)
            return
        for at, each in enumerate(row["evaluators"]):
            yield self._evaluator(each, (*where, "evaluators", at))

    def _evaluator(self, row: Mapping[str, Any], where: Where) -> Evaluator:
        kind = row.get("eval", "regex_checks")
        hard = bool(row.get("hard", False)) and self.dialect == "stacktap"
        points = row["points"] if "points" in row and self.dialect == "stacktap" else None
        if kind == "regex_checks":
            return RegexChecks(self._checks(row.get("checks") or (), where))
        if kind == "json_fields":
            fields = tuple(str(name) for name in row.get("expected_fields") or ())
            values = dict(row.get("expected_values") or {})
            if not fields and not values:
                self._nothing(where)
            return JsonFields(fields=fields, values=values, points=1 if points is None else points, hard=hard)
        more: dict[str, Any] = {"points": 2 if points is None else points, "hard": hard}
        if kind == "numeric":
            return self._numeric(row, where, more)
        expected = dict(row.get("expected") or {})
        rules = self._rules(row.get("rules", {}), expected, where)
        if kind == "schema":
            self._schema(row["schema"], (*where, "schema"))
            return SchemaCheck(schema=row["schema"], expected=expected, rules=rules, **more)
        optional = tuple(row.get("optional", ()))
        return Arguments(tool=row["tool"], expected=expected, rules=rules, optional=optional, **more)

    def _nothing(self, where: Where) -> None:
        """AQBE takes a task without checks and prints 0 %; here it has no score."""
        what = "the task has no check: it has no score"
        if self.dialect == "stacktap":
            self._fail(where, what)
        self.warnings.append(str(self.document.error(where, what)))

    def _checks(self, rows: Any, where: Where) -> tuple[Check, ...]:
        if not rows:
            self._nothing(where)
        checks = []
        for at, row in enumerate(rows):
            place = (*where, "checks", at)
            pattern = str(row.get("pattern", ""))
            words = row.get("max_words")
            name = str(row.get("name") or (pattern[:40] if words is None else f"max_words_{words}"))
            extra = {} if self.dialect == "aqbe" else {key: row.get(key, False) for key in _OWN_FIELDS}
            check = Check(
                name=name,
                pattern="" if words is not None else pattern,
                max_words=None if words is None else int(words),
                case_insensitive=row.get("case_insensitive", False),
                invert=row.get("invert", False),
                points=row.get("points", 2),
                line=self.document.line(place),
                **extra,
            )
            if words is None:
                self._pattern(check, (*place, "pattern"))
            checks.append(check)
        return tuple(checks)

    def _pattern(self, check: Check, where: Where) -> None:
        try:
            compiled(check.pattern)
        except PatternError as wrong:
            self._fail(where, f"check {check.name!r}: {wrong}")

    def _numeric(self, row: Mapping[str, Any], where: Where, more: Mapping[str, Any]) -> Numeric:
        expected = dict(row.get("expected") or {})
        if not expected:
            self._nothing(where)
        for key, value in expected.items():
            if key != "verdict" and number(value) is None:
                self._fail((*where, "expected", key), f"{key}: {value!r} is no number")
        return Numeric(expected=expected, tolerance=row.get("tolerance", 0.05), **more)

    def _rules(self, rows: Mapping[str, Any], expected: Mapping[str, Any], where: Where) -> dict[str, Rule]:
        rules = {}
        for name, row in rows.items():
            place = (*where, "rules", name)
            if name not in expected:
                self._fail(place, f"a rule for {name!r}, which is not among the expected values")
            rule = _rule(row)
            self._rule_fits(rule, expected[name], name, place)
            rules[name] = rule
        return rules

    def _rule_fits(self, rule: Rule, value: Any, name: str, where: Where) -> None:
        wrong = _misfit(rule, value)
        if wrong:
            self._fail(where, f"rule {rule.kind} for {name!r}: the expected value {value!r} {wrong}")
        if rule.values and rule.kind != "equiv":
            self._fail(where, f"rule {rule.kind} for {name!r}: `values` goes with equiv")

    def _schema(self, schema: Any, where: Where) -> None:
        try:
            check_schema(schema)
        except SchemaFaultError as wrong:
            self._fail((*where, *wrong.path), f"the schema: {wrong}")

    def _check_tools(self, task: PackTask, row: Mapping[str, Any], where: Where) -> None:
        names = [tool["function"]["name"] for tool in task.tools]
        for at, tool in enumerate(task.tools):
            if names.index(names[at]) != at:
                self._fail((*where, "tools", at), f"task {task.id}: the tool {names[at]!r} stands twice")
            self._schema(tool["function"]["parameters"], (*where, "tools", at, "parameters"))
        for evaluator in task.evaluators:
            if isinstance(evaluator, Arguments) and evaluator.tool not in names:
                there = ", ".join(names) or "none"
                self._fail(where, f"task {task.id}: the tool {evaluator.tool!r} is not offered; there are: {there}")

    def _samples(self, rows: Mapping[str, Any], where: Where) -> Iterator[Sample]:
        if self.dialect == "aqbe":
            return
        for key, passes in (("pass", True), ("fail", False)):
            for at, row in enumerate(rows.get(key, ())):
                plain = {"answer": row} if isinstance(row, str) else row
                if passes and plain.get("fails"):
                    self._fail((*where, key, at), "an answer that should pass fails no check")
                fails = tuple(plain.get("fails", ()))
                line = self.document.line((*where, key, at))
                yield Sample(answer=plain["answer"], passes=passes, fails=fails, line=line)

    def _check_names(self, task: PackTask, where: Where) -> None:
        names = [name for evaluator in task.evaluators for name in check_names(evaluator)]
        for name in names:
            if names.count(name) > 1 and self.dialect == "stacktap":
                self._fail(where, f"task {task.id}: the check {name!r} stands twice")
        for sample in task.samples:
            for name in sample.fails:
                if name not in names:
                    there = ", ".join(names)
                    raise PackError(
                        f"{self.document.name}, line {sample.line}: task {task.id} has no check {name!r}; "
                        f"it has: {there}"
                    )


_OWN_FIELDS = ("multiline", "dot_all", "fold", "hard")


def _misfit(rule: Rule, value: Any) -> str:
    """Why a rule cannot judge an expected value; empty where it can."""
    one_thing = "names one thing (an identifier, an address, a date, an amount); choose exact, number or text"
    misfits: dict[str, tuple[bool, str]] = {
        "number": (number(value) is None, "is no number"),
        "iso_minute": (iso_minute(value) is None, "is no date and time (2026-01-31T09:30)"),
        "set": (not isinstance(value, list), "is no list"),
        "text": (not isinstance(value, str), "is no text"),
        "semantic": (names_one_thing(value), one_thing),
        "equiv": (not rule.values, "has no further accepted `values`"),
    }
    fails, why = misfits.get(rule.kind, (False, ""))
    return why if fails else ""


def _rule(row: Any) -> Rule:
    plain: Mapping[str, Any] = {"rule": row} if isinstance(row, str) else row
    return Rule(plain["rule"], tuple(plain.get("values", ())), float(plain.get("threshold", 0.6)))


def check_names(evaluator: Evaluator) -> list[str]:
    """Names of an evaluator's checks, as results call them."""
    if isinstance(evaluator, RegexChecks):
        return [check.name for check in evaluator.checks]
    if isinstance(evaluator, JsonFields):
        return [f"field:{name}" for name in evaluator.fields] + [f"value:{name}" for name in evaluator.values]
    if isinstance(evaluator, Numeric):
        return list(evaluator.expected)
    if isinstance(evaluator, SchemaCheck):
        return ["parse", "schema", *(f"value:{name}" for name in evaluator.expected)]
    return ["call", "tool", "arguments", *(f"argument:{name}" for name in evaluator.expected)]
