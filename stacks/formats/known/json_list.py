"""A bare JSON list of calls: xLAM, and the form that `tool_choice: required` makes vLLM and SGLang write."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stacks.formats.json_text import dumps
from stacks.formats.known.bare_json import scan_objects
from stacks.formats.model import CallFormat, ParsedCall
from stacks.formats.objects import HERMES_KEYS

_LIST = re.compile(r"\[\s*\{")


def _render(calls: Sequence[ParsedCall]) -> str:
    return (
        "[" + ", ".join(f'{{"name": {dumps(call.name)}, "arguments": {dumps(call.arguments)}}}' for call in calls) + "]"
    )


FORMAT = CallFormat(
    name="json_list",
    title="bare JSON list",
    scan=lambda text, tools: scan_objects(text, HERMES_KEYS, tools, wants_list=True),
    render=_render,
    source="vLLM xlam_tool_parser; vLLM and SGLang, required tool choice (JSON array)",
    detector=lambda text: _LIST.search(text) is not None and '"name"' in text.replace("'", '"'),
    delimited=False,
    rank=75,
    models=("xLAM",),
    parsers={"vllm": ("xlam", "required"), "sglang": ("required",)},
)
