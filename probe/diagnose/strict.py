"""Whether a client reads an answer that stacktap could read: its framing, its coding, its dialect. Pure.

stacktap's own readers forgive much, so that nothing is lost to a verdict. A client's library does not: an answer whose
call stands there in a form that no client of this API takes is a fault, whatever the call says.
"""

from __future__ import annotations

from proxy.classify import Classified
from results.exchange import Exchange
from results.outcomes import Outcome

_UNREADABLE = {
    "events_run_together": "the events of the stream are not parted by blank lines, so clients read them as one",
    "frame_differs": "the stream is framed in another way than this API's: lines for events, or events for lines",
    "mixed_dialects": "the answer speaks another API's dialect than the route that was asked",
    "plain_for_stream_request": "a stream was asked for and a plain body came, in which clients find no event",
    "stream_for_plain_request": "a plain body was asked for and a stream came",
}
_FORMER = "the call came in the former field `function_call`, although tools were offered: clients read `tool_calls`"
_DECIDE = "comparison_request: the same request sent straight to the server (--direct URL)"
_ASK_DIRECTLY = "see with --direct whether the server itself answers so: then upgrade it, else mend what stands between"


def as_clients_read(outcome: Outcome, classified: Classified, exchange: Exchange) -> Outcome:
    """The outcome of a call that came well, or the fault for which no client of this API gets it."""
    if outcome.name != "ok.native_call":
        return outcome
    facts = classified.facts
    response = exchange.response
    why = next((said for code, said in _UNREADABLE.items() if facts.irregular(code) is not None), "")
    item = facts.irregular(*_UNREADABLE)
    cited = facts.cite_irregular(item) if item is not None else facts.cite_head("the head of the answer")
    if not why and response is not None and response.complete:
        why = next((problem for problem in response.problems if problem.startswith("content-encoding")), "")
    if not why and facts.request.tools and any(judged.call.kind == "function_call" for judged in facts.calls):
        why, cited = _FORMER, facts.cite_call(facts.calls[0].call, "a call in the former field")
    if not why:
        return outcome
    return Outcome(
        layer="protocol",
        code="malformed_answer",
        at_fault="undetermined",
        model_ran="yes",
        delivery="altered",
        evidence=(cited,),
        detail=why,
        remedy=_ASK_DIRECTLY,
        decide_by=_DECIDE,
    )


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
