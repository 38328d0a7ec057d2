"""Chat templates of the format canaries: ChatML turns whose past calls are spelled as the format spells them.

Servers infer a parser from a template's text (mlx_lm ``tokenizer_utils.py``) or from what it renders for a past call
(llama.cpp ``common/chat-auto-parser*.cpp``). The spelling is worked out from the format's own writer: two calls are
written with placeholders, and what stands around the placeholders becomes template text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from probe.canary.call_formats import write_calls

_SKELETON = Path(__file__).parent / "data" / "format.jinja"
_NAMES = ("QNAMEA", "QNAMEB")
_KEYS = ("QKEYA", "QKEYB")
_VALUE = "QVALUE"
_NUMBER = 70707
_OPENINGS = {
    "kimi_k2": "<|im_assistant|>assistant<|im_middle|>",
    "gemma4": "<|turn>model\n",
    "harmony": "<|start|>assistant",
}
"""Formats whose assistant turns must begin as their models' do for llama-server's parsers (``common/parsers``)."""


@cache
def format_template(call_format: str) -> str:
    """The Jinja chat template of a call format; raises CanaryError when the format is unknown."""
    example = write_calls(call_format, [("tool_name", {"argument_name": "value"})])
    text = _SKELETON.read_text(encoding="utf-8").rstrip("\n")
    text = text.replace("@ASSISTANT@", literal(assistant_opening(call_format)))
    return text.replace("@EXAMPLE@", literal(example)).replace("@CALLS@", calls_jinja(call_format))


def assistant_opening(call_format: str) -> str:
    """What an assistant's turn begins with; prompts end so."""
    return _OPENINGS.get(call_format, "<|im_start|>assistant\n")


def literal(text: str) -> str:
    """``text`` as a Jinja string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def calls_jinja(call_format: str) -> str:
    """Jinja code that writes ``message.tool_calls`` as ``call_format`` writes them."""
    body = {_KEYS[0]: _VALUE}
    if json.dumps(body) in write_calls(call_format, [(_NAMES[0], body)]):
        return _json_calls(call_format, json.dumps(body))
    return _keyed_calls(call_format)


def _cut(text: str, *marks: str) -> list[str]:
    """The pieces of ``text`` around ``marks``, which stand in it in this order."""
    pieces = []
    for mark in marks:
        piece, _, text = text.partition(mark)
        pieces.append(piece)
    return [*pieces, text]


def _numbered(text: str) -> str:
    """A piece between two calls as a Jinja expression: a one that counts the calls becomes the loop's index."""
    for before, after in (("begin|>1<", "begin|>{}<"), (":1<", ":{}<")):
        if before in text:
            left, right = text.split(before, 1)
            first, last = after.split("{}")
            return f"{literal(left + first)} ~ loop.index0 ~ {literal(last + right)}"
    return literal(text)


def _json_calls(call_format: str, body: str) -> str:
    arguments = {_KEYS[0]: _VALUE}
    text = write_calls(call_format, [(name, arguments) for name in _NAMES])
    start, inner, between, inner_two, end = _cut(text, _NAMES[0], body, _NAMES[1], body)
    counted = inner if inner == inner_two else inner.replace(":0<", ":1<")
    return "\n".join(
        [
            f"        {{{{- {literal(start)} -}}}}",
            *_loop(_numbered(between)),
            f"            {{{{- tool_call.name ~ {_numbered(counted) if inner != inner_two else literal(inner)} -}}}}",
            "            {%- if tool_call.arguments is string -%}",
            "                {{- tool_call.arguments -}}",
            "            {%- else -%}",
            "                {{- tool_call.arguments | tojson -}}",
            "            {%- endif -%}",
            "        {%- endfor -%}",
            f"        {{{{- {literal(end)} -}}}}",
        ]
    )


def _loop(between: str) -> list[str]:
    return [
        "        {%- for tool_call in message.tool_calls -%}",
        "            {%- if tool_call.function is defined -%}",
        "                {%- set tool_call = tool_call.function -%}",
        "            {%- endif -%}",
        "            {%- if not loop.first -%}",
        f"                {{{{- {between} -}}}}",
        "            {%- endif -%}",
    ]


@dataclass(frozen=True, slots=True)
class _Keyed:
    """What stands around the parts of a call that spells its arguments key by key."""

    start: str
    head: str
    is_to: str
    next_key: str
    between: str
    end: str


def _keyed_parts(call_format: str, value: Any) -> _Keyed:
    shown = str(value)
    two = write_calls(call_format, [(_NAMES[0], dict.fromkeys(_KEYS, value))])
    start, head, is_to, next_key, _, end = _cut(two, _NAMES[0], _KEYS[0], shown, _KEYS[1], shown)
    calls = write_calls(call_format, [(name, {_KEYS[0]: value}) for name in _NAMES])
    between = _cut(calls, _NAMES[0], _KEYS[0], shown, _NAMES[1])[3]
    return _Keyed(start, head, is_to, next_key, between, end)


def _keyed_calls(call_format: str) -> str:
    text, number = _keyed_parts(call_format, _VALUE), _keyed_parts(call_format, _NUMBER)
    quote = text.next_key.removesuffix(number.next_key) if text.next_key.endswith(number.next_key) else ""
    as_string = f"{literal(text.is_to)} ~ value ~ {literal(quote)}"
    if (text.is_to, quote) == (number.is_to + '"', '"'):
        as_string = f"{literal(number.is_to)} ~ (value | tojson)"
    bare = write_calls(call_format, [(name, {}) for name in _NAMES])
    _, empty_between, empty_end = _cut(bare, *_NAMES)
    return "\n".join(
        [
            f"        {{{{- {literal(text.start)} -}}}}",
            "        {%- for tool_call in message.tool_calls -%}",
            "            {%- if tool_call.function is defined -%}",
            "                {%- set tool_call = tool_call.function -%}",
            "            {%- endif -%}",
            "            {{- tool_call.name -}}",
            "            {%- if tool_call.arguments -%}",
            f"                {{{{- {literal(text.head)} -}}}}",
            "                {%- for key, value in tool_call.arguments | items -%}",
            "                    {%- if value is string -%}",
            f"                        {{{{- key ~ {as_string} -}}}}",
            "                    {%- else -%}",
            f"                        {{{{- key ~ {literal(number.is_to)} ~ (value | tojson) -}}}}",
            "                    {%- endif -%}",
            "                    {%- if not loop.last -%}",
            f"                        {{{{- {literal(number.next_key)} -}}}}",
            "                    {%- endif -%}",
            "                {%- endfor -%}",
            f"                {{{{- {literal(number.end)} if loop.last else {literal(number.between)} -}}}}",
            "            {%- else -%}",
            f"                {{{{- {literal(empty_end)} if loop.last else {literal(empty_between)} -}}}}",
            "            {%- endif -%}",
            "        {%- endfor -%}",
        ]
    )
