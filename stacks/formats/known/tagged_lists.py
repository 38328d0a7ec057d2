"""JSON behind an opening marker: Granite, Phi-4-mini, Hunyuan / Jamba / Apriel, Nemotron, InternLM, and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stacks.formats.json_text import dumps
from stacks.formats.model import CallFormat, ParsedCall
from stacks.formats.objects import Keys
from stacks.formats.tagged_json import TaggedJson


def _objects(calls: Sequence[ParsedCall], keys: Keys) -> list[str]:
    def one(call: ParsedCall) -> str:
        inner = f'{{"{keys.name}": {dumps(call.name)}, "{keys.arguments}": {dumps(call.arguments)}}}'
        return f'{{"type": "function", "{keys.nested}": {inner}}}' if keys.nested else inner

    return [one(call) for call in calls]


def _renderer(spec: TaggedJson) -> Callable[[Sequence[ParsedCall]], str]:
    def render(calls: Sequence[ParsedCall]) -> str:
        objects = _objects(calls, spec.keys)
        if spec.wants_list:
            return f"{spec.opener}[{', '.join(objects)}]{spec.closer}"
        return "\n".join(f"{spec.opener}{item}{spec.closer}" for item in objects)

    return render


def _format(name: str, title: str, spec: TaggedJson, source: str, **more: Any) -> CallFormat:
    return CallFormat(
        name=name,
        title=title,
        scan=spec.scan,
        render=_renderer(spec),
        source=source,
        openers=(spec.opener,),
        markers=tuple(mark for mark in (spec.opener, spec.closer) if mark),
        **more,
    )


FORMATS = (
    _format(
        "granite",
        "Granite 3 <|tool_call|> list",
        TaggedJson("<|tool_call|>", wants_list=True),
        "chat template of granite-3.3-2B-Instruct; vLLM granite_tool_parser",
        rank=22,
        models=("Granite 3.0 - 3.3",),
        parsers={"vllm": ("granite",)},
    ),
    _format(
        "granite_function_call",
        "Granite 20B <function_call>",
        TaggedJson("<function_call>"),
        "vLLM granite_20b_fc_tool_parser",
        rank=22,
        models=("Granite 20B functioncalling",),
        parsers={"vllm": ("granite-20b-fc",)},
    ),
    _format(
        "phi4",
        "Phi-4-mini <|tool_call|> list",
        TaggedJson("<|tool_call|>", "<|/tool_call|>", Keys(nested="function", either=True), wants_list=True),
        "microsoft/Phi-4-mini-instruct model card and template",
        rank=21,
        models=("Phi-4-mini",),
        parsers={"vllm": ("phi4_mini_json",)},
    ),
    _format(
        "functools",
        "functools[...]",
        TaggedJson("functools", wants_list=True),
        "chat template of firefunction-v2; vLLM phi4mini_tool_parser",
        detector=lambda text: "functools[" in text.replace("functools [", "functools["),
        rank=22,
        models=("FireFunction v2", "Phi-4-mini"),
        parsers={"vllm": ("phi4_mini_json",)},
    ),
    _format(
        "tool_calls_list",
        "<tool_calls> list",
        TaggedJson("<tool_calls>", "</tool_calls>", wants_list=True),
        "chat template of Apriel-1.6-15b-Thinker; vLLM hunyuan_a13b_tool_parser, jamba_tool_parser",
        rank=21,
        models=("Hunyuan A13B", "Jamba 1.5", "Apriel 1.5 / 1.6"),
        parsers={"vllm": ("hunyuan_a13b", "jamba"), "sglang": ("hunyuan",)},
    ),
    _format(
        "nemotron",
        "Nemotron <TOOLCALL> list",
        TaggedJson("<TOOLCALL>", "</TOOLCALL>", wants_list=True),
        "chat template of NVIDIA-Nemotron-Nano-v2",
        rank=21,
        models=("Nemotron Nano v2", "Llama Nemotron"),
    ),
    _format(
        "internlm",
        "InternLM 2 plugin",
        TaggedJson("<|action_start|><|plugin|>", "<|action_end|>", Keys(arguments="parameters")),
        "vLLM internlm2_tool_parser",
        rank=21,
        models=("InternLM 2 / 2.5", "InternLM 3"),
        parsers={"vllm": ("internlm",), "sglang": ("interns1",)},
    ),
    _format(
        "lm_studio",
        "LM Studio [TOOL_REQUEST]",
        TaggedJson("[TOOL_REQUEST]", "[END_TOOL_REQUEST]"),
        "lmstudio-ai/docs, tool use page, default tool use",
        rank=21,
        parsers={"lmstudio": ("default",)},
    ),
    _format(
        "tools_tag",
        "<tools> around a call (copied from the prompt)",
        TaggedJson("<tools>", "</tools>"),
        "public reports on Qwen2.5-Coder: the tag of the tool list in place of <tool_call>",
        rank=24,
        models=("Qwen2.5-Coder",),
    ),
    _format(
        "glaive",
        "Glaive <functioncall>",
        TaggedJson("<functioncall>", keys=Keys(as_text=True)),
        "glaive-function-calling-v2 data set",
        rank=22,
    ),
    _format(
        "gigachat3",
        "GigaChat 3 function call role",
        TaggedJson("function call<|role_sep|>"),
        "chat template of GigaChat3-10B-A1.8B",
        rank=22,
        models=("GigaChat 3",),
        parsers={"vllm": ("gigachat3",), "sglang": ("gigachat3",)},
    ),
    _format(
        "command_a",
        "Command R7B / A <|START_ACTION|>",
        TaggedJson("<|START_ACTION|>", "<|END_ACTION|>", Keys("tool_name", "parameters"), wants_list=True),
        "chat template of c4ai-command-r7b-12-2024",
        rank=21,
        models=("Command R7B", "Command A"),
        parsers={"vllm": ("cohere_command3", "cohere_command4"), "sglang": ("cohere_command4",), "ollama": ("cohere",)},
    ),
)
