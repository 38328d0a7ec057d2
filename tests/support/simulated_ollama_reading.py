"""What a SIMULATED Ollama makes of a canary's text, by the way to the model: calls, content, nothing, an error. Pure.

Written after the captures (`tests/data/captures/ollama.jsonl.zst`) and checked against them by
`tests/proxy/replay/test_simulated_ollama.py`; what the captures do not show, or what hangs on a grammar (a malformed
call in native mode is rewritten while it is written), is refused (`NotSimulatedError`) instead of made up.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from stacks.formats import check_call, format_named, offered_tools
from stacks.serving.ollama_modes import OllamaMode

Call = tuple[str, dict[str, Any]]
_TAG = "<tool_call>"
_PARSERS = {"qwen3-coder": "qwen_xml", "qwen3": "hermes"}
"""Built-in parsers that are simulated, and the call format each reads between `<tool_call>` tags."""


class NotSimulatedError(Exception):
    """The simulated server does not know what a real one does with this."""


@dataclass(frozen=True)
class Reading:
    """What comes of one generation. `error`: the parser's, after `content` was already sent (or before anything)."""

    content: str = ""
    calls: list[Call] = field(default_factory=list)
    error: str = ""


def read(mode: OllamaMode, text: str, tools: list[dict[str, Any]]) -> Reading:
    """What the client gets of `text` in a mode, where the request offers these tools."""
    if mode.way == "builtin":
        return _built_in(mode.parser, text)
    if not tools:
        return Reading(text)
    if mode.way == "native":
        return _native(text, tools)
    return _generic(text, mode.tag or "{", [str(tool["function"]["name"]) for tool in tools])


def _native(text: str, tools: list[dict[str, Any]]) -> Reading:
    """llama.cpp's parser: prose before a call stays, nothing is generated behind the last one."""
    start = text.find(_TAG)
    if start < 0:
        return Reading(text)
    found = format_named("hermes").parse(text)
    offered = offered_tools(tools)
    good = found.calls and not found.problems and all(check_call(call, offered).ok for call in found.calls)
    if not good or text.count(_TAG) != len(found.calls):
        raise NotSimulatedError("in native mode a grammar rewrites a call that is malformed or not offered")
    return Reading(text[:start], [(call.name, dict(call.arguments)) for call in found.calls])


def _built_in(parser: str, text: str) -> Reading:
    """A built-in parser: what stands before the tag is content without the blanks at its end; between the tags stands
    its own format, or it fails with `EOF`; a call that is never closed is kept and never released."""
    if parser not in _PARSERS:
        raise NotSimulatedError(f"the built-in parser {parser}")
    start = text.find(_TAG)
    if start < 0:
        return Reading(text)
    content = text[:start].rstrip()
    if "</tool_call>" not in text[start:]:
        return Reading(content)
    found = format_named(_PARSERS[parser]).parse(text)
    if not found.calls:
        return Reading(content, error="EOF" if parser == "qwen3-coder" else "failed to parse JSON")
    return Reading(content, [(call.name, dict(call.arguments)) for call in found.calls])


def _generic(text: str, tag: str, tools: list[str]) -> Reading:
    """Ollama's generic parser (`tools/tools.go`): what follows the tag is searched for an offered name and a JSON
    object. After a tag that is no brace nothing is released that is no call."""
    start = text.find(tag)
    brace = tag in "{["
    if start < 0 or (brace and text[:start].strip()):
        return Reading(text)
    content, rest, calls = text[:start], text[start + (0 if brace else len(tag)) :], []
    while (found := _call_in(rest, tools)) is not None:
        calls.append(found[0])
        rest = rest[found[1] :]
    return Reading(text) if brace and not calls else Reading(content, calls)


def _call_in(text: str, tools: list[str]) -> tuple[Call, int] | None:
    """The first call: the first offered name in the text, the first object that balances, and where that ends."""
    named = [(text.find(name), -len(name), name) for name in tools if name in text]
    start = text.find("{")
    if not named or start < 0:
        return None
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        return None
    arguments = _arguments(value)
    return None if arguments is None else ((min(named)[2], arguments), end)


def _arguments(value: Any) -> dict[str, Any] | None:
    """Of an object with a name its `arguments` or `parameters` (an object, or a text that holds one); of one without a
    name those of an object inside it, else the object itself."""
    if not isinstance(value, dict):
        return None
    if "name" in value:
        found = value.get("arguments", value.get("parameters"))
        if isinstance(found, str):
            try:
                found = json.loads(found)
            except ValueError:
                return None
        return found if isinstance(found, dict) else None
    inner = [_arguments(item) for item in value.values() if isinstance(item, dict)]
    return next((item for item in inner if item is not None), value)
