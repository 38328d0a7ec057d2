"""Whether the streamed answer is the plain one: a client that streams may fare otherwise than one that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from probe.diagnose import asked
from probe.diagnose.looking import Seen, calls_of, graded
from probe.diagnose.strict import by_what_stands_between

if TYPE_CHECKING:
    from probe.diagnose.triage import Triage

BEFORE_MODEL = ("gate", "request", "template", "engine")
CUT = ("nonresponse.reasoning_only", "truncation.output_budget", "truncation.cut_inside_call")


async def stream_agrees(triage: Triage, plain: Seen) -> bool:
    """The same streamed, and without a limit of its own, as many agents send it; concludes where it fails."""
    streamed = await triage.see("tools offered, streamed", stream=True, max_tokens=None)
    if streamed.not_recorded or (streamed.called and calls_of(streamed) == calls_of(plain)):
        return True
    if streamed.outcome.layer == "truncation" or streamed.name in CUT:
        limited = await triage.see("the same with a limit", stream=True)
        if limited.called:
            _own_limit(triage, streamed)
            return False
        streamed = limited
    if streamed.classified.facts.failed and streamed.outcome.layer in BEFORE_MODEL:
        bare = await triage.see("streamed without stream_options", stream=True, extra={"stream_options": None})
        if bare.called:
            remedy = "leave `stream_options` out of streamed requests, or upgrade the server"
            outcome = msgspec.structs.replace(
                streamed.outcome, layer="request", code="invalid_param", at_fault="stack", remedy=remedy,
                decide_by=None, detail="the server refuses `stream_options`, which many clients send with a stream",
            )  # fmt: skip
            triage.conclude(graded(outcome, "differential"), ["Without `stream_options` the stream works."])
            return False
    if streamed.ok or streamed.outcome.layer == "model":
        return await _repeatable(triage, plain, streamed)
    _stream_differs(triage, plain, streamed)
    return False


async def _repeatable(triage: Triage, plain: Seen, streamed: Seen) -> bool:
    """Both once more: a difference between them means nothing where one differs from itself."""
    again = await triage.see("streamed once more", stream=True)
    if again.called and calls_of(again) == calls_of(plain):
        triage.failed = None
        triage.diagnosis.notes.append(f"streamed, the call came only at the second asking (first: {streamed.name})")
        return True
    repeated = await triage.see("plain once more", stream=False)
    if not repeated.called or calls_of(repeated) != calls_of(plain):
        said = "the same request is answered differently each time, at temperature 0: streaming is not what matters"
        outcome = msgspec.structs.replace(
            streamed.outcome, layer="model", code="no_call", at_fault="undetermined", confidence="low", detail=said,
            remedy=None, decide_by="comparison_request: the same request many times, plain and streamed",
        )  # fmt: skip
        triage.conclude(graded(outcome, "differential"))
        return False
    _stream_differs(triage, plain, again)
    return False


def _own_limit(triage: Triage, cut: Seen) -> None:
    written = cut.completion_tokens
    triage.facts["tokens"] = str(written or "")
    after = f" after {written} tokens" if written else ""
    detail = f"where the request sets no limit, the server ends the answer{after}"
    outcome = msgspec.structs.replace(cut.outcome, at_fault="config", decide_by=None, detail=detail)
    triage.conclude(graded(outcome, "differential"), ["With a limit of its own in the request, the call arrives."])


def _stream_differs(triage: Triage, plain: Seen, streamed: Seen) -> None:
    sentence = "Plain, the call arrives; only the streamed answer is wrong."
    fewer = (plain.prompt_tokens or 0) - (streamed.prompt_tokens or plain.prompt_tokens or 0)
    if (streamed.ok or streamed.outcome.layer == "model") and fewer >= asked.tool_tokens():
        outcome = msgspec.structs.replace(
            streamed.outcome, layer="template", code="tools_absent", at_fault="undetermined", confidence="medium",
            detail=f"the prompt had {plain.prompt_tokens} tokens plain and {streamed.prompt_tokens} streamed: the "
            "tools were left out of the streamed request, by the server or by what stands between",
            remedy="ask the server itself (--direct) to see who leaves them out; until then do not stream",
            decide_by="comparison_request: the same stream straight from the server (--direct URL)",
        )  # fmt: skip
    elif streamed.ok or streamed.outcome.layer == "model":
        changes = {"layer": "parser", "code": "stream_differs", "at_fault": "stack", "decide_by": None}
        outcome = msgspec.structs.replace(streamed.outcome, **changes)
        outcome = msgspec.structs.replace(outcome, detail="the streamed turn is not the plain one", remedy=None)
    else:
        outcome = streamed.outcome
        if outcome.at_fault == "undetermined" and outcome.layer != "transport" and not by_what_stands_between(outcome):
            outcome = msgspec.structs.replace(outcome, at_fault="stack", decide_by=None)
    cited = (*streamed.outcome.evidence, *plain.outcome.evidence[:1])
    outcome = msgspec.structs.replace(outcome, evidence=cited)
    triage.diagnosis.notes.append("until it is mended, an agent without streaming works with this server")
    triage.conclude(graded(outcome, "differential"), [sentence])
