"""What a gateway did to the form of an answer: the rules of its dialect, what joins a stream's events, JSON types."""

from __future__ import annotations

from collections.abc import Iterator

from probe.pairing.gateway.side_difference import PASS_ON, Side, SideDifference, as_sent
from proxy.classify.layers.protocol import IRREGULAR_FLAGS, protocol_flags
from stacks.irregular import IRREGULARITIES, NOTE
from stacks.turn import json_type

_OF_A_BEGINNING = frozenset(
    {
        "arguments_empty",
        "arguments_missing",
        "arguments_not_json",
        "body_not_json",
        "body_truncated",
        "done_missing",
        "event_missing",
        "event_truncated",
        "final_blank_line_missing",
        "finish_missing",
        "stream_empty",
        "usage_absent",
    }
)
"""What a beginning of an answer shows without being wrong."""


def irregular(front: Side, behind: Side) -> Iterator[SideDifference]:
    """What breaks the form of the dialect in front of the gateway and does not behind it."""
    if front.turn.index != behind.turn.index:
        return
    had = {item.code for item in behind.facts.assembled.irregularities}
    flags = protocol_flags(behind.facts)
    told = set()
    for item in front.facts.assembled.irregularities:
        weight = IRREGULARITIES.get(item.code, (NOTE, ""))[0]
        name = IRREGULAR_FLAGS.get(item.code) or ("protocol.malformed_answer" if weight != NOTE else None)
        if item.code in had or name is None or name in flags or name in told:
            continue
        if front.exchange.end == "client_gone" and item.code in _OF_A_BEGINNING:
            continue
        if name == "protocol.finish_contradicts" and front.turn.finish == behind.turn.finish:
            continue  # The calls are gone or there are others: that is the difference.
        told.add(name)
        yield SideDifference(name, item.message, front.facts.cite_irregular(item), as_sent(behind), PASS_ON)


def left_out(front: Side, behind: Side) -> Iterator[SideDifference]:
    """Fields by which the events of a Responses stream are joined (``output_index``, ``item_id``; OpenAI's API
    reference, streaming events) that the server sent and that are missing or lead nowhere."""
    if front.facts.assembled.dialect != "openai_responses" or not front.facts.assembled.streamed:
        return
    sides = [_joining(side) for side in (front, behind)]
    for field, code in (("output_index", "protocol.delta_index"), ("item_id", "protocol.delta_id")):
        here, there = (joined[field] for joined in sides)
        if here and not there:
            event = front.facts.assembled.events[here[0]]
            said = f"{len(here)} events of the stream have no {field} that belongs to an item; the server's have"
            yield SideDifference(code, said, front.facts.cite(event.start, event.end), as_sent(behind), PASS_ON)


def types_changed(front: Side, behind: Side) -> Iterator[SideDifference]:
    """Values that came as another JSON type than the server sent them."""
    if front.facts.assembled.dialect != behind.facts.assembled.dialect:
        return
    here, there = _types_of(front), _types_of(behind)
    for path, (types, number) in here.items():
        if path not in there or types & there[path][0]:
            continue
        event = front.facts.assembled.events[number]
        code = "protocol.arguments_type" if path[-1] == "arguments" else "protocol.malformed_answer"
        was, now = "/".join(sorted(there[path][0])), "/".join(sorted(types))
        said = f"{path[-1]} came as JSON {now}, the server sent {was}"
        yield SideDifference(code, said, front.facts.cite(event.start, event.end), as_sent(behind), PASS_ON)


def arguments_no_text(side: Side) -> Iterator[SideDifference]:
    """Arguments in the items of a Responses answer that are no string (OpenAI's API reference, function call items)."""
    if side.facts.assembled.dialect != "openai_responses":
        return
    for path, (types, number) in _types_of(side).items():
        if path[-1] == "arguments" and types != {"string"} and "tools" not in path:
            event = side.facts.assembled.events[number]
            said = f"the arguments of a call came as JSON {'/'.join(sorted(types))}, not as a string"
            yield SideDifference(
                "protocol.arguments_type", said, side.facts.cite(event.start, event.end), None, PASS_ON
            )


def _types_of(side: Side) -> dict[tuple[str, ...], tuple[set[str], int]]:
    """The JSON types of each field by its place (event type first, list places left out), and an event it stands in."""
    found: dict[tuple[str, ...], tuple[set[str], int]] = {}
    for event in side.facts.assembled.events:
        value = event.read()
        kind = str(value.get("type", "")) if isinstance(value, dict) else ""
        rest: list[tuple[tuple[str, ...], object]] = [((kind,), value)]
        while rest:
            path, held = rest.pop()
            if isinstance(held, dict):
                rest += [((*path, name), inner) for name, inner in held.items()]
            elif isinstance(held, list):
                rest += [(path, inner) for inner in held]
            if path[-1] != kind and held is not None:
                found.setdefault(path, (set(), event.number))[0].add(json_type(held))
    return found


def _joining(side: Side) -> dict[str, list[int]]:
    """By field, the events that need it to be joined and have none that an item announced."""
    known: dict[str, set[object]] = {"output_index": set(), "item_id": set()}
    lost: dict[str, list[int]] = {"output_index": [], "item_id": []}
    for event in side.facts.assembled.events:
        value = event.read()
        kind = str(value.get("type", "")) if isinstance(value, dict) else ""
        if not isinstance(value, dict) or not kind.startswith(_JOINED):
            continue
        if kind == "response.output_item.added":
            item = value.get("item")
            known["item_id"].add(item.get("id") if isinstance(item, dict) else None)
            known["output_index"].add(value.get("output_index"))
            fields = ["output_index"] if value.get("output_index") is None else []
        else:
            fields = [] if kind == "response.output_item.done" else ["item_id"]
            fields = [name for name in (*fields, "output_index") if value.get(name) not in known[name]]
            fields += ["output_index"] if value.get("output_index") is None and "output_index" not in fields else []
        for name in fields:
            lost[name].append(event.number)
    return lost


_JOINED = (
    "response.output_item.",
    "response.content_part.",
    "response.output_text.",
    "response.function_call_arguments.",
)
