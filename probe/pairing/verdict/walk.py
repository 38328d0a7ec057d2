"""The walk as it was: every recorded exchange with the turn that the canary wrote, and what became of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from probe.pairing.records import Plan, PlannedTurn
from probe.pairing.verdict.known_turns import KnownTurn, KnownTurns, said_in
from probe.pairing.verdict.server_side import ServerSide
from proxy.classify import RunMemory
from proxy.classify import judge as classify_exchange
from proxy.classify.facts import Facts
from proxy.classify.sighted import sighted
from proxy.classify.written import canonical, squeeze
from proxy.exchange_view import UNJUDGED, view_of
from results.exchange import Exchange
from results.outcomes import Outcome
from stacks.turn import CanonicalRequest

Kind = Literal["task", "side", "read"]
"""What an exchange was for: a turn of the task; another generation (a title, a summary); no generation at all."""
Came = Literal["intact", "usable", "no"]
"""How a turn arrived: as written; changed, but with its command whole; not so that it could be used."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One exchange of the walk. ``turn`` is what the canary wrote (None where it asks for no generation), ``outcome``
    the verdict on what became of it: sighted for turns of the task, by the wire alone for the rest."""

    exchange: Exchange
    facts: Facts
    outcome: Outcome
    kind: Kind
    turn: KnownTurn | None
    came: Came

    @property
    def attempt(self) -> int:
        """Its number in the record."""
        return self.exchange.attempt

    @property
    def request(self) -> CanonicalRequest:
        """What was asked."""
        return self.facts.request

    @property
    def number(self) -> int | None:
        """The place in the plan of the turn that was written."""
        return self.turn.number if self.turn is not None else None

    @property
    def failed(self) -> bool:
        """Whether an error came, or nothing."""
        return self.facts.failed or self.facts.no_response or self.outcome.layer == "transport"


@dataclass(frozen=True, slots=True)
class Walk:
    """All exchanges in order of the wire."""

    plan: Plan
    turns: KnownTurns
    asked: tuple[Asked, ...]

    @property
    def task(self) -> tuple[Asked, ...]:
        """Those that ask for a turn of the task."""
        return tuple(asked for asked in self.asked if asked.kind == "task")

    def of_turn(self, number: int) -> tuple[Asked, ...]:
        """Those in answer to which the canary wrote this turn of the task."""
        return tuple(asked for asked in self.task if asked.number == number)

    def reached(self) -> int:
        """The furthest turn that was asked for, -1 where none was."""
        return max((asked.number for asked in self.task if asked.number is not None), default=-1)


def walk_of(plan: Plan, exchanges: Iterable[Exchange], server: ServerSide) -> Walk:
    """Judge a recorded walk in order. Exchanges that are still going on are left out."""
    turns = KnownTurns(plan)
    found = _classified(exchanges, server)
    is_task = _task_requests(plan, turns, [facts for _, facts, _ in found if facts.generates])
    return Walk(plan, turns, tuple(_asked(turns, is_task, *each) for each in found))


def recognised(server: ServerSide, exchanges: Iterable[Exchange]) -> ServerSide:
    """The server with the stack that its answers show, where nothing told which it is."""
    if server.stack:
        return server
    stacks = (stack for exchange in exchanges if (stack := Facts(view_of(exchange)).stack))
    return replace(server, stack=next(stacks, ""))


def without_plan(exchanges: Iterable[Exchange], server: ServerSide) -> tuple[Asked, ...]:
    """The exchanges of an agent that never asked for anything to plan by, judged by the wire alone."""
    return tuple(
        Asked(exchange, facts, blind, "side" if facts.generates else "read", None, "no")
        for exchange, facts, blind in _classified(exchanges, server)
    )


def _classified(exchanges: Iterable[Exchange], server: ServerSide) -> list[tuple[Exchange, Facts, Outcome]]:
    memory = RunMemory()
    found: list[tuple[Exchange, Facts, Outcome]] = []
    for exchange in sorted(exchanges, key=lambda each: (each.started_us, each.attempt)):
        if exchange.end in UNJUDGED:
            continue
        view = view_of(exchange, server.stack, server.version, server.launch_flags)
        classified = classify_exchange(view, memory)
        if server.template or server.parser:
            memory.tell(exchange.upstream, classified.facts.request.model or "", server.template or "", server.parser)
        classified.remember(memory)
        found.append((exchange, classified.facts, classified.outcome))
    return found


def _asked(turns: KnownTurns, is_task: set[int], exchange: Exchange, facts: Facts, blind: Outcome) -> Asked:
    if not facts.generates:
        return Asked(exchange, facts, blind, "read", None, "no")
    turn = turns.of(facts.request)
    if id(facts) not in is_task:
        return Asked(exchange, facts, blind, "side", turn, "no")
    planned = turns.plan.turns[turn.number] if turn.number is not None else None
    came = how_it_came(turns.plan, planned, facts) if planned is not None else "no"
    known = until_stop(turn.text, facts.request.stop) if turns.plan.speech.channel == "text" else turn.text
    # An answer that the connection cut is no other text: what ended it is the verdict.
    outcome = blind if blind.layer == "transport" else sighted(facts, blind, known)
    return Asked(exchange, facts, outcome, "task", turn, came)


def how_it_came(plan: Plan, turn: PlannedTurn, facts: Facts) -> Came:
    """Whether the answer holds a planned turn as a perfect server delivers it."""
    if facts.failed or facts.turn is None:
        return "no"
    if plan.speech.channel == "text" or not turn.calls:
        wanted = turn.text if plan.speech.channel == "text" else turn.prose or turn.text
        if facts.calls:
            return "no"
        forms = (wanted, until_stop(wanted, facts.request.stop))
        if facts.text.strip() in [form.strip() for form in forms]:
            return "intact"
        return "usable" if squeeze(wanted) and squeeze(facts.text) in map(squeeze, forms) else "no"
    came = [(judged.call.name or "", judged.call.arguments) for judged in facts.calls]
    if [(name, canonical(arguments)) for name, arguments in came] == [
        (name, canonical(dict(arguments))) for name, arguments in turn.calls
    ]:
        return "intact"
    names = [name for name, _ in turn.calls]
    command = json.dumps(turn.command, ensure_ascii=False)[1:-1]
    whole = bool(command) and names == [name for name, _ in came]
    return "usable" if whole and any(command in canonical(arguments) for _, arguments in came) else "no"


def until_stop(text: str, stop: object) -> str:
    """A text up to the first of the request's stop strings, where a server ends it."""
    strings = [stop] if isinstance(stop, str) else stop if isinstance(stop, list) else []
    found = [text.find(string) for string in strings if isinstance(string, str) and string and string in text]
    return text[: min(found)] if found else text


def _task_requests(plan: Plan, turns: KnownTurns, generating: Sequence[Facts]) -> set[int]:
    """Which requests carry the task (by identity): in a native walk those that offer its tool, else those of the
    conversation that triggers came back in."""
    if plan.speech.channel == "native":
        wanted = {plan.speech.tool, *(name for turn in plan.turns for name, _ in turn.calls)}
        offering = {id(facts) for facts in generating if wanted.intersection(facts.request.tool_names)}
        offering = offering or {id(facts) for facts in generating if facts.offers}
        if offering:
            return offering
    triggered = [facts for facts in generating if turns.of(facts.request).trigger]
    openings = {_opening(facts.request) for facts in triggered}
    if not openings and generating:
        longest = max(generating, key=lambda facts: len(facts.view.wire.request_body))
        openings = {_opening(longest.request)}
    return {id(facts) for facts in generating if _opening(facts.request) in openings}


def _opening(request: CanonicalRequest) -> str:
    """What a conversation begins with: its first message, or the beginning of its prompt."""
    if request.messages:
        return f"{request.messages[0].role}: {said_in(request.messages[0])[:2000]}"
    return request.prompt[:200] if isinstance(request.prompt, str) else ""
