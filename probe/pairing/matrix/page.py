"""Pages of a matrix: the table, and one page for each cell that does not simply pair. Pure, of the results alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from probe.pairing.agent_run.waiting import plain_text
from probe.pairing.matrix.store import Cell, MatrixStore
from probe.pairing.telling import said_of_deciding

INDEX = "index.md"
PAGES = "cells"
"""Folder of the pages of single cells, beside the index."""
QUOTE_CHARACTERS = 1200

_WORDS = {
    "pairs": "pairs",
    "pairs_with_faults": "pairs with faults",
    "broken": "broken",
    "undecided": "undecided",
    "not_started": "server does not start",
    "not_run": "not run",
}
_LEGEND = (
    "**pairs**: the agent, unchanged, walked the whole task (look, write a file, read it, finish).",
    "**pairs with faults**: it did, and something on the way was not as it should be; the page says what.",
    "**broken**: it did not, and the model cannot be why. The page names who broke which step, with bytes and remedy.",
    "**undecided**: it did not, and the record does not tell who broke it; the page says what would decide it.",
    "**server does not start**: this configuration ends before any agent; the page quotes the server.",
    "**not run**: the cell could not be tried here; the reason stands below the table.",
)


def pages(store: MatrixStore) -> dict[str, str]:
    """File name (relative, `/` between folders) -> text of every page."""
    shown = _shown(store)
    result = {INDEX: _index(store, shown)}
    for cell in shown.values():
        if has_page(cell):
            result[page_of(cell)] = _page(cell, store, shown)
    return result


def has_page(cell: Cell) -> bool:
    """Whether a cell has something to tell besides that it pairs."""
    return cell.kind not in ("pairs", "not_run")


def page_of(cell: Cell) -> str:
    """The name of a cell's page."""
    return f"{PAGES}/{'--'.join(_slug(part) for part in cell.slot)}.md"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def _shown(store: MatrixStore) -> dict[tuple[str, str, str], Cell]:
    """The cells of the plan, in its order; those not tried yet say so."""
    cells = {}
    for configuration in store.plan["configurations"]:
        for agent in configuration["agents"]:
            slot = (agent, configuration["stack"], configuration["name"])
            cells[slot] = store.cells.get(slot) or Cell(*slot, "not_run", why="not tried yet")
    return cells


def _index(store: MatrixStore, shown: Mapping[tuple[str, str, str], Cell]) -> str:
    lines = [f"# {store.title}", ""]
    lines += ["Does this agent work with this server, started in this way? Each cell is one run of a real, unchanged"]
    lines += ["agent on a real server whose model is a canary: it writes known calls by construction, and cannot be at"]
    lines += ["fault. A link leads to what broke, with the bytes and the remedy. All is rendered from"]
    lines += ["[matrix.json](matrix.json), which `stacktap pair --matrix` measured.", ""]
    lines += [_tally(shown.values()), ""]
    configurations = store.plan["configurations"]
    for stack in dict.fromkeys(each["stack"] for each in configurations):
        lines += _stack_table(stack, [each for each in configurations if each["stack"] == stack], store, shown)
    lines += _needs(store, shown)
    lines += _versions(store, shown)
    lines += ["## Legend", "", *(f"- {line}" for line in _LEGEND), ""]
    return "\n".join(lines)


def _tally(cells: Any) -> str:
    kinds = [cell.kind for cell in cells]
    counted = [f"{kinds.count(kind)} {word}" for kind, word in _WORDS.items() if kind in kinds]
    return f"{len(kinds)} cells: {', '.join(counted)}."


def _stack_table(
    stack: str,
    configurations: Sequence[Mapping[str, Any]],
    store: MatrixStore,
    shown: Mapping[tuple[str, str, str], Cell],
) -> list[str]:
    lines = [f"## {stack}", "", "| agent | " + " | ".join(_cell_text(each["name"]) for each in configurations) + " |"]
    lines.append("|---" * (len(configurations) + 1) + "|")
    reasons = []
    for agent in store.plan["agents"]:
        row = []
        for configuration in configurations:
            cell = shown.get((agent["name"], stack, configuration["name"]))
            row.append(_short(cell) if cell else "")
            if cell and cell.kind == "not_run":
                reasons.append(f"- {cell.agent}, {cell.configuration}: {_one_line(cell.why)}")
        lines.append(f"| {_cell_text(agent['name'])} | " + " | ".join(row) + " |")
    lines.append("")
    if reasons:
        lines += ["Not run:", "", *reasons, ""]
    for configuration in configurations:
        lines.append(f"- *{configuration['name']}*: {_launch(configuration)}")
    return [*lines, ""]


def _launch(configuration: Mapping[str, Any]) -> str:
    parts = [
        f"`{' '.join(_quoted(flag) for flag in configuration['flags'])}`" if configuration["flags"] else "no flags"
    ]
    if configuration["context"]:
        parts.append(f"context {configuration['context']}")
    if configuration["format"]:
        parts.append(f"the canary writes its calls in the format {configuration['format']}")
    if configuration["remedied_by"]:
        stack, name = configuration["remedied_by"]
        parts.append(f"remedied by *{name}*" + ("" if stack == configuration["stack"] else f" of {stack}"))
    return ", ".join(parts)


def _quoted(flag: str) -> str:
    return f"'{flag}'" if " " in flag else flag


def _short(cell: Cell) -> str:
    words = _WORDS.get(cell.kind, cell.kind)
    code = _finding(cell).get("code")
    text = f"{words}: {code}" if code and cell.kind == "broken" else words
    return f"[{text}]({page_of(cell)})" if has_page(cell) else text


def _finding(cell: Cell) -> Mapping[str, Any]:
    return cell.pairing.get("broken") or {}


def _needs(store: MatrixStore, shown: Mapping[tuple[str, str, str], Cell]) -> list[str]:
    """What each agent asks of a server, from a cell that walked the whole task."""
    rows = []
    for agent in store.plan["agents"]:
        walked = [cell for cell in shown.values() if cell.agent == agent["name"] and cell.kind.startswith("pairs")]
        demands = next((cell.pairing["demands"] for cell in walked if cell.pairing.get("demands")), None)
        if demands is not None:
            rows.append(_needs_row(agent["name"], demands))
    if not rows:
        return []
    head = "| agent | API | tools | tokens before the task | longest prompt | context needed | uses |"
    return ["## What the agents ask of a server", "", head, "|---" * 7 + "|", *rows, ""]


def _needs_row(agent: str, demands: Mapping[str, Any]) -> str:
    tools = f"{demands['tools']} ({demands['tools_bytes']} bytes)" if demands["tools"] else "none"
    numbers = [demands[name] for name in ("tokens_before_task", "most_prompt_tokens", "context_needed")]
    words = ["unknown" if number is None else str(number) for number in numbers]
    features = ", ".join(demands["features"]) or "nothing special"
    return "| " + " | ".join(_cell_text(each) for each in (agent, demands["api"], tools, *words, features)) + " |"


def _versions(store: MatrixStore, shown: Mapping[tuple[str, str, str], Cell]) -> list[str]:
    lines = ["## Versions", "", "| | version |", "|---|---|", f"| stacktap | {_cell_text(store.stacktap)} |"]
    for kind in ("agent", "stack"):
        found: dict[str, dict[str, None]] = {}
        for cell in shown.values():
            version = getattr(cell, f"{kind}_version")
            if version:
                found.setdefault(getattr(cell, kind), {})[version] = None
        lines += [f"| {_cell_text(name)} | {_cell_text(', '.join(versions))} |" for name, versions in found.items()]
    lines += [f"| {_cell_text(name)} | {_cell_text(value)} |" for name, value in map(_host, store.host.items())]
    return [*lines, ""]


def _host(fact: tuple[str, Any]) -> tuple[str, str]:
    name, value = fact
    if name == "memory_bytes" and isinstance(value, int):
        return "memory", f"{value / 2**30:.1f} GiB"
    return name, str(value)


def _page(cell: Cell, store: MatrixStore, shown: Mapping[tuple[str, str, str], Cell]) -> str:
    agent, stack, configuration = cell.slot
    lines = [f"# {agent} on {stack}, {configuration}: {_WORDS.get(cell.kind, cell.kind)}", ""]
    lines += [f"- agent: {agent} {cell.agent_version}".rstrip(), f"- server: {stack} {cell.stack_version}".rstrip()]
    lines += [f"- started with: {_launch(each)}" for each in store.plan["configurations"] if _is(each, cell)]
    lines += [f"- the canary writes its calls in the format {cell.call_format}; its SHA-256 is {cell.canary}", ""]
    if cell.state == "not_started":
        lines += ["## The server", "", *_fenced(cell.why), ""]
        lines += [f"Remedy: {cell.remedy}", ""] if cell.remedy else []
    else:
        lines += _walked(cell)
    return "\n".join([*lines, *_remedied(cell, store, shown), "[the table](../index.md)", ""])


def _walked(cell: Cell) -> list[str]:
    facts = cell.pairing
    lines = [
        "## Verdict",
        "",
        str(facts["headline"]),
        "",
        "| step | came as written | agent did it | |",
        "|---|---|---|---|",
    ]
    for step in facts["steps"]:
        no = "no" if step["attempt"] is not None else "not reached"
        words = ["yes" if step["delivered"] else no, "yes" if step["done"] else no, _cell_text(step["note"])]
        lines.append(f"| {step['step']} | {' | '.join(words)} |")
    lines.append("")
    if facts["broken"]:
        lines += ["## What broke it", "", *_told(facts["broken"])]
    if facts["faults"]:
        lines += ["## Faults on the way", ""]
        for fault in facts["faults"]:
            lines += _told(fault)
    run = facts["agent_run"]
    if cell.kind in ("broken", "undecided") and run["output"]:
        lines += [f"## What the agent printed ({run['ending']})", "", *_fenced(plain_text(run["output"])), ""]
    return lines


def _told(finding: Mapping[str, Any]) -> list[str]:
    lines = [f"**{finding['code']}**", "", f"- at fault: {finding['who'] or finding['at_fault']}"]
    lines += [f"- what: {_one_line(finding['said'])}", ""]
    if finding["quote"]:
        start, end = finding["wire"] or (None, None)
        where = f"attempt {finding['attempt']}" + (f", {finding['direction']}" if finding["direction"] else "")
        where += f", bytes {start} to {end} on the wire" if start is not None else ""
        lines += [f"{where}:", "", *_fenced(finding["quote"]), ""]
    if finding["remedy"]:
        lines += [f"Remedy: {finding['remedy']}", ""]
    if finding["decide_by"]:
        lines += [f"What would decide it: {said_of_deciding(finding['decide_by'])}", ""]
    return lines


def _remedied(cell: Cell, store: MatrixStore, shown: Mapping[tuple[str, str, str], Cell]) -> list[str]:
    named = next((each["remedied_by"] for each in store.plan["configurations"] if _is(each, cell)), None)
    if not named or cell.kind == "pairs_with_faults":
        return []
    stack, name = named
    beside = shown.get((cell.agent, stack, name))
    if beside is None:
        return ["## Remedied", "", f"{stack}, {name} is not tried with this agent.", ""]
    said = beside.pairing.get("headline") or beside.why
    broken = cell.pairing.get("broken") or {}
    known = bool(broken.get("remedy") or cell.remedy)
    more = "" if known else " No setting is known that mends it where it is: what works with this agent is this one."
    launch = next(_launch(each) for each in store.plan["configurations"] if _is(each, beside))
    return [
        "## Remedied",
        "",
        f"{stack}, {name} ({launch}): {_short_from_page(beside)}. {_one_line(str(said))}{more}",
        "",
    ]


def _short_from_page(cell: Cell) -> str:
    return _short(cell).replace(f"({PAGES}/", "(")


def _is(configuration: Mapping[str, Any], cell: Cell) -> bool:
    return (configuration["stack"], configuration["name"]) == (cell.stack, cell.configuration)


def _fenced(text: str) -> list[str]:
    """A code block of the end of a text, with a fence that it does not hold."""
    cut = text if len(text) <= QUOTE_CHARACTERS else "..." + text[-QUOTE_CHARACTERS:]
    longest = max((len(run) for run in re.findall(r"`+", cut)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *cut.rstrip("\n").splitlines(), fence]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cell_text(text: str) -> str:
    return _one_line(text).replace("|", "\\|")
