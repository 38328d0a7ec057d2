"""Known-answer agents: canary models that walk a task as written, led by the marks that the harness's worlds give.

Each behaviour is written in the form that a serving condition wants: a Hermes call where tools go as such, a fenced
JSON object where calls are read from text, a bare one where a schema forces the answer. What a cell must show is then
known in advance, so a difference is the server's or the harness's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from harness.conditions import Condition
from harness.tasks import Call, Task
from harness.tasks.single_step import SingleStep
from probe.canary.build import BuiltCanary, ensure_built
from probe.canary.call_formats import write_call
from probe.canary.members import hermes_template
from probe.canary.spec import CanarySpec, Script
from results.manifest import Fact, known, unknown
from stacks.locations import canaries_folder

BEHAVIOURS: dict[str, str] = {
    "does": "reads the first file, writes the right answers, says that it is done",
    "loops": "makes the same valid call for ever",
    "stops": "makes one call, then ends without answers",
    "never": "makes no call",
    "once": "makes one call, then writes nothing",
    "pairs": "reads the first file and writes the right answers in one turn, then says that it is done",
}
FORMS = ("hermes", "fenced", "bare")
_STOPPING = "I think this is enough for now."
_REFUSING = "There is nothing that I would do here."


def form_of(condition: Condition) -> str:
    """How a call is written under a condition."""
    if condition.sends_tools:
        return "hermes"
    return "bare" if condition.name == "constrained" else "fenced"


def marks_of(behaviour: str, condition: Condition, task: Task) -> str:
    """The mark that leads an episode, `{n}` standing for the number of calls that were executed before."""
    return _mark(behaviour, form_of(condition), task.kind, task.seed, "{n}")


def _mark(behaviour: str, form: str, kind: str, seed: int, number: int | str) -> str:
    if behaviour in ("does", "pairs"):
        return f"[[{behaviour}.{form}.{kind}.{seed}.{number}]]"
    return f"[[{behaviour}.{form}.{kind}]]" if behaviour == "loops" else f"[[{behaviour}.{form}.{kind}.{number}]]"


def known_texts(behaviour: str, condition: Condition, task: Task) -> Callable[[int], str]:
    """What a behaviour writes in a task after so many executed calls."""
    texts = [text for text, _ in _speech(behaviour, form_of(condition), task.walk)]
    return lambda executed: texts[min(executed, len(texts) - 1)]


def agents_spec(tasks: Iterable[Task], name: str = "canary-agents") -> CanarySpec:
    """One model that holds every behaviour in every form for these tasks. Raises CanaryError."""
    writing = _Scripts()
    for task in tasks:
        walk = task.walk
        for form in FORMS:
            for behaviour in BEHAVIOURS:
                for number, script in enumerate(_speech(behaviour, form, walk)):
                    writing.lead(_mark(behaviour, form, task.kind, task.seed, number), *script)
    default = writing.named(_REFUSING, "")
    return CanarySpec(
        name, tuple(writing.scripts.values()), hermes_template(), default=default, triggers=writing.marks, context=32768
    )


def agents_facts(behaviour: str) -> dict[str, Fact]:
    """What a cell of a known-answer agent is bound to in place of its model's file, which is built for the seeds of a
    run and is another one with one seed more: what the agents write, and how, shown by one task."""
    example = SingleStep().task(0)
    said = known(agents_spec([example]).digest(), "SHA-256 of what known-answer agents write in one task")
    built = unknown("a known-answer agent's file is made for the tasks of its run")
    named = known(f"canary-{behaviour}", "the grid")
    return {"model": named, "model_digest": said, "quantization": built, "bits_per_weight": built}


def build_agents(tasks: Iterable[Task], folder: Path | None = None) -> BuiltCanary:
    """Build the model for these tasks in `folder` (the cache by default), or find it there. Raises CanaryError."""
    spec = agents_spec(tasks)
    return ensure_built(spec, folder or canaries_folder() / f"agents-{spec.digest()[:12]}")


class _Scripts:
    """Scripts by what they write, and the marks that lead to them."""

    def __init__(self) -> None:
        self.scripts: dict[tuple[str, str], Script] = {}
        self.marks: dict[str, str] = {}

    def named(self, text: str, fallback: str) -> str:
        """The name of the script that writes this."""
        key = (text, fallback)
        if key not in self.scripts:
            self.scripts[key] = Script(f"w{len(self.scripts)}", text, fallback=fallback)
        return self.scripts[key].name

    def lead(self, mark: str, text: str, fallback: str) -> None:
        """A mark leads to what is written after it."""
        self.marks[mark] = self.named(text, fallback)


def _speech(behaviour: str, form: str, walk: tuple[Call, ...]) -> list[tuple[str, str]]:
    """What is written after 0, 1, ... calls: text, and what follows it where a grammar forbids to end there."""
    first, last = _written(form, walk[0]), _written(form, walk[-1])
    # Under a schema the last call is written where prose or the end is forbidden: a stack that enforces it shows by it.
    ending = (last, "") if form == "bare" else (_STOPPING, "")
    nothing = ("", last) if form == "bare" else ("", "")
    single = [(_written(form, call), "") for call in walk]
    if behaviour == "does" or (behaviour == "pairs" and form == "bare"):
        return single
    if behaviour == "pairs":
        # A stack that lets only the first call through is led on from there.
        return [("\n".join(_written(form, call) for call in walk[:2]), ""), *single[1:]]
    if behaviour == "loops":
        return [(first, "")]
    if behaviour == "stops":
        return [(first, ""), ending]
    if behaviour == "never":
        return [(_REFUSING, "")]
    return [(first, ""), nothing]


def _written(form: str, call: Call) -> str:
    if form == "hermes":
        return write_call("hermes", *call)
    text = json.dumps({"name": call[0], "arguments": dict(call[1])})
    return text if form == "bare" else f"```json\n{text}\n```"
