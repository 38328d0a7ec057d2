"""What a run of packs runs: which tasks of which packs on which models, as cells of a grid. Pure but for the packs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.conditions import Condition
from harness.grid import Grid, LimitsRow, SamplingRow, TaskRow
from harness.grid_cells import Cell
from harness.packs.family import PackFamily
from harness.packs.loading import load_packs
from harness.packs.model import Pack, PackError
from harness.packs.registry import RegistryModel
from harness.packs.shipped import shipped_packs as shipped_folders
from harness.places import MOST_REPEATS
from results.episodes import CellKey

STARTER = Path(__file__).parent / "starter"


@dataclass(frozen=True, slots=True)
class Selection:
    """The packs to run, of each only the tasks of `category` where one is named, `repeats` times each."""

    packs: tuple[Pack, ...]
    category: str = ""
    repeats: int = 1

    @property
    def tasks(self) -> int:
        """How many tasks are run on each model."""
        return sum(1 for pack in self.packs for task in pack.tasks if self.takes(task.category))

    def takes(self, category: str) -> bool:
        """Whether tasks of a category are run."""
        return self.category in ("", category)


def select(paths: Sequence[Path], category: str = "", repeats: int = 1) -> Selection:
    """The packs at `paths`, or every shipped one. Raises PackError where nothing is left to run."""
    packs = tuple(load_packs(paths)) if paths else shipped_packs()
    if not 1 <= repeats <= MOST_REPEATS:
        raise PackError(f"-n {repeats}: it must be 1 or more, and {MOST_REPEATS} at most")
    found = Selection(packs, category, repeats)
    if not found.tasks:
        there = sorted({name for pack in packs for name in pack.categories})
        raise PackError(f"--category {category}: no task is of it; there are {', '.join(there)}")
    return found


def shipped_packs() -> tuple[Pack, ...]:
    """The packs that come with stacktap, by name. Raises PackError where there are none."""
    folders = shipped_folders()
    if not folders:
        raise PackError("no pack comes with this installation: name one with --tasks")
    return tuple(load_packs(folders))


def grid_of(model: RegistryModel, repeats: int) -> Grid:
    """The grid of one model: its sampling and its limits."""
    return Grid(
        targets=(model.target,),
        tasks=(),
        repeats=repeats,
        sampling=SamplingRow(model.temperature, model.top_p, model.max_tokens, model.seed),
        limits=LimitsRow(1, model.timeout, model.timeout + 60),
    )


def cells_of(model: RegistryModel, selection: Selection) -> list[Cell]:
    """The cells of one model: pack by pack, task by task."""
    return [_cell(model, family, selection.repeats) for family in _families(model, selection)]


def _families(model: RegistryModel, selection: Selection) -> Iterable[PackFamily]:
    for pack in selection.packs:
        for task in pack.tasks:
            if selection.takes(task.category):
                yield PackFamily(pack, task, model.asking)


def _cell(model: RegistryModel, family: PackFamily, repeats: int) -> Cell:
    key = CellKey(model.label, model.key, model.asking.label, family.name)
    return Cell(key, model.target, Condition("native"), TaskRow(family.name), family, (0,), repeats)
