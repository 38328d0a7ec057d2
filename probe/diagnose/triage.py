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
from probe.diagnose.words import HEALTHY, cited_lines, headline, remedy
from probe.target import Target
from results.outcomes import Outcome

FIRST_TOKENS = 256
"""Output limit of the first request: enough for a call, little enough for a slow machine."""
MORE_TOKENS = 2048
"""Limit of the second try, where thinking used up the first."""
MORE_TEXT = 1024
"""The same where plain text did."""

_BEFORE_MODEL = ("gate", "request", "template", "engine")
_CUT = ("nonresponse.reasoning_only", "truncation.output_budget", "truncation.cut_inside_call")


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
            if not self.diagnosis.headline:
                self.diagnosis.headline = "No verdict: the budget ended before one was reached."

    async def _examine(self) -> None:
        first = await self.see("tools offered, plain", stream=False)
        if first.not_recorded:
            self.diagnosis.headline = "No verdict: the replayed server holds no answer to this request."
            return
        if first.name in _CUT and first.outcome.at_fault != "client":
            if rambles(first) and await tools_present(self, first, first.answer.ask.body or {}) is False:
                return
            first = await self._with_more_room(first)
        if not first.called:
            await self._not_called(first)
            return
        # A model that has learnt to call, or is told in the question how to, may call what it never was shown.
        if await tools_present(self, first, first.answer.ask.body or {}, by_count=False) is False:
            return
        if not await self._stream_agrees(first) or await held_back(self, first) or await too_small(self):
            return
        back = await self.see("tool result sent back", messages=asked.after_result(self.path, self.trigger))
        if not back.ok and not back.not_recorded and back.outcome.layer != "model":
            sentence = "The first turn works; the turn that sends the tool's result back does not."
            self.conclude(graded(back.outcome, "differential"), [sentence])
            return
        self.diagnosis.headline = HEALTHY

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
        if outcome.detail and outcome.detail not in found.explained:
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
        return wider

    async def _not_called(self, first: Seen) -> None:
        if first.outcome.layer == "transport":
            self.conclude(first.outcome)
        elif first.outcome.layer in _BEFORE_MODEL and first.classified.facts.failed:
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
        else:
            self.conclude(first.outcome, [f"Without tools the server fails in another way: {control.name}."])

    async def _stream_agrees(self, plain: Seen) -> bool:
        """The same streamed, and without a limit of its own, as many agents send it; concludes where it fails."""
        streamed = await self.see("tools offered, streamed", stream=True, max_tokens=None)
        if streamed.not_recorded or (streamed.called and calls_of(streamed) == calls_of(plain)):
            return True
        if streamed.outcome.layer == "truncation" or streamed.name in _CUT:
            limited = await self.see("the same with a limit", stream=True)
            if limited.called:
                self._own_limit(streamed)
                return False
            streamed = limited
        self._stream_differs(plain, streamed)
        return False

    def _own_limit(self, cut: Seen) -> None:
        written = cut.completion_tokens
        self.facts["tokens"] = str(written or "")
        after = f" after {written} tokens" if written else ""
        detail = f"where the request sets no limit, the server ends the answer{after}"
        outcome = msgspec.structs.replace(cut.outcome, at_fault="config", decide_by=None, detail=detail)
        self.conclude(graded(outcome, "differential"), ["With a limit of its own in the request, the call arrives."])

    def _stream_differs(self, plain: Seen, streamed: Seen) -> None:
        sentence = "Plain, the call arrives; only the streamed answer is wrong."
        if streamed.ok or streamed.outcome.layer == "model":
            changes = {"layer": "parser", "code": "stream_differs", "at_fault": "stack", "decide_by": None}
            outcome = msgspec.structs.replace(streamed.outcome, **changes)
            outcome = msgspec.structs.replace(outcome, detail="the streamed turn is not the plain one", remedy=None)
        else:
            outcome = streamed.outcome
            if outcome.at_fault == "undetermined":
                outcome = msgspec.structs.replace(outcome, at_fault="stack", decide_by=None)
        cited = (*streamed.outcome.evidence, *plain.outcome.evidence[:1])
        outcome = msgspec.structs.replace(outcome, evidence=cited)
        self.diagnosis.notes.append("until it is mended, an agent without streaming works with this server")
        self.conclude(graded(outcome, "differential"), [sentence])


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
