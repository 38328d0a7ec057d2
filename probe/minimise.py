"""Make a failing request smaller while it fails in the same way, every step run for real and within a limit.

`probe.shrinking` says what to try; `minimise` drives it with an async predicate, `same_fault` makes one that asks a
server. Nothing is sent that loads, unloads, creates or removes anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from probe.asking import Asker, BudgetSpentError
from probe.shrinking import shrinking, size_of
from proxy.classify import Classified, judge
from proxy.classify.sighted import sighted
from proxy.exchange_view import view_of
from proxy.served import UNKNOWN_SERVER, ServerFacts
from results.exchange import Exchange
from results.outcomes import Outcome
from stacks.serving.base import Ask

STEPS = 200
SAME_WORDS = 0.5
"""Share of words that two refusals without a known signature have in common when they are taken for one fault."""

_WORDS = re.compile(r"[^\W\d_]{3,}")

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


@dataclass(frozen=True, slots=True)
class Progress:
    """After a step: how many were run, and the size (bytes as JSON) of the smallest request so far."""

    steps: int
    size: int


async def minimise(
    request: Mapping[str, Any],
    fails: Fails,
    *,
    steps: int = STEPS,
    tell: Callable[[Progress], None] | None = None,
    stop: asyncio.Event | None = None,
) -> Minimised:
    """Shrink a request as far as a number of real runs allows; `stop` ends it with what was reached, at once.

    What the predicate raises is passed on, but for BudgetSpentError, which ends the search, too.
    """
    whole = copy.deepcopy(dict(request))
    search = _Search(fails, steps, stop or asyncio.Event())
    best, stopped, reproduced = whole, "", False
    try:
        reproduced = await search.run(whole)
        if not reproduced:
            size = size_of(whole)
            return Minimised(whole, size, size, search.spent, reproduced=False, stopped="it does not fail again")
        candidates = shrinking(whole)
        candidate = next(candidates)
        while True:
            failed = await search.run(candidate)
            best = candidate if failed else best
            if tell is not None:
                tell(Progress(search.spent, size_of(best)))
            candidate = candidates.send(failed)
    except StopIteration:
        pass
    except BudgetSpentError as spent:
        stopped = str(spent)
    steady = await search.once_more(best) if reproduced else None
    return Minimised(
        best, size_of(whole), size_of(best), search.spent, reproduced=reproduced, steady=steady, stopped=stopped
    )


class _Search:
    """Runs candidates, each once, within a number of steps and until it is stopped."""

    def __init__(self, fails: Fails, steps: int, stop: asyncio.Event) -> None:
        self._fails = fails
        self._steps = steps
        self._stop = stop
        self._known: dict[str, bool] = {}
        self.spent = 0

    async def run(self, candidate: dict[str, Any]) -> bool:
        key = json.dumps(candidate, sort_keys=True)
        if key not in self._known:
            if self.spent >= self._steps:
                raise BudgetSpentError(f"the limit of {self._steps} steps is reached")
            self._known[key] = await self._run(candidate)
            self.spent += 1
        return self._known[key]

    async def once_more(self, result: dict[str, Any]) -> bool | None:
        try:
            return await self._run(result)
        except BudgetSpentError:
            return None

    async def _run(self, candidate: dict[str, Any]) -> bool:
        """One real run, given up when the search is stopped meanwhile. Raises BudgetSpentError then."""
        if self._stop.is_set():
            raise BudgetSpentError("it was interrupted")
        running = asyncio.ensure_future(self._fails(copy.deepcopy(candidate)))
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                raise BudgetSpentError("it was interrupted")
            return running.result()
        finally:
            for task in (running, stopping):
                task.cancel()
                if not task.done():
                    with contextlib.suppress(asyncio.CancelledError):
                        await task


@dataclass(frozen=True, slots=True)
class Fault:
    """What has to stay the same: the outcome's name, who is at fault, the known signature, and where there is none,
    most words of what the server said (`None`: not looked at)."""

    name: str
    at_fault: str | None = None
    signature: str | None = None
    words: frozenset[str] | None = None

    @classmethod
    def of(cls, classified: Classified, outcome: Outcome | None = None) -> Fault:
        """The fault of a judged exchange; `outcome` where a better verdict than its own is known."""
        found = outcome or classified.outcome
        return cls(found.name, found.at_fault, found.signature, _said(classified))

    def is_in(self, classified: Classified, outcome: Outcome | None = None) -> bool:
        """Whether an exchange shows the same fault."""
        other = Fault.of(classified, outcome)
        if self.name != other.name or self.at_fault not in (None, other.at_fault):
            return False
        if self.signature is not None or self.words is None:
            return self.signature in (None, other.signature)
        return other.signature is None and _alike(self.words, other.words)


def _said(classified: Classified) -> frozenset[str] | None:
    """The words of a refusal; None where the answer is none."""
    errors = classified.facts.assembled.errors
    if not errors:
        return None
    return frozenset(word.lower() for error in errors for word in _WORDS.findall(error.message or ""))


def _alike(words: frozenset[str], others: frozenset[str] | None) -> bool:
    if others is None:
        return False
    every = words | others
    return not every or len(words & others) >= SAME_WORDS * len(every)


def same_fault(
    asker: Asker,
    path: str,
    fault: Fault,
    *,
    server: ServerFacts = UNKNOWN_SERVER,
    known_text: str | None = None,
    seconds: float | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    seen: Callable[[dict[str, Any], Exchange], None] | None = None,
) -> Fails:
    """A predicate that sends each candidate to `path` and says whether the answer shows `fault`.

    Each answer is judged by itself, as one of `server`. `known_text`: what the model is known to write, for a sighted
    verdict. `seen` is called with each candidate that fails alike and its exchange.
    """

    async def fails(candidate: dict[str, Any]) -> bool:
        ask = Ask("POST", path, candidate, headers=headers, purpose="minimise", generates=True, seconds=seconds)
        answer = await asker.ask(ask, probe="minimise")
        exchange = await asker.exchange(answer)
        asker.forget(answer)
        if exchange is None:
            return False
        classified = judge(view_of(exchange, *server))
        better = None if known_text is None else sighted(classified.facts, classified.outcome, known_text)
        alike = fault.is_in(classified, better)
        if alike and seen is not None:
            seen(candidate, exchange)
        return alike

    return fails


def fails_alike(
    asker: Asker, path: str, outcome: str, *, known_text: str | None = None, seconds: float | None = None
) -> Fails:
    """`same_fault` by the outcome's name (`layer.code`) alone."""
    return same_fault(asker, path, Fault(outcome), known_text=known_text, seconds=seconds)


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
