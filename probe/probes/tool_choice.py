"""Is `tool_choice` obeyed? Decided by what the server lets through, or, where a known answer decides it, by that."""

from __future__ import annotations

from probe.known_answer import WEATHER_TOOL
from probe.probes.items import no_turn, ran, run_items
from probe.probes.requests import (
    GREETING,
    QUESTION,
    TIME_TOOL,
    body_of,
    chat,
    prose_script,
    script,
    weather,
    worded,
)
from probe.reply import Reply
from probe.result import ProbeResult
from probe.target import Target


async def probe(target: Target) -> list[ProbeResult]:
    """`tool_choice.auto`, `.none`, `.required`, `.named`. Six requests at most."""
    items = {"auto": _auto, "none": _none, "required": _required, "named": _named}
    return await run_items(target, {f"tool_choice.{name}": item for name, item in items.items()})


async def _auto(name: str, target: Target) -> ProbeResult:
    reply = await weather(target, name, tool_choice="auto")
    if not reply.arrived:
        return no_turn(name, reply)
    if reply.calls:
        return ran(name, "yes", "a call was delivered", reply=reply)
    known = reply.sighted(target.known_text) if target.known_text is not None else None
    if known is not None and not known.name.startswith("truncation."):
        why = f"the model is known to write a call, and none was delivered ({known.name})"
        return ran(name, "no", why, reply=reply, outcome=known.name)
    return ran(name, "unknown", "no call came, and a model may choose not to call", reply=reply)


async def _none(name: str, target: Target) -> ProbeResult:
    reply = await weather(target, name, tool_choice="none")
    if not reply.arrived:
        return no_turn(name, reply)
    if reply.calls:
        why = "a call was delivered although calls were forbidden"
        return ran(name, "ignored", why, reply=reply, outcome="protocol.choice_ignored")
    if target.known_text is not None:
        if not reply.text.strip():
            why = "no call was delivered, and the text of the known call is missing too"
            return ran(name, "partial", why, reply=reply)
        return ran(name, "yes", "the known call came as text, not as a call", reply=reply)
    if reply.call_in_text:
        return ran(name, "yes", "the model wrote a call, and it was delivered as text", reply=reply)
    free = await weather(target, name)
    if free.calls:
        return ran(name, "yes", "the same request brings a call when calls are allowed", reply=reply)
    return ran(name, "unknown", "the model does not call when it may, so its silence tells nothing", reply=reply)


async def _required(name: str, target: Target) -> ProbeResult:
    """Asked for what needs no tool: a call then comes from the server's doing; none shows that nothing was forced."""
    body = body_of(target, worded(target, GREETING), tool_choice="required")
    reply = await chat(target, body, name)
    if reply.called and prose_script(target) is None:
        free = await chat(target, body_of(target, GREETING), name)
        if free.called or not free.arrived:
            return ran(name, "unknown", "a call came, and one comes without it too", reply=reply)
        return ran(name, "yes", "a call came; without it the same question brings none", reply=reply)
    return _forced(name, target, reply, wanted=None)


async def _named(name: str, target: Target) -> ProbeResult:
    """The question is about weather, and the tool named is the other one."""
    choice = {"type": "function", "function": {"name": "get_time"}}
    body = body_of(target, QUESTION, tools=(WEATHER_TOOL, TIME_TOOL), tool_choice=choice)
    reply = await chat(target, body, name)
    return _forced(name, target, reply, wanted="get_time")


def _forced(name: str, target: Target, reply: Reply, wanted: str | None) -> ProbeResult:
    """The verdict on a forced call. `wanted` is the named tool, None where any will do."""
    if not reply.arrived:
        return no_turn(name, reply)
    if reply.called and wanted is not None and set(reply.called) != {wanted}:
        why = f"{wanted} was named, and {', '.join(reply.called)} was called"
        return ran(name, "ignored", why, reply=reply, outcome="protocol.choice_ignored")
    if reply.called and reply.limit_reached and not all(each.call.arguments_valid for each in reply.calls):
        return ran(name, "yes", "a call was forced; the output limit ended it", reply=reply)
    if reply.called:
        return ran(name, "yes", "a call was forced", reply=reply)
    if reply.call_in_text and wanted is None and prose_script(target) is None:
        return ran(name, "unknown", "a call stands in the text: forced or not, it was not delivered", reply=reply)
    if reply.limit_reached:
        if _written_freely(target, reply, wanted):
            why = "the known text came as it is written freely: nothing was forced"
            return ran(name, "ignored", why, reply=reply, outcome="protocol.choice_ignored")
        return ran(name, "unknown", "the output limit ended the answer before a call", reply=reply)
    why = "accepted, and the answer ends without a call"
    return ran(name, "ignored", why, reply=reply, outcome="protocol.choice_ignored")


def _written_freely(target: Target, reply: Reply, wanted: str | None) -> bool:
    free = script(target, "good" if wanted is not None else prose_script(target) or "")
    return free is not None and free.strip() in reply.text
