"""Requests as long as an agent's (30 tools, 20 messages) that a real server refuses, or answers wrongly."""

from __future__ import annotations

import json
from typing import Any


def long_request(**more: Any) -> dict[str, Any]:
    """30 tools, one of them `get_weather`, and 20 messages with eight calls and their results."""
    body = {"messages": _messages(), "tools": _tools(), "stream": True, "stream_options": {"include_usage": True}}
    return {"model": "m", **body, "temperature": 0, "max_tokens": 64, "top_p": 0.9, "user": "someone", **more}


def _tools() -> list[dict[str, Any]]:
    tools = []
    for number in range(30):
        properties = {
            f"field_{field}": {"type": "string", "description": f"What tool {number} wants as its field {field}."}
            for field in range(4)
        }
        schema = {"type": "object", "properties": properties, "required": ["field_0"]}
        function = {"name": f"tool_{number}", "description": f"Does thing {number}. " * 6, "parameters": schema}
        tools.append({"type": "function", "function": function})
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools[11]["function"] = {"name": "get_weather", "description": "Weather of a city.", "parameters": city}
    return tools


def _messages() -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a careful agent. " * 40},
        {"role": "user", "content": "Look around in /home/maria/plans, then tell me the weather."},
    ]
    for number in range(1, 9):
        function = {"name": f"tool_{number}", "arguments": json.dumps({"field_0": f"value {number}"})}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        result = f"result {number}: " + "a line of output of a command\n" * 8
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": result})
    return [
        *messages,
        {"role": "assistant", "content": "I looked around."},
        {"role": "user", "content": "The weather, please. [[good]]"},
    ]


def with_half_arguments() -> dict[str, Any]:
    """A call in the history whose arguments were cut."""
    body = long_request()
    body["messages"][8]["tool_calls"][0]["function"]["arguments"] = '{"field_0": "val'
    return body


def with_a_nameless_tool() -> dict[str, Any]:
    """A tool without a name."""
    body = long_request()
    body["tools"][17] = {"type": "function", "function": {"description": "nameless"}}
    return body


def with_a_reference_to_nothing() -> dict[str, Any]:
    """A schema with a `$ref` that leads nowhere."""
    body = long_request()
    body["tools"][17]["function"]["parameters"]["properties"]["field_2"] = {"$ref": "#/$defs/nothing"}
    return body
