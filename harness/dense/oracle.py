"""The oracle: an episode's calls and the true calls are executed on fresh worlds, and what they leave is compared.

Three verdicts stand beside each other: `state_end` (the state after the last turn; ours by default), `state_per_turn`
(after every turn that expects a call) and `bfcl_full` (BFCL's whole rule: no empty turn, the state, and every true
result among the results so far). Restraint is a rule of ours, since the official evaluator never enforces it: in a turn
that expects no call, nothing is changed; and nothing that is withheld is called (such a call is not executed). An
episode that a cap ended is valid under none of them. Pure: worlds are in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.dense.items import Item, StateWorld, Step, ToolCall, Trace

OracleName = Literal["state_end", "state_per_turn", "bfcl_full"]
ORACLES: tuple[OracleName, ...] = ("state_end", "state_per_turn", "bfcl_full")
Problem = Literal["", "capped", "empty_turn", "state", "response"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one oracle says. `problem` is empty where it is satisfied; `turn` (from 0) is where it was not."""

    problem: Problem = ""
    turn: int | None = None
    said: str = ""

    @property
    def valid(self) -> bool:
        """Whether the oracle is satisfied."""
        return not self.problem


@dataclass(frozen=True, slots=True)
class Breach:
    """A call that restraint forbids: withheld at that time, or in a turn that expects none and not without effect."""

    turn: int
    call: ToolCall
    reason: Literal["changed", "withheld", "called"]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """All that the oracles say of an episode. `results` are the texts that its calls gave, in order."""

    state_end: Verdict
    state_per_turn: Verdict
    bfcl_full: Verdict
    breaches: tuple[Breach, ...]
    results: tuple[str, ...]

    def of(self, name: OracleName) -> Verdict:
        """One of them."""
        return {"state_end": self.state_end, "state_per_turn": self.state_per_turn, "bfcl_full": self.bfcl_full}[name]

    @property
    def succeeded(self) -> bool:
        """Whether the episode counts as a success: `state_end` and restraint."""
        return self.state_end.valid and not self.breaches


def judge(item: Item, trace: Trace, *, capped: int | None = None, strict_restraint: bool = False) -> Verdicts:
    """Judge an episode by its executed calls. Turns that it never came to count as turns without a call.

    `capped` is the turn that was ended from outside; `strict_restraint` makes a breach of every call in a turn that
    expects none, reading ones included.
    """
    mine, true = _Played(item.fresh()), _Played(item.fresh())
    breaches: list[Breach] = []
    per_turn = full = Verdict()
    for number, turn in enumerate(item.turns):
        steps = trace[number] if number < len(trace) else ()
        away = item.withheld(number)
        done = tuple(tuple(call for call in step if call.name not in away) for step in steps)
        breaches += [Breach(number, call, "withheld") for step in steps for call in step if call.name in away]
        changed = mine.play(done)[0]
        wanted = true.play((turn.expected,))[1]
        if not turn.expected:
            breaches += _breaches(number, done, changed, strict=strict_restraint)
            continue
        state = _state(mine.world, true.world, number)
        per_turn = per_turn if per_turn.problem else state
        if not full.problem:
            full = _full(done, state, mine.results, wanted, number)
    end = _state(mine.world, true.world, len(item.turns) - 1)
    if capped is not None:
        end = per_turn = full = Verdict("capped", capped, "the cap on steps ended it")
    return Verdicts(end, per_turn, full, tuple(breaches), tuple(mine.results))


class _Played:
    """A world and the texts of all results so far."""

    def __init__(self, world: StateWorld) -> None:
        self.world = world
        self.results: list[str] = []

    def play(self, steps: Sequence[Step]) -> tuple[list[bool], list[str]]:
        """Execute the calls: whether each changed the state, and its result."""
        changed, said = [], []
        for step in steps:
            for call in step:
                result = self.world.call(call.name, call.arguments)
                changed.append(result.changed)
                said.append(result.text)
        self.results += said
        return changed, said


def _state(mine: StateWorld, true: StateWorld, turn: int) -> Verdict:
    found = mine.differences(true)
    return Verdict("state", turn, "; ".join(found)) if found else Verdict()


def _full(steps: Sequence[Step], state: Verdict, results: Sequence[str], wanted: Sequence[str], turn: int) -> Verdict:
    """BFCL's rule for a turn that expects calls: the model called something, the state is right, and each true result
    is among the results so far, each of those standing for one only."""
    if not any(steps):
        return Verdict("empty_turn", turn, "no call in a turn that needs one")
    if state.problem:
        return state
    left = list(results)
    missing = []
    for text in wanted:
        if text in left:
            left.remove(text)
        else:
            missing.append(text)
    return Verdict("response", turn, f"{len(missing)} true results were never seen") if missing else Verdict()


def _breaches(turn: int, steps: Sequence[Step], changed: Sequence[bool], *, strict: bool) -> list[Breach]:
    calls = zip((call for step in steps for call in step), changed, strict=True)
    return [Breach(turn, call, "changed" if did else "called") for call, did in calls if did or strict]
