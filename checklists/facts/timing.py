"""How long answers took, and the tokens that the server says it read and wrote."""

from __future__ import annotations

from dataclasses import dataclass, field

from checklists.facts.records import TimingFacts
from checklists.facts.spreads import Spreads
from checklists.reading import Seen
from proxy.classify import Classified
from results.exchange import Exchange
from results.outcomes import Judged

MAX_UPSTREAMS = 100
"""Upstreams measured; a run has a handful."""


@dataclass(slots=True)
class _Timing:
    stack: str = ""
    exchanges: int = 0
    streamed: int = 0
    without_usage: int = 0
    first_byte: Spreads = field(default_factory=Spreads)
    first_token: Spreads = field(default_factory=Spreads)
    duration: Spreads = field(default_factory=Spreads)
    prompt: Spreads = field(default_factory=Spreads)
    completion: Spreads = field(default_factory=Spreads)


class TimingTable:
    """Counts exchanges that asked a model for something, by upstream."""

    def __init__(self) -> None:
        self._timings: dict[str, _Timing] = {}

    def add(self, seen: Seen, judged: Judged) -> None:
        """Count one exchange. Tokens are counted where an answer came, times where bytes of one did."""
        exchange, classified = seen.exchange, seen.classified
        if exchange.upstream not in self._timings and len(self._timings) >= MAX_UPSTREAMS:
            return
        timing = self._timings.setdefault(exchange.upstream, _Timing())
        timing.stack = timing.stack or judged.stack
        timing.exchanges += 1
        pieces = exchange.pieces("response")
        if pieces:
            timing.first_byte.add(pieces[0].at_us)
            timing.duration.add(exchange.ended_at_us)
        if classified.facts.assembled.streamed:
            timing.streamed += 1
            timing.first_token.add(first_token_us(exchange, classified))
        usage = classified.facts.usage
        if usage is not None:
            timing.prompt.add(usage.prompt)
            timing.completion.add(usage.completion)
        elif classified.facts.turn is not None:
            timing.without_usage += 1

    def timings(self) -> tuple[TimingFacts, ...]:
        """One entry an upstream, in order of its name."""
        return tuple(
            TimingFacts(
                upstream=upstream,
                stack=found.stack,
                exchanges=found.exchanges,
                streamed=found.streamed,
                first_byte=found.first_byte.spread(),
                first_token=found.first_token.spread(),
                duration=found.duration.spread(),
                prompt_tokens=found.prompt.spread(),
                completion_tokens=found.completion.spread(),
                without_usage=found.without_usage,
            )
            for upstream, found in sorted(self._timings.items())
        )


def first_token_us(exchange: Exchange, classified: Classified) -> int | None:
    """When the first event of a stream that carries text, reasoning or a call was seen; None where there is none."""
    turn, events, response = classified.facts.turn, classified.facts.assembled.events, exchange.response
    if turn is None or response is None:
        return None
    places = [*turn.where_content[:1], *turn.where_reasoning[:1], *turn.where_refusal[:1]]
    places += [place for call in turn.tool_calls[:1] for place in call.where[:1]]
    first = min((number for number, _ in places), default=-1)
    if not 0 <= first < len(events):
        return None
    # A server's first event often names the role and carries an empty text: that is no token.
    return response.at_us(response.wire_range(events[first].start, events[first].start + 1)[0])
