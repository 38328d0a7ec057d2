"""Known-answer agents for items: what each writes after each message is fixed, so that its label is known in advance.

Led by marks under every message of the user and of the world, as in `harness.canary_agents`. One behaviour solves every
item; the others fail the first user turn whose true calls change something, each in one known way, and then stop.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.dense.family import DenseTask
from harness.dense.items import STEP_CAP, Item, ToolCall
from probe.canary.build import BuiltCanary, ensure_built
from probe.canary.call_formats import write_call
from probe.canary.members import hermes_template
from probe.canary.spec import CanaryError, CanarySpec, Script
from results.manifest import Fact, known, unknown
from stacks.locations import canaries_folder

DONE, WAITING, ENOUGH = "That is done.", "I cannot do that with what I have now.", "I leave it at that."
FORMAT = "hermes"
"""The call format that they write."""
_FREE = ("to", "text", "line", "folder")
_INSTEAD: tuple[ToolCall, ...] = (
    ToolCall("mkdir", {"folder": "elsewhere"}),
    ToolCall("append", {"file": "readme.txt", "line": "more"}),
    ToolCall("rm", {"file": "readme.txt"}),
)


@dataclass(frozen=True, slots=True)
class Known:
    """What a behaviour must be called: its `mode`, what is `counted` apart, and `outcome` in our own taxonomy; `about`
    is for people. `needs` says which items it is for: any, those with `cd`, with a `silent` turn, with a turn of
    `several` calls, with a first turn that only reads (`later`)."""

    mode: str
    outcome: str
    about: str
    counted: str = ""
    needs: str = "any"


BEHAVIOURS: Mapping[str, Known] = {
    "solves": Known("success", "ok.task_done", "makes the true calls"),
    "batches": Known("success", "ok.task_done", "makes all true calls of a turn in one answer", needs="several"),
    "breaks": Known("malformed_json", "model.malformed_call", "writes a call with single quotes"),
    "invents": Known("hallucinated_tool", "model.unknown_tool", "calls a tool that does not exist"),
    "mistakes": Known("wrong_tool", "task.wrong_tool", "calls another tool that changes something"),
    "misses": Known("right_tool_wrong_args", "task.wrong_args", "makes the right call with one wrong argument"),
    "circles": Known("tool_call_loop", "model.loop", "makes the same call for ever"),
    "wanders": Known("failure_to_stop", "task.no_stop", "makes one new call after the other and never ends"),
    "fences": Known("parse_recovery_triggered", "model.malformed_call", "writes the true calls in a fence, in prose"),
    "strays": Known(
        "right_tool_wrong_args", "task.wrong_args", "makes the true calls without going where they belong", needs="cd"
    ),
    "refuses": Known("right_tool_wrong_args", "task.premature_done", "calls nothing", counted="no_action"),
    "gives_up": Known(
        "right_tool_wrong_args",
        "task.premature_done",
        "does the first turn and nothing after it",
        counted="premature_done",
        needs="later",
    ),
    "hurries": Known(
        "wrong_tool", "task.restraint_violation", "makes the calls of the next turn where none is right", needs="silent"
    ),
}


def marks(behaviour: str, family: str) -> str:
    """The mark that leads an episode; `{n}` stands for how much the user and the world have said before."""
    return f"[[{behaviour}.{family}.{{n}}]]"


def fits(behaviour: str, item: Item) -> bool:
    """Whether a behaviour is for this item."""
    at = deciding_turn(item)
    expected = item.turns[at].expected
    needs = BEHAVIOURS[behaviour].needs
    if needs == "cd":
        return any(call.name in item.navigates for call in expected)
    if needs == "silent":
        return any(_early(item, number) for number in range(len(item.turns)))
    if needs == "several":
        return any(len(turn.expected) > 1 for turn in item.turns)
    return needs == "any" or any(turn.expected for turn in item.turns[:at])


def deciding_turn(item: Item) -> int:
    """The first user turn whose true calls change something."""
    world = item.fresh()
    for number, turn in enumerate(item.turns):
        if any(world.call(call.name, call.arguments).changed for call in turn.expected):
            return number
    raise CanaryError(f"{item.id}: no true call changes anything")


def speech(behaviour: str, item: Item) -> list[str]:
    """What is written after 0, 1, ... messages of the user and the world. Raises CanaryError where it does not fit."""
    if behaviour not in BEHAVIOURS or not fits(behaviour, item):
        raise CanaryError(f"the behaviour {behaviour!r} is not for the item {item.id}")
    return [text for number in range(len(item.turns)) for text in _turn(behaviour, item, number)]


def known_texts(behaviour: str, item: Item) -> Callable[[int], str]:
    """What is written after so many messages of the user and the world (from 0). Raises CanaryError."""
    texts = dict(enumerate(speech(behaviour, item)))
    return lambda said: texts.get(said, ENOUGH)


def _turn(behaviour: str, item: Item, number: int) -> list[str]:
    """What is written in one user turn; the last text holds no call."""
    decides, turn = deciding_turn(item), item.turns[number]
    if behaviour == "refuses":
        return [ENOUGH]
    if behaviour == "hurries":
        return [*map(_hermes, _early(item, number) or turn.expected), DONE]
    if behaviour == "fences":
        return [*map(_fenced, turn.expected), DONE if turn.expected else WAITING]
    if behaviour == "batches":
        # A stack that lets only the first calls through is led on from there.
        left = [turn.expected[at:] for at in range(len(turn.expected))]
        return [*("\n".join(map(_hermes, calls)) for calls in left), DONE if turn.expected else WAITING]
    if number < decides or behaviour == "solves":
        return [*map(_hermes, turn.expected), DONE if turn.expected else WAITING]
    return [*(_failing(behaviour, item, number) if number == decides else []), ENOUGH]


def _failing(behaviour: str, item: Item, number: int) -> list[str]:
    expected = item.turns[number].expected
    if behaviour == "breaks":
        call = expected[-1]
        return [f"<tool_call>\n{{'name': '{call.name}', 'arguments': {dict(call.arguments)}}}\n</tool_call>"]
    if behaviour == "invents":
        return [_hermes(ToolCall("teleport", {"to": "everywhere"}))]
    if behaviour == "mistakes":
        needed = {call.name for call in expected}
        return [_hermes(next(call for call in _INSTEAD if call.name not in needed))]
    if behaviour == "misses":
        return [_hermes(call) for call in _one_wrong(item, number)]
    if behaviour == "circles":
        return [_hermes(ToolCall("pwd"))] * STEP_CAP
    if behaviour == "wanders":
        return [_hermes(ToolCall("find", {"text": f"page {step}"})) for step in range(STEP_CAP)]
    if behaviour == "strays":
        return [_hermes(call) for call in expected if call.name not in item.navigates]
    return []


def _one_wrong(item: Item, number: int) -> list[ToolCall]:
    """The true calls of a turn, the last one that changes something with another argument."""
    calls = list(item.turns[number].expected)
    world = item.fresh()
    for turn in item.turns[:number]:
        for call in turn.expected:
            world.call(call.name, call.arguments)
    changing = [at for at, call in enumerate(calls) if world.call(call.name, call.arguments).changed]
    at = changing[-1]
    name = next(name for name in _FREE if name in calls[at].arguments)
    wrong = {**calls[at].arguments, name: f"{calls[at].arguments[name]} 2"}
    return [*calls[:at], replace(calls[at], arguments=wrong), *calls[at + 1 :]]


def _early(item: Item, number: int) -> tuple[ToolCall, ...]:
    """The calls of the next turn, where this one expects none and they can be made here."""
    if item.turns[number].expected or number + 1 >= len(item.turns):
        return ()
    return item.turns[number + 1].expected


def _hermes(call: ToolCall) -> str:
    return write_call(FORMAT, call.name, dict(call.arguments))


def _fenced(call: ToolCall) -> str:
    written = json.dumps({"name": call.name, "arguments": dict(call.arguments)})
    return f"I will do that:\n```json\n{written}\n```"


def agents_spec(behaviour: str, tasks: Iterable[DenseTask]) -> CanarySpec:
    """One model that shows a behaviour on these tasks. Raises CanaryError."""
    scripts: dict[str, Script] = {}
    leads: dict[str, str] = {}

    def named(text: str) -> str:
        return scripts.setdefault(text, Script(f"w{len(scripts)}", text)).name

    for task in {task.family: task for task in tasks}.values():
        written: Sequence[str] = speech(behaviour, task.item)
        for number, text in enumerate(written):
            leads[marks(behaviour, task.family).replace("{n}", str(number))] = named(text)
    default = named(ENOUGH)
    return CanarySpec(
        f"dense-{behaviour}", tuple(scripts.values()), hermes_template(), default=default, triggers=leads, context=32768
    )


def agents_facts(behaviour: str, task: DenseTask) -> dict[str, Fact]:
    """What a cell of a known-answer agent is bound to in place of its model's file, which is built for all the tasks of
    a run: what it writes in this one. Raises CanaryError."""
    said = known(agents_spec(behaviour, [task]).digest(), "SHA-256 of what the known-answer agent writes in its task")
    built = unknown("a known-answer agent's file is made for the tasks of its run")
    named = known(f"canary-{behaviour}", "the grid")
    return {"model": named, "model_digest": said, "quantization": built, "bits_per_weight": built}


def build_agents(behaviour: str, tasks: Iterable[DenseTask], folder: Path | None = None) -> BuiltCanary:
    """Build the model in `folder` (the cache by default), or find it there. Raises CanaryError."""
    spec = agents_spec(behaviour, tasks)
    return ensure_built(spec, folder or canaries_folder() / f"dense-{spec.digest()[:12]}")
