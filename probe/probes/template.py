"""What prompt does a request become? By the server's own rendering where it shows one, else by counting tokens."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import jinja2

from probe.known_answer import WEATHER_TOOL
from probe.probes.items import cite_asks, ran, rendered, run_items
from probe.probes.requests import QUESTION, body_of, chat, plain_body, weather
from probe.result import ProbeResult, Support
from probe.target import Target
from stacks.chat_template import render_adapted, render_template
from stacks.engine import RenderError
from stacks.serving.base import Rendered

CHARACTERS_PER_TOKEN = 8
"""More characters of English or JSON than any tokenizer in use puts into one token on average: fewer added tokens than
characters / 8 mean that the text is not in the prompt as it was sent."""

_TOOLS_TEXT = json.dumps([WEATHER_TOOL])
_SYSTEM_MARK = "Mark 7341 stands for the system message."
_MARKS = ("mark-user-1", "mark-call-2", "mark-result-3", "mark-assistant-4", "mark-user-5")


async def probe(target: Target) -> list[ProbeResult]:
    """`template.tools`, `.hash`, `.drift`, `.system`, `.roles`. Four renderings, or four short generations."""
    items = {"tools": _tools, "hash": _hash, "drift": _drift, "system": _system, "roles": _roles}
    return await run_items(target, {f"template.{name}": item for name, item in items.items()})


# ---------------------------------------------------------------------- tools
async def _tools(name: str, target: Target) -> ProbeResult:
    body = body_of(target, QUESTION)
    have = await rendered(target, body)
    if have.text is None:
        return await _tools_by_tokens(name, target, have)
    without = await rendered(target, body_of(target, QUESTION, tools=None))
    parts = {
        "name": _added(have, without, "get_weather"),
        "description": _added(have, without, "Current weather in a city"),
        "parameters": _added(have, without, "city", times=2),
    }
    support: Support = "yes" if all(parts.values()) else "partial" if parts["name"] else "no"
    missing = [part for part, there in parts.items() if not there]
    whys = {
        "yes": "name, description and parameters of the tool stand in the rendered prompt",
        "partial": f"of the tool, {' and '.join(missing)} is not in the rendered prompt",
        "no": "the tool is not in the rendered prompt",
    }
    outcome = "template.tools_absent" if support == "no" else ""
    evidence = await cite_asks(target, *have.asks[-1:], *without.asks[-1:])
    value = {**parts, "tokens": have.tokens, "tokens_without": without.tokens}
    return ran(name, support, whys[support], value=value, source=have.source, outcome=outcome, evidence=evidence)


def _added(have: Rendered, without: Rendered, words: str, times: int = 1) -> bool:
    """Whether words stand in the prompt, so often at least, because of the tools."""
    return (have.text or "").count(words) >= (without.text or "").count(words) + times


async def _tools_by_tokens(name: str, target: Target, have: Rendered) -> ProbeResult:
    """No rendering: the tokens that the tools add to the prompt, against the size of the tools' JSON."""
    reply = await weather(target, name)
    plain = await chat(target, plain_body(target), name)
    with_tools = have.tokens if have.tokens is not None else reply.prompt_tokens
    if with_tools is None or plain.prompt_tokens is None:
        why = f"{have.why}; and there are no token counts to compare"
        return ran(name, "unknown", why, reply=reply, source="prompt_tokens")
    growth, size = with_tools - plain.prompt_tokens, len(_TOOLS_TEXT)
    support, why = _growth(growth, size, "the tools")
    value = {"tokens": with_tools, "tokens_without": plain.prompt_tokens, "growth": growth, "characters": size}
    outcome = "template.tools_absent" if support == "no" else ""
    evidence = reply.cite_usage() + plain.cite_usage()
    why = f"{have.why}; {why}"
    return ran(name, support, why, value=value, source="prompt_tokens", outcome=outcome, evidence=evidence)


def _growth(growth: int, characters: int, what: str) -> tuple[Support, str]:
    """Whether a text of so many characters is in a prompt that grew by so many tokens."""
    said = f"{what} ({characters} characters) add {growth} tokens to the prompt"
    if growth * CHARACTERS_PER_TOKEN >= characters:
        return "yes", said
    if growth <= 2:
        return "no", f"{said}: they are not in it"
    return "partial", f"{said}: too few for all of it"


# ---------------------------------------------------------------------- the whole prompt
async def _hash(name: str, target: Target) -> ProbeResult:
    have = await rendered(target, body_of(target, QUESTION))
    if have.text is None:
        return ran(name, "unknown", have.why, source=have.source)
    value = {"sha256": hashlib.sha256(have.text.encode()).hexdigest(), "characters": len(have.text)}
    if target.identity is not None and target.identity.template_hash.unknown is None:
        value["template_sha256"] = target.identity.template_hash.value
    evidence = await cite_asks(target, *have.asks[-1:])
    return ran(name, "yes", "hash of the rendered prompt", value=value, source=have.source, evidence=evidence)


async def _drift(name: str, target: Target) -> ProbeResult:
    """The server's rendering beside the model's own template, rendered here as transformers does it."""
    fact = target.identity.template if target.identity is not None else None
    if fact is None or fact.unknown is not None or not isinstance(fact.value, str):
        return ran(name, "unknown", "the model's own template is not known here")
    body = body_of(target, QUESTION)
    have = await rendered(target, body)
    if have.text is None:
        return ran(name, "unknown", have.why)
    try:
        ours = rendered_here(fact.value, body)
    except (RenderError, jinja2.TemplateError) as failed:
        return ran(name, "unknown", f"the template in force cannot be rendered here: {str(failed)[:200]}")
    evidence = await cite_asks(target, *have.asks[-1:])
    support, why = compared_prompts(have.text, ours)
    outcome = "template.drift" if support == "no" else ""
    return ran(name, support, why, source=f"{have.source}, {fact.source}", outcome=outcome, evidence=evidence)


def rendered_here(template: str, body: dict[str, Any]) -> str:
    """A request through a template's text, as transformers renders it. Raises RenderError, jinja2.TemplateError."""
    tools = body.get("tools")
    text, _ = render_adapted(body["messages"], lambda messages: render_template(template, messages, tools, {}))
    return text


def compared_prompts(server: str, ours: str) -> tuple[Support, str]:
    """Two renderings of one request; a begin-of-text mark that only one of them has counts for nothing."""
    longer, shorter = (server, ours) if len(server) >= len(ours) else (ours, server)
    if (
        longer.endswith(shorter)
        and len(longer) - len(shorter) <= 32
        and " " not in longer[: len(longer) - len(shorter)]
    ):
        return "yes", "the server renders what the model's own template says"
    at = _first_difference(server, ours)
    places = f"the server has {server[at : at + 60]!r}, the template {ours[at : at + 60]!r} at character {at}"
    if re.sub(r"\s+", "", server) == re.sub(r"\s+", "", ours):
        return "partial", f"only blanks differ: {places}"
    return "no", places


def _first_difference(one: str, other: str) -> int:
    shared = min(len(one), len(other))
    return next((at for at in range(shared) if one[at] != other[at]), shared)


# ---------------------------------------------------------------------- system and roles
async def _system(name: str, target: Target) -> ProbeResult:
    user = {"role": "user", "content": QUESTION}
    messages = [{"role": "system", "content": _SYSTEM_MARK}, user]
    body = body_of(target, messages, tools=None, max_tokens=1)
    have = await rendered(target, body)
    if have.text is not None:
        evidence = await cite_asks(target, *have.asks[-1:])
        if _SYSTEM_MARK in have.text:
            return ran(name, "yes", "the system message is in the prompt", source=have.source, evidence=evidence)
        why = "the system message is not in the rendered prompt"
        return ran(name, "no", why, source=have.source, outcome="template.system_dropped", evidence=evidence)
    reply = await chat(target, body, name)
    plain = await chat(target, plain_body(target), name)
    if reply.prompt_tokens is None or plain.prompt_tokens is None:
        return ran(name, "unknown", f"{have.why}; and there are no token counts to compare", reply=reply)
    # A template may have a system text of its own that this one takes the place of: no growth is then no proof.
    growth = reply.prompt_tokens - plain.prompt_tokens
    if growth * CHARACTERS_PER_TOKEN >= len(_SYSTEM_MARK):
        support, why = _growth(growth, len(_SYSTEM_MARK), "the system message")
    else:
        support, why = "unknown", f"the prompt grew by {growth} tokens, and may have lost a default system text"
    value = {"growth": growth, "characters": len(_SYSTEM_MARK)}
    return ran(
        name, support, why, value=value, source="prompt_tokens", evidence=reply.cite_usage() + plain.cite_usage()
    )


async def _roles(name: str, target: Target) -> ProbeResult:
    """Every turn of a history with a tool call has to be in the prompt, in order."""
    call = {"name": "get_weather", "arguments": json.dumps({"city": _MARKS[1]})}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": _MARKS[0]},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "call_1", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "call_1", "name": "get_weather", "content": _MARKS[2]},
        {"role": "assistant", "content": _MARKS[3]},
        {"role": "user", "content": _MARKS[4]},
    ]
    have = await rendered(target, body_of(target, messages))
    if have.text is None:
        return ran(name, "unknown", have.why)
    places = [have.text.find(mark) for mark in _MARKS]
    evidence = await cite_asks(target, *have.asks[-1:])
    missing = [mark for mark, place in zip(_MARKS, places, strict=True) if place < 0]
    if missing:
        why = f"not in the rendered prompt: {', '.join(missing)}"
        support: Support = "partial" if len(missing) < len(_MARKS) else "no"
        return ran(name, support, why, value=missing, source=have.source, outcome="template.drift", evidence=evidence)
    if places != sorted(places):
        return ran(name, "no", "the turns stand in another order", outcome="template.drift", evidence=evidence)
    return ran(name, "yes", "all turns of a history are in the prompt", source=have.source, evidence=evidence)
