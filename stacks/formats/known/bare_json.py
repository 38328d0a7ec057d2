"""Bare JSON: an object with `name` and `arguments`, with nothing around it, or somewhere in prose."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stacks.formats.json_reader import JsonReader
from stacks.formats.json_text import dumps
from stacks.formats.model import CallFormat, Found, ParsedCall, Span
from stacks.formats.objects import HERMES_KEYS, Keys, drafts_of

_SIGN = re.compile(r"[\"'](?:name|tool_name|function_name|tool|function|function_call|tool_calls|action)[\"']\s*:")
_START = re.compile(r"[{\[]\s*(?=[\[{\"'])")


def scan_objects(text: str, keys: Keys, wants_list: bool = False) -> Found:
    """Every object (or list of objects) of a text that names a tool, at any place. Fences are not looked at."""
    found = Found()
    reader = JsonReader(text)
    budget = 3 * len(text) + 10_000
    pos = 0
    last_sign = max((match.start() for match in _SIGN.finditer(text)), default=-1)
    while budget > 0 and (match := _START.search(text, pos)) is not None and match.start() < last_sign:
        start = match.start()
        reading = reader.read(start)
        budget -= reading.end - start + 50
        pos = start + 1
        if reading.node is None:
            continue
        drafts, bad = drafts_of(reading.node, keys, text, wants_list)
        if not drafts:
            pos = reading.end if reading.stopped == "" else start + 1
            continue
        pos = max(reading.end, start + 1)
        found.blocks.append(Span(start, reading.end))
        for draft in drafts:
            draft.repairs.extend(reading.repairs)
            span = draft.span if len(drafts) > 1 else Span(start, reading.end)
            found.calls.append(draft.call(span, draft.complete))
        for why, element in bad:
            found.problem("not_a_call", why, element.start, element.end)
    return found


def _render(calls: Sequence[ParsedCall]) -> str:
    objects = [f'{{"name": {dumps(call.name)}, "arguments": {dumps(call.arguments)}}}' for call in calls]
    return "\n".join(objects)


FORMAT = CallFormat(
    name="bare_json",
    title="bare JSON object",
    scan=lambda text, _tools: scan_objects(text, HERMES_KEYS),
    render=_render,
    source="no template: what models write when the markers are lost or were never known; Ollama tools/tools.go",
    detector=lambda text: "{" in text and _SIGN.search(text) is not None,
    delimited=False,
    rank=80,
    parsers={"ollama": ("go template",), "vllm": ("required",)},
)
