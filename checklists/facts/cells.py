"""Exchanges of a recording by cell: the server asked, the model named, and the task where traffic is tagged."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from checklists.facts.rating import rate_facts
from checklists.facts.records import CellFacts
from checklists.reading import Seen
from results.outcomes import Judged
from results.rates import RateCounter
from results.taxonomy import FAULTS, RAN

TAGS = ("task", "condition", "setup", "target", "model", "stack", "cell")
"""Tags that tell cells apart; others (seed, repeat, turn) count draws of one cell."""
MAX_CELLS = 300
"""Cells kept apart while reading; exchanges of further ones are counted as left out."""
SHOWN_CELLS = 60
LONGEST = 200

_Key = tuple[str, str, tuple[tuple[str, str], ...]]


@dataclass(slots=True)
class _Cell:
    stack: str
    exchanges: int = 0
    ran: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    rates: RateCounter = field(default_factory=RateCounter)


class CellTable:
    """Counts exchanges that asked a model for something."""

    def __init__(self) -> None:
        self._cells: dict[_Key, _Cell] = {}
        self._others: set[_Key] = set()

    def add(self, seen: Seen, judged: Judged) -> None:
        """Count one exchange."""
        model = (seen.classified.facts.request.model or "")[:LONGEST]
        tags = tuple((name, seen.exchange.tag(name)[:LONGEST]) for name in TAGS if seen.exchange.tag(name))
        key = (seen.exchange.upstream, model, tags)
        cell = self._cells.get(key)
        if cell is None:
            if len(self._cells) >= MAX_CELLS:
                if len(self._others) < MAX_CELLS:
                    self._others.add(key)
                return
            cell = self._cells[key] = _Cell(judged.stack)
        cell.stack = cell.stack or judged.stack
        cell.exchanges += 1
        cell.ran[judged.outcome.model_ran] += 1
        cell.faults[judged.outcome.at_fault] += 1
        cell.rates.add(judged.outcome, tools=judged.tools)

    def models(self) -> dict[str, Counter[str]]:
        """The models that were asked for, by server."""
        found: dict[str, Counter[str]] = {}
        for upstream, model, _ in self._cells:
            if model:
                found.setdefault(upstream, Counter())[model] += 1
        return found

    def cells(self, *, offering: bool) -> tuple[tuple[CellFacts, ...], int]:
        """The cells in order of their names, and how many were left out. `offering`: tools were offered in the run, so
        that requests without any are in no rate."""
        found = sorted(self._cells.items())
        given = tuple(
            CellFacts(
                upstream=upstream,
                stack=cell.stack,
                model=model,
                tags=dict(tags),
                exchanges=cell.exchanges,
                model_ran={word: cell.ran[word] for word in RAN if cell.ran[word]},
                at_fault={fault: cell.faults[fault] for fault in FAULTS if cell.faults[fault]},
                rates=rate_facts(cell.rates.rates(offering=offering)),
            )
            for (upstream, model, tags), cell in found[:SHOWN_CELLS]
        )
        return given, len(found) - len(given) + len(self._others)
