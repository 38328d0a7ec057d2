"""From the record to the classifier: exchanges of a journal as views, and a whole run judged in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from proxy.classify import Classified, ExchangeView, RunMemory, classify, judge
from proxy.classify.facts import Facts
from proxy.classify.pages import looks_around
from proxy.classify.sighted import sighted
from proxy.classify.view import COMPLETE
from proxy.served import UNKNOWN_SERVER, ServerFacts
from results.compat import TurnText, aqbe_compat, dense_compat, fallback_has_calls, paper_compat
from results.exchange import Exchange, HttpMessage
from results.labels import PROJECTIONS
from results.outcomes import Judged, Outcome
from stacks.dialects.exchange import WireExchange

UNJUDGED = frozenset({"open"})
"""Ends of attempts that are not over; they get no outcome yet."""


class MessageMap(msgspec.Struct, frozen=True):
    """Body offsets to wire offsets of a recorded message."""

    message: HttpMessage

    def wire(self, start: int, end: int) -> tuple[int, int]:
        """The wire range of body bytes `start` to `end`."""
        return self.message.wire_range(start, end)


def view_of(
    exchange: Exchange, stack: str = "", stack_version: str = "", launch_flags: tuple[str, ...] | None = None
) -> ExchangeView:
    """The view of one recorded attempt. The rest is what the manifest knows of the server behind its upstream."""
    request, response = exchange.request, exchange.response
    whole = response is None or response.complete
    wire = WireExchange(
        method=request.method if request else "",
        target=request.forwarded_target if request else "",
        request_body=request.body if request else b"",
        status=response.status if response else 0,
        response_headers=response.headers if response else (),
        response_body=response.body if response else b"",
        response_complete=whole and exchange.end in (COMPLETE, "opaque"),
    )
    view = ExchangeView(
        attempt=exchange.attempt,
        wire=wire,
        end=exchange.end,
        end_detail=exchange.end_detail,
        stack=stack,
        stack_version=stack_version,
        launch_flags=launch_flags,
        response_length=len(exchange.wire("response")),
        duration_us=exchange.ended_at_us,
        tags=dict(exchange.tags),
        upstream=exchange.upstream,
    )
    if request is not None:
        view.request_map = MessageMap(request)
        view.request_head = (request.head_start, request.body_start)
        view.request_unseen = not request.complete
    if response is not None:
        view.response_map = MessageMap(response)
        view.response_head = (response.head_start, response.body_start)
        pieces = exchange.pieces("response")
        view.first_byte_us = pieces[0].at_us if pieces else None
        view.miscoded = next((said for said in response.problems if said.startswith("content-encoding says")), "")
    elif exchange.wire("response"):
        view.unreadable = "what came back is not an HTTP response"
        wire.response_body = exchange.wire("response")
    return view


LABELS = (*PROJECTIONS, "paper-compat", "dense-compat", "aqbe-compat")
"""Every name that `--labels` takes."""


def label_of(taxonomy: str, outcome: Outcome, facts: Facts) -> str:
    """The word for an outcome in another taxonomy; the `-compat` ones look at the text as the originals do. Raises
    KeyError for a taxonomy that is not in `LABELS`."""
    if taxonomy == "paper-compat":
        return _paper_compat(outcome, facts)
    if taxonomy == "dense-compat":
        return dense_compat(outcome)
    if taxonomy == "aqbe-compat":
        score = aqbe_compat(outcome)
        return "scored" if score is None else f"{score.points}/{score.possible} {score.note}"
    return PROJECTIONS[taxonomy](outcome)


def _paper_compat(outcome: Outcome, facts: Facts) -> str:
    """By the paper's own predicates on the text; an attempt that gave the harness nothing is its "no response"."""
    if facts.turn is None or facts.failed or (facts.view.wire.status or 0) >= 400 or not outcome.reached:
        return "non-response"
    content = facts.text
    calls = bool(facts.calls) or fallback_has_calls(content)
    return paper_compat(TurnText(content, calls)) or "not counted"


def judged_of(classified: Classified, known_text: str | None = None, labels: str | None = None) -> Judged:
    """The line of `outcomes.jsonl` for a classified exchange; `labels` is one of `LABELS`."""
    facts, view = classified.facts, classified.facts.view
    outcome = classified.outcome
    if known_text is not None:
        outcome = sighted(facts, outcome, known_text)
    return Judged(
        attempt=view.attempt,
        outcome=outcome,
        method=view.wire.method,
        path=view.wire.target.partition("?")[0],
        status=view.wire.status or None,
        stack=facts.stack,
        dialect=facts.assembled.dialect,
        tags=view.tags,
        labels={} if labels is None else {labels: label_of(labels, outcome, facts)},
        tools=_tools(facts),
        lookup=outcome.name == "transport.wrong_route" and looks_around(facts),
    )


def _tools(facts: Facts) -> int | None:
    """How many tools the request offered; None where that cannot be read, or where the request is one of an episode,
    whose serving condition may ask for calls as text."""
    request = facts.assembled.request
    if request is None or request.tools_state == "invalid":
        return None
    return len(request.tools) or (None if "episode" in facts.view.tags else 0)


def classify_run(
    exchanges: Iterable[Exchange], servers: Mapping[str, ServerFacts] | None = None, labels: str | None = None
) -> Iterator[Judged]:
    """Judge a run in order, one exchange at a time, in memory that does not grow with it. `servers` is what is known
    by upstream name (`proxy.served.servers_of`). Attempts that are still going on get no outcome."""
    return (judged for _, judged in judged_run(exchanges, servers, labels) if judged is not None)


def judged_run(
    exchanges: Iterable[Exchange], servers: Mapping[str, ServerFacts] | None = None, labels: str | None = None
) -> Iterator[tuple[Exchange, Judged | None]]:
    """The same with each exchange beside its verdict; None for an attempt that is still going on."""
    memory = RunMemory()
    known = {} if servers is None else servers
    for exchange in exchanges:
        if exchange.end in UNJUDGED:
            yield exchange, None
            continue
        classified = judge(view_of(exchange, *known.get(exchange.upstream, UNKNOWN_SERVER)), memory)
        classified.remember(memory)
        yield exchange, judged_of(classified, labels=labels)


__all__ = ["LABELS", "MessageMap", "classify", "classify_run", "judged_of", "judged_run", "label_of", "view_of"]
