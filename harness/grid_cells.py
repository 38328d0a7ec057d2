"""From a grid to its cells, their plans, and the episodes that are still to be run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from harness.canary_agents import marks_of
from harness.conditions import Condition, Endpoint, endpoint_for
from harness.episode import Setting
from harness.grid import Grid, Target, TaskRow, family_of
from harness.tasks import TaskFamily
from results.episodes import CellKey, CellPlan
from results.manifest import Fact, known

HARNESS_VERSION = "1"
"""Version of the loop's behaviour: cells of another version are not mixed."""
_OF_SERVER = (
    "stack",
    "version",
    "model",
    "model_digest",
    "quantization",
    "chat_template_hash",
    "context_length",
    "sampling",
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a grid."""

    key: CellKey
    target: Target
    condition: Condition
    row: TaskRow
    family: TaskFamily
    seeds: tuple[int, ...]
    repeats: int

    def places(self) -> Iterator[tuple[CellKey, int, int]]:
        """Every episode that the grid declares: cell, seed, repeat; all seeds once before any is repeated."""
        for repeat in range(self.repeats):
            for seed in self.seeds:
                yield self.key, seed, repeat


def model_name(target: Target) -> str:
    """What a target's model is called in cells."""
    if target.canary:
        return f"canary-{target.canary}"
    return target.model or PurePath(target.path).stem or "default"


def cells_of(grid: Grid) -> list[Cell]:
    """All cells: target by target, condition by condition, task by task. Raises GridError."""
    families = [(row, family_of(row)) for row in grid.task_rows()]
    return [
        Cell(
            CellKey(model_name(target), target.name, condition.label, row.label),
            target,
            condition,
            row,
            family,
            grid.seeds_of(row),
            grid.repeats,
        )
        for target in grid.targets
        for condition in grid.condition_rows()
        if not target.conditions or condition.label in target.conditions
        for row, family in families
    ]


def plan_of(grid: Grid, cell: Cell, server: Mapping[str, Fact]) -> CellPlan:
    """What the cell is bound to: the server as it was found, the literal texts, the task, and how answers are drawn."""
    facts = {name: server[name] for name in _OF_SERVER if name in server}
    limits, target = grid.limits_of(cell.family), cell.target
    facts |= {
        "harness": known(HARNESS_VERSION, "stacktap"),
        "condition_text": known(cell.condition.digest, "SHA-256 of the literal texts"),
        "task_version": known(f"{cell.family.name} {cell.family.version}", "stacktap"),
        "withheld": known(list(cell.row.withheld), "the grid"),
        "turns": known(limits.turns, "the grid"),
        "attempt_timeout_s": known(limits.attempt_seconds, "the grid"),
        "episode_timeout_s": known(limits.episode_seconds, "the grid"),
        "retries": known(limits.retries, "the grid"),
        "temperature": known(grid.sampling.temperature, "the grid"),
        "top_p": known(grid.sampling.top_p, "the grid"),
        "max_tokens": known(grid.sampling.max_tokens, "the grid"),
        "decoder_seed": known(grid.sampling.decoder_seed, "the grid"),
        "tools": known(len(cell.family.task(cell.seeds[0], cell.row.size).tools), "the task"),
        "system_prompt": known(False, "the harness sends none"),
        "asked": known([target.api, target.canary, list(target.flags)], "the grid"),
    }
    return CellPlan(cell=cell.key, seeds=cell.seeds, repeats=cell.repeats, facts=facts)


def endpoint_of(cell: Cell, stack: str, model: str) -> Endpoint:
    """Where a cell's requests go on a stack that was recognised; `model` is the one that the server holds."""
    name = cell.target.model or model or "default"
    return endpoint_for(stack, name, native_ollama=cell.target.api == "ollama")


def setting_of(grid: Grid, cell: Cell, plan: CellPlan, endpoint: Endpoint, seed: int) -> Setting:
    """How an episode of a cell is run."""
    return Setting(
        cell=cell.key,
        endpoint=endpoint,
        condition=cell.condition,
        sampling=grid.sampling_of(seed),
        limits=grid.limits_of(cell.family),
        marks=marks_of(cell.target.canary, cell.condition, cell.family.name, seed) if cell.target.canary else "",
        withheld=cell.row.withheld,
        plan=plan.digest,
    )
