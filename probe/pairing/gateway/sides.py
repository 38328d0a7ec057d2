"""Both sides of a gateway: which exchange behind it belongs to which in front of it, and what differs between them.

What a gateway may do is no difference: other framing, comments and pieces of a stream, other headers, ids of its own as
long as each call keeps one that is its own, another name for the model, fields added that change nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from probe.pairing.gateway.side_answers import answer_differences, counts_differ
from probe.pairing.gateway.side_calls import repeated_ids
from probe.pairing.gateway.side_difference import Side, SideDifference, side_of
from probe.pairing.gateway.side_pace import held_back, held_back_again
from probe.pairing.gateway.side_requests import request_differences
from results.exchange import Exchange

__all__ = ["SideDifference", "SidePair", "compare_again", "compare_sides", "paired"]

_BEFORE_THE_ENGINE = ("transport", "gate", "request")
"""Layers whose words fit an answer that no server had a part in."""
_SLACK_US = 5_000
"""The two clocks are one, but what is read first from two sockets is chance."""
_SAME_LATER_US = 60_000_000
"""A request behind that began so long after the one in front has ended is none of its."""


@dataclass(frozen=True, slots=True)
class SidePair:
    """One exchange in front of the gateway and what it led to behind: nothing (the gateway answered by itself), one
    exchange, or several (the gateway asked again)."""

    front: Exchange
    behind: tuple[Exchange, ...]


def paired(front: Iterable[Exchange], behind: Iterable[Exchange]) -> list[SidePair]:
    """Lay the sides together: each exchange behind goes to the one in front that was under way when it began, of
    several the one with the likest request, of equals the one begun last before it. Those that fit none are left out:
    they are the gateway's own."""
    fronts = sorted(front, key=lambda exchange: (exchange.started_us, exchange.attempt))
    led: dict[int, list[Exchange]] = {exchange.attempt: [] for exchange in fronts}
    for inner in sorted(behind, key=lambda exchange: (exchange.started_us, exchange.attempt)):
        able = [outer for outer in fronts if _under_way(outer, inner) and _same_purpose(outer, inner)]
        if able:
            best = max(able, key=lambda outer: (likeness(outer, inner), -len(led[outer.attempt]), outer.started_us))
            led[best.attempt].append(inner)
    return [SidePair(outer, tuple(led[outer.attempt])) for outer in fronts]


def _under_way(outer: Exchange, inner: Exchange) -> bool:
    lasted = outer.ended_at_us if outer.ended_at_us is not None else _SAME_LATER_US
    return outer.started_us - _SLACK_US <= inner.started_us <= outer.started_us + lasted + _SLACK_US


def _same_purpose(outer: Exchange, inner: Exchange) -> bool:
    return side_of(outer).generates == side_of(inner).generates


def likeness(outer: Exchange, inner: Exchange) -> float:
    """How like two requests are, 0 to 1: the share of messages and tools they have in common. A translated request is
    like by its texts."""
    if outer.request is None or inner.request is None:
        return 0.0
    if outer.request.body == inner.request.body:
        return 1.0
    first, second = _pieces(outer), _pieces(inner)
    common, total = sum((first & second).values()), sum((first | second).values())
    return common / total if total else 0.0


def _pieces(exchange: Exchange) -> Counter[str]:
    request = side_of(exchange).request
    texts = [message.content or json.dumps(message.raw, sort_keys=True, default=str) for message in request.messages]
    return Counter([*texts, *request.tool_names, f"path {exchange.request.path if exchange.request else ''}"])


def compare_sides(front: Sequence[Exchange], behind: Sequence[Exchange]) -> list[SideDifference]:
    """What the gateway did to the exchanges of one run, in order of the wire, for each exchange the worst first."""
    pairs = paired(front, behind)
    found: list[SideDifference] = []
    for pair in pairs:
        outer = side_of(pair.front)
        if not pair.behind:
            found += _by_itself(outer)
            continue
        inner = side_of(pair.behind[-1])
        found += request_differences(outer, inner)
        found += answer_differences(outer, inner)
    both = [(side_of(pair.front), side_of(pair.behind[-1])) for pair in pairs if pair.behind]
    found += repeated_ids(both)
    found += held_back([(outer.exchange, inner.exchange) for outer, inner in both if _streamed(outer, inner)])
    return sorted(found, key=lambda difference: difference.attempt)  # stable: the worst of an attempt stays first


def _streamed(outer: Side, inner: Side) -> bool:
    """Whether a stream was sent, and came as one."""
    return all(side.facts.assembled.streamed and not side.facts.failed for side in (outer, inner))


def _by_itself(outer: Side) -> list[SideDifference]:
    """A question that never reached the server, and was answered all the same (or not at all)."""
    if not outer.generates or outer.exchange.end == "client_gone":
        return []
    name = outer.outcome.name if outer.outcome.layer in _BEFORE_THE_ENGINE else "transport.gateway"
    status = f"status {outer.facts.status}" if outer.facts.status else "no answer"
    said = f"it answered by itself ({status}); the request never reached the server"
    evidence = outer.outcome.evidence[0] if outer.outcome.evidence else outer.facts.cite_head()
    return [SideDifference(name, said, evidence, remedy=outer.outcome.remedy or "")]


def compare_again(pairs: Sequence[tuple[Exchange, Exchange]]) -> list[SideDifference]:
    """What differs between answers that came through the gateway and the answers to the same requests sent straight to
    the server (front, direct). Sound only where the model's answer is certain (a canary's). What the server gave
    straight, too, is not the gateway's."""
    both = [(side_of(front), side_of(direct)) for front, direct in pairs]
    sound = [(outer, inner) for outer, inner in both if outer.generates and not inner.cut and not inner.facts.failed]
    found = [
        difference
        for outer, inner in sound
        for difference in counts_differ(outer, inner) or answer_differences(outer, inner)
    ]
    found += repeated_ids(sound)
    found += held_back_again([(outer.exchange, inner.exchange) for outer, inner in sound if _streamed(outer, inner)])
    return sorted(found, key=lambda difference: difference.attempt)
