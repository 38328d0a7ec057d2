"""ReAct: `Action:` names the tool, `Action Input:` carries its input."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stacks.formats.json_reader import JsonReader
from stacks.formats.json_text import dumps, skip_space
from stacks.formats.model import CallFormat, Found, ParsedCall, Span
from stacks.formats.objects import Draft, skip_fence, skip_fence_end

_SIMPLE = re.compile(r"^[ \t]*Action:[ \t]*(?P<name>[\w.-]+)[ \t]*\r?\n\s*Action Input:[ \t]*", re.MULTILINE)
_THOUGHT = re.compile(r"(?:Thought|Question):[^\n]*\n\s*\Z")
_PLAIN_END = re.compile(r"\n\s*(?:Observation|Thought|Action|Final Answer)\b|\n\n|\Z")


def _scan(text: str, tools: object) -> Found:
    found = Found()
    reader = JsonReader(text, ("Observation:",))
    pos = 0
    while not found.full and (match := _SIMPLE.search(text, pos)) is not None:
        back = max(pos, match.start() - 2000)
        thought = _THOUGHT.search(text, text.rfind("\n", back, max(back, match.start() - 1)) + 1 or back, match.start())
        start = thought.start() if thought and thought.start() >= pos else match.start()
        pos = max(_call(reader, match, start, found), match.end())
    return found


def _call(reader: JsonReader, match: re.Match[str], start: int, found: Found) -> int:
    text = reader.text
    body = skip_space(text, skip_fence(text, match.end()))
    repairs = ["fence_inside_tag"] if body != skip_space(text, match.end()) else []
    name = Span(*match.span("name"))
    reading = reader.read(body) if text[body : body + 1] in ("{", "[") else None
    if reading is not None and reading.node is not None:
        node = reading.node
        repairs.extend(reading.repairs)
        if not isinstance(node.value, dict):
            repairs.append("arguments_no_object")
        raw = text[node.start : node.end]
        draft = Draft(match.group("name"), node.value, raw, node.span, name, node.span, node.complete, repairs)
        end = skip_fence_end(text, reading.end) if "fence_inside_tag" in repairs else reading.end
    else:
        stop = _PLAIN_END.search(text, match.end())
        end = stop.start() if stop else len(text)
        raw = text[match.end() : end].strip()
        first = text.find(raw, match.end()) if raw else match.end()
        where = Span(first, first + len(raw))
        whole = bool(raw) or end < len(text)
        value = {"input": raw} if raw else {}
        noted = [*repairs, "plain_text_input"]
        draft = Draft(match.group("name"), value, raw, where, name, where, whole, noted)
    span = Span(start, end)
    found.blocks.append(span)
    found.calls.append(draft.call(span, draft.complete))
    return end


def _render(calls: Sequence[ParsedCall]) -> str:
    return "\n".join(f"Action: {call.name}\nAction Input: {dumps(call.arguments)}" for call in calls)


FORMAT = CallFormat(
    name="react",
    title="ReAct Action / Action Input",
    scan=_scan,
    render=_render,
    source="Yao et al. 2022 (ReAct), in the form that LangChain's agents made common",
    openers=("Action Input:",),
    detector=lambda text: _SIMPLE.search(text) is not None,
    markers=("\nObservation:",),
    rank=30,
)
