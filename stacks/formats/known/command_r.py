"""Command R and R+: `Action:` and a fenced JSON list of tool_name / parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stacks.formats.json_reader import JsonReader
from stacks.formats.json_text import dumps
from stacks.formats.model import CallFormat, Found, ParsedCall, Span
from stacks.formats.objects import Keys, drafts_of, reason_of, skip_fence_end

_HEAD = re.compile(r"^[ \t]*Action:[ \t]*+\n?[ \t]*+```(?:json)?[ \t]*+\n?\s*+(?=[\[{]|\Z)", re.MULTILINE)
_KEYS = Keys("tool_name", "parameters")


def _scan(text: str, _tools: object) -> Found:
    found = Found()
    reader = JsonReader(text, ("```",))
    pos = 0
    while not found.full and (match := _HEAD.search(text, pos)) is not None:
        reading = reader.read(match.end())
        if reading.node is None:
            found.problem(*reason_of(reading), match.start(), reading.end)
            found.blocks.append(Span(match.start(), reading.end))
            pos = max(reading.end, match.end())
            continue
        end = skip_fence_end(text, reading.end)
        pos = max(end, match.end())
        closed = end != reading.end
        extra = () if closed or not reading.node.complete else ("missing_fence_end",)
        drafts, bad = drafts_of(reading.node, _KEYS, text, True)
        found.blocks.append(Span(match.start(), end))
        for index, draft in enumerate(drafts):
            draft.repairs.extend(reading.repairs)
            first = match.start() if index == 0 else draft.span.start
            last = end if index == len(drafts) - 1 else draft.span.end
            found.calls.append(draft.call(Span(first, last), closed, extra))
        for why, element in bad:
            found.problem("not_a_call", why, element.start, element.end)
    return found


def _render(calls: Sequence[ParsedCall]) -> str:
    listed = ",\n".join(
        f'    {{\n        "tool_name": {dumps(call.name)},\n        "parameters": {dumps(call.arguments)}\n    }}'
        for call in calls
    )
    return f"Action:\n```json\n[\n{listed}\n]\n```"


FORMAT = CallFormat(
    name="command_r",
    title="Command R Action list",
    scan=_scan,
    render=_render,
    source="chat template of c4ai-command-r-plus (tool_use)",
    openers=("Action:",),
    detector=lambda text: _HEAD.search(text) is not None,
    rank=16,
    models=("Command R", "Command R+"),
)
