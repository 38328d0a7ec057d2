"""`python -m tests.cases`: the labelled cases and their confusion table. Exit code 1 where the gate is missed."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.cases.judging import confusion, judge_cases
from tests.support.corpus import cases, shared


def main() -> int:
    """Print table, misses and figures."""
    if shared() is None:
        print("no shared folder (STACKTAP_SHARED): the carried cases are used")
    with tempfile.TemporaryDirectory() as folder:
        results = judge_cases(cases(), Path(folder) / "run")
    print(confusion(results))
    for result in results:
        if not result.good or result.model_wronged:
            said = f"{result.outcome.name} ({result.outcome.at_fault})"
            print(f"MISS {result.id}: wanted {', '.join(result.wanted)}; got {said}: {result.outcome.detail}")
    decidable = [result for result in results if result.needs == "wire"]
    good = sum(result.good for result in decidable)
    wronged = sum(result.model_wronged for result in results)
    print(
        f"decidable from the wire: {good} of {len(decidable)}; all: {sum(r.good for r in results)} of {len(results)};"
    )
    print(f"blamed on the model wrongly: {wronged}")
    return 0 if good >= 0.95 * len(decidable) and not wronged else 1


if __name__ == "__main__":
    sys.exit(main())
