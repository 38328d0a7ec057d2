"""JSON Schemas of packs: no reference is ever fetched, and neither a pattern nor a reference can run for ever."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import jsonschema
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from harness.packs.patterns import PatternError, compiled, found
from stacks.formats.json_nodes import too_deep

MOST_STEPS = 20_000
"""Keywords that follow another schema, in one validation."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_BY_PATTERN = ("patternProperties", "unevaluatedProperties")
_left: ContextVar[int] = ContextVar("left")


class SchemaFaultError(Exception):
    """A schema cannot be used; `path` says where in it."""

    def __init__(self, what: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(what)
        self.path = path


def check_schema(schema: Any) -> None:
    """Raise SchemaFaultError where a schema is none, points outside of itself, or holds a broken pattern."""
    if not isinstance(schema, dict):
        raise SchemaFaultError("a schema is an object")
    if too_deep(schema):
        raise SchemaFaultError("the schema nests too deeply")
    for path, key, value in _walk(schema):
        _check_keyword(path, key, value)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as wrong:
        raise SchemaFaultError(wrong.message[:300], tuple(wrong.absolute_path)) from None
    except RecursionError:
        raise SchemaFaultError("the schema nests too deeply") from None
    first_error(None, schema)


def _walk(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str, Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield path, str(key), each
            if key not in ("const", "enum", "default", "examples"):
                yield from _walk(each, (*path, key))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _walk(each, (*path, at))


def _check_keyword(path: tuple[str | int, ...], key: str, value: Any) -> None:
    inside_names = bool(path) and path[-1] in ("properties", "$defs", "definitions", "dependentSchemas")
    if inside_names:
        return
    if key in _REFERENCES and not (isinstance(value, str) and value.startswith("#")):
        raise SchemaFaultError(
            f"{key}: {value!r} points outside of the schema; nothing is ever fetched: put it under $defs, and refer "
            'to it as "#/$defs/NAME"',
            (*path, key),
        )
    if key in ("$id", "$anchor", "$dynamicAnchor"):
        raise SchemaFaultError(f"{key} is not read: a schema of a pack refers to its own parts only", (*path, key))
    if key in _BY_PATTERN:
        raise SchemaFaultError(f"{key} is not read in packs", (*path, key))
    if key == "pattern":
        try:
            compiled(str(value))
        except PatternError as wrong:
            raise SchemaFaultError(str(wrong), (*path, key)) from None


def _pattern(_validator: Any, pattern: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and found(compiled(pattern), instance) is None:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _counted(keyword: str) -> Any:
    follow = Draft202012Validator.VALIDATORS[keyword]

    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        left = _left.get(MOST_STEPS)
        if left <= 0:
            raise SchemaFaultError("checking an answer takes too many steps: its references multiply")
        _left.set(left - 1)
        yield from follow(validator, value, instance, schema) or ()

    return counted


_FOLLOWING = ("$ref", "allOf", "anyOf", "oneOf", "not", "if", "items", "properties", "additionalProperties", "contains")
_Bounded: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {"pattern": _pattern, **{keyword: _counted(keyword) for keyword in _FOLLOWING}}
)


def first_error(value: Any, schema: Mapping[str, Any]) -> tuple[str, str] | None:
    """What in a value breaks a schema: its path (`$.a[0]`) and why; None where it is valid.

    Raises SchemaFaultError where the schema cannot be applied: the pack's fault, not the answer's.
    """
    if too_deep(value):
        return "$", "the value nests too deeply"
    token = _left.set(MOST_STEPS)
    try:
        error = next(_Bounded(schema, registry=Registry()).iter_errors(value), None)
    except (Unresolvable, RecursionError, PatternError) as wrong:
        said = str(wrong) if isinstance(wrong, PatternError) else f"a reference leads nowhere or in a circle: {wrong}"
        raise SchemaFaultError(said[:300]) from None
    finally:
        _left.reset(token)
    if error is None:
        return None
    path = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    return path, error.message[:300]
