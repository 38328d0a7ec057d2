"""An episode so far: what is done with an answer, whether it was the last, and the episode's outcome. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness.looping import goes_in_circles
from harness.reading import Heard, HeardCall, Offer
from harness.tasks import Ended, Judgement, Task, World
from results.episodes import CallRecord, EndedBy, TurnRecord
from results.outcomes import Outcome

MOST_CALLS = 16
"""Calls of one turn that are executed; more are refused, each with a result that says so."""

Executed = tuple[str, Mapping[str, Any]]
Done = tuple[HeardCall, CallRecord, str]
"""A call, its record, and what goes back to the model."""


@dataclass(slots=True)
class Progress:
    """`executed` are the calls that the world ran, `made` all that the model made (name, JSON of its arguments); `text`
    is the last text that was written; `stopped` is what ended the episode from the stack's side."""

    name: str
    offer: Offer
    world: World
    messages: list[dict[str, Any]] = field(default_factory=list)
    turns: list[TurnRecord] = field(default_factory=list)
    executed: list[Executed] = field(default_factory=list)
    made: list[tuple[str, str]] = field(default_factory=list)
    text: str = ""
    stopped: Outcome | None = None

    def act(self, what: Heard, marks: str = "") -> list[Done]:
        """Execute what is valid, in order; say of the rest why not. `marks` go under each result."""
        done: list[Done] = []
        for number, call in enumerate(what.calls):
            problem = call.problem if call.verdict != "valid" else ""
            if not problem and number >= MOST_CALLS:
                problem = f"not executed: more than {MOST_CALLS} calls in one turn"
            self.made.append((call.name, call.text))
            if problem:
                record = CallRecord(name=call.name, arguments=call.text, verdict=call.verdict, error=problem)
                done.append((call, record, problem))
                continue
            result = self.world.call(call.name, call.arguments)
            self.executed.append((call.name, call.arguments))
            record = CallRecord(
                name=call.name,
                arguments=call.text,
                executed=True,
                changed=result.changed,
                error=result.text if result.failed else "",
            )
            done.append((call, record, marked(result.text, marks, len(self.executed))))
        return done

    def ended(self, task: Task, what: Heard) -> EndedBy | None:
        """Whether an answer that came was the last one."""
        if task.single_turn:
            return "single_turn"
        if self.world.is_done:
            return "done_tool"
        if what.calls or what.problem:
            return None
        return "final_answer" if self.executed else "prose"

    def outcome(self, task: Task, ended_by: EndedBy, *, lost: Outcome | None = None) -> tuple[Outcome, Judgement]:
        """The oracle's word, unless the stack ended the episode or the model went in circles. `lost` is the outcome of
        the last turn where what the model wrote there was lost on its way."""
        judged = task.judge(self.world, Ended(self.text, tuple(self.executed)))
        if judged.name == "ok.task_done":
            return named("ok.task_done", judged.said), judged
        if self.stopped is not None:
            return _not_run(self.stopped), judged
        if ended_by == "wallclock":
            return named("task.no_stop", "the time limit of the episode ended it"), judged
        if goes_in_circles(self.made):
            return named("model.loop", judged.said), judged
        if ended_by == "turn_cap":
            return named("task.no_stop", judged.said), judged
        if lost is not None:
            return _not_run(lost), judged
        return named(judged.name, judged.said), judged


def marked(text: str, marks: str, number: int) -> str:
    """A text for the model with its mark under it."""
    return f"{text}\n{marks.replace('{n}', str(number))}" if marks else text


def named(name: str, detail: str) -> Outcome:
    """An outcome of the task's side."""
    layer, _, code = name.partition(".")
    return Outcome(
        layer=layer, code=code, at_fault="none" if layer == "ok" else "model", model_ran="yes", detail=detail
    )


def _not_run(stopped: Outcome) -> Outcome:
    return msgspec.structs.replace(stopped, layer="not_run", code=stopped.name, flags=())
