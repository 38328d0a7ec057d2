"""How much of a set of cases a grammar really constrained: the denominator that stands beside every rate under one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

GrammarUse = Literal["off", "ok", "build_unexpressible", "compile_failed", "truncated"]
"""What became of the grammar for one answer. ``off``: none was asked for."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts over cases for which a grammar was asked for. ``constrained`` are the ids of those that it held to the
    end: a difference that it makes is computed on them alone."""

    cases: int
    build_unexpressible: int
    compile_failed: int
    truncated: int
    constrained: frozenset[str]

    @property
    def share(self) -> float | None:
        """Constrained cases of all; None without cases."""
        return len(self.constrained) / self.cases if self.cases else None

    def text(self) -> str:
        """One line for a report."""
        return (
            f"grammar held {len(self.constrained)} of {self.cases} cases: {self.build_unexpressible} inexpressible, "
            f"{self.compile_failed} do not compile, {self.truncated} truncated"
        )


def coverage(uses: Mapping[str, GrammarUse]) -> Coverage:
    """Count by case id; cases without a grammar are left out."""
    asked = {case: use for case, use in uses.items() if use != "off"}
    counted = [*asked.values()]
    return Coverage(
        len(asked),
        counted.count("build_unexpressible"),
        counted.count("compile_failed"),
        counted.count("truncated"),
        frozenset(case for case, use in asked.items() if use == "ok"),
    )
