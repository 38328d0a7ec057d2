"""A run of a grid while it is carried on: what is there, what is missing, and the one who writes it down."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.grid import Grid
from harness.grid_cells import Cell
from harness.places import Place, Places
from results.episode_journal import EpisodeJournalError, EpisodeReader, EpisodeWriter
from results.episodes import CellKey, CellPlan, EpisodeRecord, changed_facts
from results.runs import RECORDINGS, new_run_id


class GridChangedError(Exception):
    """A cell that has episodes is bound to something else now; the message lists what changed."""


@dataclass(slots=True)
class GridRun:
    """What became of a run: `folder`, episodes `done` of `declared`, what was `not_run` with its reason
    (`not_run:code: words`) by cell title or target, the cells that lack episodes (`short`: title -> done, declared),
    and the attempts of episodes that never ended, by recording."""

    folder: Path
    declared: int = 0
    done: int = 0
    not_run: dict[str, str] = field(default_factory=dict)
    short: dict[str, tuple[int, int]] = field(default_factory=dict)
    abandoned: dict[str, list[int]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every declared episode is there."""
        return self.done == self.declared and not self.not_run


@dataclass(slots=True)
class Running:
    """The state of one `run_grid`. `only` are the places that it may run (None: all); what could not be written down is
    `broken`."""

    grid: Grid
    found: GridRun
    writer: EpisodeWriter
    plans: dict[CellKey, CellPlan]
    held: Places
    tell: Callable[[str], None]
    only: Places | None = None
    began: float = field(default_factory=time.monotonic)
    fresh: int = 0
    broken: EpisodeJournalError | None = None

    def missing(self, cells: list[Cell]) -> Iterator[Place]:
        """The places of these cells that are still to be run, in their order."""
        return (
            place
            for cell in cells
            for place in cell.places()
            if place not in self.held and (self.only is None or place in self.only)
        )

    def lacks(self, cells: list[Cell]) -> bool:
        """Whether an episode of these cells is missing."""
        return any(True for _ in self.missing(cells))

    def short(self, cells: list[Cell]) -> dict[str, tuple[int, int]]:
        """The cells that lack episodes: title -> done, declared."""
        said = {}
        for cell in cells:
            there = sum(place in self.held for place in cell.places())
            if there < cell.declared:
                said[cell.key.title] = (there, cell.declared)
        return said

    def give_up(self, what: str, code: str, why: str) -> None:
        """Say what is not run, and why; the first reason stays."""
        reason = f"not_run:{code.removeprefix('not_run.')}: {why}"
        self.found.not_run.setdefault(what, reason)
        self.tell(f"{what}: {reason}")

    def keep(self, episode: EpisodeRecord) -> None:
        """Write a finished episode and say how far it is."""
        self.writer.append(episode)
        self.held.add(episode.place)
        self.found.done += 1
        self.fresh += 1
        each = (time.monotonic() - self.began) / self.fresh
        left = each * (self.found.declared - self.found.done)
        self.tell(
            f"{self.found.done}/{self.found.declared} {episode.cell.title}, seed {episode.seed}: "
            f"{episode.outcome.name} ({episode.ended_by}, {len(episode.turns)} turns); "
            f"{60 / each:.0f} a minute, {left:.0f} s left"
        )

    def agree(self, plan: CellPlan) -> CellPlan:
        """Put the plan on record, as `agreed` does. Raises GridChangedError."""
        return agreed(plan, self.plans, self.held, self.writer.append)


def agreed(
    plan: CellPlan, plans: dict[CellKey, CellPlan], held: Places, append: Callable[[CellPlan], None]
) -> CellPlan:
    """Put a cell's plan on record; refuse where the cell's episodes belong to another one. The plan that holds: where
    only the way in which a fact was found is another one, the facts of before. Raises GridChangedError."""
    before = plans.get(plan.cell)
    if before is not None and held.has_cell(plan.cell):
        changed = "\n  ".join(changed_facts(before, plan))
        if changed:
            raise GridChangedError(
                f"{plan.cell.title} has episodes under other conditions, which must not be mixed:\n  {changed}\n"
                "  -> choose another --out, or change it back"
            )
        plan = msgspec.structs.replace(plan, facts=before.facts)
    if before != plan:
        append(plan)
        plans[plan.cell] = plan
    return plan


def so_far(folder: Path) -> tuple[str, dict[CellKey, CellPlan], Places]:
    """The run's id, the plans of its cells and the episodes that are there."""
    reader = EpisodeReader(folder)
    if not reader.path.exists() or not reader.path.stat().st_size:
        return new_run_id(), {}, Places()
    held = Places(episode.place for episode in reader)
    return reader.run, dict(reader.plans), held


def next_recording(folder: Path) -> tuple[int, Path]:
    """Number and folder of the next recording of a run. Raises OSError."""
    base = folder / RECORDINGS
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    numbers = [int(entry.name) for entry in base.iterdir() if entry.name.isdigit()]
    number = max(numbers, default=0) + 1
    return number, base / f"{number:03}"
