"""What a run failed by: exactly one of Dense Bench's seven modes, from its retained turns. Pure; needs no model.

A mode is looked for in the first user turn that went wrong. Every sign that is found there is kept; the rules' order
says which of them the run is called by, the others stand beside it. A run whose call had to be recovered from prose or
a fence is never a pass. Runs without any call (`no_action`) or without one in the failing turn (`premature_done`) have
no word among the seven: they are mapped to `right_tool_wrong_args` and counted apart.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.dense.items import Item, ToolCall, Trace
from harness.dense.oracle import Verdicts, judge
from harness.dense.rules import Rules, default_rules
from harness.looping import goes_in_circles
from harness.reading import CUT
from results.episodes import CallRecord, TurnRecord

SUCCESS = "success"
_MODELS = ("none", "model")
"""Whose recovery is the model's: what a server left in the text is the server's."""
NO_ACTION, PREMATURE = "no_action", "premature_done"


@dataclass(frozen=True, slots=True)
class Failure:
    """How a run is called: `mode` is `success` or one of the seven, `beside` the other signs in the rules' order,
    `counted` is `no_action` or `premature_done` where one of these is mapped, `outcome` the name in our own taxonomy,
    `turn` the first user turn that went wrong (from 0)."""

    mode: str
    outcome: str
    said: str
    beside: tuple[str, ...] = ()
    counted: str = ""
    turn: int | None = None


def trace_of(item: Item, turns: Sequence[TurnRecord]) -> Trace:
    """The calls of an episode as the oracle reads them: those that were executed, and those to withheld tools."""
    kept = [
        (turn.user_turn, tuple(_call(call) for call in turn.calls if call.executed or call.verdict == "withheld_tool"))
        for turn in turns
        if not turn.post_cap
    ]
    return tuple(tuple(calls for at, calls in kept if at == number and calls) for number in range(len(item.turns)))


def executed(turns: Sequence[TurnRecord]) -> list[ToolCall]:
    """The calls that the world ran, in order."""
    return [_call(call) for turn in turns for call in turn.calls if call.executed]


def _call(call: CallRecord) -> ToolCall:
    return ToolCall(call.name, _arguments(call))


def _arguments(call: CallRecord) -> dict[str, Any]:
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def judged(item: Item, turns: Sequence[TurnRecord], *, capped: bool, strict_restraint: bool = False) -> Verdicts:
    """What the oracles say of an episode's turns."""
    ended = turns[-1].user_turn if capped and turns else None
    return judge(item, trace_of(item, turns), capped=ended, strict_restraint=strict_restraint)


def failure(item: Item, turns: Sequence[TurnRecord], verdicts: Verdicts, rules: Rules | None = None) -> Failure:
    """Name a run by the rules (the shipped ones by default)."""
    rules = rules or default_rules()
    recovered = next((turn.recovered for turn in turns if turn.recovered and turn.outcome.at_fault in _MODELS), "")
    if verdicts.succeeded and not recovered:
        return Failure(SUCCESS, "ok.task_done", "the state is right")
    if verdicts.succeeded:
        said = f"the state is right, but a call had to be recovered ({recovered}): the model left its own format"
        return Failure("parse_recovery_triggered", "model.malformed_call", said)
    at = _first_wrong(item, verdicts)
    here = _Turn(item, at, [turn for turn in turns if turn.user_turn == at], verdicts)
    signs = here.signs(rules)
    if recovered:
        signs["parse_recovery_triggered"] = ("", f"a call was recovered ({recovered})")
    order = [mode for mode in rules.precedence if mode in signs]
    outcome, said = next(signs[mode] for mode in order if signs[mode][0])
    counted = "" if here.calls else (PREMATURE if any(turn.calls for turn in turns) else NO_ACTION)
    counted = counted if order[0] == "right_tool_wrong_args" else ""
    return Failure(order[0], outcome, said, tuple(order[1:]), counted, at)


def _first_wrong(item: Item, verdicts: Verdicts) -> int:
    """The first user turn after which something is wrong."""
    found = [breach.turn for breach in verdicts.breaches]
    found += [one.turn for one in (verdicts.state_per_turn, verdicts.state_end) if one.turn is not None]
    return min(found, default=len(item.turns) - 1)


@dataclass(frozen=True, slots=True)
class _Turn:
    """The user turn that went wrong: its steps, and what of it is a sign of which mode."""

    item: Item
    number: int
    steps: Sequence[TurnRecord]
    verdicts: Verdicts

    @property
    def calls(self) -> list[CallRecord]:
        return [call for step in self.steps for call in step.calls]

    def signs(self, rules: Rules) -> dict[str, tuple[str, str]]:
        """Mode -> (outcome, why), at least one."""
        found: dict[str, tuple[str, str]] = {}
        broken = next((step for step in self.steps if step.outcome.name == "model.malformed_call"), None)
        if broken is not None:
            found["malformed_json"] = ("model.malformed_call", broken.outcome.detail)
        unknown = next((call.name for call in self.calls if call.verdict == "unknown_tool"), None)
        if unknown is not None:
            found["hallucinated_tool"] = ("model.unknown_tool", f"there is no tool {unknown!r}")
        if goes_in_circles([(call.name, call.arguments) for call in self.calls], rules.loop):
            found["tool_call_loop"] = ("model.loop", "the same calls over and over")
        if self.verdicts.state_end.problem == "capped" and self.verdicts.state_end.turn == self.number:
            found["failure_to_stop"] = ("task.no_stop", "the cap on steps ended it")
        elif any(CUT in step.labels and not step.calls for step in self.steps):
            found["failure_to_stop"] = ("task.no_stop", "the text went on to the end of its budget")
        wrong = self._wrong_tool()
        if wrong is not None:
            found["wrong_tool"] = wrong
        if not found or (found.keys() <= {"malformed_json", "hallucinated_tool"} and self._made()):
            found["right_tool_wrong_args"] = self._wrong_arguments()
        return found

    def _wrong_tool(self) -> tuple[str, str] | None:
        breach = next((one for one in self.verdicts.breaches if one.turn == self.number), None)
        if breach is not None and breach.reason == "withheld":
            return "task.restraint_violation", f"{breach.call.name} is withheld there"
        if breach is not None:
            guessed = self.item.kind == "miss_param"
            code = "task.guessed_missing_param" if guessed else "task.restraint_violation"
            return code, f"{breach.call.text} where no call is right"
        needed, made = self._needed(), self._made()
        instead = sorted(made - needed - self.item.reads)
        if needed - made and instead:
            return "task.wrong_tool", f"{', '.join(instead)} and never {', '.join(sorted(needed - made))}"
        return None

    def _wrong_arguments(self) -> tuple[str, str]:
        if not self.calls:
            return "task.premature_done", "no call where one is needed"
        missing = self._needed() - self._made()
        if missing:
            return "task.missing_step", f"never {', '.join(sorted(missing))}"
        misfit = next((call for call in self.calls if call.verdict == "invalid_arguments"), None)
        if misfit is not None:
            return "task.wrong_args", f"{misfit.name}: {misfit.error}"
        return "task.wrong_args", self.verdicts.state_per_turn.said or self.verdicts.state_end.said

    def _needed(self) -> set[str]:
        """Names of the true calls of the turn, going somewhere apart."""
        return {call.name for call in self.item.turns[self.number].expected} - self.item.navigates

    def _made(self) -> set[str]:
        """Names of the offered tools that were called, going somewhere apart."""
        known = [call.name for call in self.calls if call.verdict in ("valid", "invalid_arguments")]
        return set(known) - self.item.navigates
