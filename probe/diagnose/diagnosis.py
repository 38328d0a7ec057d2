"""The result of a diagnosis: one verdict, what it rests on, what to change, and what was asked on the way. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from results.outcomes import Outcome
from results.taxonomy import info

VERSION = 1


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was asked or looked up, what came, and what follows from it."""

    name: str
    said: str
    outcome: str = ""
    attempt: int = 0
    status: int | None = None


@dataclass(slots=True)
class Diagnosis:
    """`outcome` None: nothing wrong was found, or (`undecided`) no verdict was reached."""

    url: str
    model: str
    stack: str = ""
    version: str = ""
    outcome: Outcome | None = None
    headline: str = ""
    remedy: str = ""
    decide_by: str = ""
    explained: list[str] = field(default_factory=list)
    """Sentences that explain the verdict in the user's terms."""
    notes: list[str] = field(default_factory=list)
    """What else was seen, or could not be looked at."""
    steps: list[Step] = field(default_factory=list)
    recorded: dict[str, Any] | None = None
    """What the given run says by itself (`recorded.summary`)."""
    before: str = ""
    """What the last diagnosis of the same server and model said, where there was one."""
    cited: list[str] = field(default_factory=list)
    """Lines that show the bytes which the verdict rests on."""
    folder: str = ""
    requests: int = 0
    generations: int = 0
    seconds: float = 0.0
    undecided: bool = False

    @property
    def healthy(self) -> bool:
        """Whether a tool call arrives, plain and streamed, and a tool result goes back."""
        return self.outcome is None and not self.undecided

    @property
    def exit_code(self) -> int:
        """0 fine, 1 findings, 3 no verdict."""
        return 3 if self.undecided and self.outcome is None else int(self.outcome is not None)

    def facts(self) -> dict[str, Any]:
        """As a JSON object (`version` is the version of this shape)."""
        outcome = None if self.outcome is None else msgspec.to_builtins(self.outcome)
        named = {name: value for name, value in asdict_without_outcome(self).items() if name != "version"}
        return {"version": VERSION, **named, "stack_version": self.version, "healthy": self.healthy, "outcome": outcome}


def asdict_without_outcome(diagnosis: Diagnosis) -> dict[str, Any]:
    """Every other field as plain data."""
    kept, diagnosis.outcome = diagnosis.outcome, None
    try:
        facts = asdict(diagnosis)
    finally:
        diagnosis.outcome = kept
    facts.pop("outcome")
    return facts


def verdict_word(diagnosis: Diagnosis) -> str:
    """`layer.code`, `healthy`, or `no verdict`."""
    if diagnosis.outcome is not None:
        return diagnosis.outcome.name
    return "healthy" if diagnosis.healthy else "no verdict"


_RAN = {"yes": "yes", "no": "no: it never ran", "unknown": "not known"}


def text(diagnosis: Diagnosis) -> str:
    """For people."""
    outcome = diagnosis.outcome
    server = " ".join(part for part in (diagnosis.stack, diagnosis.version) if part) or "unknown server"
    lines = [f"{server} at {diagnosis.url}, model {diagnosis.model or '(none)'}", ""]
    lines += [f"  {_mark(step)} {step.name:<26} {step.said}" for step in diagnosis.steps]
    lines += ["", diagnosis.headline]
    lines += [f"  {sentence}" for sentence in diagnosis.explained]
    if outcome is not None:
        lines += [
            "",
            f"  verdict    {outcome.name}: {info(outcome.name).meaning}",
            f"  at fault   {outcome.at_fault}",
            f"  model ran  {_RAN[outcome.model_ran]}",
            f"  evidence   {outcome.grade}, confidence {outcome.confidence}",
        ]
        lines += [f"             {line}" for line in diagnosis.cited]
    if diagnosis.remedy:
        lines.append(f"  change     {diagnosis.remedy}")
    if diagnosis.decide_by:
        lines.append(f"  decide by  {diagnosis.decide_by}")
    lines += [f"  note       {note}" for note in diagnosis.notes]
    if diagnosis.before:
        lines += ["", f"before: {diagnosis.before}; now: {verdict_word(diagnosis)}"]
    asked = f"{diagnosis.requests} requests, {diagnosis.generations} of them generations, {diagnosis.seconds:.1f} s"
    return "\n".join([*lines, "", f"{asked}; recorded: {diagnosis.folder}" if diagnosis.requests else asked])


def _mark(step: Step) -> str:
    if not step.outcome:
        return "-"
    return "ok" if step.outcome.startswith("ok.") else "!!"
