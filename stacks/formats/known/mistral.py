"""Mistral: `[TOOL_CALLS]` followed by a JSON list (up to tokenizer v3), or by a name and `[ARGS]` (since v11)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stacks.formats.headed_json import HeadedJson
from stacks.formats.json_text import dumps
from stacks.formats.model import CallFormat, ParsedCall
from stacks.formats.tagged_json import TaggedJson

_LIST = TaggedJson("[TOOL_CALLS]", wants_list=True)
_NAMED = HeadedJson(
    header=r"\[TOOL_CALLS\]\s*+(?P<name>[^\s\[\]{}\"'<>]+)\s*+(?:\[CALL_ID\](?P<id>[^\[\s]*))?(?:\[ARGS\]|(?P<loose>(?=\s*\{)))",
    openers=("[TOOL_CALLS]",),
).scanner()
_IS_LIST = re.compile(r"\[TOOL_CALLS\]\s*(?:[\[{]|\Z|```)")
_IS_NAMED = re.compile(r"\[TOOL_CALLS\]\s*[^\s\[\]{}\"'<>`]")


def _render_list(calls: Sequence[ParsedCall]) -> str:
    listed = (
        f'{{"name": {dumps(call.name)}, "arguments": {dumps(call.arguments)}'
        + (f', "id": {dumps(call.call_id)}' if call.call_id else "")
        + "}"
        for call in calls
    )
    return f"[TOOL_CALLS][{', '.join(listed)}]"


def _render_named(calls: Sequence[ParsedCall]) -> str:
    return "".join(
        f"[TOOL_CALLS]{call.name}"
        + (f"[CALL_ID]{call.call_id}" if call.call_id else "")
        + f"[ARGS]{dumps(call.arguments)}"
        for call in calls
    )


FORMATS = (
    CallFormat(
        name="mistral_list",
        title="Mistral [TOOL_CALLS] list (old)",
        scan=_LIST.scan,
        render=_render_list,
        source="chat template of Mistral-Nemo-Instruct-2407; vLLM mistral_tool_parser (tokenizers before v11)",
        openers=("[TOOL_CALLS]",),
        markers=("[TOOL_CALLS]",),
        detector=lambda text: _IS_LIST.search(text) is not None,
        rank=12,
        models=("Mistral 7B v0.3", "Mistral Nemo", "Mixtral 8x22B", "Mistral Small 24.09"),
        parsers={"vllm": ("mistral",), "sglang": ("mistral",)},
    ),
    CallFormat(
        name="mistral_args",
        title="Mistral [TOOL_CALLS]name[ARGS] (new)",
        scan=_NAMED.scan,
        render=_render_named,
        source="chat templates of Mistral-Small-3.2, Devstral-Small-2507, Ministral-3-14B-Reasoning-2512",
        openers=("[TOOL_CALLS]",),
        markers=("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"),
        detector=lambda text: _IS_NAMED.search(text) is not None,
        rank=12,
        models=("Mistral Small 3.2", "Devstral", "Magistral", "Ministral 3"),
        parsers={"vllm": ("mistral",), "sglang": ("mistral",), "mlx_server": ("mistral",), "ollama": ("ministral",)},
    ),
)
