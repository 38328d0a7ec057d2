"""The tools that a request offered, in whatever dialect it offered them.

Accepts OpenAI chat tools (`{"type": "function", "function": {...}}`), Responses tools (flat), Anthropic
tools (`input_schema`), legacy `functions`, a mapping of name -> schema, or bare names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

_MISSING: Any = object()


class OfferedTools(msgspec.Struct, frozen=True):
    """Names and parameter schemas offered. `known` is false when nobody said what was offered."""

    schemas: Mapping[str, Any] = msgspec.field(default_factory=dict)
    known: bool = False

    @property
    def names(self) -> frozenset[str]:
        """Every offered name."""
        return frozenset(self.schemas)

    def offers(self, name: str) -> bool:
        """Whether `name` was offered; true for any name when the offer is not known."""
        return not self.known or name in self.schemas

    def schema(self, name: str) -> Any:
        """The parameter schema of a tool as it was sent; None where there is none."""
        return self.schemas.get(name)

    def parameter_types(self, name: str, parameter: str) -> frozenset[str] | None:
        """JSON types that the schema allows for one parameter; None when the schema does not say."""
        schema = self.schemas.get(name)
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        if not isinstance(properties, Mapping) or parameter not in properties:
            return None
        return _types_of(properties[parameter], 0)


NO_TOOLS = OfferedTools()

_TYPE_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def _types_of(schema: Any, depth: int) -> frozenset[str] | None:
    """Types named by `type`, `enum`, `const`, `anyOf`, `oneOf` (JSON Schema 2020-12, 6.1 and 10.2)."""
    if not isinstance(schema, Mapping) or depth > 8:
        return None
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(item for item in named if isinstance(item, str)) or None
    values = schema.get("enum")
    if "const" in schema:
        values = [schema["const"]]
    if isinstance(values, list) and values:
        return frozenset("null" if value is None else _TYPE_NAMES.get(type(value), "string") for value in values)
    for word in ("anyOf", "oneOf"):
        choices = schema.get(word)
        if isinstance(choices, list) and choices:
            parts = [_types_of(choice, depth + 1) for choice in choices]
            return None if None in parts else frozenset().union(*(part for part in parts if part))
    return None


def _one_tool(tool: Any) -> tuple[str, Any] | None:
    if isinstance(tool, str):
        return tool, None
    if not isinstance(tool, (dict, Mapping)):  # a dict is told first: to ask for a mapping is slow
        return None
    inner = tool.get("function")
    if isinstance(inner, (dict, Mapping)):
        tool = inner
    name = tool.get("name")
    if not isinstance(name, str):
        return None
    for key in ("parameters", "input_schema", "inputSchema", "schema"):
        if key in tool:
            return name, tool[key]
    return name, None


def offered_tools(offered: Any) -> OfferedTools:
    """Normalise what a request offered. None means not known; an empty list means known and empty."""
    if offered is None:
        return NO_TOOLS
    if isinstance(offered, OfferedTools):
        return offered
    if isinstance(offered, list):
        return OfferedTools(dict(pair for tool in offered if (pair := _one_tool(tool)) is not None), True)
    if isinstance(offered, Mapping) and "name" not in offered and "function" not in offered:
        return OfferedTools({name: schema for name, schema in offered.items() if isinstance(name, str)}, True)
    listed = [offered] if isinstance(offered, Mapping | str) or not isinstance(offered, Iterable) else offered
    return OfferedTools(dict(pair for tool in listed if (pair := _one_tool(tool)) is not None), True)
