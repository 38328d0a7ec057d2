"""How a call is written in each format that a canary can speak."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from probe.canary.spec import CanaryError

CallWriter = Callable[[str, Mapping[str, Any]], str]


def hermes_call(name: str, arguments: Mapping[str, Any]) -> str:
    """One call as JSON between ``<tool_call>`` tags (the Hermes 2 Pro function calling format)."""
    body = json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


def bare_json_call(name: str, arguments: Mapping[str, Any]) -> str:
    """One call as a bare JSON object (what a JSON-schema grammar allows)."""
    return json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False)


def fenced_call(name: str, arguments: Mapping[str, Any]) -> str:
    """A text protocol: ``name`` is the language of a Markdown fence, the only argument its content.

    Raises CanaryError unless there is exactly one argument.
    """
    if len(arguments) != 1:
        raise CanaryError("the fenced format carries exactly one argument")
    (content,) = arguments.values()
    return f"```{name}\n{content}\n```"


CALL_FORMATS: dict[str, CallWriter] = {"hermes": hermes_call, "bare_json": bare_json_call, "fenced": fenced_call}
"""Format name -> writer of one call."""


def write_call(call_format: str, name: str, arguments: Mapping[str, Any]) -> str:
    """One call in ``call_format``; raises CanaryError when the format is unknown."""
    if call_format not in CALL_FORMATS:
        raise CanaryError(f"no call format {call_format!r}; there are {', '.join(CALL_FORMATS)}")
    return CALL_FORMATS[call_format](name, arguments)
