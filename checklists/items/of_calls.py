"""C06 to C09: where calls arrived, who read them, how tools were put to the model, how answers were drawn."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

from checklists.items.answers import (
    counts,
    joined,
    not_applicable,
    part,
    per_server,
    share,
    unknown,
    yes,
)
from checklists.items.material import Grid, Material, Server, said
from checklists.items.records import Filled, Link, Part
from checklists.items.traffic import OTHERS
from results.episodes import CellKey

NO_GRID = "stacktap set no tasks here: it recorded the requests of a program"
_DRAWN = ("temperature", "top_p", "max_tokens")


def c06_channel(material: Material) -> Filled:
    """Each place where valid calls arrived, with its share; of a grid as the harness read them."""
    links = [link for server in material.used for link in server.traffic.channel_first.values()]
    grid = material.grid
    if grid is not None and not grid.unreadable:
        parts = [
            part(cell.cell.title, "yes", _channels({_CHANNEL.get(name, name): n for name, n in cell.channels.items()}))
            if cell.produced
            else part(cell.cell.title, "not_applicable", why="no answer of the model arrived")
            for cell in grid.cells
        ]
        if parts:
            return joined("C06", parts, links=links, channels=_total(grid))
    of_servers = []
    for server in material.used:
        traffic = server.traffic
        if traffic.reached or traffic.channels:
            of_servers.append((server, part(server.name, "yes", _channels(traffic.channels))))
        else:
            why = "no answer of the model arrived, so there were no calls"
            of_servers.append((server, part(server.name, "not_applicable", why=why)))
    channels = {server.name: dict(sorted(server.traffic.channels.items())) for server in material.used}
    return per_server("C06", material, of_servers, links=links, channels=channels)


_CHANNEL = {"native": "in its own field", "text": "as text"}


def _channels(found: Mapping[str, int]) -> str:
    total = sum(found.values())
    if not total:
        return "no valid call arrived anywhere"
    ordered = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    return "valid calls: " + ", ".join(f"{share(count, total)} {name}" for name, count in ordered)


def _total(grid: Grid) -> dict[str, int]:
    total: Counter[str] = Counter()
    for cell in grid.cells:
        total.update(cell.channels)
    return dict(sorted(total.items()))


def c07_client_parser(material: Material) -> Filled:
    """The harness's own parsers are known; a foreign agent's are not."""
    grid = material.grid
    if grid is None or grid.unreadable:
        agents = sorted({name for server in material.used for name in server.traffic.clients if name != "(not named)"})
        known = f"the client names itself {', '.join(agents[:3])}" if agents else ""
        wrapped = material.manifest.fact("agent") if material.manifest is not None else None
        if wrapped is not None and wrapped.unknown is None:
            known = f"the agent {said(wrapped.value)}" + (f", {known}" if known else "")
        words = "parser of the client, its version, strict or lenient"
        why = "how a program reads calls out of an answer does not show on the wire"
        return unknown("C07", why, material.stated_command("C07", words), known)
    version = _one(grid, "harness")
    recovered = sum(grid.recovered.values())
    parts = [
        "calls in their own field are taken as they are, their arguments checked against the tool's schema",
        f"text is read for fenced or bare JSON objects (lenient; harness version {version})",
        f"calls asked for as text and read from it: {grid.read_as_text}",
        f"calls recovered where the server had left them as text: {counts(grid.recovered) if recovered else 'none'}",
    ]
    return yes("C07", "; ".join(parts), recovered=dict(grid.recovered), read_as_text=grid.read_as_text)


def _one(grid: Grid, name: str) -> str:
    """A fact of the plans: one value, or all that there are."""
    values = sorted(
        {
            said(plan.facts[name].value)
            for plan in grid.plans.values()
            if name in plan.facts and not plan.facts[name].unknown
        }
    )
    return " / ".join(values) or "not stated"


def c08_condition(material: Material) -> Filled:
    """Of a grid: the conditions with the hash of their texts, and whether all models had the same ones."""
    grid = material.grid
    if grid is not None and not grid.unreadable and grid.plans:
        return _planned_conditions(grid)
    parts = []
    for server in material.used:
        traffic = server.traffic
        if not traffic.generating:
            parts.append((server, part(server.name, "not_applicable", why="no request asked for an answer of a model")))
            continue
        found = ", ".join(f"{name} in {share(n, traffic.generating)}" for name, n in _ordered(traffic.conditions))
        prompts = [name for name, _ in _ordered(traffic.system_prompts)]
        system = f"system prompt SHA-256 {prompts[0]}..." if len(prompts) == 1 else f"{len(prompts)} system prompts"
        if prompts == ["none"]:
            system = "no system prompt"
        fixed = "one condition" if len(traffic.conditions) == 1 else "not one condition throughout"
        value = f"{fixed}: {found}; {system}; no text of stacktap's was added"
        parts.append((server, part(server.name, "yes", value)))
    return per_server("C08", material, parts)


def _ordered(found: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))


def _planned_conditions(grid: Grid) -> Filled:
    texts: dict[str, set[str]] = {}
    by_model: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for cell, plan in grid.plans.items():
        text = plan.facts.get("condition_text")
        digest = said(text.value) if text is not None and text.unknown is None else "not stated"
        texts.setdefault(cell.condition, set()).add(digest)
        by_model.setdefault((cell.model, cell.stack), set()).add((cell.condition, cell.task))
    named = ", ".join(f"{name} (text SHA-256 {_few(digests)})" for name, digests in sorted(texts.items()))
    alike = all(len(digests) == 1 for digests in texts.values())
    fixed = len({frozenset(found) for found in by_model.values()}) == 1
    if len(by_model) == 1:
        held = "nothing is compared: one model on one server"
    elif fixed and alike:
        held = f"the same for all {len(by_model)} models and servers"
    else:
        held = "NOT the same for all models and servers: compare only cells of one condition"
    data = {name: sorted(digests) for name, digests in sorted(texts.items())}
    return yes("C08", f"{named}; {held}", conditions=data, held_fixed=fixed and alike)


def _few(digests: set[str]) -> str:
    return " / ".join(digest[:16] for digest in sorted(digests))


def c09_decoding(material: Material) -> Filled:
    """What the requests state; what they leave open must be known of the server."""
    parts = [(server, _c09(material, server)) for server in material.used]
    return per_server(
        "C09", material, parts, sent={server.name: dict(server.traffic.decoding) for server in material.used}
    )


def _c09(material: Material, server: Server) -> Part:
    traffic = server.traffic
    if not traffic.generating:
        return part(server.name, "not_applicable", why="no request asked for an answer of a model")
    sent = "; ".join(f"{_sent(text)} (in {share(n, traffic.generating)})" for text, n in _ordered(traffic.decoding))
    defaults, context = server.fact("sampling"), server.fact("context_length")
    told = defaults.value if defaults.unknown is None and isinstance(defaults.value, dict) else {}
    words = [f"sent: {sent}"]
    lacking = []
    for name in _DRAWN:
        if not traffic.undefined[name]:
            continue
        if name in told:
            words.append(f"where not sent, {name} {said(told[name])} by the server ({defaults.source})")
        elif name == "max_tokens":
            words.append("where not sent, no output limit is asked for")
        else:
            lacking.append(f"{name} where not sent: {defaults.unknown or 'not among what the server tells'}")
    if context.unknown is None:
        words.append(f"context in force {said(context.value)} tokens ({context.source})")
    elif not _all_sent(traffic.decoding):
        lacking.append(f"context in force: {context.unknown}")
    if not lacking:
        return part(server.name, "yes", "; ".join(words))
    command = material.stated_command("C09", "; ".join(word.partition(":")[0] + " ..." for word in lacking))
    return part(server.name, "unknown", "; ".join(words), "; ".join(lacking), command)


def _all_sent(decoding: Mapping[str, int]) -> bool:
    return all("num_ctx" in text for text in decoding)


def _sent(text: str) -> str:
    if text == OTHERS:
        return "others"
    try:
        value = json.loads(text)
    except ValueError:
        return text[:200]
    if not isinstance(value, dict) or not value:
        return "nothing (all left to the server), no stop strings, no seed"
    words = [f"{name} {said(each)}" for name, each in value.items()]
    words += [f"no {name}" for name, key in (("stop strings", "stop"), ("seed", "seed")) if key not in value]
    return ", ".join(words)


def first_links(material: Material) -> list[Link]:
    """Where the first transport failure of each server stands."""
    return [server.traffic.transport_first for server in material.used if server.traffic.transport_first]


def task_cells(grid: Grid) -> dict[tuple[str, str], list[CellKey]]:
    """Cells by condition and task: what can be compared with each other."""
    found: dict[tuple[str, str], list[CellKey]] = {}
    for cell in grid.cells:
        found.setdefault((cell.cell.condition, cell.cell.task), []).append(cell.cell)
    return found


def no_grid(item: str, material: Material, why: str = NO_GRID) -> Filled | None:
    """The answer where a run has no episodes, or they cannot be read; None where it has."""
    grid = material.grid
    if grid is None:
        return not_applicable(item, why)
    if grid.unreadable:
        return unknown(item, grid.unreadable, material.stated_command(item, "..."))
    if not grid.cells:
        return not_applicable(item, "the run has no cell yet: nothing was declared and nothing ran")
    return None
