"""Whether a client reads an answer that stacktap could read: its framing, its coding, its dialect. Pure.

stacktap's own readers forgive much, so that nothing is lost to a verdict. A client's library does not: an answer whose
call stands there in a form that no client of this API takes is a fault, whatever the call says.
"""

from __future__ import annotations

from proxy.classify import Classified
from proxy.classify.view import CLIENT_GONE
from results.exchange import Exchange
from results.outcomes import Evidence, Outcome

_UNREADABLE = {
    "events_run_together": "the events of the stream are not parted by blank lines, so clients read them as one",
    "frame_differs": "the stream is framed in another way than this API's: lines for events, or events for lines",
    "mixed_dialects": "the answer speaks another API's dialect than the route that was asked",
    "plain_for_stream_request": "a stream was asked for and a plain body came, in which clients find no event",
    "stream_for_plain_request": "a plain body was asked for and a stream came",
    "body_truncated": "the body ends before its JSON does (a content-length that is too small?)",
}
MALFORMED = "protocol.malformed_answer"
_UNENDED = {
    True: (
        "transport.timeout_read",
        "the call came, and then neither an end mark nor the end of the stream: clients wait on",
    ),
    False: (
        "transport.stream_truncated",
        "the connection ended before the body did, which clients take for a failed request",
    ),
}
"""By whether it was this diagnosis that left."""
_FORMER = "the call came in the former field `function_call`, although tools were offered: clients read `tool_calls`"
_DECIDE = "comparison_request: the same request sent straight to the server (--direct URL)"
_ASK_DIRECTLY = "see with --direct whether the server itself answers so: then upgrade it, else mend what stands between"


def as_clients_read(outcome: Outcome, classified: Classified, exchange: Exchange) -> Outcome:
    """The outcome of a call that came well, or the fault for which no client of this API gets it."""
    if outcome.name != "ok.native_call":
        return outcome
    name, why, cited = _wrong(classified, exchange)
    if not why:
        return outcome
    layer, _, code = name.partition(".")
    return Outcome(
        layer=layer,
        code=code,
        at_fault="undetermined",
        model_ran="yes",
        delivery="altered",
        evidence=(cited,),
        detail=why,
        remedy=_ASK_DIRECTLY,
        decide_by=_DECIDE,
    )


def _wrong(classified: Classified, exchange: Exchange) -> tuple[str, str, Evidence]:
    """What a client fails on: the outcome's name, what is wrong (empty: nothing), and where."""
    facts, response = classified.facts, exchange.response
    head = facts.cite_head("the head of the answer")
    if response is not None and not response.complete:
        left = exchange.end == CLIENT_GONE
        if left and facts.assembled.done_mark:
            return "", "", head  # Clients leave at the end mark, too.
        return *_UNENDED[left], facts.cite_body("what came")
    for code, said in _UNREADABLE.items():
        item = facts.irregular(code)
        if item is not None:
            return MALFORMED, said, facts.cite_irregular(item)
    problems = response.problems if response is not None else []
    lie = next((problem for problem in problems if problem.startswith("content-encoding")), "")
    if lie:
        return MALFORMED, lie, head
    if facts.request.tools and any(judged.call.kind == "function_call" for judged in facts.calls):
        return MALFORMED, _FORMER, facts.cite_call(facts.calls[0].call, "a call in the former field")
    return "", "", head


def by_what_stands_between(outcome: Outcome) -> bool:
    """Whether this is a verdict of `as_clients_read`: the server or a gateway may have written the answer so."""
    return outcome.remedy == _ASK_DIRECTLY


_QUIET = frozenset({"final_blank_line_missing", "object_mismatch", "id_repeated", "role_missing", "role_late"})
"""Departures that no known client minds."""


def oddities(classified: Classified) -> list[str]:
    """What is irregular in an answer that is well all the same, in words."""
    found = [item.message for item in classified.facts.assembled.irregularities if item.code not in _QUIET]
    return list(dict.fromkeys(found))


def same_model(answered: str, wanted: str) -> bool:
    """Whether two names may mean one model: spelled alike, or one the end of the other (a path, a tag left out)."""
    mine, theirs = answered.lower().removesuffix(":latest"), wanted.lower().removesuffix(":latest")
    return mine == theirs or mine.endswith(theirs) or theirs.endswith(mine)
