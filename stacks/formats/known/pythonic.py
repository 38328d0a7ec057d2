"""Calls in Python notation: Llama 3.2 / 4 pythonic, LFM2, Olmo 3, Gemma 3 tool_code."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stacks.formats.model import CallFormat, Found, ParsedCall
from stacks.formats.python_calls import PythonCalls
from stacks.formats.python_values import render_call
from stacks.formats.tagged_json import TaggedJson
from stacks.formats.tools import OfferedTools

_PLAIN = PythonCalls()
_LLAMA4 = PythonCalls("<|python_start|>", "<|python_end|>", optional_close=True)
_LFM2 = PythonCalls("<|tool_call_start|>", "<|tool_call_end|>", json_words=True)
_LFM2_JSON = TaggedJson("<|tool_call_start|>", "<|tool_call_end|>", wants_list=True)
_LLAMA4_JSON = TaggedJson("<|python_start|>", "<|python_end|>")
_OLMO = PythonCalls("<function_calls>", "</function_calls>", bracketed=False, lines=True)
_TOOL_CODE = PythonCalls("```tool_code", "```", bracketed=False, lines=True)
_LIST = re.compile(r"\[\s*[^\W\d][\w.-]*\(")


def _behind(opener: str, start: str) -> re.Pattern[str]:
    return re.compile(re.escape(opener) + rf"\s*(?:```\w*\s*)?{start}")


_LFM2_IS_JSON = _behind("<|tool_call_start|>", r"(?:\[\s*)?\{")
_LLAMA4_IS_JSON = _behind("<|python_start|>", r"(?:\[\s*)?\{")


def _list(calls: Sequence[ParsedCall]) -> str:
    return "[" + ", ".join(render_call(call.name, call.arguments) for call in calls) + "]"


def _lines(calls: Sequence[ParsedCall]) -> str:
    return "\n".join(render_call(call.name, call.arguments) for call in calls)


def _lfm2(text: str, tools: OfferedTools) -> Found:
    return _LFM2_JSON.scan(text, tools) if _LFM2_IS_JSON.search(text) else _LFM2.scan(text, tools)


def _llama4(text: str, tools: OfferedTools) -> Found:
    return _LLAMA4_JSON.scan(text, tools) if _LLAMA4_IS_JSON.search(text) else _LLAMA4.scan(text, tools)


FORMATS = (
    CallFormat(
        name="pythonic",
        title="pythonic list",
        scan=_PLAIN.scan,
        render=_list,
        source="Llama 3.2 and Llama 4 prompt formats; vLLM pythonic_tool_parser",
        detector=lambda text: _LIST.search(text) is not None,
        delimited=False,
        tail_stands=True,
        rank=55,
        models=("Llama 3.2 1B / 3B", "Llama 4", "ToolACE"),
        parsers={"vllm": ("pythonic", "llama4_pythonic"), "sglang": ("pythonic",), "mlx_server": ("pythonic",)},
    ),
    CallFormat(
        name="llama4_python_start",
        title="Llama 4 <|python_start|>",
        scan=_llama4,
        render=lambda calls: f"<|python_start|>{_list(calls)}<|python_end|>",
        source="Llama 4 prompt format; vLLM llama4_pythonic_tool_parser",
        openers=("<|python_start|>",),
        markers=("<|python_start|>", "<|python_end|>"),
        rank=19,
        models=("Llama 4",),
        parsers={"vllm": ("llama4_pythonic",)},
    ),
    CallFormat(
        name="lfm2",
        title="LFM2",
        scan=_lfm2,
        render=lambda calls: f"<|tool_call_start|>{_list(calls)}<|tool_call_end|>",
        source="chat templates of LFM2-8B-A1B, LFM2.5-8B-A1B",
        openers=("<|tool_call_start|>",),
        markers=("<|tool_call_start|>", "<|tool_call_end|>"),
        rank=17,
        models=("LFM2", "LFM2.5"),
        parsers={"vllm": ("lfm2",), "sglang": ("lfm2",), "ollama": ("lfm2", "lfm2-thinking")},
    ),
    CallFormat(
        name="olmo3",
        title="Olmo 3 <function_calls>",
        scan=_OLMO.scan,
        render=lambda calls: f"<function_calls>\n{_lines(calls)}\n</function_calls>",
        source="allenai/Olmo-3 model cards; vLLM olmo3_tool_parser",
        openers=("<function_calls>",),
        markers=("<function_calls>", "</function_calls>"),
        detector=lambda text: "<invoke" not in text,
        rank=17,
        models=("Olmo 3",),
        parsers={"vllm": ("olmo3",), "ollama": ("olmo3", "olmo3-think")},
    ),
    CallFormat(
        name="gemma3_tool_code",
        title="Gemma 3 tool_code fence",
        scan=_TOOL_CODE.scan,
        render=lambda calls: f"```tool_code\n{_lines(calls)}\n```",
        source="Google's Gemma function calling guide (python style)",
        openers=("```tool_code",),
        rank=26,
        models=("Gemma 3",),
    ),
)
