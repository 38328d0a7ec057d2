"""One answer to a probe's request, as the classifier read it: the turn, the error, where each stands on the wire."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from probe.result import ProbeEvidence
from proxy.classify import Classified
from proxy.classify.facts import Facts, JudgedCall
from proxy.classify.sighted import sighted
from results.outcomes import Evidence, Outcome
from stacks.formats import find_calls
from stacks.serving.base import Answer
from stacks.turn import Turn

_REFUSING_LAYERS = ("gate", "request", "template")


def cited(*evidence: Evidence) -> tuple[ProbeEvidence, ...]:
    """Citations of the classifier as those of a probe."""
    return tuple(ProbeEvidence(one.attempt, one.direction, one.start, one.end, one.quote) for one in evidence)


@dataclass(frozen=True)
class Reply:
    """An answer with its verdict; `judged` is None where nothing was recorded."""

    answer: Answer
    judged: Classified | None = None

    @property
    def facts(self) -> Facts | None:
        """What the classifier worked out."""
        return None if self.judged is None else self.judged.facts

    @property
    def turn(self) -> Turn | None:
        """The turn that came; None where none did."""
        return None if self.facts is None else self.facts.turn

    @property
    def arrived(self) -> bool:
        """Whether a turn came, wholly and without an error."""
        facts = self.facts
        return self.answer.ok and facts is not None and facts.turn is not None and not facts.failed

    @property
    def refused(self) -> bool:
        """Whether the server understood the request and turned it down: a 4xx, or an error before the model ran."""
        if self.arrived or self.answer.status is None or self.judged is None or not self.judged.facts.failed:
            return False
        if self.unrecorded:
            return False
        outcome = self.judged.outcome
        if outcome.layer == "transport":
            return False
        return 400 <= self.answer.status < 500 or outcome.layer in _REFUSING_LAYERS

    @property
    def unrecorded(self) -> bool:
        """Whether a replay answered that it has no record of such a request: then no server said anything."""
        return self.answer.header("x-stacktap-error") == "not_recorded"

    @property
    def error(self) -> str:
        """The server's own words where it answered with an error, else how the answer failed."""
        said = self.facts.error_text.strip() if self.facts is not None else ""
        if said:
            return said[:300]
        if self.answer.failure:
            return f"no whole answer came ({self.answer.failure})"
        return f"status {self.answer.status} without a turn of a model in it"

    @property
    def outcome(self) -> str:
        """`layer.code` by the wire alone; empty where nothing was recorded."""
        return "" if self.judged is None else self.judged.outcome.name

    def sighted(self, known_text: str) -> Outcome | None:
        """The verdict where the model is known to have written `known_text`."""
        if self.judged is None:
            return None
        return sighted(self.judged.facts, self.judged.outcome, known_text)

    @property
    def text(self) -> str:
        """The answer's text, "" where there is none."""
        return self.facts.text if self.facts is not None else ""

    @property
    def reasoning(self) -> str:
        """What came in a reasoning field."""
        return self.facts.reasoning if self.facts is not None else ""

    @property
    def calls(self) -> list[JudgedCall]:
        """The delivered calls."""
        return self.facts.calls if self.facts is not None else []

    @property
    def called(self) -> tuple[str, ...]:
        """Names of the delivered calls."""
        return tuple(judged.call.name or "" for judged in self.calls)

    @property
    def called_in_text(self) -> tuple[str, ...]:
        """Names of the calls to offered tools that stand in the text."""
        if self.facts is None or not self.text:
            return ()
        scan = find_calls(self.text, self.facts.tools if self.facts.offers else None)
        return tuple(found.call.name for found in scan.standing)

    @property
    def finish(self) -> str | None:
        """The canonical finish reason."""
        return self.turn.finish if self.turn is not None else None

    @property
    def limit_reached(self) -> bool:
        """Whether the output limit ended the answer."""
        return self.facts is not None and self.facts.limit_reached

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens of the prompt, where the answer says."""
        return self.facts.prompt_tokens if self.facts is not None else None

    @property
    def completion_tokens(self) -> int | None:
        """Tokens generated, where the answer says."""
        return self.facts.completion_tokens if self.facts is not None else None

    def shown(self) -> dict[str, Any]:
        """The turn in a comparable form: text, reasoning, calls with canonical arguments, finish reason."""
        return {
            "text": self.text,
            "reasoning": self.reasoning,
            "calls": [
                [each.call.name, _canonical(each.call.arguments, each.call.arguments_text)] for each in self.calls
            ],
            "finish": self.finish,
        }

    # ------------------------------------------------------------------ evidence
    def cite_error(self) -> tuple[ProbeEvidence, ...]:
        """Evidence at the error, or at whatever came."""
        return () if self.facts is None else cited(self.facts.cite_error())

    def cite_turn(self) -> tuple[ProbeEvidence, ...]:
        """Evidence at the first call where one came, else at the text, else at the whole body."""
        facts = self.facts
        if facts is None:
            return ()
        if facts.calls:
            return cited(facts.cite_call(facts.calls[0].call))
        if facts.text and not facts.failed:
            return cited(facts.cite_text(0, len(facts.text)))
        return cited(facts.cite_body())

    def cite_usage(self) -> tuple[ProbeEvidence, ...]:
        """Evidence at the token counts."""
        return () if self.facts is None else cited(self.facts.cite_usage())

    def cite_request(self, *path: str | int) -> tuple[ProbeEvidence, ...]:
        """Evidence at a value of the request."""
        return () if self.facts is None else cited(self.facts.cite_request(path))

    def cite_body(self) -> tuple[ProbeEvidence, ...]:
        """Evidence at the whole body."""
        return () if self.facts is None else cited(self.facts.cite_body())


def _canonical(value: object, text: str) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text
