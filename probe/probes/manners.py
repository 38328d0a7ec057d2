"""How does the server answer a client's mistake: with a 4xx and words, with something else, or not at all?"""

from __future__ import annotations

from typing import Any

from probe.probes.items import no_turn, ran, run_items
from probe.probes.requests import QUESTION, body_of, on_wire, reply_to
from probe.reply import Reply
from probe.result import ProbeResult
from probe.target import Target
from stacks.serving.base import Ask

LOADS_ON_DEMAND = ("mlx_server", "lmstudio")
"""Stacks that let go of the loaded model, or load another, when a request names one that they do not know."""
NO_SUCH_MODEL = "stacktap-no-such-model"
NO_SUCH_ROUTE = "/v1/stacktap-no-such-route"
_SECONDS = 20.0


async def probe(target: Target) -> list[ProbeResult]:
    """`manners.invalid_json`, `.wrong_type`, `.no_messages`, `.unknown_model`, `.unknown_route`, `.survives`."""
    items = {
        "invalid_json": _invalid_json,
        "wrong_type": _wrong_type,
        "no_messages": _no_messages,
        "unknown_model": _unknown_model,
        "unknown_route": _unknown_route,
        "survives": _survives,
    }
    return await run_items(target, {f"manners.{name}": item for name, item in items.items()})


async def _post(target: Target, name: str, *, changes: bool = False, **content: Any) -> Reply:
    ask = Ask("POST", target.stack.chat_path, purpose=name, changes=changes, seconds=_SECONDS, **content)
    return await reply_to(target, ask)


async def _invalid_json(name: str, target: Target) -> ProbeResult:
    return _manner(name, await _post(target, name, raw=b'{"model": "m", "messages": [{"role": "user",'))


async def _wrong_type(name: str, target: Target) -> ProbeResult:
    return _manner(name, await _post(target, name, body={"model": target.model, "messages": 7, "max_tokens": 1}))


async def _no_messages(name: str, target: Target) -> ProbeResult:
    return _manner(name, await _post(target, name, body={"model": target.model, "max_tokens": 1}))


async def _unknown_model(name: str, target: Target) -> ProbeResult:
    path = target.stack.chat_path
    body = on_wire(path, {**body_of(target, QUESTION, tools=None, max_tokens=1), "model": NO_SUCH_MODEL})
    reply = await _post(target, name, body=body, changes=target.stack.name in LOADS_ON_DEMAND, generates=True)
    return _manner(name, reply)


async def _unknown_route(name: str, target: Target) -> ProbeResult:
    return _manner(name, await reply_to(target, Ask("GET", NO_SUCH_ROUTE, purpose=name, seconds=_SECONDS)))


async def _survives(name: str, target: Target) -> ProbeResult:
    """Whether the server still answers after the mistakes before."""
    reply = await reply_to(target, Ask("GET", "/v1/models", purpose=name, seconds=_SECONDS))
    if reply.answer.status is None:
        return ran(name, "no", f"no answer after it: {reply.error}", reply=reply, evidence=reply.cite_body())
    return ran(name, "yes", "it answers as before", reply=reply, outcome="", evidence=reply.cite_body())


def _manner(name: str, reply: Reply) -> ProbeResult:
    answer = reply.answer
    fields = sorted(answer.object)
    value = {"status": answer.status, "fields": fields, "text": answer.text[:200]}
    evidence = reply.cite_error()
    if reply.unrecorded:
        return no_turn(name, reply, value=value)
    if answer.failure == "timeout":
        why = f"no answer within {_SECONDS:.0f} s"
        return ran(name, "no", why, reply=reply, value=value, source="wire", evidence=evidence)
    if answer.status is None:
        why = "the connection was closed without an answer"
        return ran(name, "no", why, reply=reply, value=value, source="wire", evidence=evidence)
    if answer.status < 400:
        why = f"status {answer.status}: the mistake was not noticed"
        return ran(name, "ignored", why, value=value, source="wire", evidence=reply.cite_body())
    if answer.status >= 500:
        why = f"a client's mistake is answered as the server's own (status {answer.status}): {reply.error}"
        return ran(name, "partial", why, reply=reply, value=value, source="wire", evidence=evidence)
    if not {"error", "detail", "message"} & set(fields):
        why = f"status {answer.status}, and no error object that a client could read"
        return ran(name, "partial", why, reply=reply, value=value, source="wire", evidence=evidence)
    why = f"status {answer.status}: {reply.error}"
    return ran(name, "yes", why, reply=reply, value=value, source="wire", evidence=evidence)
