"""Which failed runs did the right thing in the wrong place: would the steps of going there alone have made it right?

A finding of Dense Bench part 4 (153 of its 193 near-misses skipped a `cd`), as a rule that is executed: in the first
user turn that went wrong, the true steps of navigation that the model left out so far are put between its calls, in
their order; where some placing gives the right state, that was all that was missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, islice

from harness.dense.items import Item, StateWorld, ToolCall, Trace

MOST_PLACINGS = 5_000
"""Ways to put the missing steps between the calls that are tried."""


@dataclass(frozen=True, slots=True)
class Missing:
    """The steps of navigation that were left out, and that would have made the state right."""

    turn: int
    steps: tuple[ToolCall, ...]


def missing_navigation(item: Item, trace: Trace, turn: int) -> Missing | None:
    """What was missing in the user turn (from 0) that went wrong first; None where that was not all."""
    mine, true = item.fresh(), item.fresh()
    made: list[ToolCall] = []
    for number in range(turn):
        made += _succeeded(mine, item, _calls(trace, number))
        _succeeded(true, item, item.turns[number].expected)
    calls = _calls(trace, turn)
    _succeeded(true, item, item.turns[turn].expected)
    made += [call for call in calls if call.name in item.navigates]
    wanted = [call for user in item.turns[: turn + 1] for call in user.expected if call.name in item.navigates]
    steps = _left_out(wanted, made)
    if not steps:
        return None
    places = combinations_with_replacement(range(len(calls) + 1), len(steps))
    for places_of in islice(places, MOST_PLACINGS):
        if _right_with(item, trace, turn, _placed(calls, steps, places_of), true):
            return Missing(turn, tuple(steps))
    return None


def _calls(trace: Trace, turn: int) -> list[ToolCall]:
    return [call for step in (trace[turn] if turn < len(trace) else ()) for call in step]


def _succeeded(world: StateWorld, item: Item, calls: Iterable[ToolCall]) -> list[ToolCall]:
    """Execute calls; those of navigation that worked."""
    return [
        call
        for call in calls
        for result in (world.call(call.name, call.arguments),)
        if call.name in item.navigates and not result.failed
    ]


def _left_out(wanted: Sequence[ToolCall], made: Sequence[ToolCall]) -> list[ToolCall]:
    """The wanted steps that were not made, each of those standing for one, in the order in which they are wanted."""
    have = Counter(call.text for call in made)
    left = []
    for call in wanted:
        if have[call.text]:
            have[call.text] -= 1
        else:
            left.append(call)
    return left


def _placed(calls: Sequence[ToolCall], steps: Sequence[ToolCall], places: Sequence[int]) -> list[ToolCall]:
    found: list[ToolCall] = []
    for at in range(len(calls) + 1):
        found += [step for step, place in zip(steps, places, strict=True) if place == at]
        found += calls[at : at + 1]
    return found


def _right_with(item: Item, trace: Trace, turn: int, calls: Sequence[ToolCall], true: StateWorld) -> bool:
    world = item.fresh()
    for number in range(turn):
        _succeeded(world, item, _calls(trace, number))
    _succeeded(world, item, calls)
    return not world.differences(true)
