"""The ends that are nobody's wish: a server that died in the middle, and exchanges cut off by the end of the walk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from probe.pairing.records import Finding
from probe.pairing.verdict.agent_side import last_lines
from probe.pairing.verdict.case import Case
from probe.pairing.verdict.walk import Asked, Walk
from results.exchange import Exchange

_ENDED_BY_US = frozenset({"timeout", "silent", "interrupted", "stopped"})
_CROSSING_US = 1_000
"""The close was under way when the request was sent: a server that reads a request first takes longer."""


def crossed_a_close(exchange: Exchange) -> bool:
    """Whether a request went out on a connection that the server had closed already after its last answer.

    A server may end a connection that is kept alive at any time, and a client asks again on a new one (RFC 9112,
    section 9.3.1 and 9.5); llama-server does so after every stream. Known by its end at once, without one byte.
    """
    ended = exchange.ended_at_us
    return (
        exchange.exchange > 1
        and exchange.end in ("upstream_closed", "upstream_reset")
        and not exchange.wire("response")
        and ended is not None
        and ended <= _CROSSING_US
    )


def server_died(case: Case, asked: Sequence[Asked], others: Sequence[Asked]) -> Finding | None:
    """What a server whose process ended did to the walk; None where it did not end, or everything was answered.
    `asked` are the exchanges of the step that is open, `others` all."""
    server = case.server
    if not server.ended:
        return None
    hit = next((each for each in (*asked, *others) if each.failed and each.outcome.layer == "transport"), None)
    if hit is None and any(each.came != "no" for each in asked):
        return None
    code = f" with exit code {server.exit_code}" if server.exit_code is not None else ""
    cited = hit.outcome.evidence[0] if hit is not None and hit.outcome.evidence else None
    when = "in the middle of the walk" if any(not each.failed for each in others) else "before it answered anything"
    return Finding(
        "engine.crash",
        "stack",
        case.who("stack"),
        f"{server.title} ended{code} {when}",
        step=case.step_of(hit) if hit is not None else None,
        attempt=hit.attempt if hit is not None else None,
        direction=cited.direction if cited is not None else "",
        wire=(cited.start, cited.end) if cited is not None else None,
        quote=last_lines(server.log_tail) or (cited.quote if cited is not None else ""),
        remedy=server.serving.remedy("engine.crash", {"model": server.model})
        or "restart it; its log says of what it died",
        outcome=hit.outcome if hit is not None else None,
    )


def cut_off(case: Case, walk: Walk) -> Walk:
    """The walk with its last exchange judged as what it is where the agent's process was ended while it waited for
    an answer: not the agent's leaving, but the server's silence. It is left out where the agent was stopped since
    enough had been seen: it was under way."""
    if case.run.ending not in _ENDED_BY_US or not walk.asked:
        return walk
    last = walk.asked[-1]
    if last.outcome.name != "transport.client_gone" or last.kind == "read":
        return walk
    if case.run.ending == "stopped":
        return replace(walk, asked=walk.asked[:-1])
    came = len(last.exchange.wire("response"))
    outcome = msgspec.structs.replace(
        last.outcome,
        code="timeout_read",
        at_fault="undetermined",
        detail=f"{came} bytes had come when {case.agent} was stopped after {case.run.seconds:.0f} s",
        remedy=None,
        decide_by="server_log: what the server does with this request",
    )
    return replace(walk, asked=(*walk.asked[:-1], replace(last, outcome=outcome)))
