"""The everyday schema of a tool's parameters, and arguments that surely fit it: a flat object of plain types.

A full validator takes most of the time that a call takes to judge, and nearly every call of a run fits. What is not
sure here is left to the validator: this says yes or "ask further", never no.
"""

from __future__ import annotations

from typing import Any

import msgspec

_TYPES: dict[str, frozenset[type]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "object": frozenset({dict}),
    "array": frozenset({list}),
    "null": frozenset({type(None)}),
}
_SILENT = frozenset({"title", "description", "default", "examples"})
"""Keywords that demand nothing (JSON Schema 2020-12, Validation, section 9)."""
_OF_OBJECT = _SILENT | {"type", "properties", "required", "additionalProperties"}
_OF_MEMBER = _SILENT | {"type"}


class PlainSchema(msgspec.Struct, frozen=True):
    """A flat object schema: the types each property may have, the names required, whether others are refused."""

    types: dict[str, frozenset[type]]
    required: tuple[str, ...]
    closed: bool

    def surely_fits(self, arguments: dict[str, Any]) -> bool:
        """Whether an object fits beyond doubt."""
        for name in self.required:
            if name not in arguments:
                return False
        for name, value in arguments.items():
            allowed = self.types.get(name)
            if self.closed if allowed is None else type(value) not in allowed:
                return False
        return True


def plain_schema(schema: dict[str, Any]) -> PlainSchema | None:
    """The plain form of a sound schema; None where it demands anything else."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    others = schema.get("additionalProperties", True)
    if not schema.keys() <= _OF_OBJECT or schema.get("type") != "object" or not isinstance(others, bool):
        return None
    types: dict[str, frozenset[type]] = {}
    for name, member in properties.items():
        kind = member.get("type") if isinstance(member, dict) and member.keys() <= _OF_MEMBER else None
        if not isinstance(kind, str):
            return None
        types[name] = _TYPES[kind]
    return PlainSchema(types, tuple(required), not others)
