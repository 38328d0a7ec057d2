"""A tool as a task offers it, and what calling it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Name, one-line description, and JSON Schema of the arguments (an object)."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})

    def as_function(self) -> dict[str, Any]:
        """The entry of a `tools` list, in the form of chat completions (Ollama's own API takes the same)."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answers: the text for the model, whether it failed, and whether the world is another one since."""

    text: str
    failed: bool = False
    changed: bool = False


def arguments(required: Mapping[str, str], optional: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A JSON Schema of arguments that are all strings: name -> description."""
    optional = optional or {}
    properties = {name: {"type": "string", "description": said} for name, said in {**required, **optional}.items()}
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
