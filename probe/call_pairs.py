"""Which messages of a history belong together: a call and its result, in each dialect's form. Pure.

OpenAI chat: `tool_calls[].id` and messages of role `tool` with `tool_call_id`; Ollama: the same, often without ids;
Anthropic: `tool_use` and `tool_result` blocks; OpenAI responses: `function_call` and `function_call_output` items.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

Place = tuple[str | int, ...]
"""A path of keys and indexes."""


def value_at(request: Any, place: Place) -> Any:
    """What stands at a path. Raises KeyError, IndexError."""
    for step in place:
        request = request[step]
    return request


class Pair(NamedTuple):
    """A call and its results, each a path inside the list of messages; a call may have none."""

    call: Place
    results: tuple[Place, ...]


def _calls_of(index: int, message: Any) -> Iterator[tuple[str, Place]]:
    """(id, place) of each call in a message; the id is "" where it has none."""
    if not isinstance(message, dict):
        return
    if message.get("type") == "function_call":
        yield str(message.get("call_id") or ""), (index,)
    for key, kinds in (("tool_calls", None), ("content", ("tool_use",))):
        parts = message.get(key)
        for number, part in enumerate(parts if isinstance(parts, list) else []):
            if isinstance(part, dict) and (kinds is None or part.get("type") in kinds):
                yield str(part.get("id") or ""), (index, key, number)


def _results_of(index: int, message: Any) -> Iterator[tuple[str, Place]]:
    """(id of the call, place) of each result in a message."""
    if not isinstance(message, dict):
        return
    if message.get("type") == "function_call_output":
        yield str(message.get("call_id") or ""), (index,)
    elif message.get("role") in ("tool", "function"):
        yield str(message.get("tool_call_id") or ""), (index,)
    parts = message.get("content")
    for number, part in enumerate(parts if isinstance(parts, list) else []):
        if isinstance(part, dict) and part.get("type") == "tool_result":
            yield str(part.get("tool_use_id") or ""), (index, "content", number)


def linked_pairs(messages: Sequence[Any]) -> list[Pair]:
    """Every call with its results, in order. A result belongs to the latest call of its id before it; one without a
    known id to the first call of the latest message with calls that has no result yet."""
    calls: list[tuple[Place, list[Place]]] = []
    by_id: dict[str, int] = {}
    waiting: list[int] = []
    for index, message in enumerate(messages):
        for name, place in _results_of(index, message):
            number = by_id.get(name) if name else None
            if number is None and waiting:
                number = waiting[0]
            if number is not None:
                calls[number][1].append(place)
                waiting = [each for each in waiting if each != number]
        found = list(_calls_of(index, message))
        if found:
            waiting = list(range(len(calls), len(calls) + len(found)))
        for name, place in found:
            by_id[name] = len(calls)
            calls.append((place, []))
    return [Pair(place, tuple(results)) for place, results in calls]


def linked_messages(messages: Sequence[Any]) -> list[tuple[int, ...]]:
    """Messages by their indexes, those that are tied by a call and its result together."""
    group = list(range(len(messages)))
    for pair in linked_pairs(messages):
        for result in pair.results:
            old, new = group[int(result[0])], group[int(pair.call[0])]
            if old != new:
                group = [new if each == old else each for each in group]
    units: dict[int, list[int]] = {}
    for index, name in enumerate(group):
        units.setdefault(name, []).append(index)
    return [tuple(unit) for unit in units.values()]


def without_pairs(request: dict[str, Any], key: str, gone: Sequence[Pair]) -> dict[str, Any] | None:
    """The request without these calls and their results, and without messages that were nothing else; None where no
    message is left."""
    copied = {**request, key: copy.deepcopy(request[key])}
    messages = copied[key]
    places = sorted({place for pair in gone for place in (pair.call, *pair.results)}, key=_order, reverse=True)
    for place in places:
        if len(place) == 1:
            messages[place[0]] = None
        elif messages[place[0]] is not None:
            del value_at(messages, place[:-1])[place[-1]]
    for index, message in enumerate(messages):
        if isinstance(message, dict) and message.get("tool_calls") == [] and request[key][index].get("tool_calls"):
            del message["tool_calls"]
            if not message.get("content"):
                messages[index] = None
        elif isinstance(message, dict) and message.get("content") == [] and request[key][index].get("content"):
            messages[index] = None
    messages[:] = [message for message in messages if message is not None]
    return copied if messages else None


def _order(place: Place) -> tuple[int, str, int]:
    return int(place[0]), str(place[1]) if len(place) > 1 else "", int(place[2]) if len(place) > 2 else 0
