"""GLM: a name, then key and value elements, inside `<tool_call>` (GLM 4.5 on lines, GLM 4.7 without)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stacks.formats.json_text import dumps
from stacks.formats.keyed_values import KeyedValues
from stacks.formats.model import CallFormat, ParsedCall

_GLM = KeyedValues("<tool_call>", "</tool_call>")
_LONGCAT = KeyedValues(
    "<longcat_tool_call>",
    "</longcat_tool_call>",
    ("<longcat_arg_key>", "</longcat_arg_key>"),
    ("<longcat_arg_value>", "</longcat_arg_value>"),
)
_HY3 = KeyedValues(
    "<tool_call:opensource>",
    "</tool_call:opensource>",
    ("<arg_key:opensource>", "</arg_key:opensource>"),
    ("<arg_value:opensource>", "</arg_value:opensource>"),
    after_name="<tool_sep:opensource>",
    group=("<tool_calls:opensource>", "</tool_calls:opensource>"),
)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value)


def _block(spec: KeyedValues, call: ParsedCall) -> str:
    pairs = "".join(
        f"{spec.key[0]}{key}{spec.key[1]}\n{spec.value[0]}{_text(value)}{spec.value[1]}\n"
        for key, value in call.arguments.items()
    )
    return f"{spec.opener}{call.name}{spec.after_name}\n{pairs}{spec.closer}"


def _render(calls: Sequence[ParsedCall]) -> str:
    return "\n".join(_block(_GLM, call) for call in calls)


def _render_longcat(calls: Sequence[ParsedCall]) -> str:
    return "\n".join(_block(_LONGCAT, call) for call in calls)


def _render_hy3(calls: Sequence[ParsedCall]) -> str:
    group = _HY3.group or ("", "")
    return f"{group[0]}\n" + "\n".join(_block(_HY3, call) for call in calls) + f"\n{group[1]}"


FORMATS = (
    CallFormat(
        name="glm",
        title="GLM 4.5 / 4.6 / 4.7 arg_key / arg_value",
        scan=_GLM.scan,
        render=_render,
        source="chat templates of GLM-4.6, GLM-4.7-Flash, Laguna-XS.2, Spark2.5, Ling-3.0-flash",
        openers=("<tool_call>",),
        markers=("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
        detector=_GLM.looks_like_it,
        typed=False,
        rank=14,
        models=("GLM 4.5", "GLM 4.6", "GLM 4.7", "Laguna", "Spark 2.5", "Ling 3"),
        parsers={
            "vllm": ("glm45", "glm47", "ling3", "poolside_v1"),
            "sglang": ("glm", "glm45", "glm47", "ling3", "poolside_v1", "spark25"),
            "mlx_server": ("glm47", "laguna"),
            "ollama": ("glm-4.7", "glm-ocr", "laguna", "poolside-v1"),
        },
    ),
    CallFormat(
        name="longcat",
        title="LongCat",
        scan=_LONGCAT.scan,
        render=_render_longcat,
        source="mlx_lm tool_parsers/longcat; vLLM longcat_tool_parser",
        openers=(_LONGCAT.opener,),
        markers=(_LONGCAT.opener, _LONGCAT.closer, *_LONGCAT.key, *_LONGCAT.value),
        typed=False,
        rank=14,
        models=("LongCat Flash",),
        parsers={"vllm": ("longcat",), "mlx_server": ("longcat",)},
    ),
    CallFormat(
        name="hunyuan_v3",
        title="Hunyuan 3",
        scan=_HY3.scan,
        render=_render_hy3,
        source="chat template of tencent-Hy3",
        openers=(_HY3.opener,),
        markers=(_HY3.opener, _HY3.closer, *_HY3.key, *_HY3.value, _HY3.after_name, *(_HY3.group or ())),
        typed=False,
        rank=14,
        models=("Hunyuan 3",),
        parsers={"vllm": ("hy_v3",)},
    ),
)
