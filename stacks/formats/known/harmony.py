"""Harmony: gpt-oss writes a call as a message to a recipient on the commentary channel."""

from __future__ import annotations

from collections.abc import Sequence

from stacks.formats.headed_json import HeadedJson
from stacks.formats.json_text import dumps
from stacks.formats.model import CallFormat, Found, ParsedCall
from stacks.formats.tools import OfferedTools

_LATE = HeadedJson(
    header=r"(?:<\|start\|>assistant)?<\|channel\|>\s*+(?:commentary|(?P<loose>analysis|final))\s*+"
    r"to=(?:functions\.)?(?P<name>[^\s<>{}]+)\s*+(?:<\|constrain\|>\s*+)?(?:json|code)?\s*+<\|message\|>",
    openers=("<|channel|>commentary to=", "<|channel|>analysis to="),
    closer="<|call|>",
    optional_close=True,
).scanner()
_EARLY = HeadedJson(
    header=r"(?:(?:<\|start\|>)?assistant\s*+|(?<!\s)\s*+)\bto=(?:functions\.)?(?P<name>[^\s<>{}]+)\s*+<\|channel\|>"
    r"\s*+(?:commentary|(?P<loose>analysis|final))\s*+(?:<\|constrain\|>\s*+)?(?:json|code)?\s*+<\|message\|>",
    openers=("<|start|>assistant to=",),
    closer="<|call|>",
    optional_close=True,
).scanner()
_PLAIN = HeadedJson(
    header=r"(?P<loose>(?:assistant)?commentary)\s+to=(?:functions\.)?(?P<name>[^\s<>{}]+)\s*+(?:json|code)?\s*+(?=\{)",
    openers=(),
).scanner()


def _scan(text: str, tools: OfferedTools) -> Found:
    found = Found()
    for scanner in (_LATE, _EARLY) if "<|channel|>" in text else (_PLAIN,):
        part = scanner.scan(text, tools)
        found.calls.extend(part.calls)
        found.problems.extend(part.problems)
        found.blocks.extend(part.blocks)
    found.calls.sort(key=lambda call: call.span)
    return found


def _detect(text: str) -> bool:
    return "to=" in text and ("<|channel|>" in text or "commentary to=" in text)


def _render(calls: Sequence[ParsedCall]) -> str:
    return "<|start|>assistant".join(
        f"<|channel|>commentary to=functions.{call.name} <|constrain|>json<|message|>{dumps(call.arguments)}<|call|>"
        for call in calls
    )


FORMAT = CallFormat(
    name="harmony",
    title="gpt-oss harmony",
    scan=_scan,
    render=_render,
    source="openai/harmony format; chat template of gpt-oss-120b",
    detector=_detect,
    markers=("<|channel|>", "<|constrain|>", "<|message|>", "<|start|>", "<|call|>"),
    rank=13,
    models=("gpt-oss",),
    parsers={"vllm": ("openai",), "sglang": ("gpt-oss",), "ollama": ("harmony",)},
)
