"""Qwen XML: `<function=NAME>` with `<parameter=KEY>` inside `<tool_call>` (Qwen3-Coder, Qwen3.5, Nemotron 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stacks.formats.json_text import dumps
from stacks.formats.model import CallFormat, ParsedCall
from stacks.formats.parameters import NAME, Markup

_MARKUP = Markup(
    call_open=rf"<function=(?P<name>{NAME})>",
    call_close="</function>",
    parameter_open=r"<parameter=(?P<name>[^<>\n]+)>",
    parameter_close="</parameter>",
    wrap=("<tool_call>", "</tool_call>"),
    wrap_each=True,
    value_newlines=True,
    loose_call_open=rf"<function(?:\s+name)?\s*=\s*[\"']?(?P<name>{NAME})[\"']?\s*>",
    loose_parameter_open=r"<parameter(?:\s+name)?\s*=\s*[\"']?(?P<name>[^<>\n\"']+?)[\"']?\s*>",
)
_SCANNER = _MARKUP.scanner()


def _value(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)


def _render(calls: Sequence[ParsedCall]) -> str:
    blocks = []
    for call in calls:
        lines = "".join(f"<parameter={key}>\n{_value(value)}\n</parameter>\n" for key, value in call.arguments.items())
        blocks.append(f"<tool_call>\n<function={call.name}>\n{lines}</function>\n</tool_call>")
    return "\n".join(blocks)


FORMAT = CallFormat(
    name="qwen_xml",
    title="Qwen XML (<function=...>)",
    scan=_SCANNER.scan,
    render=_render,
    source="chat templates of Qwen3-Coder, Qwen3.5-4B, NVIDIA-Nemotron-3-Nano, StepFun3.5-Flash",
    openers=("<function",),
    markers=("<tool_call>", "</tool_call>", "<function=", "</function>", "<parameter=", "</parameter>"),
    detector=lambda text: _SCANNER.opens.search(text) is not None,
    typed=False,
    rank=11,
    models=("Qwen3-Coder", "Qwen3.5", "Nemotron 3 Nano", "Step 3.5"),
    parsers={
        "vllm": ("qwen3_coder", "qwen3_xml", "step3p5", "mimo"),
        "sglang": ("qwen3_coder", "step3p5", "mimo", "nanbeige"),
        "mlx_server": ("qwen3_coder",),
        "ollama": ("qwen3-coder", "qwen3.5", "nemotron-3-nano", "nemotron-3.5-nano"),
    },
)
