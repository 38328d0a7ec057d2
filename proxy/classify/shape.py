"""The outer shape of a request: a list where a list belongs, objects in it, and something to answer.

Servers that do not check it fail with an exception of their programming language, from whatever line came first; the
request says what such an exception does not.
"""

from __future__ import annotations

import re

from stacks.strictjson import Path, read

Wrong = tuple[Path, str]

EXCEPTION = re.compile(
    r"object has no (?:attribute|element|len)|object is not (?:iterable|subscriptable|callable)|"
    r"indices must be|can only concatenate|unhashable type|index out of range|\bkeyerror\b|\A\W*'\w+'\W*\Z|"
    r"not supported between|unsupported operand|values to unpack|argument of type '|"
    r"object does not support|must be (?:a )?str(?:ing)?, not|expected (?:str|bytes)\w* instance|is undefined\s*\Z|"
    r"\b(?:attribute|type|index|key|value|undefined)error\b|cannot read propert|is not a function",
)
"""What programs say (Python, Jinja and JavaScript, in that order; here in small letters) that took a value for another
than it is."""


def misshapen(body: bytes) -> Wrong | None:
    """The first value of a request's body that is not of the type that every dialect gives it: its path and what is
    wrong; None where the shape is right or the body is not JSON."""
    reading = read(body)
    if not reading.valid:
        return None
    request = reading.value
    if not isinstance(request, dict):
        return (), "the body is no JSON object"
    return _messages(request) or _tools(request) or _others(request)


def _messages(request: dict[str, object]) -> Wrong | None:
    if "messages" not in request:
        return None
    messages = request["messages"]
    if not isinstance(messages, list):
        return ("messages",), f"messages is {_kind(messages)}; it has to be a list"
    if not messages:
        return ("messages",), "the list of messages is empty"
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            return ("messages", index), f"message {index} is {_kind(message)}; it has to be an object"
        calls = message.get("tool_calls")
        if calls is not None and not (isinstance(calls, list) and all(isinstance(call, dict) for call in calls)):
            return ("messages", index, "tool_calls"), f"tool_calls of message {index} is no list of objects"
    return None


def _tools(request: dict[str, object]) -> Wrong | None:
    tools = request.get("tools")
    if tools is None:
        return None
    if not isinstance(tools, list):
        return ("tools",), f"tools is {_kind(tools)}; it has to be a list"
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict):
            return ("tools", index), f"tool {index} is {_kind(tool)}; it has to be an object"
        if "function" in tool and not isinstance(tool["function"], dict):
            return ("tools", index, "function"), f"function of tool {index} is {_kind(tool['function'])}, no object"
    return None


_OBJECTS = ("response_format", "stream_options", "options", "chat_template_kwargs", "extra_body", "logit_bias")


def _others(request: dict[str, object]) -> Wrong | None:
    for name in _OBJECTS:
        value = request.get(name)
        if value is not None and not isinstance(value, dict):
            return (name,), f"{name} is {_kind(value)}; it has to be an object"
    return None


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, (int, float)):
        return "a number"
    return "an object" if isinstance(value, dict) else "a list"
