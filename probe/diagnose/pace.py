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
    if _nothing_came(long):
        long = await _long_text(triage, FEWEST_TOKENS)  # Held back, or a busy machine: a short one ends in time.
    if _nothing_came(long):
        triage.diagnosis.notes.append("whether streams are held back was not seen: a long one brought nothing in time")
    if not comes_at_once(long.exchange):
        return False
    # A busy machine or a server's queue can look like that once: the wait comes before the text, and a longer text
    # then takes its time. What is held back comes at once however long it is.
    again = await _long_text(triage, 2 * (long.completion_tokens or _limit_of(long)), most=2 * MOST_TOKENS)
    if again.answer.ok and not comes_at_once(again.exchange):
        return False
    long = again if again.answer.ok else long
    assert long.exchange.response is not None  # Or it would not have come at once.
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


def _nothing_came(long: Seen) -> bool:
    """Whether the time was over before a byte of the answer's body came."""
    return long.answer.status is None or (long.answer.failure != "" and not _body_from(long.exchange))


def _limit_of(seen: Seen) -> int:
    return int((seen.answer.ask.body or {}).get("max_tokens", FEWEST_TOKENS))


async def _long_text(triage: Triage, rate: float, most: int = MOST_TOKENS) -> Seen:
    """A streamed text of about a second at `rate` tokens a second; of `most` tokens at most."""
    tokens = int(min(most, max(FEWEST_TOKENS, rate)))
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
