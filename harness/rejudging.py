"""The same episode with its serving fault taken away: the lost call completed by the known raw text, judged again.

What a model wrote is known where an answer still holds it (a call left in the text or in the reasoning, raw text quoted
in an error) and, whatever came back, of a known-answer agent. Up to the first fault everything happened as it is on
record; after it only a known-answer agent can be followed further. Where the completed turn does not end the episode
and nobody knows what the model would have written next, there is no verdict. Nothing is sent, nothing is drawn again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from harness.conditions import Condition
from harness.progress import Executed, Progress, named
from harness.reading import Heard, HeardCall, Offer, follows_schema
from harness.tasks import Task
from harness.text_calls import calls_in_text
from proxy.classify.facts import Facts
from proxy.classify.raw_text import lift
from results.episodes import EndedBy
from results.outcomes import Grade, Outcome
from stacks.formats import find_calls, offered_tools

Script = Callable[[int], Heard | None]
"""What a known-answer agent writes after so many executed calls, as it reaches the harness where nothing is lost."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The first turn that a serving fault touched: its number, what was done before it, and what the model wrote in it
    (None: not known)."""

    turn: int
    executed: tuple[Executed, ...]
    made: tuple[tuple[str, str], ...]
    wrote: Heard | None
    outcome: Outcome


def touched(what: Heard) -> bool:
    """Whether a fault of somebody else than the model's stands between it and the harness, and was not made up for."""
    return what.outcome.at_fault not in ("none", "model") and not what.recovered


def fault_at(turn: int, going: Progress, what: Heard, wrote: Heard | None) -> Fault:
    """The fault of an answer, before anything is done with it."""
    return Fault(turn, tuple(going.executed), tuple(going.made), wrote, what.outcome)


def written(condition: Condition, offer: Offer, text: str) -> Heard | None:
    """A text as a stack without fault hands it on; None where a schema would have kept the model from writing it."""
    if condition.name == "constrained" and not follows_schema(text, offer):
        return None
    calls = _calls(offer, text) if condition.sends_tools else ()
    if calls:
        return Heard(named("ok.native_call", ""), text, calls, "native")
    parsed = calls_in_text(text)
    calls = tuple(offer.checked(call.name, call.arguments) for call in parsed.calls)
    name = "ok.text_call" if calls else "model.malformed_call" if parsed.problem else "model.no_call"
    return Heard(named(name, ""), text, calls, "text" if calls else "none", problem=parsed.problem)


def still_there(offer: Offer, facts: Facts, outcome: Outcome) -> Heard | None:
    """The calls that a faulted answer still holds. Prose is no proof that there was none."""
    if outcome.wrote != "valid_call":
        return None
    texts = {"parser.left_as_text": facts.text, "parser.in_reasoning": facts.reasoning}
    text = texts.get(outcome.name, "")
    if outcome.name == "parser.server_error":
        lifted = (lift(message, facts.tools) for message in facts.error_messages)
        text = next((found.text for found in lifted if found is not None and found.verdict == "valid_call"), "")
    calls = _calls(offer, text)
    return Heard(named("ok.native_call", ""), text, calls, "native") if calls else None


def _calls(offer: Offer, text: str) -> tuple[HeardCall, ...]:
    scan = find_calls(text, offered_tools([tool.as_function() for tool in offer.tools]))
    found = list(scan.standing) or list(scan.in_reasoning)
    return tuple(offer.checked(one.call.name, one.call.arguments) for one in found)


def rejudged(task: Task, offer: Offer, fault: Fault, turns: int, script: Script | None) -> Outcome | None:
    """The outcome of an episode of at most `turns` turns without its fault, as far as what was written tells it;
    None where the end stays open."""
    going = Progress("", offer, task.world(), made=list(fault.made))
    for name, given in fault.executed:
        going.world.call(name, given)
        going.executed.append((name, given))
    what = fault.wrote
    ended: EndedBy | None = None
    for _ in range(fault.turn, turns):
        if what is None:
            return None
        going.text = what.text or going.text
        going.act(what)
        ended = going.ended(task, what)
        if ended is not None:
            break
        what = script(len(going.executed)) if script is not None else None
    if what is None:
        return None
    outcome, _ = going.outcome(task, ended or "turn_cap")
    said = f"with {fault.outcome.name} in turn {fault.turn + 1} taken away: {outcome.detail}"
    grade: Grade = "observed" if script is None else "known-answer"
    return msgspec.structs.replace(outcome, detail=said, grade=grade)
