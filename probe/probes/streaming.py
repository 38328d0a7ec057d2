"""Does a stream say the same as a plain answer? The canonical turns of both are compared, never their bytes."""

from __future__ import annotations

from typing import Any

from probe.probes.items import no_turn, not_applicable, ran, run_items
from probe.probes.requests import QUESTION, asked, body_of, chat, script
from probe.result import ProbeResult
from probe.target import Target

_MEMBERS = ("prosecall", "trunc")
"""Scripts whose text servers are known to read differently in a stream; asked of a canary only."""


async def probe(target: Target) -> list[ProbeResult]:
    """`streaming.works`, `streaming.same`, and on a canary `streaming.<script>`. Two requests, with a canary six."""
    items = {"streaming.works": _works, "streaming.same": _same}
    items.update({f"streaming.{member}": _same for member in _MEMBERS if script(target, member) is not None})
    return await run_items(target, items)


async def _works(name: str, target: Target) -> ProbeResult:
    reply = await chat(target, body_of(target, QUESTION, stream=True), name)
    if not reply.arrived or reply.facts is None:
        return no_turn(name, reply)
    pieces = len(reply.facts.assembled.events)
    flags = [flag for flag in reply.judged.outcome.flags if flag.startswith("protocol.")] if reply.judged else []
    value = {"events": pieces, "usage": reply.completion_tokens is not None, "flags": flags}
    kind = reply.answer.header("content-type")
    if pieces <= 1 and "ndjson" not in kind and "event-stream" not in kind:
        return ran(name, "ignored", "`stream` was asked for, and one plain answer came", reply=reply, value=value)
    if flags:
        return ran(name, "partial", f"the stream breaks its protocol: {', '.join(flags)}", reply=reply, value=value)
    return ran(name, "yes", f"{pieces} events, whole", reply=reply, value=value)


async def _same(name: str, target: Target) -> ProbeResult:
    member = name.partition(".")[2]
    question = QUESTION if member == "same" else asked(target, QUESTION, member)
    plain = await chat(target, body_of(target, question), name)
    streamed = await chat(target, body_of(target, question, stream=True), name)
    if not plain.arrived and not streamed.arrived:
        return not_applicable(name, f"neither form brings a turn: {plain.error}")
    value: dict[str, Any] = {"plain": plain.shown(), "stream": streamed.shown()}
    evidence = plain.cite_turn() + streamed.cite_turn()
    if plain.arrived != streamed.arrived:
        gone, which = (streamed, "the stream") if plain.arrived else (plain, "the plain answer")
        why = f"only {which} fails: {gone.error}"
        return ran(name, "no", why, reply=gone, value=value, outcome="parser.stream_differs", evidence=evidence)
    differ = _differences(value["plain"], value["stream"])
    if not differ:
        return ran(name, "yes", "the same turn both ways", reply=streamed, value=value, evidence=evidence)
    if target.known_text is None:
        repeated = await chat(target, body_of(target, question), name, again=True)
        if not repeated.arrived or _differences(repeated.shown(), value["plain"]):
            why = "they differ, and so do two plain answers: the model is not repeatable here"
            return ran(name, "unknown", why, reply=streamed, value=value, evidence=evidence)
    why = f"they differ in {', '.join(differ)}"
    return ran(name, "no", why, reply=streamed, value=value, outcome="parser.stream_differs", evidence=evidence)


def _differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Fields in which two turns differ; blanks around a text count for nothing."""
    found = [field for field in ("text", "reasoning") if one[field].strip() != other[field].strip()]
    return [*found, *(field for field in ("calls", "finish") if one[field] != other[field])]
