"""Does the server take a request with tools for this model at all? Asked with and without: only tools differ."""

from __future__ import annotations

from probe.probes.items import no_turn, ran, run_items
from probe.probes.requests import chat, plain_body, weather
from probe.result import ProbeResult
from probe.target import Target

_OF_TOOLS = ("gate.tools_unsupported", "gate.parser_not_configured", "gate.template_flag_missing")
"""Refusals that name tools, whatever else is wrong."""


async def probe(target: Target) -> list[ProbeResult]:
    """`gate.plain`, `gate.tools`, `gate.metadata`. Two requests at most."""
    return await run_items(target, {"gate.plain": _plain, "gate.tools": _tools, "gate.metadata": _metadata})


async def _plain(name: str, target: Target) -> ProbeResult:
    reply = await chat(target, plain_body(target), name)
    if not reply.arrived:
        return no_turn(name, reply)
    return ran(name, "yes", "the model answers a request without tools", reply=reply)


async def _tools(name: str, target: Target) -> ProbeResult:
    reply = await weather(target, name)
    if reply.arrived:
        return ran(name, "yes", "a request with tools is answered", reply=reply)
    plain = await chat(target, plain_body(target), name)
    if reply.refused and (plain.arrived or reply.outcome in _OF_TOOLS):
        without = "answered" if plain.arrived else "no answer either"
        why = f"refused with tools, {without} without: {reply.error}"
        return ran(name, "refused", why, reply=reply, evidence=reply.cite_error() + plain.cite_turn())
    if plain.arrived:
        why = f"with tools: {reply.error}; without: answered"
        return ran(name, "no", why, reply=reply, evidence=reply.cite_error() + plain.cite_turn())
    result = no_turn(name, reply)
    why = f"not a matter of tools, the request without them fails too: {plain.error}"
    return ProbeResult(name, "failed", "unknown", None, result.source, why, result.outcome, result.evidence)


async def _metadata(name: str, target: Target) -> ProbeResult:
    """What the server's own metadata say of tools, beside what it does."""
    fact = target.identity.tools if target.identity is not None else None
    if fact is None or fact.unknown is not None:
        why = fact.unknown if fact is not None and fact.unknown else "the model's metadata were not read"
        return ProbeResult(name, "ran", "unknown", None, "metadata", why)
    reply = await weather(target, name)
    says = bool(fact.value)
    does = True if reply.arrived else False if reply.refused else None
    why = f"the metadata say tools: {'yes' if says else 'no'}"
    if does is not None and does != says:
        why += f", and a request with tools is {'answered' if does else 'refused'}"
    value = {"says": says, "does": does}
    return ran(name, "yes" if says else "no", why, reply=reply, value=value, source=fact.source)
