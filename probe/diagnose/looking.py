"""Asks a server and reads the answer with its verdict: blind, or sighted where the model's text is known."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from probe.asking import Asker
from proxy.classify import Classified
from proxy.classify.sighted import sighted
from proxy.classify.written import canonical
from results.exchange import Exchange
from results.outcomes import Grade, Outcome
from stacks.serving.base import Answer, Ask
from stacks.turn import Turn


@dataclass(frozen=True, slots=True)
class Seen:
    """An answer and its verdict. `exchange` and `classified` are None only where nothing could be recorded."""

    answer: Answer
    outcome: Outcome
    classified: Classified
    exchange: Exchange

    @property
    def name(self) -> str:
        """`layer.code`."""
        return self.outcome.name

    @property
    def ok(self) -> bool:
        """Whether nothing was wrong with it."""
        return self.outcome.layer == "ok"

    @property
    def not_recorded(self) -> bool:
        """Whether a replay holds no answer to this request: nothing can be said then."""
        return self.answer.header("x-stacktap-error") == "not_recorded"

    @property
    def own_timeout(self) -> bool:
        """Whether it was the asker that would not wait longer."""
        return self.answer.failure == "timeout"

    @property
    def called(self) -> bool:
        """Whether a usable call came in its field."""
        return self.outcome.name == "ok.native_call"

    @property
    def turn(self) -> Turn | None:
        """The turn that came back, None where none did."""
        return self.classified.facts.turn

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens of the prompt, by the server's count."""
        return self.classified.facts.prompt_tokens

    @property
    def completion_tokens(self) -> int | None:
        """Tokens written, by the server's count."""
        return self.classified.facts.completion_tokens


class RecordLostError(Exception):
    """An answer came, and the recorder has no record of it (a full disk): nothing can be cited."""


async def look(asker: Asker, ask: Ask, known_text: str | None = None, **tags: str) -> Seen:
    """Ask, and judge what came; with `known_text` against what the model is known to have written.

    Raises RecordLostError, and what `Asker.ask` raises.
    """
    answer = await asker.ask(ask, **tags)
    exchange, classified = await asker.exchange(answer), await asker.judged(answer)
    if exchange is None or classified is None:
        raise RecordLostError("the recorder kept no record of a request; look at the disk space of the run folder")
    outcome = classified.outcome
    if known_text is not None:
        outcome = sighted(classified.facts, outcome, known_text)
    if answer.failure == "timeout" and outcome.name == "transport.client_gone":
        outcome = _too_slow(outcome, answer)
    return Seen(answer, outcome, classified, exchange)


def _too_slow(outcome: Outcome, answer: Answer) -> Outcome:
    """Where the asker itself gave up waiting, the record shows a client that left: say what it waited for."""
    return msgspec.structs.replace(
        outcome,
        code="timeout_read",
        at_fault="undetermined",
        confidence="medium",
        decide_by=None,
        detail=f"the answer was not complete after {answer.seconds:.0f} s, when the asking was given up",
        remedy="look at the server's load and at the model's speed there; a smaller model, or fewer threads than there "
        "are cores on a busy machine, may answer in time",
    )


def graded(outcome: Outcome, grade: Grade) -> Outcome:
    """The same outcome, resting on a comparison (or on a known answer, which stands above it)."""
    if outcome.grade == "known-answer":
        return outcome
    return msgspec.structs.replace(outcome, grade=grade)


def calls_of(seen: Seen) -> tuple[tuple[str, str], ...]:
    """The calls that came back, in order: (name, arguments in canonical JSON)."""
    return tuple((judged.call.name or "", canonical(judged.call.arguments)) for judged in seen.classified.facts.calls)
