"""Solar Open: id, name and arguments between markers of their own."""

from __future__ import annotations

from collections.abc import Sequence

from stacks.formats.headed_json import HeadedJson
from stacks.formats.json_text import dumps
from stacks.formats.model import CallFormat, ParsedCall

_SCANNER = HeadedJson(
    header=r"<\|tool_call:begin\|>(?P<id>[^<]*)<\|tool_call:name\|>(?P<name>[^\s<>]+)<\|tool_call:args\|>",
    openers=("<|tool_call:begin|>",),
    closer="<|tool_call:end|>",
).scanner()


def _render(calls: Sequence[ParsedCall]) -> str:
    return "".join(
        f"<|tool_call:begin|>{call.call_id or index}<|tool_call:name|>{call.name}"
        f"<|tool_call:args|>{dumps(call.arguments)}<|tool_call:end|>"
        for index, call in enumerate(calls)
    )


FORMAT = CallFormat(
    name="solar",
    title="Solar Open",
    scan=_SCANNER.scan,
    render=_render,
    source="chat template of Solar-Open-100B",
    openers=("<|tool_call:begin|>",),
    markers=("<|tool_call:begin|>", "<|tool_call:name|>", "<|tool_call:args|>", "<|tool_call:end|>", "<|tool_calls|>"),
    rank=21,
    models=("Solar Open",),
)
