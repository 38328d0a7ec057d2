"""Bare JSON: an object with `name` and `arguments`, with nothing around it, or somewhere in prose."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from stacks.formats.json_nodes import Reading
from stacks.formats.json_reader import JsonReader
from stacks.formats.json_text import dumps
from stacks.formats.model import MAX_FINDINGS, CallFormat, Found, ParsedCall, Span
from stacks.formats.objects import HERMES_KEYS, Keys, drafts_of
from stacks.formats.tools import OfferedTools

_SIGN = re.compile(r"[\"'](?:name|tool_name|function_name|tool|function|function_call|tool_calls|action)[\"']\s*:")
_MAX_RETRIES = 16
_MAX_KEPT = 4_000_000
_START = re.compile(r"[{\[]\s*(?=[\[{\"'])")


class _Objects(NamedTuple):
    """The values of a text that may be calls, in order, for the text they were read from."""

    text: str
    readings: tuple[tuple[int, Reading], ...]


_LAST = [_Objects("", ())]


def _objects(text: str) -> tuple[tuple[int, Reading], ...]:
    """Every object or list at the outermost level. Three formats ask for the same text in a row: it is read once."""
    if _LAST[0].text == text:
        return _LAST[0].readings
    reader = JsonReader(text)
    readings: list[tuple[int, Reading]] = []
    pos, retries = 0, _MAX_RETRIES
    last_sign = max((match.start() for match in _SIGN.finditer(text)), default=-1)
    while len(readings) < MAX_FINDINGS and (match := _START.search(text, pos)) is not None:
        start = match.start()
        if start >= last_sign:
            break
        reading = reader.read(start)
        readings.append((start, reading))
        pos = max(reading.end, start + 1)
        if reading.stopped in ("too_deep", "too_long"):
            break
        if reading.stopped and reading.node is not None and "name" not in (reading.node.members or {}) and retries:
            retries, pos = retries - 1, start + 1
    if len(text) <= _MAX_KEPT:
        _LAST[0] = _Objects(text, tuple(readings))
    return tuple(readings)


def scan_objects(text: str, keys: Keys, tools: OfferedTools, wants_list: bool = False) -> Found:
    """Every object (or list of objects) of a text that names a tool, at any place. Fences are not looked at.

    An object without arguments is a call only if its name was offered: lists of named things are common.
    """
    found = Found()
    end = 0
    for start, reading in _objects(text):
        if reading.node is None or start < end:
            continue
        drafts, bad = drafts_of(reading.node, keys, text, wants_list)
        drafts = [d for d in drafts if "no_arguments" not in d.repairs or (tools.known and tools.offers(d.name))]
        if not drafts:
            continue
        end = max(reading.end, start + 1)
        found.blocks.append(Span(start, reading.end))
        for draft in drafts:
            draft.repairs.extend(reading.repairs)
            span = draft.span if len(drafts) > 1 else Span(start, reading.end)
            found.calls.append(draft.call(span, draft.complete))
        for why, element in bad:
            found.problem("not_a_call", why, element.start, element.end)
        if found.full:
            break
    return found


def _render(calls: Sequence[ParsedCall]) -> str:
    objects = [f'{{"name": {dumps(call.name)}, "arguments": {dumps(call.arguments)}}}' for call in calls]
    return "\n".join(objects)


FORMAT = CallFormat(
    name="bare_json",
    title="bare JSON object",
    scan=lambda text, tools: scan_objects(text, HERMES_KEYS, tools),
    render=_render,
    source="no template: what models write when the markers are lost or were never known; Ollama tools/tools.go",
    detector=lambda text: "{" in text and _SIGN.search(text) is not None,
    delimited=False,
    rank=80,
    parsers={"ollama": ("go template",), "vllm": ("required",)},
)
