"""What a case asks: its messages, and the tools in words where the model's template takes none. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.packs.model import PackTask

_CALL = "Write the one tool call that the request needs as JSON.\nRequest: "


def messages_of(task: PackTask, *, takes_tools: bool) -> list[dict[str, str]]:
    """The messages of a case. Where the template takes no tools, they stand above the last question."""
    messages = [{"role": one.role, "content": one.content} for one in task.messages]
    if task.tools and not takes_tools:
        last = messages[-1]
        last["content"] = f"{tool_lines(task.tools)}\n{_CALL}{last['content']}"
    return messages


def tool_lines(tools: Sequence[Mapping[str, Any]]) -> str:
    """Tools as the shape of their calls, one a line: `{"name": "f", "arguments": {"x": integer}}`."""
    lines = []
    for tool in tools:
        function = tool["function"]
        members = function["parameters"].get("properties", {})
        arguments = ", ".join(f'"{name}": {_shape(schema)}' for name, schema in members.items())
        lines.append(f'{{"name": "{function["name"]}", "arguments": {{{arguments}}}}}')
    return "\n".join(["Tools:", *lines])


def _shape(schema: Any) -> str:
    values = schema.get("enum") if isinstance(schema, Mapping) else None
    if values:
        return " or ".join(f'"{value}"' for value in values)
    return str(schema.get("type", "any")) if isinstance(schema, Mapping) else "any"
