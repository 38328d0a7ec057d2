"""Kimi K2: calls with ids between section markers."""

from __future__ import annotations

from collections.abc import Sequence

from stacks.formats.headed_json import HeadedJson
from stacks.formats.json_text import dumps
from stacks.formats.model import CallFormat, ParsedCall

_SECTION = ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")
_SCANNER = HeadedJson(
    header=r"<\|tool_call_begin\|>\s*(?P<id>(?:functions\.)?(?P<name>[^\s<>:]+?)(?::\d+|(?P<loose>(?=\s*<))))"
    r"\s*<\|tool_call_argument_begin\|>",
    openers=("<|tool_call_begin|>", _SECTION[0]),
    closer="<|tool_call_end|>",
    group=_SECTION,
).scanner()


def _render(calls: Sequence[ParsedCall]) -> str:
    blocks = (
        f"<|tool_call_begin|>{call.call_id or f'functions.{call.name}:{index}'}"
        f"<|tool_call_argument_begin|>{dumps(call.arguments)}<|tool_call_end|>"
        for index, call in enumerate(calls)
    )
    return _SECTION[0] + "".join(blocks) + _SECTION[1]


FORMAT = CallFormat(
    name="kimi_k2",
    title="Kimi K2",
    scan=_SCANNER.scan,
    render=_render,
    source="chat template of Kimi-K2-Instruct",
    openers=("<|tool_call_begin|>", _SECTION[0]),
    markers=(*_SECTION, "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"),
    rank=13,
    models=("Kimi K2", "Kimi K2 Thinking", "Kimi K2.5"),
    parsers={"vllm": ("kimi_k2",), "sglang": ("kimi_k2",), "mlx_server": ("kimi_k2",)},
)
