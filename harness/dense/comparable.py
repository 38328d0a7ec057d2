"""Whether configurations were asked the same: system prompt, tools, decoding parameters and seeds of each task.

Only the model may differ between what is compared. What a cell is bound to stands in its plan; a hash over the part
that must be equal is compared, and a difference is named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from harness.dense.family import BFCL_ITEMS, OWN_ITEMS
from results.episodes import CellKey, CellPlan

EQUAL = (
    "harness",
    "condition_text",
    "task_version",
    "withheld",
    "tools",
    "system_prompt",
    "turns",
    "retries",
    "temperature",
    "top_p",
    "max_tokens",
    "decoder_seed",
)
"""Facts of a plan that say how a model is asked, not which model."""


def asked(plan: CellPlan) -> dict[str, str]:
    """How the cell's model is asked, by name, each as JSON text."""
    said = {name: plan.facts[name].value for name in EQUAL if name in plan.facts}
    said |= {"seeds": list(plan.seeds), "repeats": plan.repeats}
    return {name: msgspec.json.encode(value, order="sorted").decode() for name, value in said.items()}


def asked_digest(plan: CellPlan) -> str:
    """SHA-256 (hex) of that: equal for two cells whose results may stand beside each other."""
    return hashlib.sha256(msgspec.json.encode(asked(plan), order="sorted")).hexdigest()


def unequal(plans: Mapping[CellKey, CellPlan]) -> list[str]:
    """One sentence for each cell of an item that was asked otherwise than the first one of its task and condition."""
    first: dict[tuple[str, str], CellPlan] = {}
    found = []
    for key, plan in sorted(plans.items()):
        if not key.task.startswith((OWN_ITEMS, BFCL_ITEMS)):
            continue
        other = first.setdefault((key.condition, key.task), plan)
        if asked_digest(other) != asked_digest(plan):
            mine, theirs = asked(plan), asked(other)
            differing = [name for name in sorted(mine.keys() | theirs.keys()) if mine.get(name) != theirs.get(name)]
            said = ", ".join(f"{name} {mine.get(name)} and {theirs.get(name)}" for name in differing)
            found.append(
                f"{key.title} must not be compared with {other.cell.title}: they were asked otherwise ({said})"
            )
    return found
