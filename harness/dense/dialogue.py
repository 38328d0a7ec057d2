"""An episode of an item so far: what is said next, what is done with an answer, whether it was the last. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.conditions import Called
from harness.conditions import history_after as messages_after
from harness.dense.family import DenseTask
from harness.dense.items import StateWorld
from harness.episode import MOST_CALLS, Setting
from harness.reading import Heard, HeardCall, Offer
from results.episodes import AttemptRecord, CallRecord, EndedBy, TurnRecord, brief
from results.outcomes import Outcome

Done = tuple[HeardCall, CallRecord, str]
"""A call, its record, and what goes back to the model."""


@dataclass(slots=True)
class Dialogue:
    """`user_turn` counts the user's messages from 0, `steps` the answers since the last of them; `said` is how much the
    world and the user have said: a canary's mark stands under each. `stopped` is what ended it from the stack's
    side."""

    setting: Setting
    task: DenseTask
    world: StateWorld
    name: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)
    turns: list[TurnRecord] = field(default_factory=list)
    user_turn: int = -1
    steps: int = 0
    said: int = 0
    acted: bool = False
    stopped: Outcome | None = None
    notes: list[dict[str, Any]] = field(default_factory=list)
    """What an engine in this process said of each step's generation, without texts and ids."""
    wrote: hashlib._Hash = field(default_factory=hashlib.sha256)

    def offer(self) -> Offer:
        """What is offered to this step."""
        item, away = self.task.item, {*self.task.item.withheld(self.user_turn), *self.setting.withheld}
        tools = tuple(tool for tool in item.tools if tool.name not in away)
        hidden = tuple(tool for tool in item.tools if tool.name in away)
        return Offer(tools, away, hidden, item.refuses_misfits)

    @property
    def may_answer(self) -> bool:
        """Whether words may be an answer here: no call is due in this turn of the user, or one was made in it."""
        here = any(turn.user_turn == self.user_turn and turn.calls for turn in self.turns)
        return here or not self.task.item.turns[self.user_turn].expected

    def marked(self, text: str) -> str:
        """A text with the mark that leads a known-answer agent on."""
        marks = self.setting.marks
        self.said += 1
        return f"{text}\n{marks.replace('{n}', str(self.said - 1))}" if marks else text

    def next_message(self) -> bool:
        """Let the user say what comes next. False: nothing does."""
        if self.user_turn + 1 >= len(self.task.item.turns):
            return False
        self.user_turn += 1
        self.steps = 0
        turn, offer, condition = self.task.item.turns[self.user_turn], self.offer(), self.setting.condition
        if self.user_turn == 0:
            text = condition.prompt(turn.said, offer.tools)
        else:
            text = condition.added(turn.said, [tool for tool in offer.tools if tool.name in turn.adds])
        self.messages.append({"role": "user", "content": self.marked(text)})
        return True

    def step(self, offer: Offer, what: Heard, attempts: Sequence[AttemptRecord] = ()) -> list[Done]:
        """Do what an answer asks for, in order, and keep the step."""
        done = [self._one(offer, number, call) for number, call in enumerate(what.calls)]
        self.turns.append(
            TurnRecord(
                outcome=brief(what.outcome),
                attempts=tuple(attempts),
                channel=what.channel,
                recovered=what.recovered,
                calls=tuple(record for _, record, _ in done),
                labels=what.labels,
                user_turn=self.user_turn,
            )
        )
        self.steps += 1
        return done

    def _one(self, offer: Offer, number: int, call: HeardCall) -> Done:
        executes = call.verdict == "valid" or (
            call.verdict == "invalid_arguments" and not offer.refuses_misfits and isinstance(call.arguments, dict)
        )
        if not executes or number >= MOST_CALLS:
            why = call.problem or f"not executed: more than {MOST_CALLS} calls in one turn"
            refused = CallRecord(name=call.name, arguments=call.text, verdict=call.verdict, error=why)
            return call, refused, self.marked(why)
        result = self.world.call(call.name, call.arguments)
        self.acted = True
        record = CallRecord(
            name=call.name,
            arguments=call.text,
            verdict=call.verdict,
            executed=True,
            changed=result.changed,
            error=result.text if result.failed else "",
        )
        return call, record, self.marked(result.text)

    def goes_on(self, what: Heard, done: Sequence[Done]) -> EndedBy | None:
        """Put the step and what came of it into the history; an answer in words lets the user go on, and ends the
        episode where there is nothing more to say."""
        if what.calls or what.problem:
            self._remember(what, done)
            return None
        self.messages.append({"role": "assistant", "content": what.text})
        if self.next_message():
            return None
        return "final_answer" if self.acted else "prose"

    def _remember(self, what: Heard, done: Sequence[Done]) -> None:
        if not done:
            said = self.marked(f"No call could be read: {what.problem}. Answer with one valid call.")
            self.messages += [{"role": "assistant", "content": what.text}, {"role": "user", "content": said}]
            return
        calls = [
            Called(call.id or f"call_{len(self.messages)}_{at}", call.name, record.arguments, result)
            for at, (call, record, result) in enumerate(done)
        ]
        setting, as_text = self.setting, what.channel != "native"
        self.messages += messages_after(setting.endpoint, setting.condition, what.text, calls, as_text=as_text)
