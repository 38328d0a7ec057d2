"""Does it matter which of two names of one weights file was loaded first? On Ollama they share a runner, which is
started as the first name wants it (seen on 0.30.8 and 0.32.15). Loads and unloads models, so it needs consent."""

from __future__ import annotations

import re

from probe.probes.items import no_turn, not_applicable, ran, run_items
from probe.probes.requests import QUESTION, body_of, chat
from probe.reply import Reply
from probe.result import ProbeResult
from probe.target import Target
from stacks.serving.base import Ask

_WEIGHTS = re.compile(r"^FROM\s+\S*?(sha256[-:][0-9a-f]{64})", re.MULTILINE)
_MOST_NAMES = 12
_SECONDS = 120.0


async def probe(target: Target) -> list[ProbeResult]:
    """`load_order.shared_runner`. Looks at up to 12 models, then unloads and loads two of them twice."""
    return await run_items(target, {"load_order.shared_runner": _shared_runner})


async def _shared_runner(name: str, target: Target) -> ProbeResult:
    if target.stack.name != "ollama":
        return not_applicable(name, "only Ollama runs several names of one weights file in one runner")
    other = await _sibling(target)
    if other is None:
        return not_applicable(name, "no other name of these weights is on the server")
    alone = await _after_loading(name, target, (target.model, other), target.model)
    behind = await _after_loading(name, target, (target.model, other), other)
    await _unload(name, target, (other, target.model))
    if not alone.arrived:
        return no_turn(name, alone)
    value = {"other": other, "loaded_first": alone.shown(), "loaded_second": behind.shown()}
    evidence = alone.cite_turn() + behind.cite_error()
    if not behind.arrived:
        why = f"answered when it is loaded first; with {other} loaded before it: {behind.error}"
        return ran(name, "no", why, reply=behind, value=value, evidence=evidence)
    if value["loaded_first"] == value["loaded_second"]:
        why = f"the same answer, whether {other} was loaded before it or not"
        return ran(name, "yes", why, reply=behind, value=value, evidence=evidence)
    why = f"another answer when {other} was loaded before it"
    return ran(name, "no", why, reply=behind, value=value, evidence=evidence)


async def _sibling(target: Target) -> str | None:
    """Another name whose weights are the same file; one with another kind of template before one with the same."""
    own = await _shown(target, target.model)
    if own is None:
        return None
    names = [model.name for model in await target.asker.follow(target.stack.models())]
    others = [name for name in names if _bare(name) != _bare(target.model)]
    others.sort(key=lambda name: -_shared(name, target.model))
    alike = ""
    for name in others[:_MOST_NAMES]:
        shown = await _shown(target, name)
        if shown is not None and shown[0] == own[0]:
            if shown[1] != own[1]:
                return name
            alike = alike or name
    return alike or None


def _bare(name: str) -> str:
    return name.removesuffix(":latest")


def _shared(one: str, other: str) -> int:
    """Letters that two names begin with alike: names of one weights file are often kin."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


async def _shown(target: Target, name: str) -> tuple[str, bool] | None:
    """The weights file of a name, and whether its template is a Jinja one; None where that is not told."""
    answer = await target.asker.ask(Ask("POST", "/api/show", {"model": name}, purpose="weights file of a name"))
    found = _WEIGHTS.search(str(answer.get("modelfile") or ""))
    return (found[1], "{%" in str(answer.get("template") or "")) if found else None


async def _after_loading(name: str, target: Target, both: tuple[str, str], first: str) -> Reply:
    """The usual question to the target's model, where `first` was asked it, and so loaded, before."""
    await _unload(name, target, both)
    usual = body_of(target, QUESTION)
    for model in dict.fromkeys((first, target.model)):
        body = {**usual, "model": model}
        reply = await chat(target, body, name, again=True, changes=True, seconds=_SECONDS)
    return reply


async def _unload(name: str, target: Target, names: tuple[str, str]) -> None:
    """Source: Ollama's `server/routes.go`, ChatHandler: no messages and `keep_alive` 0 unload."""
    for each in names:
        body = {"model": each, "keep_alive": 0}
        await target.asker.ask(Ask("POST", "/api/chat", body, purpose=name, changes=True, seconds=_SECONDS))
