"""How a rule states a verdict; `outcome_of` turns it into the record that is kept."""

from __future__ import annotations

import msgspec

from results.outcomes import Confidence, Delivery, Evidence, Fault, Grade, Outcome, Ran, Wrote
from results.taxonomy import CODES

_MAX_EVIDENCE = 4


class Verdict(msgspec.Struct):
    """One rule's answer. What is None is taken from the taxonomy's usual value for the code."""

    name: str
    fault: Fault | None = None
    ran: Ran | None = None
    confidence: Confidence = "high"
    delivery: Delivery = "unknown"
    wrote: Wrote = "unknown"
    evidence: list[Evidence] = msgspec.field(default_factory=list)
    remedy: str | None = None
    decide_by: str | None = None
    detail: str = ""
    flags: list[str] = msgspec.field(default_factory=list)
    signature: str | None = None

    def undetermined(self, decide_by: str) -> Verdict:
        """The same verdict with the fault left open, and what would decide it."""
        self.fault, self.decide_by = "undetermined", decide_by
        if self.confidence == "high":
            self.confidence = "medium"
        return self


def outcome_of(verdict: Verdict, flags: list[str], grade: Grade = "observed") -> Outcome:
    """The outcome that a verdict stands for, with flags of anomalies that did not stop the attempt."""
    info = CODES[verdict.name]
    fault: Fault = verdict.fault or info.usual_fault  # type: ignore[assignment]
    ran: Ran = verdict.ran or info.model_ran  # type: ignore[assignment]
    decide_by = verdict.decide_by
    if fault == "undetermined" and decide_by is None:
        decide_by = "server_log: what the server wrote about this request"
    if fault != "undetermined":
        decide_by = None
    merged = dict.fromkeys(flag for flag in (*verdict.flags, *flags) if flag != verdict.name)
    return Outcome(
        layer=info.layer,
        code=info.code,
        at_fault=fault,
        model_ran=ran,
        confidence=verdict.confidence,
        grade=grade,
        delivery=verdict.delivery,
        wrote=verdict.wrote,
        evidence=tuple(verdict.evidence[:_MAX_EVIDENCE]),
        remedy=verdict.remedy,
        decide_by=decide_by,
        flags=tuple(merged),
        detail=verdict.detail,
        signature=verdict.signature,
    )


RAW = (
    "comparison_request: the same rendered prompt through raw completion (no parser), or the same request without "
    "`tools`, to see what the model writes"
)
PLAIN = "comparison_request: the same request with `stream` the other way round"
LOG = "server_log: what the server wrote about this request"
FLAGS = "launch_flags: how the server was started (context length, parser, template)"
CHOICE = (
    "comparison_request: the same request again, with `tool_choice` required where the server obeys it and at "
    "temperature 0, to see whether the model calls the tool at all"
)
