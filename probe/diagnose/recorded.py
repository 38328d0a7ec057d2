"""What a recorded run says by itself: which outcome explains its rate, in the user's terms. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from results.outcomes import Judged
from results.taxonomy import LAYERS, info

VALID = frozenset({"ok.native_call", "ok.text_call"})
_REFUSED = ("gate", "request", "template")


@dataclass(slots=True)
class RunSaid:
    """Counts over the attempts of a run that asked for a generation. `exemplar` is the first attempt with the outcome
    that explains most of what went wrong (None: nothing did)."""

    attempts: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    ran: Counter[str] = field(default_factory=Counter)
    exemplar: Judged | None = None
    _first: dict[str, Judged] = field(default_factory=dict)

    def add(self, judged: Judged) -> None:
        """Count one attempt; requests that ask for no generation are passed over."""
        if judged.aside:
            return
        self.attempts += 1
        self.outcomes[judged.outcome.name] += 1
        self.ran[judged.outcome.model_ran] += 1
        self._first.setdefault(judged.outcome.name, judged)

    def finish(self) -> RunSaid:
        """Choose the exemplar."""
        faults = [name for name in self.outcomes if not name.startswith("ok.")]
        if faults:
            main = min(faults, key=lambda name: (-self.outcomes[name], LAYERS.index(name.partition(".")[0]), name))
            self.exemplar = self._first[main]
        return self

    @property
    def valid_calls(self) -> int:
        """Attempts that brought a usable call."""
        return sum(count for name, count in self.outcomes.items() if name in VALID)

    def sentences(self) -> list[str]:
        """The rate explained: what happened before the model, what the model did, and whether a rate exists at all."""
        if not self.attempts:
            return ["The run holds no request that asks a model for anything."]
        total = self.attempts
        said = []
        refused = sum(count for name, count in self.outcomes.items() if name.partition(".")[0] in _REFUSED)
        if refused and self.ran["no"] == total:
            said.append(f"{total} of {total} requests were refused before inference; the model never ran.")
        elif self.ran["no"]:
            said.append(f"{self.ran['no']} of {total} requests ended before inference; there the model never ran.")
        for name, count in self.outcomes.most_common():
            if not name.startswith("ok.") and info(name).model_ran != "no":
                said.append(f"In {count} of {total}: {info(name).meaning} ({name}).")
        reached = sum(count for name, count in self.outcomes.items() if info(name).reached)
        if not reached:
            said.append(
                "A tool-call rate of this run is undefined, not 0 %: no output of the model reached the client."
            )
        elif not self.valid_calls and not self._calls_due():
            said.append("No call was due in this run; a tool-call rate says nothing here.")
        elif not self.valid_calls:
            said.append(
                f"A careless harness prints 0 %; only {self.outcomes_of_model()} of {total} are the model's doing."
            )
        return said

    def _calls_due(self) -> bool:
        return any(not name.startswith("ok.") for name in self.outcomes)

    def outcomes_of_model(self) -> int:
        """Attempts whose outcome is of the model's own layer."""
        return sum(count for name, count in self.outcomes.items() if name.startswith("model."))

    def facts(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "attempts": self.attempts,
            "outcomes": dict(self.outcomes.most_common()),
            "model_ran": dict(self.ran),
            "valid_calls": self.valid_calls,
            "exemplar": None if self.exemplar is None else self.exemplar.attempt,
            "said": self.sentences(),
        }


def run_said(judged: Iterable[Judged]) -> RunSaid:
    """What a run says, from its judged attempts in any order."""
    said = RunSaid()
    for each in judged:
        said.add(each)
    return said.finish()
