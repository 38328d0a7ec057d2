"""JSON Schemas of tools, made plain: their variants without references, their properties, types and choices.

Source: JSON Schema 2020-12 (and what older drafts call the same). References outside the schema are not followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEEPEST = 12
_MOST_VARIANTS = 24

Schema = Mapping[str, Any]
_PYTHON_TYPES = {
    "str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object",
    "STRING": "string", "INTEGER": "integer", "NUMBER": "number", "BOOLEAN": "boolean", "ARRAY": "array",
    "OBJECT": "object", "None": "null",
}  # fmt: skip
"""Names of types that agents use instead of JSON Schema's: Python's, and those of the Gemini API."""


def variants(schema: object) -> list[Schema]:
    """The object schemas that ``schema`` allows: references resolved, ``allOf`` merged, ``anyOf``/``oneOf`` each."""
    if not isinstance(schema, Mapping):
        return []
    return [found for found in alternatives(schema, schema) if _is_object(found)][:_MOST_VARIANTS]


def properties_of(variant: Schema) -> Mapping[str, Any]:
    """The properties of an object schema."""
    found = variant.get("properties")
    return found if isinstance(found, Mapping) else {}


def required_of(variant: Schema) -> list[str]:
    """The names that an object schema requires."""
    found = variant.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def in_order(arguments: Mapping[str, Any], variant: Schema) -> dict[str, Any]:
    """Arguments in the order of the schema's properties: llama-server's grammar admits no other
    (``common/json-schema-to-grammar.cpp``), and rewrites what comes out of turn."""
    listed = [name for name in properties_of(variant) if name in arguments]
    return {name: arguments[name] for name in dict.fromkeys([*listed, *arguments])}


def choices_of(schema: object, root: Schema) -> list[Any]:
    """The values of an ``enum`` or ``const`` that a schema (or its alternatives) is limited to; empty where free."""
    found: list[Any] = []
    for one in alternatives(schema, root) if isinstance(schema, Mapping) else ():
        if "const" in one:
            found.append(one["const"])
        elif isinstance(one.get("enum"), list):
            found += one["enum"]
        elif "null" not in types_of(one):
            return []
    return found


def types_of(schema: Schema) -> frozenset[str]:
    """The JSON types a schema names; where it names none, what its keywords speak of."""
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({_PYTHON_TYPES.get(named, named)})
    if isinstance(named, list):
        return frozenset(_PYTHON_TYPES.get(item, item) for item in named if isinstance(item, str))
    if "properties" in schema:
        return frozenset({"object"})
    if "items" in schema or "prefixItems" in schema:
        return frozenset({"array"})
    return frozenset()


def _is_object(schema: Schema) -> bool:
    kinds = types_of(schema)
    return "object" in kinds or not kinds


def alternatives(schema: object, root: Schema, depth: int = 0) -> list[Schema]:
    """``schema`` as plain schemas: references resolved, ``allOf`` merged, one for each of ``anyOf``/``oneOf``."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return []
    base = {key: value for key, value in schema.items() if key not in ("$ref", "allOf", "anyOf", "oneOf")}
    found: list[Schema] = [base]
    if isinstance(schema.get("$ref"), str):
        found = _joined(found, alternatives(_referred(schema["$ref"], root), root, depth + 1))
    for part in schema["allOf"] if isinstance(schema.get("allOf"), list) else ():
        found = _joined(found, alternatives(part, root, depth + 1))
    for word in ("anyOf", "oneOf"):
        branches = schema.get(word)
        if isinstance(branches, list) and branches:
            each = [one for part in branches[:_MOST_VARIANTS] for one in alternatives(part, root, depth + 1)]
            found = _joined(found, each)
    return found[:_MOST_VARIANTS]


def _joined(left: list[Schema], right: list[Schema]) -> list[Schema]:
    return [_merged(one, other) for one in left for other in right][:_MOST_VARIANTS] if right else left


def _merged(one: Schema, other: Schema) -> Schema:
    both = {**one, **other}
    if "description" in one:
        both["description"] = one["description"]
    if properties_of(one) or properties_of(other):
        both["properties"] = {**properties_of(one), **properties_of(other)}
    needed = dict.fromkeys([*required_of(one), *required_of(other)])
    if needed:
        both["required"] = list(needed)
    return both


def _referred(reference: str, root: Schema) -> object:
    """What a local reference (``#/$defs/Name``) points at; None where it points nowhere."""
    if not reference.startswith("#"):
        return None
    found: Any = root
    for part in reference[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found
