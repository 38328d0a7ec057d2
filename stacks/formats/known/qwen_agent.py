"""Qwen-Agent's own prompt format: a name and arguments behind flower marks."""

from __future__ import annotations

from collections.abc import Sequence

from stacks.formats.headed_json import HeadedJson
from stacks.formats.json_text import dumps
from stacks.formats.model import CallFormat, ParsedCall

_SCANNER = HeadedJson(
    header=r"\u273fFUNCTION\u273f:[ \t]*(?P<name>[^\s\u273f{}]+)\s*\n\u273fARGS\u273f:[ \t]*",
    openers=("\u273fFUNCTION\u273f",),
).scanner()


def _render(calls: Sequence[ParsedCall]) -> str:
    return "\n".join(f"\u273fFUNCTION\u273f: {call.name}\n\u273fARGS\u273f: {dumps(call.arguments)}" for call in calls)


FORMAT = CallFormat(
    name="qwen_agent",
    title="Qwen-Agent FUNCTION / ARGS",
    scan=_SCANNER.scan,
    render=_render,
    source="Qwen-Agent, qwen_fncall_prompt",
    openers=("\u273fFUNCTION\u273f",),
    markers=("\u273fFUNCTION\u273f", "\u273fARGS\u273f", "\u273fRESULT\u273f", "\u273fRETURN\u273f"),
    rank=23,
    models=("Qwen 1.5", "Qwen2"),
)
