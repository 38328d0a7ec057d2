"""How a call is written in each format that a canary can speak: every format of ``stacks.formats``, and text protocols.

The writers of ``stacks.formats`` are the inverses of its parsers, so that what a canary writes in a format is what a
parser that claims the format must read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from probe.canary.spec import CanaryError
from stacks.formats import ParsedCall, Span, format_named, formats

CallWriter = Callable[[str, Mapping[str, Any]], str]
Call = tuple[str, Mapping[str, Any]]


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
"""Writers of one call that the self-driving canaries have of their own."""


def format_names() -> tuple[str, ...]:
    """Every call format that a canary can speak, by name."""
    return tuple(sorted(entry.name for entry in formats()))


def write_call(call_format: str, name: str, arguments: Mapping[str, Any]) -> str:
    """One call in ``call_format``; raises CanaryError when the format is unknown."""
    if call_format in CALL_FORMATS:
        return CALL_FORMATS[call_format](name, arguments)
    return write_calls(call_format, [(name, arguments)])


def write_calls(call_format: str, calls: Sequence[Call]) -> str:
    """The calls of one turn in a format of ``stacks.formats``; raises CanaryError when there is none of that name."""
    try:
        entry = format_named(call_format)
    except KeyError:
        known = ", ".join(sorted({*format_names(), *CALL_FORMATS}))
        raise CanaryError(f"no call format {call_format!r}; there are {known}") from None
    return entry.render([_as_parsed(name, arguments) for name, arguments in calls])


def _as_parsed(name: str, arguments: Mapping[str, Any]) -> ParsedCall:
    nowhere = Span(0, 0)
    return ParsedCall(name, dict(arguments), "", nowhere, nowhere, nowhere)
