"""Whether an agent's walk has come to a stop that only waiting would prolong: refused again and again, nothing else.

Agents retry what a server refuses for minutes, with growing pauses, or go round between a request and its shortened
form. What the last refusals say, further ones say too.
"""

from __future__ import annotations

from collections.abc import Iterable

from results.exchange import Exchange

ALIKE = 4
"""So many refusals of one request in a row, each like the one before, are enough: agents' first retries come fast."""
IN_A_ROW = 10
"""So many refusals of whatever requests, with one status and no success between them."""
IN_ALL = 20
"""So many refusals of whatever requests, whatever lies between: of a walk's four turns, none needs so many. (opencode
asks for a summary after each prompt that was too long, gets one, and goes on so for ever.)"""


class Refusals:
    """Counts refusals as exchanges end; ``stuck`` once they are ``ALIKE``, ``IN_A_ROW`` or ``IN_ALL``."""

    def __init__(self) -> None:
        self._last: tuple[int, int, int] | None = None
        self._alike = 0
        self._in_a_row = 0
        self._in_all = 0

    @property
    def stuck(self) -> bool:
        """Whether it is enough."""
        return self._alike >= ALIKE or self._in_a_row >= IN_A_ROW or self._in_all >= IN_ALL

    def take(self, exchanges: Iterable[Exchange]) -> None:
        """Take in exchanges in the order in which they ended; reads (GET and the like) count for nothing."""
        for exchange in exchanges:
            request, response = exchange.request, exchange.response
            if self.stuck or request is None or request.method != "POST":
                continue
            if response is None or response.status < 400:
                self._last, self._alike, self._in_a_row = None, 0, 0
                continue
            self._in_all += 1
            # Of requests and answers the lengths are compared: ids and times in them may differ.
            said = (response.status, len(request.body), len(response.body))
            same_status = self._last is not None and self._last[0] == said[0]
            self._alike = self._alike + 1 if said == self._last else 1
            self._in_a_row = self._in_a_row + 1 if same_status else 1
            self._last = said
