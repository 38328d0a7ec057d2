"""An item's episode that a serving fault touched: whose failure it is, and what it would have been without the fault.

As `harness.rejudging` for tasks of one message. Up to the first fault everything happened as it is on record; from
there on only a known-answer agent can be followed, or what the faulted answer still holds, as far as that goes. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from harness.dense.dialogue import Dialogue
from harness.dense.failures import executed
from harness.dense.known_agents import FORMAT
from harness.progress import named
from harness.reading import Heard, Offer, hear_raw
from harness.rejudging import still_there, touched, written
from harness.tasks.base import Ended
from proxy.classify.facts import Facts
from results.episodes import EndedBy, TurnRecord
from results.outcomes import Grade, Outcome

_WORDS = ("ok", "model")
"""Words are the model's own, also where an answer cannot show whether a call stood beside them."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The first step that a serving fault touched: the steps before it, where in the dialogue it stood (as `Dialogue`
    counts), and what the model wrote in it (None: not known)."""

    turns: tuple[TurnRecord, ...]
    user_turn: int
    steps: int
    said: int
    wrote: Heard | None
    outcome: Outcome


def as_known(going: Dialogue, offer: Offer, what: Heard) -> Heard:
    """An answer in words, told from one whose call is missing: of a known-answer agent it is known what it wrote."""
    if what.calls or not going.setting.condition.name.startswith("native") or what.outcome.layer not in ("ok", "model"):
        return what
    wrote = _known(going, offer)
    if wrote is None or not wrote.calls:
        return what
    said = f"the known-answer agent wrote a call to {wrote.calls[0].name}, and none came"
    dropped = msgspec.structs.replace(
        what.outcome,
        layer="parser",
        code="dropped",
        at_fault="stack",
        model_ran="yes",
        delivery="dropped",
        wrote="valid_call" if all(call.verdict == "valid" for call in wrote.calls) else "invalid_arguments",
        grade="known-answer",
        decide_by=None,
        detail=said,
    )
    return replace(what, outcome=dropped)


def lost(turns: Sequence[TurnRecord], wrong: int | None) -> Outcome | None:
    """The first serving fault that a failure may come from: one up to the turn of the user that went wrong (`wrong`;
    None: up to the end)."""
    for turn in turns:
        after = wrong is not None and turn.user_turn > wrong
        if not (turn.clean or turn.post_cap or after or turn.outcome.layer in _WORDS):
            return turn.outcome
    return None


def fault_at(going: Dialogue, offer: Offer, what: Heard, facts: Facts) -> Fault | None:
    """The fault of an answer, before anything is done with it; None where none touched it."""
    if not touched(what) or what.outcome.layer in _WORDS:
        return None
    wrote = still_there(offer, facts, what.outcome) if going.setting.known is None else _known(going, offer)
    return Fault(tuple(going.turns), going.user_turn, going.steps, going.said, wrote, what.outcome)


def _known(going: Dialogue, offer: Offer) -> Heard | None:
    """What a known-answer agent writes now, as a stack without fault hands it on."""
    known, condition = going.setting.known, going.setting.condition
    if known is None:
        return None
    text = known(going.said - 1)
    if not condition.sends_tools and condition.name != "raw":
        return written(condition, offer, text)
    formats = condition.formats or (FORMAT,)
    return hear_raw(formats, offer, text, named("ok.final_answer", ""), acted=going.may_answer)


def rejudged(ran: Dialogue, fault: Fault) -> Outcome | None:
    """The outcome of an episode without its fault, as far as what was written tells it; None where that is open."""
    going = Dialogue(
        ran.setting,
        ran.task,
        ran.task.world(),
        turns=list(fault.turns),
        user_turn=fault.user_turn,
        steps=fault.steps,
        said=fault.said,
    )
    for call in executed(fault.turns):
        going.world.call(call.name, call.arguments)
        going.acted = True
    ended = _ended(going, fault.wrote)
    if ended is None:
        return None
    judged = going.task.judge(going.world, Ended(turns=tuple(going.turns), capped=ended == "turn_cap"))
    said = f"with {fault.outcome.name} in step {len(fault.turns) + 1} taken away: {judged.said}"
    grade: Grade = "observed" if ran.setting.known is None else "known-answer"
    return msgspec.structs.replace(named(judged.name, said), grade=grade)


def _ended(going: Dialogue, what: Heard | None) -> EndedBy | None:
    """Go on with what is known to be written; how it ended, None where nobody knows what comes next."""
    while what is not None:
        done = going.step(going.offer(), what)
        ended = going.goes_on(what, done)
        if ended is not None:
            return ended
        if going.steps >= going.setting.limits.turns:
            return "turn_cap"
        what = _known(going, going.offer())
    return None
