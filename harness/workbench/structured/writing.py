"""The cases of `structured` as the text of a pack file, and the halves that workflows use. Pure."""

from __future__ import annotations

import json
from typing import Any

from harness.workbench.structured.cases import COUNTS, SEED, TOOLS, Case, cases

VERSION = "1.0.0"
POWER = (
    "Sized for paired comparisons: 250 cases of which 20 % come out differently detect a difference of 8 points with a "
    "power of 80 % (two-sided 5 %); a half of 125 cases detects 11 points, 40 cases 20 points."
)


def pack_text(seed: int = SEED) -> str:
    """The pack file (YAML; each task is a line of JSON, the tools stand once)."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in COUNTS.items())
    lines = [
        f"# Made by `python -m harness.workbench.structured` from seed {seed}. Change the generator, not this file.",
        "format: 1",
        "pack: structured",
        f"version: {VERSION}",
        f"description: {json.dumps(f'{sum(COUNTS.values())} structured answers: {kinds}. {POWER}')}",
        "tasks:",
    ]
    anchored = False
    for case in cases(seed):
        task = _task(case)
        line = json.dumps(task, ensure_ascii=False)
        if case["category"] == "call":
            tools = "*tools" if anchored else f"&tools {json.dumps(TOOLS)}"
            line, anchored = f'{line[:-1]}, "tools": {tools}}}', True
        lines.append(f"  - {line}")
    return "\n".join(lines) + "\n"


def _task(case: Case) -> dict[str, Any]:
    """A case in the pack format: its right answer becomes the sample that passes."""
    task = {key: value for key, value in case.items() if key != "gold"}
    gold = case["gold"]
    wrong = {**gold, "arguments": {}} if "arguments" in gold else dict.fromkeys(gold)
    task["samples"] = {"pass": [json.dumps(gold)], "fail": [json.dumps(wrong)]}
    return task
