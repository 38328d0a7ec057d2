"""Does a history with tool calls go back in? Each form that clients send, one request each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from probe.probes.items import cite_asks, no_turn, ran, rendered, run_items
from probe.probes.requests import QUESTION, body_of, chat, few, script
from probe.result import ProbeResult
from probe.target import Target

_RESULT = "18 degrees, sunny, result-mark-7341"
_OTHER = "12 degrees, rain, result-mark-2904"
_USER = {"role": "user", "content": QUESTION}


def _call(number: int, arguments: Any, name: str = "get_weather") -> dict[str, Any]:
    return {"id": f"call_abcdef{number:03d}", "type": "function", "function": {"name": name, "arguments": arguments}}


def _assistant(*calls: Mapping[str, Any], content: Any = "", **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **fields}


def _result(number: int, content: Any = _RESULT) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call_abcdef{number:03d}", "name": "get_weather", "content": content}


_TEXT_ARGUMENTS = json.dumps({"city": "Paris"})
FORMS: dict[str, list[dict[str, Any]]] = {
    "tool_result": [_USER, _assistant(_call(1, _TEXT_ARGUMENTS)), _result(1)],
    "null_content": [_USER, _assistant(_call(1, _TEXT_ARGUMENTS), content=None), _result(1)],
    "object_arguments": [_USER, _assistant(_call(1, {"city": "Paris"})), _result(1)],
    "two_results": [
        _USER,
        _assistant(_call(1, _TEXT_ARGUMENTS), _call(2, json.dumps({"city": "London"}))),
        _result(1),
        _result(2, _OTHER),
    ],
    "empty_result": [_USER, _assistant(_call(1, _TEXT_ARGUMENTS)), _result(1, "")],
    "parts": [_USER, _assistant(_call(1, _TEXT_ARGUMENTS)), _result(1, [{"type": "text", "text": _RESULT}])],
}
"""Histories by name; each ends with tool results that the model has to answer."""


async def probe(target: Target) -> list[ProbeResult]:
    """`history.<form>` for each of `FORMS`. Six generations of up to 24 tokens, six renderings."""
    return await run_items(target, {f"history.{form}": _form for form in FORMS})


async def _form(name: str, target: Target) -> ProbeResult:
    messages = FORMS[name.partition(".")[2]]
    body = body_of(target, messages, max_tokens=few(target, 24))
    reply = await chat(target, body, name)
    if not reply.arrived:
        return no_turn(name, reply)
    marks = [mark for mark in (_RESULT, _OTHER) if mark in json.dumps(messages)]
    have = await rendered(target, body)
    if have.text is not None and marks:
        evidence = reply.cite_turn() + await cite_asks(target, *have.asks[-1:])
        missing = [mark for mark in marks if mark not in have.text]
        if missing:
            why = f"accepted, and {', '.join(missing)!r} is not in the rendered prompt"
            return ran(name, "ignored", why, reply=reply, outcome="template.drift", evidence=evidence)
        return ran(name, "yes", "accepted, and in the rendered prompt", reply=reply, evidence=evidence)
    answer = script(target, "answer")
    if answer is not None and reply.text.strip():
        seen = answer.startswith(reply.text.strip()) or answer in reply.text
        if not seen:
            why = "accepted, and the model answers as if no tool result had come"
            return ran(name, "ignored", why, reply=reply, outcome="template.drift")
        return ran(name, "yes", "accepted, and the model answers the tool result", reply=reply)
    return ran(name, "yes", "accepted; whether the model sees it cannot be told here", reply=reply)
