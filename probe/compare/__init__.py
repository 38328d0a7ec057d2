"""`compare`: identical requests to several servers, and one verdict across them."""

from __future__ import annotations

from probe.compare.comparison import Across, Cell, Comparison
from probe.compare.questions import PRESETS, Question, from_recorded
from probe.compare.run import compare
from probe.compare.targets import TargetError, TargetSpec, parse_target

__all__ = [
    "PRESETS",
    "Across",
    "Cell",
    "Comparison",
    "Question",
    "TargetError",
    "TargetSpec",
    "compare",
    "from_recorded",
    "parse_target",
]
