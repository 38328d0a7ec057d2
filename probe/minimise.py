"""Make a failing request smaller while it fails in the same way: delta debugging, every step run for real.

The core is a generator without I/O: it yields candidates and is told whether each still fails (A. Zeller,
R. Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002; removal of complements only). `minimise` drives
it with an async predicate, within a limit of steps.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from probe.asking import Asker, BudgetSpentError
from proxy.classify.sighted import sighted
from results.exchange import Exchange
from stacks.serving.base import Ask

T = TypeVar("T")
Place = tuple[str | int, ...]
Shrinking = Generator[dict[str, Any], bool, dict[str, Any]]
"""Yields candidates, is sent whether each still fails, returns the smallest that does."""

KEPT_FIELDS = frozenset({"model", "role", "type", "name", "id", "tool_call_id"})
"""Fields whose texts are not shortened: they name things."""
SHORT_PIECE = 4
"""Ends of a text are cut off in pieces down to this many characters."""
MAX_DEPTH = 60
STEPS = 200


# ---------------------------------------------------------------------- the core
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


def shrinking(request: Mapping[str, Any]) -> Shrinking:
    """Candidates for a request that fails: without messages, tools, fields, parts of schemas, ends of texts; again
    until nothing more can go. Each candidate is smaller (as JSON text) than the smallest that failed before it."""
    best = copy.deepcopy(dict(request))
    while True:
        before = size_of(best)
        for first in (("tools",), ("messages",)):
            if isinstance(best.get(first[0]), list):
                best = yield from _shrink_node(best, first, 0)
        best = yield from _shrink_node(best, (), 0)
        if size_of(best) >= before:
            return best


def size_of(request: Any) -> int:
    """Bytes of a value as JSON text."""
    return len(json.dumps(request, ensure_ascii=True))


def _shrink_node(best: dict[str, Any], place: Place, depth: int) -> Shrinking:
    """Shrink what stands at a place, then what stands inside of it."""
    node = value_at(best, place)
    if depth > MAX_DEPTH:
        return best
    if isinstance(node, dict):
        best = yield from _shrink_children(best, place, list(node), _without_keys)
        for key in list(value_at(best, place)):
            best = yield from _shrink_node(best, (*place, key), depth + 1)
    elif isinstance(node, list):
        best = yield from _shrink_children(best, place, list(range(len(node))), _only_indexes)
        for index in range(len(value_at(best, place))):
            best = yield from _shrink_node(best, (*place, index), depth + 1)
    elif isinstance(node, str) and not _names_something(place):
        best = yield from _shrink_text(best, place)
    return best


def _names_something(place: Place) -> bool:
    return place[-1] in KEPT_FIELDS or "required" in place[-2:-1]


def _shrink_children(
    best: dict[str, Any],
    place: Place,
    names: list[Any],
    keep: Callable[[dict[str, Any], Place, list[Any]], dict[str, Any]],
) -> Shrinking:
    whole = best
    search = ddmin(names)
    try:
        kept = next(search)
        while True:
            candidate = keep(whole, place, kept)
            fails = size_of(candidate) < size_of(best) and (yield candidate)
            best = candidate if fails else best
            kept = search.send(fails)
    except StopIteration:
        return best


def _without_keys(request: dict[str, Any], place: Place, kept: list[Any]) -> dict[str, Any]:
    """The request with only these keys at a place. A property that goes leaves its schema's `required` too."""
    copied = copy.deepcopy(request)
    node = value_at(copied, place)
    gone = [key for key in node if key not in kept]
    for key in gone:
        del node[key]
    if place and place[-1] == "properties":
        schema = value_at(copied, place[:-1])
        required = schema.get("required")
        if isinstance(required, list):
            schema["required"] = [name for name in required if name not in gone]
    return copied


def _only_indexes(request: dict[str, Any], place: Place, kept: list[Any]) -> dict[str, Any]:
    copied = copy.deepcopy(request)
    node = value_at(copied, place)
    node[:] = [node[index] for index in kept]
    return copied


def _shrink_text(best: dict[str, Any], place: Place) -> Shrinking:
    """Empty it, else cut pieces off either end, large ones first, as long as that fails."""
    text = value_at(best, place)
    if not text:
        return best
    emptied = _with_value(best, place, "")
    if size_of(emptied) < size_of(best) and (yield emptied):
        return emptied
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


def _with_value(request: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:
    copied = copy.deepcopy(request)
    value_at(copied, place[:-1])[place[-1]] = value
    return copied


def value_at(request: Any, place: Place) -> Any:
    """What stands at a path of keys and indexes. Raises KeyError, IndexError."""
    for step in place:
        request = request[step]
    return request


# ---------------------------------------------------------------------- for real
Fails = Callable[[dict[str, Any]], Awaitable[bool]]
"""Runs a request for real and says whether it still fails as the first one did."""


@dataclass(frozen=True, slots=True)
class Minimised:
    """The smallest request found that fails alike. `steps` were run for real; `stopped` says why the search ended
    before it was through (empty: it was). `reproduced`: whether the first request failed again at all; `steady`:
    whether the result failed once more at the end (None: there was nothing left to try that with)."""

    request: dict[str, Any]
    before_bytes: int
    after_bytes: int
    steps: int
    reproduced: bool = True
    steady: bool | None = None
    stopped: str = ""


async def minimise(request: Mapping[str, Any], fails: Fails, *, steps: int = STEPS) -> Minimised:
    """Shrink a request as far as a number of real runs allows. What the predicate raises is passed on, but for
    BudgetSpentError, which ends the search with what was reached."""
    whole = copy.deepcopy(dict(request))
    search = _Search(fails, steps)
    best, stopped = whole, ""
    try:
        if not await search.run(whole):
            size = size_of(whole)
            return Minimised(whole, size, size, search.spent, reproduced=False, stopped="it does not fail again")
        candidates = shrinking(whole)
        candidate = next(candidates)
        while True:
            failed = await search.run(candidate)
            best = candidate if failed else best
            candidate = candidates.send(failed)
    except StopIteration:
        pass
    except BudgetSpentError as spent:
        stopped = str(spent)
    steady = await search.once_more(best)
    return Minimised(best, size_of(whole), size_of(best), search.spent, steady=steady, stopped=stopped)


class _Search:
    """Runs candidates, each once, within a number of steps."""

    def __init__(self, fails: Fails, steps: int) -> None:
        self._fails = fails
        self._steps = steps
        self._known: dict[str, bool] = {}
        self.spent = 0

    async def run(self, candidate: dict[str, Any]) -> bool:
        key = json.dumps(candidate, sort_keys=True)
        if key not in self._known:
            if self.spent >= self._steps:
                raise BudgetSpentError(f"the limit of {self._steps} steps is reached")
            self.spent += 1
            self._known[key] = await self._fails(copy.deepcopy(candidate))
        return self._known[key]

    async def once_more(self, result: dict[str, Any]) -> bool | None:
        try:
            return await self._fails(copy.deepcopy(result))
        except BudgetSpentError:
            return None


def fails_alike(
    asker: Asker, path: str, outcome: str, *, known_text: str | None = None, seconds: float | None = None
) -> Fails:
    """A predicate that sends each candidate to `path` and compares the verdict with `outcome` (`layer.code`);
    `known_text`: what the model is known to write, for a sighted verdict."""

    async def fails(candidate: dict[str, Any]) -> bool:
        ask = Ask("POST", path, candidate, purpose="minimise", generates=True, seconds=seconds)
        judged = await asker.judged(await asker.ask(ask, probe="minimise"))
        if judged is None:
            return False
        verdict = judged.outcome if known_text is None else sighted(judged.facts, judged.outcome, known_text)
        return verdict.name == outcome

    return fails


def recorded_request(exchange: Exchange) -> tuple[str, dict[str, Any]] | None:
    """Path and body of a recorded request, to be sent again; None where its body is no JSON object, or was not kept
    whole (a masked secret in it is sent as it was masked)."""
    request = exchange.request
    if request is None or not request.complete:
        return None
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError):
        return None
    return (request.forwarded_target, body) if isinstance(body, dict) else None
