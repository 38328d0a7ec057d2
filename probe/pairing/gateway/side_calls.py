"""What a gateway did to the calls of an answer: lost, written as text, changed, without their ids. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from probe.pairing.gateway.side_difference import PASS_ON, Side, SideDifference, as_sent, shortened
from stacks.turn import ToolCall


def calls_differ(front: Side, behind: Side) -> Iterator[SideDifference]:
    came, sent = front.turn.tool_calls, behind.turn.tool_calls
    if len(came) < len(sent):
        call = next((call for call in sent if call.name not in [other.name for other in came]), sent[-1])
        as_text = [found for found in front.facts.scan.calls if not behind.facts.scan.calls]
        there = behind.facts.cite_call(call, f"the call that {behind.party} wrote")
        if as_text:
            span = as_text[0].call.span
            here = front.facts.cite_text(span.start, span.end, "the call in the text")
            said = f"the call of {call.name} came as text; {behind.party} wrote it as a call"
            yield SideDifference("parser.left_as_text", said, here, there, PASS_ON)
        else:
            said = f"{len(sent) - len(came)} of {len(sent)} calls were lost, the first of {call.name}"
            yield SideDifference("parser.dropped", said, front.facts.cite_body(), there, PASS_ON)
        return
    if len(came) > len(sent):
        said = f"{len(came)} calls came, {behind.party} wrote {len(sent)}"
        yield SideDifference("parser.phantom", said, front.facts.cite_call(came[-1]), as_sent(behind), PASS_ON)
        return
    for got, given in zip(came, sent, strict=True):
        yield from call_differs(front, behind, got, given)


def call_differs(front: Side, behind: Side, here: ToolCall, there: ToolCall) -> Iterator[SideDifference]:
    cited = front.facts.cite_call(here), behind.facts.cite_call(there, f"the call that {behind.party} wrote")
    if here.name != there.name:
        said = f"the tool's name was changed from {there.name!r} to {here.name!r}"
        yield SideDifference("parser.altered", said, *cited, remedy=PASS_ON)
    elif value_of(here) != value_of(there):
        said = f"the arguments of {there.name} were changed: {shortened(there.arguments_text)} came as "
        yield SideDifference("parser.altered", said + shortened(here.arguments_text), *cited, remedy=PASS_ON)
    elif here.arguments_type != there.arguments_type and front.request.dialect == behind.request.dialect:
        said = f"the arguments of {there.name} came as JSON {here.arguments_type}, not as {there.arguments_type}"
        yield SideDifference("protocol.arguments_type", said, *cited, remedy=PASS_ON)
    elif there.id and not here.id:
        said = f"the call of {there.name} came without its id"
        yield SideDifference("protocol.delta_id", said, *cited, remedy=PASS_ON)


def value_of(call: ToolCall) -> str:
    """The arguments in one spelling, however they are spaced; as they are where they are no JSON."""
    if call.arguments_error is not None:
        return call.arguments_text
    try:
        return json.dumps(call.arguments, sort_keys=True)
    except TypeError:
        return call.arguments_text


def repeated_ids(pairs: Sequence[tuple[Side, Side]]) -> list[SideDifference]:
    """Calls of different answers that carry one id in front of the gateway, and each its own behind it. Of exchanges
    that share one answer (retries, beside one that was asked again) the first counts."""
    pairs = list({inner.exchange.attempt: (outer, inner) for outer, inner in reversed(pairs)}.values())[::-1]
    sent = Counter(call.id for _, inner in pairs for call in inner.turn.tool_calls if call.id)
    if any(number > 1 for number in sent.values()):
        return []
    return [
        replace(difference, said=f"{difference.said}; the server gave each its own")
        for difference in ids_repeated([outer for outer, _ in pairs])
    ]


def ids_repeated(sides: Sequence[Side]) -> list[SideDifference]:
    """Calls of different answers that carry one id."""
    came = [(side, call) for side in sides for call in side.turn.tool_calls if call.id]
    twice = {name for name, number in Counter(call.id for _, call in came).items() if number > 1}
    if not twice:
        return []
    repeated = [(side, call) for side, call in came if call.id in twice]
    side, call = repeated[1]
    said = f"{len(repeated)} calls carry one id ({', '.join(sorted(map(str, twice)))})"
    return [SideDifference("protocol.duplicate_id", said, side.facts.cite_call(call), remedy=PASS_ON)]
