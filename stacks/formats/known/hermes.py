"""Hermes: one JSON object per `<tool_call>` block (Hermes 2/3, Qwen 2.5 and 3, QwQ, Granite 4 ...)."""

from __future__ import annotations

from collections.abc import Sequence

from stacks.formats.json_text import dumps
from stacks.formats.model import CallFormat, ParsedCall
from stacks.formats.tagged_json import TaggedJson

_JSON = TaggedJson("<tool_call>", "</tool_call>")


def _detect(text: str) -> bool:
    """Whether some block holds what may be JSON: the same tag opens Qwen XML and GLM calls."""
    at = text.find("<tool_call>")
    while at >= 0:
        rest = text[at + 11 : at + 75].lstrip()
        if rest[:1] in ("{", "[", '"', "'", "`", "") or rest.startswith(("<tool_call>", "null", "</tool_call>")):
            return True
        at = text.find("<tool_call>", at + 11)
    return False


def _render(calls: Sequence[ParsedCall]) -> str:
    return "\n".join(
        f'<tool_call>\n{{"name": {dumps(call.name)}, "arguments": {dumps(call.arguments)}}}\n</tool_call>'
        for call in calls
    )


FORMAT = CallFormat(
    name="hermes",
    title="Hermes JSON in <tool_call>",
    scan=_JSON.scan,
    render=_render,
    source="chat templates of Hermes-2-Pro, Qwen2.5-7B-Instruct, Qwen3-0.6B, granite-4.0; vLLM hermes_tool_parser",
    openers=("<tool_call>",),
    markers=("<tool_call>", "</tool_call>"),
    detector=_detect,
    rank=10,
    models=("Hermes 2 Pro / 3", "Qwen2.5", "QwQ", "Qwen3", "Granite 4", "Bielik", "Reka", "SmolLM3"),
    parsers={
        "vllm": ("hermes", "qwen3_json", "granite4", "ernie45"),
        "sglang": ("hermes", "qwen", "qwen25", "trinity"),
        "mlx_server": ("json_tools",),
        "ollama": ("qwen3", "qwen3-thinking", "qwen3-vl-instruct", "qwen3-vl-thinking"),
    },
)
