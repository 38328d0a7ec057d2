"""Does a call fit what was offered? Names against the offer, arguments against the tool's schema.

A tool without a schema accepts anything. A schema that is itself broken is the request's fault and never an error
here: the call counts as fitting and the schema's own fault is reported beside it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, Protocol

import jsonschema
import msgspec
import orjson
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from referencing import Registry

from stacks.formats.json_nodes import too_deep
from stacks.formats.json_text import dumps
from stacks.formats.plain_schema import PlainSchema, plain_schema
from stacks.formats.tools import offered_tools

Verdict = Literal["ok", "unknown_tool", "invalid_arguments"]


class HasCall(Protocol):
    """Anything with a tool name and its arguments."""

    @property
    def name(self) -> str:
        """The tool's name."""

    @property
    def arguments(self) -> Any:
        """The arguments."""


class CallCheck(msgspec.Struct, frozen=True):
    """Verdict on one call. path: where in the arguments (JSON path, `$` the whole). keyword: the schema keyword that
    failed. schema_fault: why the offered schema could not be used, empty when it could."""

    verdict: Verdict
    reason: str = ""
    path: str = ""
    keyword: str = ""
    schema_fault: str = ""

    @property
    def ok(self) -> bool:
        """Whether the call fits."""
        return self.verdict == "ok"


class _Compiled(msgspec.Struct, frozen=True):
    validator: Any
    fault: str
    plain: PlainSchema | None = None
    may_warn: bool = False
    """Whether checking may warn: patterns (of regular expressions) and references do. Turning warnings off costs as
    much as most checks."""


def _compile(schema: Any, may_warn: bool) -> _Compiled:
    if schema is None or schema is True:
        return _Compiled(None, "")
    if not isinstance(schema, dict):
        return _Compiled(None, f"the schema is a {type(schema).__name__}, not an object")
    if not schema:
        return _Compiled(None, "")
    try:
        kind = validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        return _Compiled(kind(schema, registry=Registry()), "", plain_schema(schema), may_warn)
    except SchemaError as error:
        return _Compiled(None, f"{_path(error.absolute_path)}: {error.message[:300]}")
    except Exception as error:
        return _Compiled(None, f"{type(error).__name__}: {str(error)[:300]}")


@lru_cache(maxsize=512)
def _compile_text(text: bytes) -> _Compiled:
    """By its text: the requests of a run offer the same tools again and again."""
    return _compile(json.loads(text), may_warn=b"pattern" in text or b"Ref" in text or b"$ref" in text)


_BY_IDENTITY: dict[int, tuple[Any, _Compiled]] = {}


def _compiled(schema: Any) -> _Compiled:
    """The validator of a schema, cached by identity first (requests of a run share theirs) and by text second."""
    known = _BY_IDENTITY.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    try:
        if isinstance(schema, Mapping) and too_deep(schema):
            compiled = _Compiled(None, "the schema nests too deep")
        else:
            compiled = _compile_text(_text_of(schema))
    except (TypeError, ValueError, RecursionError) as error:
        compiled = _Compiled(None, f"{type(error).__name__}: {str(error)[:300]}")
    if len(_BY_IDENTITY) >= 512:
        _BY_IDENTITY.clear()
    _BY_IDENTITY[id(schema)] = (schema, compiled)
    return compiled


def _text_of(schema: Any) -> bytes:
    try:
        return orjson.dumps(schema)
    except TypeError:  # lone surrogates, integers beyond 64 bits
        return dumps(schema).encode("utf-8", "surrogatepass")


def _path(parts: Any) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def check_arguments(arguments: Any, schema: Any) -> CallCheck:
    """Arguments against one parameter schema. Arguments must be an object, whatever the schema says."""
    if not isinstance(arguments, dict):
        kind = "null" if arguments is None else type(arguments).__name__
        return CallCheck("invalid_arguments", f"the arguments are no object but {kind}", "$", "type")
    compiled = _compiled(schema)
    if compiled.validator is None:
        return CallCheck("ok", schema_fault=compiled.fault)
    if compiled.plain is not None and compiled.plain.surely_fits(arguments) and not too_deep(arguments):
        return CallCheck("ok")
    return _checked(compiled, arguments, "the arguments nest too deep")


def check_value(value: Any, schema: Any) -> CallCheck:
    """Any JSON value against a schema, with the same verdicts: an answer that is no call has no arguments."""
    compiled = _compiled(schema)
    if compiled.validator is None:
        return CallCheck("ok", schema_fault=compiled.fault)
    return _checked(compiled, value, "the value nests too deep")


def _checked(compiled: _Compiled, arguments: Any, deep: str) -> CallCheck:
    if too_deep(arguments):
        return CallCheck("invalid_arguments", deep, "$", "depth")
    try:
        error = _first_error(compiled, arguments)
    except Exception as fault:
        return CallCheck("ok", schema_fault=f"{type(fault).__name__}: {str(fault)[:300]}")
    if error is None:
        return CallCheck("ok")
    return CallCheck("invalid_arguments", error.message[:500], _path(error.absolute_path), str(error.validator))


def _first_error(compiled: _Compiled, arguments: Any) -> Any:
    if not compiled.may_warn:
        return next(compiled.validator.iter_errors(arguments), None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return next(compiled.validator.iter_errors(arguments), None)


def check_call(call: HasCall, tools: Any) -> CallCheck:
    """One call against what was offered (anything that `offered_tools` takes; None: any name is fine)."""
    offered = offered_tools(tools)
    if not offered.offers(call.name):
        names = ", ".join(sorted(offered.names)[:20]) or "nothing"
        return CallCheck("unknown_tool", f"{call.name!r} was not offered; offered: {names}")
    return check_arguments(call.arguments, offered.schema(call.name))
