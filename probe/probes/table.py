"""The probes by name: what each costs at most, what it needs, and whether it changes the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from probe.probes import (
    determinism,
    formats,
    gate,
    history,
    limits,
    load_order,
    manners,
    parallel,
    reasoning,
    recovery,
    sampling,
    streaming,
    template,
    tool_choice,
)
from probe.result import ProbeResult
from probe.target import Target


@dataclass(frozen=True, slots=True)
class ProbeEntry:
    """One probe. `requests` and `generations` are the most that it sends, renderings included; what several probes
    share is sent once. `changes`: it needs `--disruptive`. `better_with` names what its answer gains from: `render`
    (the server shows the prompt), `identity` (its metadata were read), `known_text` (a canary)."""

    name: str
    about: str
    run: Callable[[Target], Awaitable[list[ProbeResult]]]
    requests: int
    generations: int
    changes: bool = False
    better_with: tuple[str, ...] = ()


PROBES: tuple[ProbeEntry, ...] = (
    ProbeEntry("gate", "whether requests with tools are taken at all", gate.probe, 2, 2, better_with=("identity",)),
    ProbeEntry("template", "what prompt a request becomes", template.probe, 10, 4, better_with=("render", "identity")),
    ProbeEntry("tool_choice", "whether tool_choice is obeyed", tool_choice.probe, 6, 6, better_with=("known_text",)),
    ProbeEntry("parallel", "two calls in one turn", parallel.probe, 2, 2, better_with=("known_text",)),
    ProbeEntry("streaming", "stream against plain answer", streaming.probe, 7, 7, better_with=("known_text",)),
    ProbeEntry("reasoning", "the switch for reasoning, and its field", reasoning.probe, 5, 3, better_with=("render",)),
    ProbeEntry("formats", "response_format and grammar", formats.probe, 4, 4),
    ProbeEntry("history", "tool calls and results in the history", history.probe, 13, 6, better_with=("render",)),
    ProbeEntry("limits", "context, schema size, number of tools", limits.probe, 17, 17, better_with=("identity",)),
    ProbeEntry("sampling", "fields that are honoured or ignored", sampling.probe, 9, 9),
    ProbeEntry("determinism", "one request twice", determinism.probe, 4, 4),
    ProbeEntry("manners", "answers to a client's mistakes", manners.probe, 6, 1),
    ProbeEntry("recovery", "answers after a broken call", recovery.probe, 6, 6, True, ("known_text",)),
    ProbeEntry("load_order", "two names of one weights file (Ollama)", load_order.probe, 30, 3, True),
)


def probe_named(name: str) -> ProbeEntry:
    """A probe by its name. Raises KeyError with the names there are."""
    for entry in PROBES:
        if entry.name == name:
            return entry
    raise KeyError(f"no probe {name!r}; there are {', '.join(entry.name for entry in PROBES)}")


async def run_probe(entry: ProbeEntry, target: Target) -> list[ProbeResult]:
    """Run one probe; what it is not allowed to do is `skipped`, before anything is sent."""
    if entry.changes and not target.asker.budget.disruptive:
        why = "needs --disruptive: it loads, unloads or may wedge a model"
        return [ProbeResult(entry.name, "skipped", why=why)]
    return await entry.run(target)
