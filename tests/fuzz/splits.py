"""Every stream of up to 2 kB, read in two pieces that are cut at every place: always the same result."""

from __future__ import annotations

from proxy.wire_message import read_request, read_response
from stacks.dialects import WireExchange, assemble
from tests.fuzz.material import originals

LONGEST = 2048


def streams() -> list[WireExchange]:
    """The streams of the corpus up to 2 kB, each body once."""
    found: dict[bytes, WireExchange] = {}
    for item in originals():
        request = read_request(item.request)
        response = read_response(item.response)
        if 0 < len(response.body) <= LONGEST and b"\n" in response.body.strip():
            found[request.target.encode() + response.body] = WireExchange(
                request.method,
                request.target,
                request.body,
                response.status,
                response.headers,
                response.body,
                response.complete,
            )
    return list(found.values())


def every_single_split(limit: int | None = None) -> tuple[int, int]:
    """(streams, places) tried. Raises AssertionError where a split changes anything."""
    chosen = streams()[:limit]
    places = 0
    for exchange in chosen:
        body = exchange.response_body
        whole = assemble(exchange)
        for at in range(1, len(body)):
            places += 1
            split = assemble(exchange, [body[:at], body[at:]])
            assert split == whole, (exchange.target, at, body)
    return len(chosen), places
