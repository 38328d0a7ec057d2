"""Exchanges that failed alike, each kind with one exemplar. Memory is bounded whatever a recording holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from checklists.advice import advice
from checklists.facts.records import FaultGroup
from checklists.facts.showing import exemplar_of
from checklists.facts.stations import meaning_of
from checklists.reading import Seen
from probe.diagnose.words import headline
from probe.pairing.verdict.room import sizes_of_error
from results.outcomes import Judged, Outcome
from results.taxonomy import LAYERS

SHOWN_ATTEMPTS = 8
"""Attempts named of a group; `count` counts all."""
SHOWN_GROUPS = 24
"""Groups given; further ones are counted."""
MAX_GROUPS = 400
"""Groups kept apart while reading; beyond that exchanges are told apart by outcome, fault and stack alone."""
MAX_UPSTREAMS = 100
LONGEST = 1200
LONGEST_NAME = 200
LIMITS = ("truncation.output_budget", "truncation.cut_inside_call")
"""Outcomes by which the limit that the client sent ended the answer, where it sent one."""
MAX_LIMITS = 6

_Key = tuple[str, ...]


@dataclass(slots=True)
class _Group:
    judged: Judged
    first: FaultGroup
    change: str
    tokens: int
    count: int = 0
    attempts: list[str] = field(default_factory=list)
    upstreams: Counter[str] = field(default_factory=Counter)
    limits: set[int] = field(default_factory=set)


class GroupCounter:
    """Counts failed exchanges one by one."""

    def __init__(self) -> None:
        self._groups: dict[_Key, _Group] = {}

    def add(self, seen: Seen, judged: Judged) -> None:
        """Count one exchange; those that went well are passed over."""
        outcome = judged.outcome
        if outcome.layer == "ok":
            return
        tokens = _tokens(seen, outcome)
        change = _advice(seen, judged, tokens)
        key = self._key(seen, judged, change)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(judged, _first_of(seen, judged), change, tokens)
        if tokens > group.tokens:
            group.change, group.tokens = change, tokens
        group.count += 1
        sent = seen.classified.facts.request.max_tokens
        if outcome.name in LIMITS and sent is not None and len(group.limits) < MAX_LIMITS:
            group.limits.add(sent)
        if len(group.attempts) < SHOWN_ATTEMPTS:
            group.attempts.append(f"{seen.recording}/{judged.attempt}" if seen.recording else str(judged.attempt))
        if seen.exchange.upstream in group.upstreams or len(group.upstreams) < MAX_UPSTREAMS:
            group.upstreams[seen.exchange.upstream] += 1

    def _key(self, seen: Seen, judged: Judged, change: str) -> _Key:
        outcome = judged.outcome
        whole = (
            outcome.name,
            outcome.at_fault,
            judged.stack,
            outcome.signature or "",
            "sent" if _by_clients_limit(seen, outcome) else "",
            _without_numbers(change),
        )
        if whole in self._groups or len(self._groups) < MAX_GROUPS:
            return whole
        return whole[:3]

    def groups(self) -> tuple[tuple[FaultGroup, ...], int]:
        """The groups, frequent ones first, and how many were left out."""
        place = {layer: number for number, layer in enumerate(LAYERS)}
        found = sorted(
            self._groups.items(),
            key=lambda item: (-item[1].count, place[item[1].judged.outcome.layer], item[0]),
        )
        given = tuple(_finished(group) for _, group in found[:SHOWN_GROUPS])
        return given, max(0, len(found) - SHOWN_GROUPS)


def _by_clients_limit(seen: Seen, outcome: Outcome) -> bool:
    return outcome.name in LIMITS and seen.classified.facts.request.max_tokens is not None


def lengthen(limits: Iterable[int]) -> str:
    """What to change where the limit that a client sent cut its answers."""
    sent = [f"{limit:,}" for limit in sorted(limits)]
    listed = " and ".join([", ".join(sent[:-1]), sent[-1]] if len(sent) > 1 else sent)
    return f"raise max_tokens in the requests (your program sent {listed}), or ask for less"


def _advice(seen: Seen, judged: Judged, tokens: int) -> str:
    facts = seen.classified.facts
    calls = facts.scan.calls if judged.outcome.layer == "parser" else ()
    return advice(
        judged.outcome,
        judged.stack,
        model=(facts.request.model or "")[:LONGEST_NAME],
        flags=tuple(facts.view.launch_flags or ()),
        tokens=tokens,
        call_format=calls[0].call.format if calls else "",
    )


def _tokens(seen: Seen, outcome: Outcome) -> int:
    """Tokens of a prompt that did not fit, as the error says; 0 where it does not."""
    error = seen.classified.facts.error
    if outcome.name != "request.context_exceeded" or error is None:
        return 0
    return sizes_of_error(error.raw, seen.classified.facts.all_error_text).tokens or 0


def _without_numbers(text: str) -> str:
    """Two exchanges that differ in a number only (so many tokens, attempt 7) failed alike."""
    return re.sub(r"\d+", "#", text)


def _first_of(seen: Seen, judged: Judged) -> FaultGroup:
    outcome = judged.outcome
    return FaultGroup(
        outcome=outcome.name,
        meaning=meaning_of(outcome.name),
        said=headline(outcome),
        at_fault=outcome.at_fault,
        model_ran=outcome.model_ran,
        grade=outcome.grade,
        confidence=outcome.confidence,
        delivery=outcome.delivery,
        stack=judged.stack,
        signature=outcome.signature or "",
        count=0,
        attempts=(),
        upstreams={},
        remedy="",
        decide_by=(outcome.decide_by or "")[:LONGEST],
        exemplar=exemplar_of(seen, judged),
    )


def _finished(group: _Group) -> FaultGroup:
    return msgspec.structs.replace(
        group.first,
        count=group.count,
        attempts=tuple(group.attempts),
        upstreams=dict(sorted(group.upstreams.items())),
        remedy=lengthen(group.limits) if group.limits else group.change[:LONGEST],
        limits=tuple(sorted(group.limits)),
    )
