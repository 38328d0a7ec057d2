"""The statistics of every cell of a run, from its episodes in one pass, and the order of the paper's generator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from results.episodes import CellKey, CellPlan, EpisodeRecord
from results.statistics.cells import CellCounter, CellStatistics
from results.statistics.resampling import RESAMPLES, Draw, paper_stream
from results.statistics.turns import LabelSet

RandomNumbers = Literal["cell", "paper"]
"""`cell`: a stream for each cell; `paper`: the paper's one generator for all cells of a stack and task."""

PAPER_CONDITIONS = {"native": 0, "native+hint": 1, "native_hint": 1, "text-tools": 2, "text_tools": 2}
"""Place of a condition in the paper's order. Other conditions keep a stream of their own."""


class GridCounter:
    """Counts episodes of many cells; memory grows with cells and seeds, not with episodes."""

    def __init__(self, words: LabelSet = "own") -> None:
        self._words = words
        self._cells: dict[CellKey, CellCounter] = {}

    def add(self, episode: EpisodeRecord) -> None:
        """Count one episode. Raises ValueError where the labels asked for were not recorded."""
        if episode.cell not in self._cells:
            self._cells[episode.cell] = CellCounter(episode.cell, self._words)
        self._cells[episode.cell].add(episode)

    def statistics(
        self,
        plans: Mapping[CellKey, CellPlan] | None = None,
        *,
        rng: RandomNumbers = "cell",
        models: Sequence[str] = (),
        resamples: int = RESAMPLES,
    ) -> list[CellStatistics]:
        """One entry a cell, those planned and never begun included, sorted by cell.

        `models` is the order of models for `rng="paper"`; those not named come after, in the order of their names.
        """
        plans = plans or {}
        cells = sorted(self._cells.keys() | plans.keys())
        found = {}
        streams: dict[tuple[str, str], Draw] = {}
        for cell in paper_order(cells, models) if rng == "paper" else cells:
            draw = None
            if rng == "paper" and cell.condition in PAPER_CONDITIONS:
                draw = streams.setdefault((cell.stack, cell.task), paper_stream())
            counter = self._cells.get(cell) or CellCounter(cell, self._words)
            found[cell] = counter.statistics(plans.get(cell), draw, resamples=resamples)
        return [found[cell] for cell in cells]


def paper_order(cells: Iterable[CellKey], models: Sequence[str] = ()) -> list[CellKey]:
    """Cells as the paper's script goes through them: model by model, each native, native+hint, text-tools."""
    place = {model: number for number, model in enumerate(models)}
    return sorted(
        cells,
        key=lambda cell: (
            cell.stack,
            cell.task,
            place.get(cell.model, len(place)),
            cell.model,
            PAPER_CONDITIONS.get(cell.condition, len(PAPER_CONDITIONS)),
            cell.condition,
        ),
    )


def statistics_of(
    episodes: Iterable[EpisodeRecord],
    plans: Mapping[CellKey, CellPlan] | None = None,
    *,
    words: LabelSet = "own",
    rng: RandomNumbers = "cell",
    models: Sequence[str] = (),
    resamples: int = RESAMPLES,
) -> list[CellStatistics]:
    """`GridCounter` over all of them."""
    counter = GridCounter(words)
    for episode in episodes:
        counter.add(episode)
    return counter.statistics(plans, rng=rng, models=models, resamples=resamples)
