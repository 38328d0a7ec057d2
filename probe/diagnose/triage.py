"""The order in which a server is examined: refused or emptied? tools in the prompt? parser right? only then the model.

Every stage asks as little as it can, and the first one that finds the fault ends the examination.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from probe.asking import BudgetSpentError
from probe.diagnose import asked
from probe.diagnose.diagnosis import Diagnosis, Step
from probe.diagnose.looking import Seen, calls_of, graded, look
from probe.diagnose.model_or_stack import examine, name_parser, rambles
from probe.diagnose.pace import held_back
from probe.diagnose.prompt import tools_present
from probe.diagnose.room import too_small
from probe.diagnose.streamed import BEFORE_MODEL, CUT, stream_agrees
from probe.diagnose.strict import by_what_stands_between, oddities, same_model
from probe.diagnose.words import HEALTHY, HEALTHY_SO_FAR, cited_lines, headline, remedy
from probe.target import Target
from results.outcomes import Outcome

FIRST_TOKENS = 256
"""Output limit of the first request: enough for a call, little enough for a slow machine."""
MORE_TOKENS = 2048
"""Limit of the second try, where thinking used up the first."""
MORE_TEXT = 1024
"""The same where plain text did."""

_THINKS = (
    'switch thinking off (`chat_template_kwargs: {"enable_thinking": false}`, `reasoning_effort`, Ollama\'s `think`), '
    "or bound it; a larger limit helps only if this model ever ends its thinking"
)
_WITHOUT_THINKING = "comparison_request: the same request with thinking switched off"
BACK = "tool result sent back"
_PASSING = (
    "transport.reset", "transport.stream_truncated", "transport.gateway", "transport.queue_full", "transport.not_http"
)  # fmt: skip
"""Faults that may be over with the next request, besides those of the engine."""


@dataclass(slots=True)
class Triage:
    """One examination of a target. `path` is where chat requests go; `tell` is called with each step as it is done;
    `trigger` goes into the question (it chooses what a known-answer model writes)."""

    target: Target
    diagnosis: Diagnosis
    path: str
    tell: Callable[[Step], None]
    trigger: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    """What the remedies may name: parser (that fits), in_force (the parser), format, model, context, tokens (a
    limit), room (the context to have)."""
    seen: dict[int, Seen] = field(default_factory=dict)
    """By attempt: what was asked and came back."""
    prompt: str | None = None
    """The rendered prompt of the request last examined, where the server shows one."""
    raw: str | None = None
    """What the model wrote to it, by another channel."""
    silent: bool = False
    """Whether the server left the last request without an answer: it may be stuck, and is asked no more."""
    failed: Seen | None = None
    """The exchange that showed the fault."""

    async def examine(self) -> None:
        """Fill in the diagnosis. A budget that runs out ends it with what is known by then."""
        self.facts.setdefault("model", self.target.model)
        try:
            await self._examine()
        except BudgetSpentError as spent:
            self.diagnosis.notes.append(f"not everything was looked at: {spent}")
            if not self.diagnosis.headline and self.failed is not None:
                self.conclude(self.failed.outcome)
            elif not self.diagnosis.headline:
                self.diagnosis.headline = "No verdict: the budget ended before one was reached."
                self.diagnosis.undecided = True

    async def _examine(self) -> None:
        first = await self.see("tools offered, plain", stream=False)
        if first.not_recorded:
            self.diagnosis.headline = "No verdict: the replayed server holds no answer to this request."
            self.diagnosis.undecided = True
            return
        if first.name in CUT and first.outcome.at_fault != "client":
            if rambles(first) and await tools_present(self, first, first.answer.ask.body or {}) is False:
                return
            first = await self._with_more_room(first)
        elif first.name in _PASSING or first.outcome.layer == "engine":
            first = await self._once_more(first)
        if not first.called:
            await self._not_called(first)
            return
        # A model that has learnt to call, or is told in the question how to, may call what it never was shown.
        if await tools_present(self, first, first.answer.ask.body or {}, by_count=False) is False:
            return
        if not await stream_agrees(self, first) or await held_back(self, first) or await too_small(self):
            return
        if await self._result_goes_back():
            back_seen = not any(note.endswith(BACK) for note in self.diagnosis.notes)
            self.diagnosis.headline = HEALTHY if back_seen else HEALTHY_SO_FAR
            self._say_oddities()

    async def _result_goes_back(self) -> bool:
        """The second turn of an agent; concludes where it fails."""
        back = await self.see(BACK, messages=asked.after_result(self.path, self.trigger))
        if back.ok or back.not_recorded or back.outcome.layer == "model":
            return True
        explained = ["The first turn works; the turn that sends the tool's result back does not."]
        outcome = back.outcome
        if back.classified.facts.failed and self.path != asked.OLLAMA_CHAT:
            messages = asked.after_result(self.path, self.trigger, "")
            texts = await self.see("the same with a text beside the call", messages=messages)
            if texts.ok:
                explained.append("With an empty text in place of `content: null` beside the call it works.")
                outcome = msgspec.structs.replace(
                    outcome, layer="request", code="bad_history", at_fault="stack", model_ran="no", decide_by=None,
                    detail="the server refuses `content: null` beside a tool call, which is what OpenAI's clients send",
                    remedy='send `"content": ""` beside tool calls, or upgrade the server',
                )  # fmt: skip
        self.conclude(graded(outcome, "differential"), explained)
        return False

    def _say_oddities(self) -> None:
        """What is irregular in answers that are well, and another model's name in them."""
        odd: dict[str, None] = {}
        for seen in self.seen.values():
            if seen.ok:
                odd.update(dict.fromkeys(oddities(seen.classified)))
            named = seen.turn.model if seen.turn is not None else None
            if seen.ok and named and self.target.model and not same_model(named, self.target.model):
                odd[
                    f"asked for {self.target.model}, the answer names {named}: does something choose another model?"
                ] = None
        self.diagnosis.notes += list(odd)

    async def see(self, name: str, *, judged_step: bool = True, **how: object) -> Seen:
        """Send one chat request and note the step. `how` goes to `asked.chat`; `judged_step`: its verdict matters."""
        ask = asked.chat(self.path, self.target.model, **{"trigger": self.trigger, "max_tokens": FIRST_TOKENS, **how})  # type: ignore[arg-type]
        text = self.target.known_text if "messages" not in how and how.get("tools", True) else None
        seen = await look(self.target.asker, ask, text, probe="diagnose")
        self.seen[seen.exchange.attempt] = seen
        self.silent = seen.own_timeout
        judged_step = judged_step and not seen.not_recorded
        if judged_step and not seen.ok:
            self.failed = seen
        judged = seen.name if judged_step else ""
        if seen.not_recorded:
            self.diagnosis.notes.append(f"not examined, for the replay holds no answer to it: {name}")
        self.note(Step(name, said(seen, judged=judged_step), judged, seen.exchange.attempt, seen.answer.status))
        return seen

    def note(self, step: Step) -> None:
        """Keep a step and tell it."""
        self.diagnosis.steps.append(step)
        self.tell(step)

    def conclude(self, outcome: Outcome, explained: list[str] | None = None) -> None:
        """Set the verdict."""
        found = self.diagnosis
        found.outcome = outcome
        found.headline = headline(outcome)
        found.cited = cited_lines(outcome)
        found.explained += explained or []
        found.remedy = remedy(outcome, self.target.stack, self.facts)
        found.decide_by = (outcome.decide_by or "").partition(": ")[2]
        # A single word is the relay's or the classifier's own name for what the headline has said already.
        if " " in outcome.detail and outcome.detail not in found.explained:
            found.explained.append(outcome.detail[0].upper() + outcome.detail[1:].rstrip(".") + ".")

    async def _with_more_room(self, first: Seen) -> Seen:
        """Ask again with a larger limit: thinking may have used up the first one."""
        limit = MORE_TEXT if rambles(first) else MORE_TOKENS
        wider = await self.see("the same with more room", stream=False, max_tokens=limit)
        if wider.own_timeout:
            self.diagnosis.notes.append(f"{limit} tokens were not written within {wider.answer.seconds:.0f} s")
            self.silent = False
            return first
        written = wider.completion_tokens
        if wider.called:
            spent = f"{written} tokens" if written else "more tokens"
            self.diagnosis.notes.append(
                f"this model needs {spent} for one call (thinking included): agents with a lower output limit get none"
            )
        elif written is not None and first.completion_tokens == written < limit:
            self.facts["tokens"] = str(written)
            said = f"the server ends every answer at {written} tokens, although the request allows {limit}"
            return replace(
                wider, outcome=msgspec.structs.replace(wider.outcome, at_fault="config", decide_by=None, detail=said)
            )
        if wider.name == "truncation.output_budget" and _only_thought(wider):
            said = f"{written or 'all'} tokens of thinking, and no answer yet"
            return replace(
                wider,
                outcome=msgspec.structs.replace(
                    wider.outcome, at_fault="undetermined", detail=said, remedy=_THINKS, decide_by=_WITHOUT_THINKING
                ),
            )
        return wider

    async def _once_more(self, first: Seen) -> Seen:
        """The same request again: what fails once and then works says nothing about tools or model."""
        again = await self.see("the same once more", stream=False)
        if again.ok:
            self.failed = None
            self.diagnosis.notes.append(
                f"the first request failed with {first.name}, and the same request worked right after: a fault that "
                "comes and goes (a cold start, a crash and restart, load); agents without a retry meet it"
            )
        return again

    async def _too_slow(self, first: Seen) -> None:
        """No whole answer in time: a stream tells a server that writes slowly from one that is silent."""
        if first.exchange.wire("response"):
            self.conclude(first.outcome)
            return
        streamed = await self.see("the same, streamed", stream=True)
        if streamed.turn is None or not streamed.turn.has_payload:
            self.conclude(first.outcome, ["Streamed it is the same: nothing comes."])
            return
        detail = f"streamed, the server does write: {len(streamed.exchange.wire('response'))} bytes came"
        slow = msgspec.structs.replace(
            first.outcome, detail=detail, decide_by=None, at_fault="client", model_ran="yes",
            remedy="raise the timeout of the client and of every gateway, or stream: this server is slow, not silent",
        )  # fmt: skip
        self.conclude(graded(slow, "differential"))

    async def _not_called(self, first: Seen) -> None:
        if first.name == "transport.timeout_read" and first.answer.failure == "timeout":
            await self._too_slow(first)
        elif first.outcome.layer == "transport" or by_what_stands_between(first.outcome):
            self.conclude(first.outcome)
        elif first.outcome.layer in BEFORE_MODEL and first.classified.facts.failed:
            await self._refused(first)
        else:
            await examine(self, first)

    async def _refused(self, first: Seen) -> None:
        """A control without tools tells whether the tools are what the server does not take."""
        control = await self.see("no tools offered", stream=False, tools=False)
        explained = []
        if control.ok:
            explained = ["Without tools the same model on the same server answers."]
            explained += await name_parser(self, first, first.answer.ask.body or {})
            self.conclude(graded(first.outcome, "differential"), explained)
        elif control.name == first.name:
            self.conclude(first.outcome, ["Without tools it is the same."])
        elif control.not_recorded:
            self.failed = first
            self.conclude(first.outcome)
        else:
            self.conclude(first.outcome, [f"Without tools the server fails in another way: {control.name}."])


def _only_thought(seen: Seen) -> bool:
    facts = seen.classified.facts
    return bool(facts.reasoning.strip()) and not facts.text.strip() and not facts.calls


def said(seen: Seen, *, judged: bool = True) -> str:
    """One line for a step: what came, and its verdict where that matters."""
    verdict = f": {seen.name}" if judged else ""
    calls = calls_of(seen)
    if calls:
        odd = "" if seen.called else verdict
        return "call " + ", ".join(f"{name}({arguments})" for name, arguments in calls) + odd
    if seen.answer.status is None:
        return f"no answer ({seen.answer.failure or seen.exchange.end}){verdict}"
    text = seen.classified.facts.text or seen.classified.facts.error_text
    shown = " ".join(text.split())
    quoted = f'"{shown[:80]}{"..." if len(shown) > 80 else ""}"' if shown else "nothing"
    return f"{seen.answer.status} {quoted}{verdict}"
