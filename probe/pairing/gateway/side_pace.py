"""Whether a stream went on as it came, or was held back and let go at once. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from probe.pairing.gateway.side_difference import SideDifference
from results.exchange import Exchange
from results.outcomes import Evidence

_UNBUFFERED = "switch the gateway's buffering off (nginx: proxy_buffering off)"
_FEWEST_READS = 4
_LEAST_SPREAD_US = 10_000
_AT_ONCE = 0.1


def held_back(pairs: Sequence[tuple[Exchange, Exchange]]) -> list[SideDifference]:
    """Streams of which nothing came before the server had sent all. One answer may look so on a busy machine; it is
    told where every answer that took its time behind the gateway came so, and there were two or more."""
    telling = [(outer, inner) for outer, inner in pairs if _took_its_time(inner) and _body_reads(outer)]
    late = [(outer, inner) for outer, inner in telling if _body_reads(outer)[0] >= _body_reads(inner)[-1]]
    if len(late) < 2 or len(late) < len(telling):
        return []
    outer, inner = late[0]
    reads = _body_reads(inner)
    said = (
        f"the stream was held back: the server sent it in {len(reads)} pieces over "
        f"{(reads[-1] - reads[0]) / 1000:.0f} ms, and none went on before the last ({len(late)} of {len(telling)})"
    )
    return [SideDifference("transport.buffered", said, _start(outer), _start(inner), _UNBUFFERED)]


def held_back_again(pairs: Sequence[tuple[Exchange, Exchange]]) -> list[SideDifference]:
    """The same by the answers to requests that were sent once more straight to the server: those took their time, and
    what had come through the gateway came at once."""
    telling = [(outer, direct) for outer, direct in pairs if _took_its_time(direct) and _body_reads(outer)]
    once = [(outer, direct) for outer, direct in telling if _spread(outer) < _AT_ONCE * _spread(direct)]
    if len(once) < 2 or len(once) < len(telling):
        return []
    outer, direct = once[0]
    said = (
        f"the stream came within {_spread(outer) / 1000:.0f} ms; straight from the server it takes "
        f"{_spread(direct) / 1000:.0f} ms ({len(once)} of {len(telling)} answers)"
    )
    return [SideDifference("transport.buffered", said, _start(outer), _start(direct), _UNBUFFERED)]


def _spread(exchange: Exchange) -> int:
    reads = _body_reads(exchange)
    return reads[-1] - reads[0]


def _body_reads(exchange: Exchange) -> list[int]:
    """When the reads with body bytes came, in microseconds since the Unix epoch."""
    response = exchange.response
    start = response.body_start if response is not None else 0
    return [exchange.started_us + piece.at_us for piece in exchange.pieces("response") if piece.end > start]


def _took_its_time(exchange: Exchange) -> bool:
    reads = _body_reads(exchange)
    streamed = exchange.response is not None and exchange.response.body.count(b"\n") >= _FEWEST_READS
    return streamed and len(reads) >= _FEWEST_READS and _spread(exchange) >= _LEAST_SPREAD_US


def _start(exchange: Exchange) -> Evidence:
    response = exchange.response
    assert response is not None
    end = min(response.body_start + 80, response.body_end)
    quote = response.body[:80].decode("utf-8", "replace")
    return Evidence(
        attempt=exchange.attempt,
        direction="response",
        start=response.body_start,
        end=end,
        quote=quote,
        why="the beginning of the stream",
    )
