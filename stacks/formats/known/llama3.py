"""Llama 3.x: a bare object with `name` and `parameters`, perhaps behind `<|python_tag|>`, several joined by `;`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from stacks.formats.headed_json import HeadedJson
from stacks.formats.json_text import dumps, skip_space
from stacks.formats.known.bare_json import scan_objects
from stacks.formats.model import MAX_FINDINGS, CallFormat, Found, ParsedCall, Span
from stacks.formats.objects import Keys
from stacks.formats.python_calls import as_parsed
from stacks.formats.python_values import PythonReader
from stacks.formats.tagged_json import TaggedJson
from stacks.formats.tools import OfferedTools

_TAG = "<|python_tag|>"
_KEYS = Keys(arguments="parameters")
_TAGGED = TaggedJson(_TAG, "", _KEYS, separator=";")
_SIGN = re.compile(r"[\"'](?:name|function)[\"']\s*:")
_PARAMETERS = re.compile(r"[\"']parameters[\"']\s*:")
_CUSTOM = HeadedJson(
    header=r"<function=(?P<name>[^\s<>\"'={}()\[\]]+)>\s*(?=[\[{])", openers=("<function=",), closer="</function>"
).scanner()


def _scan_tagged(text: str, tools: OfferedTools) -> Found:
    """JSON calls, and built-in ones (`brave_search.call(query="...")`) behind the tag."""
    json_part, python_part = Found(), Found()
    if re.search(re.escape(_TAG) + r"\s*[{\[`]", text) or not re.search(re.escape(_TAG) + r"\s*\w[\w.]*\(", text):
        json_part = _TAGGED.scan(text, tools)
    reader = PythonReader(text)
    at = text.find(_TAG)
    while at >= 0 and len(python_part.calls) < MAX_FINDINGS:
        start = skip_space(text, at + len(_TAG))
        call = reader.call(start)
        if call is not None and call.name.endswith(".call"):
            end = call.end
            parsed = as_parsed(text, call, Span(at, end), tools)
            name = call.name.removesuffix(".call")
            span = Span(start, start + len(name))
            python_part.calls.append(_renamed(parsed, name, span))
            python_part.blocks.append(Span(at, end))
        at = text.find(_TAG, at + len(_TAG))
    if python_part.calls:
        json_part.problems = [p for p in json_part.problems if p.kind != "not_json"]
    json_part.calls.extend(python_part.calls)
    json_part.blocks.extend(python_part.blocks)
    return json_part


def _renamed(call: ParsedCall, name: str, span: Span) -> ParsedCall:
    return replace(call, name=name, name_span=span)


def _objects(calls: Sequence[ParsedCall]) -> list[str]:
    return [f'{{"name": {dumps(call.name)}, "parameters": {dumps(call.arguments)}}}' for call in calls]


FORMATS = (
    CallFormat(
        name="llama3_json",
        title="Llama 3 JSON",
        scan=lambda text, tools: scan_objects(text, _KEYS, tools),
        render=lambda calls: "; ".join(_objects(calls)),
        source="chat templates of Llama-3.1-8B-Instruct, Llama-3.2-3B-Instruct; vLLM llama_tool_parser",
        detector=lambda text: _PARAMETERS.search(text) is not None and _SIGN.search(text) is not None,
        delimited=False,
        rank=60,
        models=("Llama 3.1", "Llama 3.2", "Llama 3.3"),
        parsers={"vllm": ("llama3_json", "llama4_json"), "sglang": ("llama3",)},
    ),
    CallFormat(
        name="llama3_python_tag",
        title="Llama 3 <|python_tag|>",
        scan=_scan_tagged,
        render=lambda calls: _TAG + "; ".join(_objects(calls)),
        source="chat template of Llama-3.1-8B-Instruct; vLLM llama_tool_parser",
        openers=(_TAG,),
        markers=(_TAG,),
        rank=20,
        models=("Llama 3.1", "Llama 3.3"),
        parsers={"vllm": ("llama3_json",), "sglang": ("llama3",)},
    ),
    CallFormat(
        name="llama3_function_tag",
        title="Llama 3.1 / functionary v3.1 <function=name>{json}</function>",
        scan=_CUSTOM.scan,
        render=lambda calls: "".join(f"<function={c.name}>{dumps(c.arguments)}</function>" for c in calls),
        source="chat template of functionary-medium-v3.1; Llama 3.1 prompt format, user-defined custom tool calling",
        openers=("<function=",),
        markers=("<function=", "</function>"),
        detector=lambda text: _CUSTOM.header.search(text) is not None,
        rank=18,
        models=("functionary v3.1", "Llama 3.1"),
    ),
)
