"""Apertus: a list of one-key objects, the key being the tool's name."""

from __future__ import annotations

from collections.abc import Sequence

from stacks.formats.json_nodes import Node
from stacks.formats.json_reader import JsonReader
from stacks.formats.json_text import dumps, skip_space
from stacks.formats.model import CallFormat, Found, ParsedCall, Span
from stacks.formats.objects import Draft, reason_of

_OPEN, _CLOSE = "<|tools_prefix|>", "<|tools_suffix|>"


def _draft(element: Node, text: str) -> Draft | None:
    if element.members is None or len(element.members) != 1:
        return None
    ((name, (key, node)),) = element.members.items()
    quoted = Span(key.start + 1, key.end - 1) if text[key.start : key.start + 1] in "\"'" else key
    repairs = [] if isinstance(node.value, dict) else ["arguments_no_object"]
    return Draft(name, node.value, text[node.start : node.end], element.span, quoted, node.span, node.complete, repairs)


def _scan(text: str, _tools: object) -> Found:
    found = Found()
    reader = JsonReader(text, (_CLOSE, _OPEN))
    at = text.find(_OPEN)
    while at >= 0 and not found.full:
        start, doubled = at + len(_OPEN), False
        while text.startswith(_OPEN, again := skip_space(text, start)):
            start, doubled = again + len(_OPEN), True
        reading = reader.read(start)
        end = max(reading.end, start)
        closed = text.startswith(_CLOSE, skip_space(text, end))
        end = skip_space(text, end) + len(_CLOSE) if closed else end
        node = reading.node
        drafts = [_draft(element, text) for element in node.items or [node]] if node is not None else []
        if node is None or not drafts:
            found.problem(*reason_of(reading), at, end)
        for draft in drafts:
            if draft is None:
                found.problem("not_a_call", "no object with one key", at, end)
                continue
            draft.repairs.extend([*reading.repairs, *(["doubled_open_tag"] if doubled else [])])
            if not closed and draft.complete:
                draft.repairs.append("missing_close_tag")
            first, last = draft is drafts[0], draft is drafts[-1]
            span = Span(at if first else draft.span.start, end if last else draft.span.end)
            found.calls.append(draft.call(span, closed))
        found.blocks.append(Span(at, end))
        at = text.find(_OPEN, end)
    return found


def _render(calls: Sequence[ParsedCall]) -> str:
    return _OPEN + "[" + ", ".join(f"{{{dumps(c.name)}: {dumps(c.arguments)}}}" for c in calls) + "]" + _CLOSE


FORMAT = CallFormat(
    name="apertus",
    title="Apertus",
    scan=_scan,
    render=_render,
    source="chat template of Apertus-8B-Instruct",
    openers=(_OPEN,),
    markers=(_OPEN, _CLOSE),
    rank=21,
    models=("Apertus",),
    parsers={"vllm": ("apertus",), "sglang": ("apertus2509",)},
)
