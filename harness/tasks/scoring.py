"""Judging an answers file: which values were declared, and how many of them are right."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from harness.tasks.base import Judgement


def declared_answers(text: str | None) -> Mapping[str, object] | None:
    """The JSON object of an answers file; None where there is no file, {} where it holds no object."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def judged_values(
    expected: Mapping[str, float],
    found: Mapping[str, object] | None,
    progress: float,
    tolerance: float,
    *,
    worked: bool,
) -> Judgement:
    """Compare declared numbers with expected ones, within `tolerance`. `worked` says whether anything was done before
    the end: without that, an end without answers is premature."""
    if found is None:
        name = "task.missing_step" if worked else "task.premature_done"
        return Judgement(name, 0.0, progress, "no answers were written")
    right = [key for key, value in expected.items() if _close(found.get(key), value, tolerance)]
    score = len(right) / len(expected)
    if score == 1:
        return Judgement("ok.task_done", 1.0, progress, "all answers are right")
    wrong = ", ".join(
        f"{key} is {found.get(key)!r:.40}, not {value}" for key, value in expected.items() if key not in right
    )
    return Judgement("task.value_mismatch", score, progress, f"{len(right)} of {len(expected)} right: {wrong}")


def _close(found: object, expected: float, tolerance: float) -> bool:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    try:
        value = float(found)
    except OverflowError:
        return False
    # The tolerance itself counts as close, whatever binary fractions make of it.
    return math.isfinite(value) and abs(value - expected) <= tolerance + 1e-9
