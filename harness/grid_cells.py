"""From a grid to its cells, their plans, and the episodes that are still to be run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath

from harness.canary_agents import agents_facts, known_texts, marks_of
from harness.conditions import Condition, Endpoint, endpoint_for
from harness.dense import known_agents
from harness.dense.family import DenseTask
from harness.episode import Setting
from harness.grid import Grid, Target, TaskRow, family_of
from harness.packs.family import PackFamily
from harness.places import Place
from harness.tasks import Task, TaskFamily
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
    "bits_per_weight",
    "weights_made",
    "parser",
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

    @property
    def declared(self) -> int:
        """How many episodes the grid declares."""
        return len(self.seeds) * self.repeats

    def places(self) -> Iterator[Place]:
        """Every episode that the grid declares: cell, seed, repeat; all seeds once before any is repeated."""
        for repeat in range(self.repeats):
            for seed in self.seeds:
                yield self.key, seed, repeat


def model_name(target: Target) -> str:
    """What a target's model is called in cells."""
    if target.canary:
        return f"canary-{target.canary}"
    return target.model or PurePath(target.path).name.removesuffix(".gguf") or "default"


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
    task = cell.family.task(cell.seeds[0], cell.row.size)
    if target.up and isinstance(task, DenseTask) and target.canary:
        facts |= known_agents.agents_facts(target.canary, task)
    elif target.up and target.canary:
        facts |= agents_facts(target.canary)
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
        "tools": known(len(task.tools), "the task"),
        "system_prompt": known(False, "the harness sends none"),
        "asked": known([target.api, target.canary, list(target.flags)], "the grid"),
    }
    if isinstance(cell.family, PackFamily):
        facts |= cell.family.facts
    return CellPlan(cell=cell.key, seeds=cell.seeds, repeats=cell.repeats, facts=facts)


def endpoint_of(cell: Cell, stack: str, model: str) -> Endpoint:
    """Where a cell's requests go on a stack that was recognised; `model` is the one that the server holds."""
    name = cell.target.model or model or "default"
    if isinstance(cell.family, PackFamily):
        return replace(
            endpoint_for(stack, name, native_ollama=cell.target.api == "ollama"), route=cell.family.asking.path
        )
    return endpoint_for(stack, name, native_ollama=cell.target.api == "ollama")


def _leading(canary: str, condition: Condition, task: Task) -> tuple[str, Callable[[int], str] | None]:
    """The marks that lead a known-answer agent, and what it is known to write where the loop asks for that."""
    if not canary:
        return "", None
    if canary in known_agents.BEHAVIOURS:
        texts = known_agents.known_texts(canary, task.item) if isinstance(task, DenseTask) else None
        return known_agents.marks(canary, task.family), texts
    return marks_of(canary, condition, task), known_texts(canary, condition, task)


def setting_of(grid: Grid, cell: Cell, plan: CellPlan, endpoint: Endpoint, task: Task, *, repeat: int = 0) -> Setting:
    """How an episode of a cell is run."""
    marks, texts = _leading(cell.target.canary, cell.condition, task)
    return Setting(
        cell=cell.key,
        endpoint=endpoint,
        condition=cell.condition,
        sampling=grid.sampling_of(task.seed, repeat),
        limits=grid.limits_of(cell.family),
        withheld=cell.row.withheld,
        plan=plan.digest,
        marks=marks,
        known=texts,
    )
