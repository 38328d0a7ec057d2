"""Is the form of an answer enforced? A sentence is asked for, so that JSON comes from the server's doing alone."""

from __future__ import annotations

import json
from typing import Any

from probe.probes.items import no_turn, not_applicable, ran, run_items
from probe.probes.requests import GREETING, body_of, chat, prose_script, worded
from probe.reply import Reply
from probe.result import ProbeResult
from probe.target import Target

_SCHEMA = {
    "type": "object",
    "properties": {"mark": {"type": "string", "enum": ["seven"]}},
    "required": ["mark"],
    "additionalProperties": False,
}
_WORDS = ("yesyes", "nono")
_GBNF = 'root ::= "yesyes" | "nono"'

GRAMMARS: dict[str, dict[str, Any]] = {
    "llamacpp": {"grammar": _GBNF},
    "llamacpp_python": {"grammar": _GBNF},
    "vllm": {"structured_outputs": {"choice": list(_WORDS)}},
    "sglang": {"ebnf": _GBNF},
}
"""A grammar that allows two words, in each stack's own field. Sources: llama.cpp `grammars/README.md`,
`llama_cpp/server/types.py`, vLLM docs on structured outputs, SGLang docs on structured outputs."""


async def probe(target: Target) -> list[ProbeResult]:
    """`response_format.json_object`, `.json_schema`, `grammar.words`. Four requests at most."""
    items = {
        "response_format.json_object": _json_object,
        "response_format.json_schema": _json_schema,
        "grammar.words": _grammar,
    }
    return await run_items(target, items)


async def _ask(target: Target, name: str, **fields: Any) -> Reply:
    body = body_of(target, worded(target, GREETING), tools=None, max_tokens=48, **fields)
    return await chat(target, body, name)


async def _json_object(name: str, target: Target) -> ProbeResult:
    reply = await _ask(target, name, response_format={"type": "json_object"})
    result = _judged(name, reply, lambda value: isinstance(value, dict))
    if result.support == "yes" and prose_script(target) is None:
        free = await _ask(target, name)
        if not free.arrived or free.text.strip().startswith("{"):
            return ran(name, "unknown", "JSON came, and the model writes it without being asked too", reply=reply)
    return result


async def _json_schema(name: str, target: Target) -> ProbeResult:
    schema = {"name": "mark", "strict": True, "schema": _SCHEMA}
    reply = await _ask(target, name, response_format={"type": "json_schema", "json_schema": schema})
    return _judged(name, reply, lambda value: value == {"mark": "seven"})


def _judged(name: str, reply: Reply, fits: Any) -> ProbeResult:
    if not reply.arrived:
        return no_turn(name, reply)
    text = reply.text.strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _no_json(name, reply, text)
    if fits(value):
        return ran(name, "yes", "the answer has the form that was asked for", reply=reply, value=text[:200])
    return ran(name, "partial", "the answer is JSON of another form", reply=reply, value=text[:200])


def _no_json(name: str, reply: Reply, text: str) -> ProbeResult:
    if reply.limit_reached and reply.text and (not text or text.startswith("{")):
        why = "only JSON was let through until the output limit ended it"
        return ran(name, "yes", why, reply=reply, value=text[:200])
    if not text:
        why = "only reasoning came before the output limit" if reply.reasoning else "the answer is empty"
        return ran(name, "unknown", why, reply=reply)
    why = "accepted, and the answer is free text"
    return ran(name, "ignored", why, reply=reply, value=text[:200], outcome="protocol.choice_ignored")


async def _grammar(name: str, target: Target) -> ProbeResult:
    fields = GRAMMARS.get(target.stack.name)
    if fields is None:
        return not_applicable(name, f"{target.stack.title} has no field for a grammar")
    reply = await _ask(target, name, **fields)
    if not reply.arrived:
        return no_turn(name, reply)
    text = reply.text.strip()
    if text in _WORDS:
        return ran(name, "yes", "the answer is one of the two words that the grammar allows", reply=reply, value=text)
    if text and reply.limit_reached and any(word.startswith(text) for word in _WORDS):
        return ran(name, "yes", "what came is within the grammar", reply=reply, value=text)
    if not text:
        return ran(name, "unknown", "the answer is empty", reply=reply)
    why = "accepted, and the answer is outside the grammar"
    return ran(name, "ignored", why, reply=reply, value=text[:200], outcome="protocol.choice_ignored")
