"""The faults of checks on JSON values: `json_fields`, `numeric`, `schema`, `arguments`. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.packs.lint.judging import Unit
from harness.packs.lint.model import Code, Finding
from harness.packs.lint.variants import variants
from harness.packs.model import Arguments, JsonFields, Numeric, SchemaCheck
from harness.packs.schemas import SchemaFaultError, first_error

STAND_IN = "zq"


def value_faults(unit: Unit, _others: Sequence[Unit]) -> Iterator[Finding]:
    """Values that no answer can have, keys that the prompt does not name, and forms under which the verdict changes."""
    evaluator = unit.evaluator
    if isinstance(evaluator, JsonFields):
        yield from _fields(unit, evaluator)
    elif isinstance(evaluator, Numeric):
        yield from _numbers(unit, evaluator)
    elif isinstance(evaluator, SchemaCheck):
        yield from _schema(unit, evaluator)
    elif isinstance(evaluator, Arguments):
        yield from _arguments(unit, evaluator)


def _finding(unit: Unit, code: Code, reason: str, answers: Sequence[str] = (), kind: str = "") -> Finding:
    return Finding(
        code=code,
        task=unit.task.id,
        check=unit.name,
        reason=reason,
        file=unit.task.file,
        line=unit.line,
        kind=kind,
        answers=tuple(answers),
    )


def _tried(unit: Unit, answer: Any, why: str) -> Iterator[Finding]:
    """An answer that has what the check wants must pass, in every form."""
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    if unit.passes(text) is False:
        yield _finding(unit, "never_passes", why, [text])
        return
    for kind, changed in variants(text, unit.asked):
        if unit.passes(text) != unit.passes(changed):
            reason = "the same value in another form is judged otherwise"
            yield _finding(unit, "flips_on_format", reason, [text, changed], kind)


def _fields(unit: Unit, evaluator: JsonFields) -> Iterator[Finding]:
    answer = dict.fromkeys(evaluator.fields, STAND_IN) | evaluator.values
    yield from _tried(unit, answer, "an answer that has every expected field and value fails the check")
    kind, _, key = unit.name.partition(":")
    if (kind == "field" or key not in evaluator.fields) and not unit.asked.says(key):
        yield _finding(unit, "not_asked", f"it demands the key {key!r}, which the prompt does not name")


def _numbers(unit: Unit, evaluator: Numeric) -> Iterator[Finding]:
    wanted = evaluator.expected[unit.name]
    yield from _tried(unit, f"The answer is {wanted}.", "an answer that names the expected value fails the check")


def _schema(unit: Unit, evaluator: SchemaCheck) -> Iterator[Finding]:
    kind, _, name = unit.name.partition(":")
    if kind == "parse":
        return
    if kind == "schema":
        accepts = all(_valid(value, evaluator.schema) for value in (None, 1, "zq", [], {}, [STAND_IN], {"zq": 1}))
        if accepts:
            yield _finding(unit, "never_fails", "the schema accepts every JSON value")
        for key in evaluator.schema.get("required") or ():
            if isinstance(key, str) and not unit.asked.says(key):
                yield _finding(unit, "not_asked", f"it demands the key {key!r}, which the prompt does not name")
        return
    yield from _member(unit, name, evaluator.expected[name], evaluator.schema)
    if name not in (evaluator.schema.get("required") or ()) and not unit.asked.says(name):
        yield _finding(unit, "not_asked", f"it demands the key {name!r}, which the prompt does not name")


def _arguments(unit: Unit, evaluator: Arguments) -> Iterator[Finding]:
    schema: dict[str, Any] = next(
        (tool["function"]["parameters"] for tool in unit.task.tools if tool["function"]["name"] == evaluator.tool), {}
    )
    name = unit.name.partition(":")[2]
    if name:
        yield from _member(unit, name, evaluator.expected[name], schema)
    elif unit.name == "arguments":
        lacking = [key for key in schema.get("required") or () if key not in (*evaluator.expected, *evaluator.optional)]
        if lacking:
            reason = f"the tool requires {', '.join(map(str, lacking))}, which is neither expected nor optional"
            yield _finding(unit, "never_passes", reason)


def _member(unit: Unit, name: str, wanted: Any, schema: Mapping[str, Any]) -> Iterator[Finding]:
    """An expected value that its own schema refuses."""
    properties = schema.get("properties")
    own = properties.get(name) if isinstance(properties, dict) else None
    inside = {**own, "$defs": schema.get("$defs", {})} if isinstance(own, dict) else None
    if inside is not None and not _valid(wanted, inside):
        yield _finding(unit, "never_passes", f"the expected value {wanted!r} is not valid by the schema of {name!r}")
    elif inside is None and schema.get("additionalProperties") is False:
        yield _finding(unit, "never_passes", f"the schema allows no {name!r}, which is expected")


def _valid(value: Any, schema: Mapping[str, Any]) -> bool:
    try:
        return first_error(value, schema) is None
    except SchemaFaultError:
        return True
