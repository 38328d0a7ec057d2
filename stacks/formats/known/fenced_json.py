"""Fenced JSON: a call object inside a Markdown code fence."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stacks.formats.json_reader import JsonReader
from stacks.formats.json_text import dumps
from stacks.formats.model import MAX_FINDINGS, CallFormat, Found, ParsedCall, Span
from stacks.formats.objects import HERMES_KEYS, drafts_of, skip_fence_end

_FENCE = re.compile(
    r"```[ \t]*(?:json[c5]?|tool_call|tool_code|tool|python|javascript|js)?[ \t]*\r?\n?\s*(?=[{\[])", re.I
)


def _scan(text: str, _tools: object) -> Found:
    found = Found()
    reader = JsonReader(text, ("```",))
    pos = 0
    for _ in range(MAX_FINDINGS):
        match = _FENCE.search(text, pos)
        if match is None or found.full:
            break
        at, drafts = match.end(), []
        while True:
            reading = reader.read(at)
            if reading.node is None:
                break
            fresh, _ = drafts_of(reading.node, HERMES_KEYS, text, False)
            for draft in fresh:
                draft.repairs.extend(reading.repairs)
            drafts.extend(fresh)
            at = reading.end
            if not fresh or reading.stopped or text[at : at + 200].lstrip()[:1] not in ("{", "["):
                break
        end = skip_fence_end(text, at)
        pos = max(end, match.end())
        if not drafts:
            continue
        found.blocks.append(Span(match.start(), end))
        extra = () if end != at else ("missing_fence_end",)
        if len(drafts) == 1:
            found.calls.append(drafts[0].call(Span(match.start(), end), end != at, extra))
        else:
            edges = _edges(match.start(), end, [draft.span for draft in drafts])
            found.calls.extend(draft.call(span, end != at, extra) for draft, span in zip(drafts, edges, strict=True))
    return found


def _edges(start: int, end: int, spans: list[Span]) -> list[Span]:
    spans = list(spans)
    spans[0] = Span(start, spans[0].end)
    spans[-1] = Span(spans[-1].start, end)
    return spans


def _render(calls: Sequence[ParsedCall]) -> str:
    return "\n".join(
        f'```json\n{{"name": {dumps(call.name)}, "arguments": {dumps(call.arguments)}}}\n```' for call in calls
    )


FORMAT = CallFormat(
    name="fenced_json",
    title="JSON in a code fence",
    scan=_scan,
    render=_render,
    source="no template: the usual form of small models that were told to answer in JSON",
    detector=lambda text: "```" in text and _FENCE.search(text) is not None,
    delimited=False,
    rank=70,
)
