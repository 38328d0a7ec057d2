"""One side alone: what came, beside what the canary wrote. It tells what is wrong, not whose doing it is. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace as struct_with

from probe.canary.call_formats import Call
from probe.pairing.gateway.side_answers import forms_and_contents, unreadable
from probe.pairing.gateway.side_calls import ids_repeated
from probe.pairing.gateway.side_difference import Side, SideDifference, side_of
from probe.pairing.gateway.side_forms import arguments_no_text
from proxy.classify import ExchangeView
from proxy.classify.facts import Facts
from results.exchange import Exchange
from results.outcomes import Outcome
from stacks.dialects import WireExchange

_CUT = "raise the context length, or the limit on prompts of what stands before the server"


def compare_with_plan(front: Exchange, prose: str, calls: Sequence[Call]) -> list[SideDifference]:
    """What is wrong with the answer where the model wrote `prose` and `calls`, the worst first. The codes are those of
    `compare_sides`; a refusal or an answer broken off keeps the code of its own verdict."""
    outer = side_of(front)
    if not outer.generates:
        return []
    if outer.facts.failed or not outer.facts.status:
        evidence = outer.outcome.evidence[0] if outer.outcome.evidence else outer.facts.cite_head()
        return [SideDifference(outer.outcome.name, outer.outcome.detail, evidence, remedy=outer.outcome.remedy or "")]
    unread = unreadable(outer)
    if unread:
        return [SideDifference("transport.not_http", unread, outer.facts.cite_head())]
    if outer.cut:
        name = outer.outcome.name if outer.outcome.layer == "transport" else "transport.stream_truncated"
        said = f"the answer was broken off after {len(outer.facts.view.wire.response_body)} bytes of its body"
        return [SideDifference(name, said, outer.facts.cite_body())]
    found = forms_and_contents(outer, _perfect(outer, prose, calls))
    found += [difference for difference in arguments_no_text(outer) if difference.code not in {d.code for d in found}]
    return [_alone(difference) for difference in found]


def compare_in_run(fronts: Sequence[Exchange]) -> list[SideDifference]:
    """What only several exchanges show together: calls of different answers that carry one id, and a prompt that counts
    fewer tokens although the conversation grew."""
    sides = [side_of(front) for front in fronts]
    found = [*ids_repeated(sides), *_shrinking([side for side in sides if side.generates])]
    return sorted((_alone(difference) for difference in found), key=lambda difference: difference.attempt)


def _shrinking(sides: Sequence[Side]) -> list[SideDifference]:
    for earlier, later in pairwise(sides):
        before, after = earlier.facts.prompt_tokens, later.facts.prompt_tokens
        if before is None or after is None or after >= before or not _continues(earlier, later):
            continue
        said = f"the prompt counts {after} tokens, the shorter conversation before it {before}: part was taken out"
        return [SideDifference("truncation.context_cut_silently", said, later.facts.cite_usage(), remedy=_CUT)]
    return []


def _continues(earlier: Side, later: Side) -> bool:
    """Whether a request holds all of the earlier one, and more."""
    first, second = earlier.request, later.request
    begun = [message.raw for message in first.messages]
    same = [message.raw for message in second.messages[: len(begun)]] == begun and first.tool_names == second.tool_names
    return same and len(second.messages) > len(begun)


def _alone(difference: SideDifference) -> SideDifference:
    return SideDifference(difference.code, difference.said, difference.front, None, difference.remedy)


def _perfect(outer: Side, prose: str, calls: Sequence[Call]) -> Side:
    """The answer that a faultless server gives, as a plain chat completion to the same request."""
    message: dict[str, object] = {"role": "assistant", "content": prose}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(dict(arguments), ensure_ascii=False)},
            }
            for number, (name, arguments) in enumerate(calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    asked = json.dumps({"model": "m", "messages": [{"role": "user", "content": ""}], "tools": _tools(calls)}).encode()
    wire = WireExchange("POST", "/v1/chat/completions", asked, 200, (), json.dumps(body).encode(), True)
    facts = Facts(ExchangeView(attempt=outer.exchange.attempt, wire=wire))
    other = outer.facts.assembled.dialect != "openai_chat"
    if other and facts.turn is not None and outer.turn.finish not in (None, "length"):
        facts.turn = struct_with(facts.turn, finish=outer.turn.finish)  # Dialects differ in their words for calls.
    fine = Outcome(layer="ok", code="final_answer", at_fault="none", model_ran="yes")
    return Side(outer.exchange, facts, fine, "the model")


def _tools(calls: Sequence[Call]) -> list[dict[str, object]]:
    return [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name, _ in calls]
