"""Gemma 4 and FunctionGemma: `call:name{key:value}` between markers, strings in delimiters of their own."""

from __future__ import annotations

from stacks.formats.brace_calls import BraceCalls
from stacks.formats.model import CallFormat

_GEMMA4 = BraceCalls("<|tool_call>", "<tool_call|>", '<|"|>')
_FUNCTION = BraceCalls("<start_function_call>", "<end_function_call>", "<escape>")

FORMATS = (
    CallFormat(
        name="gemma4",
        title="Gemma 4",
        scan=_GEMMA4.scan,
        render=lambda calls: "".join(_GEMMA4.render_call(call.name, call.arguments) for call in calls),
        source="chat template of gemma-4-31B-it",
        openers=("<|tool_call>",),
        markers=("<|tool_call>", "<tool_call|>", '<|"|>'),
        rank=13,
        models=("Gemma 4",),
        parsers={
            "vllm": ("gemma4",),
            "sglang": ("gemma4",),
            "mlx_server": ("gemma4",),
            "ollama": ("gemma4", "gemma4-no-thinking"),
        },
    ),
    CallFormat(
        name="functiongemma",
        title="FunctionGemma",
        scan=_FUNCTION.scan,
        render=lambda calls: "".join(_FUNCTION.render_call(call.name, call.arguments) for call in calls),
        source="google/functiongemma-270m-it model card; mlx_lm tool_parsers/function_gemma",
        openers=("<start_function_call>",),
        markers=("<start_function_call>", "<end_function_call>", "<escape>"),
        rank=13,
        models=("FunctionGemma 270M",),
        parsers={"vllm": ("functiongemma",), "mlx_server": ("function_gemma",), "ollama": ("functiongemma",)},
    ),
)
