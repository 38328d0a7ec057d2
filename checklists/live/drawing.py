"""The screen of `stacktap top`, drawn with rich. Pure: the same counts and the same size give the same screen.

Everything from a recording is put in as `Text`, so that no markup in it is read.
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from checklists.live.counting import Row, Tally
from results.taxonomy import CODES

_COLOURS = {"ok": "green", "model": "magenta", "task": "magenta", "gate": "yellow", "request": "yellow"}
_FAULTS = ("stack", "config", "client", "network", "model", "undetermined", "none")


def screen(tally: Tally, title: str, *, live: bool, now: float, height: int) -> RenderableType:
    """The whole screen for a terminal of so many lines; `now` in seconds since the epoch."""
    faults = _by_outcome(tally, max(3, height // 3))
    room = max(3, height - faults.row_count - 9)
    state = f"recording, {tally.per_second(now):.1f} a second" if live else "not being recorded"
    head = Text(f"{title}  ", style="bold", no_wrap=True, overflow="ellipsis")
    head.append(f"{tally.total:,} exchanges, {state}", style="")
    return Group(head, _summary(tally), Text(""), faults, Text(""), _latest(tally, room))


def _summary(tally: Tally) -> Text:
    facts = tally.facts()
    fault = ", ".join(f"{name} {tally.faults[name]:,}" for name in _FAULTS if tally.faults[name]) or "nothing yet"
    asked = sum(tally.ran.values())
    line = Text(f"at fault: {fault}\n")
    line.append(f"the model ran in {tally.ran['yes']:,} of {asked:,}")
    if asked and tally.ran["no"] == asked:
        line.append("; its rate is undefined, not 0 %", style="bold")
    line.append(f"   fidelity {facts['fidelity']}   naive {facts['naive']}", style="dim")
    if facts["without_tools"]:
        line.append(f"   {facts['without_tools']:,} without tools left out", style="dim")
    return line


def _by_outcome(tally: Tally, most: int) -> Table:
    table = Table(box=None, pad_edge=False, expand=True, header_style="dim")
    table.add_column("outcome", no_wrap=True)
    table.add_column("count", justify="right", no_wrap=True)
    table.add_column("what it means, and what to change", ratio=1, no_wrap=True, overflow="ellipsis")
    for name, count in tally.outcomes.most_common(most):
        meaning = CODES[name].meaning if name in CODES else ""
        said = Text(meaning)
        if name in tally.advice:
            said.append(f": {tally.advice[name]}", style="dim")
        table.add_row(Text(name, style=_colour(name)), f"{count:,}", said)
    return table


def _latest(tally: Tally, most: int) -> Table:
    table = Table(box=None, pad_edge=False, expand=True, header_style="dim")
    for name, justify in (("#", "right"), ("status", "right"), ("server", "left"), ("request", "left")):
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
    table.add_column("model", no_wrap=True, overflow="ellipsis", ratio=1)
    for name in ("outcome", "at fault", "took"):
        table.add_column(name, no_wrap=True)
    for row in list(tally.latest)[-most:]:
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> list[Text]:
    fault = "" if row.fault == "none" else row.fault
    took = "?" if row.took_us is None else f"{row.took_us / 1000:.0f} ms"
    texts = [row.attempt, row.status, row.stack, row.line, row.model]
    return [*(Text(text) for text in texts), Text(row.outcome, style=_colour(row.outcome)), Text(fault), Text(took)]


def _colour(name: str) -> str:
    return _COLOURS.get(name.partition(".")[0], "red")
