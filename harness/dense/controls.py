"""Agents without a model, whose scores are known or must be low: how an oracle judges them shows what it is worth."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.dense.items import STEP_CAP, Item, Step, ToolCall, Trace
from harness.dense.oracle import ORACLES, Verdicts, judge
from harness.tools import ToolSpec

Agent = Callable[[int, int, Sequence[ToolSpec]], Step]
"""From a user turn, a step in it (both from 0) and what is offered to the next calls; none ends the turn."""
GOES_ON = 0.7
"""How likely the random agent makes one more call."""


def play(item: Item, agent: Agent) -> tuple[Trace, int | None]:
    """What an agent calls in an item, and the turn that the cap ended (None: it ended every turn by itself)."""
    turns: list[tuple[Step, ...]] = []
    for number in range(len(item.turns)):
        steps: list[Step] = []
        while calls := agent(number, len(steps), item.offered(number)):
            if len(steps) == STEP_CAP:
                return (*turns, tuple(steps)), number
            steps.append(calls)
        turns.append(tuple(steps))
    return tuple(turns), None


def true_agent(item: Item) -> Agent:
    """Makes the true calls, one a step."""
    return lambda turn, step, offered: item.turns[turn].expected[step : step + 1]


def null_agent(item: Item) -> Agent:
    """Calls nothing."""
    return lambda turn, step, offered: ()


def random_agent(item: Item, seed: int) -> Agent:
    """Calls any offered tool with arguments of the right types, drawn from the values that the true calls use."""
    stream = random.Random(f"{item.id} {seed}")
    words = sorted({value for turn in item.turns for call in turn.expected for value in _words(call.arguments)})

    def next_calls(turn: int, step: int, offered: Sequence[ToolSpec]) -> Step:
        if stream.random() > GOES_ON or step >= STEP_CAP:
            return ()
        tool = stream.choice(list(offered))
        return (ToolCall(tool.name, _drawn(stream, tool.parameters, words)),)

    return next_calls


def _words(arguments: Mapping[str, Any]) -> Iterable[str]:
    return (value for value in arguments.values() if isinstance(value, str))


def _drawn(stream: random.Random, schema: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    needed = schema.get("required", ())
    given: dict[str, Any] = {}
    for name, one in schema.get("properties", {}).items():
        if name not in needed and stream.random() < 0.5:
            continue
        kind = one.get("type")
        if kind == "boolean":
            given[name] = stream.random() < 0.5
        elif kind in ("integer", "number"):
            given[name] = stream.randint(0, 20)
        else:
            given[name] = stream.choice(list(one.get("enum") or words or ["x"]))
    return given


@dataclass(frozen=True, slots=True)
class ControlScore:
    """What one control agent reached: `items` judged, how many each oracle accepts, and successes (with restraint)."""

    agent: str
    items: int
    valid: Mapping[str, int]
    succeeded: int


def control_scores(items: Iterable[Item], seed: int = 0) -> list[ControlScore]:
    """The true calls, no calls, and random calls on each item."""
    rows = list(items)
    judged = {
        "ground truth": [_judged(item, true_agent(item)) for item in rows],
        "no calls": [_judged(item, null_agent(item)) for item in rows],
        f"random calls, seed {seed}": [_judged(item, random_agent(item, seed)) for item in rows],
    }
    return [
        ControlScore(
            agent,
            len(found),
            {name: sum(one.of(name).valid for one in found) for name in ORACLES},
            sum(one.succeeded for one in found),
        )
        for agent, found in judged.items()
    ]


def _judged(item: Item, agent: Agent) -> Verdicts:
    trace, capped = play(item, agent)
    return judge(item, trace, capped=capped)
