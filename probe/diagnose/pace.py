"""Whether a stream comes as it is written, or is held back somewhere and let go at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from probe.diagnose.looking import Seen
from results.exchange import Exchange
from results.outcomes import Evidence, Outcome

if TYPE_CHECKING:
    from probe.diagnose.triage import Triage

LONG_ENOUGH_US = 400_000
"""A stream shorter than this (microseconds) tells nothing about buffering."""
FEWEST_TOKENS = 24
MOST_TOKENS = 2000
_LATE_SHARE = 0.9
"""Held back: everything came in the last tenth of the time that the answer took."""
_COUNT = "Count from 1 to 2000, one number per line."


async def held_back(triage: Triage, first: Seen) -> bool:
    """Stream a text that takes about a second and look when its pieces came; concludes where they were held back."""
    rate = (first.completion_tokens or 20) / max(first.answer.seconds, 0.005)
    long = await _long_text(triage, rate)
    took = long.exchange.ended_at_us or 0
    if took < LONG_ENOUGH_US and took and long.answer.ok:
        long = await _long_text(triage, (long.completion_tokens or FEWEST_TOKENS) / (took / 1e6))
    if long.answer.failure:
        triage.diagnosis.notes.append("a long streamed answer did not end: whether streams are held back is unknown")
    if long.exchange.response is None or not comes_at_once(long.exchange):
        return False
    pieces = long.exchange.pieces("response")
    start = long.exchange.response.body_start
    said = (
        f"the first byte of the answer's body came after {_body_from(long.exchange) / 1e6:.2f} s, "
        f"all {len(pieces)} reads within {(pieces[-1].at_us - _body_from(long.exchange)) / 1e6:.3f} s"
    )
    cited = Evidence(
        attempt=long.exchange.attempt,
        direction="response",
        start=start,
        end=min(start + 80, len(long.exchange.wire("response"))),
        quote=long.exchange.response.body[:80].decode("utf-8", "replace"),
        why="the beginning of the stream, which came with its end",
    )
    outcome = Outcome(
        layer="transport",
        code="buffered",
        at_fault="network",
        model_ran="yes",
        confidence="medium",
        grade="differential",
        delivery="intact",
        evidence=(cited,),
        detail=said,
    )
    triage.failed = long
    triage.conclude(msgspec.structs.replace(outcome, flags=long.outcome.flags))
    return True


async def _long_text(triage: Triage, rate: float) -> Seen:
    """A streamed text of about a second at `rate` tokens a second."""
    tokens = int(min(MOST_TOKENS, max(FEWEST_TOKENS, rate)))
    trigger = "[[loop]]" if triage.target.known_text is not None else ""
    messages = [{"role": "user", "content": f"{_COUNT} {trigger}".strip()}]
    how = {"stream": True, "tools": False, "messages": messages, "max_tokens": tokens}
    return await triage.see("a long text, streamed", judged_step=False, **how)


def _body_from(exchange: Exchange) -> int:
    """When the first read with body bytes came, in microseconds after the request began."""
    response = exchange.response
    start = response.body_start if response is not None else 0
    return next((piece.at_us for piece in exchange.pieces("response") if piece.end > start), 0)


def comes_at_once(exchange: Exchange) -> bool:
    """Whether a streamed answer of many events that took its time came in one burst at its end. Pure."""
    response = exchange.response
    if response is None or response.body.count(b"\n") < 2 * FEWEST_TOKENS:
        return False
    total = exchange.ended_at_us or 0
    return total >= LONG_ENOUGH_US and _body_from(exchange) >= _LATE_SHARE * total
