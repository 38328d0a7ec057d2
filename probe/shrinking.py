"""Candidates for a smaller request: delta debugging over what a chat request is made of. Pure: nothing is sent here.

A generator yields candidates and is told whether each still fails (A. Zeller, R. Hildebrandt: Simplifying and
Isolating Failure-Inducing Input, 2002; removal of complements only). What is largest goes first: tools and messages in
halves, then fields, schemas and the ends of texts. Each candidate is a request that a client could have sent: a call
and its result come and go together, and what limits or names something stays.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from probe.call_pairs import Place, linked_messages, linked_pairs, value_at, without_pairs

T = TypeVar("T")
Shrinking = Generator[dict[str, Any], bool, dict[str, Any]]
"""Yields candidates, is sent whether each still fails, returns the smallest that does."""

KEPT_FIELDS = frozenset(
    {"role", "type", "function", "name", "id", "tool_call_id", "call_id", "tool_use_id"}
    | {"content", "arguments", "input"}
)
"""Fields of a message, a call or a tool that are never left out: without them the request is another kind of wrong."""
KEPT_AT_TOP = frozenset(
    {"model", "messages", "input", "prompt", "options", "keep_alive", "temperature", "seed"}
    | {"max_tokens", "max_completion_tokens", "max_output_tokens"}
)
"""Fields of a request that stay: without its limits a model may write for minutes, without a temperature its answer
changes, and other `options` or `keep_alive` make Ollama load or unload the model."""
KEPT_TEXTS = KEPT_FIELDS - {"content", "input"} | {"model"}
"""Fields whose texts are not shortened: they name things."""
WITH_TOOLS = ("tool_choice", "parallel_tool_calls")
"""Fields that mean nothing without tools, and that servers refuse then."""
_LISTS = ("tools", "functions", "messages", "input")
SHORT_PIECE = 4
"""Ends of a text are cut off in pieces down to this many characters."""
PROSE = 24
"""A text is shortened where it is longer than this, or holds a space: others are names, references and patterns."""
MAX_DEPTH = 60
WORTH_TRYING = 0.02
"""Share of the request that a part must have to be looked into: behind it are many steps for few bytes."""
WORTH_A_PASS = 0.05
"""Share that one pass over the request must have saved for another one."""


def ddmin(items: Sequence[T]) -> Generator[list[T], bool, list[T]]:
    """Take items away while the rest still fails. The result is 1-minimal: none of its items can be taken away alone
    (where the same candidate always gets the same answer)."""
    kept = list(items)
    if kept and (yield []):
        return []
    parts = 2
    while len(kept) >= 2:
        taken = False
        for start, end in _cuts(len(kept), parts):
            candidate = kept[:start] + kept[end:]
            if candidate and (yield candidate):
                kept, parts, taken = candidate, max(parts - 1, 2), True
                break
        if taken:
            continue
        if parts >= len(kept):
            break
        parts = min(parts * 2, len(kept))
    return kept


def _cuts(length: int, parts: int) -> list[tuple[int, int]]:
    bounds = [length * part // parts for part in range(parts + 1)]
    return [(start, end) for start, end in pairwise(bounds) if end > start]


def size_of(request: Any) -> int:
    """Bytes of a value as JSON text."""
    return len(json.dumps(request, ensure_ascii=True))


def shrinking(request: Mapping[str, Any]) -> Shrinking:
    """Candidates for a request that fails, until a pass over it saves little more. Each candidate is smaller (as JSON
    text) than the smallest that failed before it."""
    best = copy.deepcopy(dict(request))
    while True:
        before = size_of(best)
        for key in _largest_first(best, _LISTS):
            if isinstance(best.get(key), list):
                best = yield from _shrink_list(best, key)
        best = yield from _shrink_node(best, (), 0)
        if size_of(best) > before * (1 - WORTH_A_PASS):
            return best


def _largest_first(node: Any, names: Iterable[Any]) -> list[Any]:
    there = [name for name in names if not isinstance(node, dict) or name in node]
    return sorted(there, key=lambda name: -size_of(node[name]))


def _shrink_list(best: dict[str, Any], key: str) -> Shrinking:
    """Tools one by one; messages with what belongs to them, then single calls with their results."""
    if key in ("tools", "functions"):
        every = list(range(len(best[key])))
        return (yield from _search(best, every, lambda whole, kept: _with_tools(whole, key, kept)))
    units = linked_messages(best[key])
    best = yield from _search(best, units, lambda whole, kept: _with_messages(whole, key, kept))
    pairs = linked_pairs(best[key])
    if len(pairs) > 1:

        def keep(whole: dict[str, Any], kept: list[Any]) -> dict[str, Any] | None:
            return without_pairs(whole, key, [pair for pair in pairs if pair not in kept])

        best = yield from _search(best, pairs, keep)
    return best


def _with_tools(whole: dict[str, Any], key: str, kept: list[int]) -> dict[str, Any]:
    copied = {**whole, key: [whole[key][index] for index in kept]}
    if not kept:
        for gone in (key, *WITH_TOOLS):
            copied.pop(gone, None)
    return copied


def _with_messages(whole: dict[str, Any], key: str, kept: list[tuple[int, ...]]) -> dict[str, Any] | None:
    """A request without messages is another request (Ollama takes it for one to load or to unload the model)."""
    indexes = sorted(index for unit in kept for index in unit)
    return {**whole, key: [whole[key][index] for index in indexes]} if indexes else None


def _search(
    best: dict[str, Any], items: list[Any], keep: Callable[[dict[str, Any], list[Any]], dict[str, Any] | None]
) -> Shrinking:
    """ddmin over parts of a request; `keep` makes the request with some of them, or None where that is none."""
    whole, search = best, ddmin(items)
    try:
        kept = next(search)
        while True:
            candidate = keep(whole, kept)
            fails = candidate is not None and size_of(candidate) < size_of(best) and (yield candidate)
            best = candidate if fails and candidate is not None else best
            kept = search.send(fails)
    except StopIteration:
        return best


def _shrink_node(best: dict[str, Any], place: Place, depth: int) -> Shrinking:
    """Shrink what stands at a place, then what stands inside of it, the largest first."""
    node = value_at(best, place)
    if depth > MAX_DEPTH or (place and size_of(node) < WORTH_TRYING * size_of(best)):
        return best
    if isinstance(node, dict):
        best = yield from _search(best, _may_go(node, place), lambda whole, kept: _with_keys(whole, place, kept))
        inside = value_at(best, place)
        for key in _largest_first(inside, list(inside)):
            if key in value_at(best, place):
                best = yield from _shrink_node(best, (*place, key), depth + 1)
    elif isinstance(node, list):
        if not (len(place) == 1 and place[0] in _LISTS) and not _of_pairs(place, node):
            every = list(range(len(node)))
            best = yield from _search(best, every, lambda whole, kept: _with_indexes(whole, place, kept))
        for index in _largest_first(value_at(best, place), range(len(value_at(best, place)))):
            best = yield from _shrink_node(best, (*place, index), depth + 1)
    elif isinstance(node, str) and not _names_something(place):
        best = yield from _shrink_text(best, place)
    return best


def _of_pairs(place: Place, parts: list[Any]) -> bool:
    """Calls and results are left to the search over pairs."""
    kinds = {part.get("type") for part in parts if isinstance(part, dict)}
    return place[-1] == "tool_calls" or bool(kinds & {"tool_use", "tool_result"})


def _may_go(node: dict[str, Any], place: Place) -> list[str]:
    if not place:
        return [key for key in node if key not in KEPT_AT_TOP]
    if place[-1] == "properties":
        return list(node)
    return [key for key in node if key not in KEPT_FIELDS and not (key == "tool_calls" and len(place) == 2)]


def _names_something(place: Place) -> bool:
    if place[-1] == "arguments":
        return False
    return place[-1] in KEPT_TEXTS or "required" in place[-2:-1]


def _with_keys(request: dict[str, Any], place: Place, kept: list[str]) -> dict[str, Any]:
    """The request without the other keys that may go. A property that goes leaves its schema's `required` too."""
    copied = copy.deepcopy(request)
    node = value_at(copied, place)
    gone = [key for key in _may_go(node, place) if key not in kept]
    for key in gone:
        del node[key]
    if "tools" in gone or "functions" in gone:
        for key in WITH_TOOLS:
            node.pop(key, None)
    if place and place[-1] == "properties":
        schema = value_at(copied, place[:-1])
        required = schema.get("required")
        if isinstance(required, list):
            schema["required"] = [name for name in required if name not in gone]
    return copied


def _with_indexes(request: dict[str, Any], place: Place, kept: list[int]) -> dict[str, Any]:
    copied = copy.deepcopy(request)
    node = value_at(copied, place)
    node[:] = [node[index] for index in kept]
    return copied


def _shrink_text(best: dict[str, Any], place: Place) -> Shrinking:
    """Empty it, else cut pieces off either end, large ones first, as long as that fails. Arguments, which are JSON in a
    text, are emptied or left: half of them would be another fault."""
    text = value_at(best, place)
    if len(text) <= PROSE and " " not in text:
        return best
    nothing = "{}" if place[-1] == "arguments" else ""
    emptied = _with_value(best, place, nothing)
    if len(place) > 1 and size_of(emptied) < size_of(best) and (yield emptied):
        return emptied
    if len(text) <= PROSE or (place[-1] == "arguments" and _is_json(text)):
        return best
    return (yield from _trim(best, place, text))


def _trim(best: dict[str, Any], place: Place, text: str) -> Shrinking:
    piece = len(text) // 2
    while piece >= SHORT_PIECE:
        for part in (text[piece:], text[:-piece]):
            candidate = _with_value(best, place, part)
            if part and size_of(candidate) < size_of(best) and (yield candidate):
                best, text = candidate, part
                break
        else:
            if piece == SHORT_PIECE:
                break
            piece = max(piece // 2, SHORT_PIECE)
            continue
        piece = min(piece, max(len(text) // 2, SHORT_PIECE))
    return best


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _with_value(request: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:
    copied = copy.deepcopy(request)
    value_at(copied, place[:-1])[place[-1]] = value
    return copied
