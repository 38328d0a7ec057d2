"""What is counted of a run while it goes on: how many, how fast, which outcomes, who is at fault. Bounded memory."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from checklists.live.following import Ended
from proxy.present import printable
from results.rates import RateCounter

LATEST = 200
WINDOW_SECONDS = 60


class Row:
    """One line of the list: already printable."""

    __slots__ = ("advice", "attempt", "fault", "line", "model", "outcome", "stack", "status", "took_us")

    def __init__(self, ended: Ended) -> None:
        exchange, judged = ended.exchange, ended.judged
        outcome, request = judged.outcome, exchange.request
        self.attempt = f"{ended.recording}.{exchange.attempt}" if ended.recording else str(exchange.attempt)
        self.status = str(judged.status or "---")
        self.line = one_line(f"{request.method} {request.path}" if request else "(not HTTP)")
        self.model = one_line(ended.model)
        self.stack = one_line(judged.stack or exchange.upstream)
        self.outcome, self.fault = outcome.name, outcome.at_fault
        self.took_us = exchange.ended_at_us
        advice = outcome.remedy or outcome.decide_by if outcome.layer != "ok" else ""
        self.advice = one_line(advice or "")


class Tally:
    """Counts exchanges one by one."""

    def __init__(self) -> None:
        self.total = 0
        self.outcomes: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.ran: Counter[str] = Counter()
        self.advice: dict[str, str] = {}
        """The latest advice for each outcome."""
        self.latest: deque[Row] = deque(maxlen=LATEST)
        self._rates = RateCounter()
        self._seconds: deque[tuple[int, int]] = deque()
        """(second, how many ended in it) of the last minute."""

    def add(self, ended: Ended) -> Row:
        """Count one."""
        row, outcome = Row(ended), ended.judged.outcome
        self.total += 1
        self.outcomes[outcome.name] += 1
        if not ended.judged.aside:
            self.faults[outcome.at_fault] += 1
            self.ran[outcome.model_ran] += 1
            self._rates.add(outcome, tools=ended.judged.tools)
        if row.advice:
            self.advice[outcome.name] = row.advice
        self.latest.append(row)
        self._tick((ended.exchange.started_us + (ended.exchange.ended_at_us or 0)) // 1_000_000)
        return row

    def _tick(self, second: int) -> None:
        if self._seconds and second <= self._seconds[-1][0]:
            last, count = self._seconds.pop()
            self._seconds.append((last, count + 1))
        else:
            self._seconds.append((second, 1))
        while self._seconds[0][0] < self._seconds[-1][0] - WINDOW_SECONDS:
            self._seconds.popleft()

    def per_second(self, now: float, seconds: int = 10) -> float:
        """Exchanges that ended per second, over the last so many."""
        return sum(count for second, count in self._seconds if now - seconds < second <= now + 1) / seconds

    def facts(self) -> dict[str, Any]:
        """The counts as data."""
        rates = self._rates.rates()
        return {
            "exchanges": self.total,
            "outcomes": dict(self.outcomes.most_common()),
            "at_fault": dict(self.faults.most_common()),
            "model_ran": dict(self.ran.most_common()),
            "fidelity": rates.fidelity.text(),
            "naive": rates.naive.text(),
            "without_tools": rates.without_tools,
        }


def one_line(text: str, longest: int = 300) -> str:
    """Text from a recording for one line of a terminal: nothing in it moves the cursor or turns the writing."""
    return printable(" ".join(text[:longest].split()))
