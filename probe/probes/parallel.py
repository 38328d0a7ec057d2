"""Are two calls of one turn both delivered, and is `parallel_tool_calls: false` obeyed?"""

from __future__ import annotations

from typing import Any

from probe.probes.items import no_turn, ran, run_items
from probe.probes.requests import asked, body_of, chat, script
from probe.reply import Reply
from probe.result import ProbeResult
from probe.target import Target

_BOTH = "What is the weather in Paris and in London? Call the tool once for each city, both in one turn."


async def probe(target: Target) -> list[ProbeResult]:
    """`parallel.two` and `parallel.off`. Two requests."""
    return await run_items(target, {"parallel.two": _two, "parallel.off": _off})


async def _ask(target: Target, name: str, **fields: Any) -> Reply:
    return await chat(target, body_of(target, asked(target, _BOTH, "two"), **fields), name)


async def _two(name: str, target: Target) -> ProbeResult:
    reply = await _ask(target, name)
    if not reply.arrived:
        return no_turn(name, reply)
    count = len(reply.calls)
    if count >= 2:
        return ran(name, "yes", f"{count} calls were delivered", reply=reply, value=count)
    text = script(target, "two")
    if text is None:
        return ran(name, "unknown", "the model may have written no second call", reply=reply, value=count)
    outcome = reply.sighted(text)
    what = outcome.name if outcome is not None else ""
    why = f"the model is known to write two calls, and {count} was delivered ({what})"
    return ran(name, "partial" if count else "no", why, reply=reply, value=count, outcome=what)


async def _off(name: str, target: Target) -> ProbeResult:
    reply = await _ask(target, name, parallel_tool_calls=False)
    if not reply.arrived:
        return no_turn(name, reply)
    count = len(reply.calls)
    if count >= 2:
        why = f"{count} calls were delivered although one was asked for"
        return ran(name, "ignored", why, reply=reply, value=count, outcome="protocol.choice_ignored")
    free = await _ask(target, name)
    if len(free.calls) >= 2 and count == 1:
        return ran(name, "yes", "one call with it, more without", reply=reply, value=count)
    return ran(name, "unknown", "without it no two calls come either", reply=reply, value=count)
