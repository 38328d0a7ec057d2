"""Outcomes of a run as tables: by layer and code, by who is at fault, and the three rates with what stays outside.

Counted one by one in constant memory; text and JSON are pure functions of the counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from results.outcomes import Judged
from results.rates import Rate, RateCounter
from results.taxonomy import CODES, FAULTS, LAYERS


class OutcomeTable:
    """Counts judged attempts. `labels` names a projection (`results.labels.PROJECTIONS`) to count beside them."""

    def __init__(self, *, recovers_text: bool = False) -> None:
        self._outcomes: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._flags: Counter[str] = Counter()
        self._labels: dict[str, Counter[str]] = {}
        self._first: dict[str, int] = {}
        self._rates = RateCounter(recovers_text=recovers_text)
        self.total = 0

    def add(self, judged: Judged) -> None:
        """Count one attempt."""
        outcome = judged.outcome
        self.total += 1
        self._outcomes[outcome.name] += 1
        self._faults["none" if judged.aside else outcome.at_fault] += 1
        self._flags.update(outcome.flags)
        self._first.setdefault(outcome.name, judged.attempt)
        for taxonomy, label in judged.labels.items():
            self._labels.setdefault(taxonomy, Counter())[label] += 1
        if not judged.aside:
            self._rates.add(outcome, tools=judged.tools)

    def as_json(self) -> dict[str, Any]:
        """The same as data: counts, faults, flags, labels, rates."""
        rates = self._rates.rates()
        return {
            "attempts": self.total,
            "outcomes": [
                {"outcome": name, "count": count, "first_attempt": self._first[name], "meaning": _meaning(name)}
                for name, count in self._ordered()
            ],
            "at_fault": {fault: self._faults[fault] for fault in FAULTS if self._faults[fault]},
            "flags": dict(sorted(self._flags.items())),
            "labels": {taxonomy: dict(sorted(counts.items())) for taxonomy, counts in sorted(self._labels.items())},
            "rates": {
                "fidelity": _rate(rates.fidelity),
                "fidelity_open": _rate(rates.fidelity_open),
                "cleared": _rate(rates.cleared),
                "cleared_open": _rate(rates.cleared_open),
                "naive": _rate(rates.naive),
                "outside": rates.outside,
                "undetermined": rates.undetermined,
                "without_tools": rates.without_tools,
            },
        }

    def text(self) -> str:
        """The table as plain text, layers in the order of a request's way."""
        if not self.total:
            return "no attempts"
        lines = [f"{self.total} attempts", "", _columns("outcome", "count", "first", "meaning")]
        for name, count in self._ordered():
            lines.append(_columns(name, str(count), f"#{self._first[name]}", _meaning(name)))
        lines += ["", "at fault: " + _said(self._faults, FAULTS)]
        if self._flags:
            lines.append("flags:    " + _said(self._flags, sorted(self._flags)))
        for taxonomy, counts in sorted(self._labels.items()):
            lines.append(f"{taxonomy}: " + _said(counts, sorted(counts)))
        return "\n".join([*lines, "", *self._rate_lines()])

    def _rate_lines(self) -> list[str]:
        rates = self._rates.rates()
        outside = ", ".join(f"{layer} x{count}" for layer, count in rates.outside.items()) or "none"
        lines = [
            f"fidelity  {rates.fidelity.text()}   valid calls over attempts in which model output arrived",
            f"cleared   {rates.cleared.text()}   the same, serving faults taken out where the raw text is known",
            f"naive     {rates.naive.text()}   valid calls over everything: not the model's rate",
            f"outside of fidelity: {outside}; fault open: {rates.undetermined}",
        ]
        if rates.without_tools:
            lines.append(f"left out of all rates: {rates.without_tools} that offered no tools")
        return lines

    def _ordered(self) -> list[tuple[str, int]]:
        place = {layer: number for number, layer in enumerate(LAYERS)}
        return sorted(self._outcomes.items(), key=lambda item: (place[item[0].partition(".")[0]], -item[1], item[0]))


def tabulate(judged: Iterable[Judged], *, recovers_text: bool = False) -> OutcomeTable:
    """The table of a whole run."""
    table = OutcomeTable(recovers_text=recovers_text)
    for each in judged:
        table.add(each)
    return table


def _meaning(name: str) -> str:
    return CODES[name].meaning if name in CODES else ""


def _columns(name: str, count: str, first: str, meaning: str) -> str:
    return f"{name:<34}{count:>7}  {first:<8}{meaning}".rstrip()


def _said(counts: Counter[str], order: Iterable[str]) -> str:
    return ", ".join(f"{name} {counts[name]}" for name in order if counts[name])


def _rate(rate: Rate) -> dict[str, Any]:
    interval = rate.interval
    return {
        "hits": rate.hits,
        "trials": rate.trials,
        "value": rate.value,
        "interval": list(interval) if interval is not None else None,
        "undefined": rate.undefined if rate.value is None else None,
        "text": rate.text(),
    }
