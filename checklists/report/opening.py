"""The first screen: what went wrong, what to change, and the few numbers that say it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from checklists.facts.records import Change, Ratio, RunFacts, ServerFacts
from checklists.facts.verdicts import PRINTS
from checklists.report import words
from checklists.report.blocks import (
    Advice,
    Block,
    Break,
    Bullets,
    Code,
    Fold,
    Inline,
    Line,
    Pairs,
    Paragraph,
    Table,
    Term,
    Tile,
    Tiles,
    spoken,
)
from checklists.report.glossary import FAULT_WORDS
from results.manifest import Fact
from stacks.stack_names import STACKS

MAX_SERVERS = 8
TONES = {"clean": "good", "faults": "bad", "open": "open", "nothing": "open"}
SHOWN_FACTS = {
    "stack": "server",
    "version": "version",
    "model": "model",
    "model_digest": "model's digest",
    "bits_per_weight": "bits per weight",
    "launch_flags": "started with",
    "context_length": "context",
    "chat_template_hash": "chat template",
    "sampling": "sampling defaults",
    "kernel_backend": "computes with",
}
"""Facts of a server that are shown first, and their names."""


def opening(run: RunFacts) -> list[Block]:
    """Everything above the fold."""
    blocks: list[Block] = []
    # The tiles give the rates: to say them twice takes a reader's time.
    sentences = [one for one in run.verdict.sentences if one and not one.startswith(PRINTS)]
    if sentences:
        blocks.append(Paragraph(spoken(" ".join(sentences[:2])), lead=True))
    if run.verdict.changes:
        title = "What would decide it" if run.verdict.changes[0].decides else "What to change"
        blocks.append(Advice(title, [_change(change, run) for change in run.verdict.changes]))
    if run.asked:
        blocks.append(Tiles(tuple(_tiles(run))))
    if sentences[2:]:
        blocks.append(Bullets([spoken(one) for one in sentences[2:]]))
    blocks.append(Fold(["What was recorded: servers, model, versions, command"], about(run)))
    return blocks


def _change(change: Change, run: RunFacts) -> Line:
    line = _steps(change.change if change.where or change.client else _begun(change.change))
    if change.client:
        line = ["Your program: ", *line]
    elif change.where:
        names = [Code(name) for name in change.where.split(", ")]
        named = [piece for name in names for piece in (", ", name)][1:]
        line = ["Servers " if len(names) > 1 else "Server ", *named, ": ", *line]
    if not change.outcome:
        return line
    terms = [piece for name in (change.outcome, *change.also) for piece in (", ", Term(name))][1:]
    failures = words.plural(run.asked - run.good, "failure")
    if change.count and change.decides:
        return [*line, Break(), f"Decides {change.count} of {failures} (", *terms, ")"]
    if change.count:
        return [*line, Break(), f"Removes the cause of {change.count} of {failures}; not tested again (", *terms, ")"]
    return [*line, Break(), "Decides " if change.decides else "Removes the cause of ", *terms]


def _steps(text: str) -> Line:
    """Numbered ways stand on lines of their own."""
    line: list[Inline] = []
    for piece in re.split(r" (?=\([1-9]\) )", text):
        line += [*([Break()] if line else []), *spoken(piece)]
    return line


def _tiles(run: RunFacts) -> Iterator[Tile]:
    apart = bool(run.rates.without_tools)
    asked, found = (run.offered, run.offered_ran) if apart else (run.asked, run.model_ran)
    of_these = words.plural(asked, "request") + (" with tools" if apart else "")
    ran, unknown = found.get("yes", 0), found.get("unknown", 0)
    note = f"of {of_these}" + (f"; not known for {unknown}" if unknown else "")
    if unknown == asked:
        yield Tile([Term("model ran", "The model ran")], "not known", [f"for {of_these}"], "word")
    else:
        yield Tile([Term("model ran", "The model ran"), " in"], str(ran), [note], "" if ran else "bad")
    if run.offered and not any(one.by == "diagnose" for one in run.beside):
        yield from _rate_tiles(run)
    good = run.offered_good if apart else run.good
    yield Tile(["Worked"], str(good), [f"of {of_these}"], "good" if good == asked else "")
    if run.at_fault:
        fault, count = max(run.at_fault.items(), key=lambda item: item[1])
        said = f"{count} of {words.plural(sum(run.at_fault.values()), 'failure')}"
        yield Tile(["Mostly ", Term("at fault")], FAULT_WORDS[fault].capitalize(), [said], "word")


def _rate_tiles(run: RunFacts) -> Iterator[Tile]:
    naive, real, own = run.rates.naive, run.rates.fidelity, run.rates.cleared_open
    yield Tile(
        ["Your ", Term("harness"), " ", Term("naive rate", "prints")], words.rate(naive), [f"{_of(naive)} valid calls"]
    )
    if real.value is None:
        word = Term(real.undefined or "n/r")
        yield Tile(
            [Term("fidelity", "Of the answers that arrived")], "undefined", [word, ": no answer to count"], "word"
        )
        return
    if real.value != naive.value:
        label = _begun(words.rate_name("fidelity"))
        yield Tile([Term("fidelity", label)], words.rate(real), [f"{_of(real)} valid calls"])
    if own.value is not None and own.value != real.value:
        out = run.rates.cleared.trials - own.trials
        aside = f", leaving out {out} fine as text or cut off" if out else ""
        label = _begun(words.rate_name("cleared rate", run))
        yield Tile([Term("cleared, open", label)], words.rate(own), [f"{_of(own)}{aside}"], "good")


def _begun(text: str) -> str:
    """With a capital letter, unless it begins with the name of a program."""
    first = text.partition(" ")[0]
    return text if not first.isalpha() or first.lower() in STACKS else text[0].upper() + text[1:]


def _of(ratio: Ratio) -> str:
    return f"{ratio.hits} of {ratio.trials}"


def about(run: RunFacts) -> list[Block]:
    """What the run is bound to."""
    pairs: list[tuple[Line, Line]] = [(["run"], [Code(run.run)])]
    if words.moment(run.created_us):
        pairs.append((["recorded"], [words.moment(run.created_us)]))
    if run.command:
        pairs.append((["by"], [Code(run.command)]))
    agent = [name for name in ("agent", "agent_version") if name in run.facts and run.facts[name].unknown is None]
    pairs += [([name.replace("_", " ")], [Code(words.fact(run.facts[name]))]) for name in agent]
    host = [f"{name}: {words.fact(found)}" for name, found in run.host.items() if found.unknown is None]
    if host:
        pairs.append((["host"], [", ".join(host)]))
    total = f"{words.plural(run.exchanges, 'exchange')}, {run.asked} asked a model for something"
    pairs.append(([Term("exchange", "exchanges")], [total]))
    return [Pairs(pairs), *_servers(run)]


def _servers(run: RunFacts) -> list[Block]:
    """What is known of each server, side by side."""
    shown = run.servers[:MAX_SERVERS]
    if not shown:
        return []
    rows: list[tuple[Line, ...]] = [(["address"], *([Code(server.url)] for server in shown))]
    for name, title in SHOWN_FACTS.items():
        found = [server.facts.get(name) for server in shown]
        if any(found):
            stacks = [_stack(server) for server in shown] if name == "version" else [""] * len(shown)
            rows.append(([title], *(_fact(one, stack) for one, stack in zip(found, stacks, strict=True))))
    header: list[Line] = [["what"], *([Code(server.name)] for server in shown)]
    more = len(run.servers) - len(shown)
    rest: list[Block] = [Paragraph([f"{words.plural(more, 'more server')} in report.json."])] if more else []
    return [Table("Servers of this run, as the manifest has them", header, rows, even=len(shown) > 2), *rest]


def _stack(server: ServerFacts) -> str:
    found = server.facts.get("stack")
    return "" if found is None or found.unknown is not None else words.fact(found)


def _fact(found: Fact | None, stack: str = "") -> Line:
    if found is None:
        return ["not recorded"]
    said = words.fact(found)
    return [said] if found.unknown is not None else [Code(words.version(stack, said))]
