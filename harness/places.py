"""Which episodes of a grid are there: one bit each, so that memory grows with cells and seeds and not with repeats."""

from __future__ import annotations

from collections.abc import Iterable

from results.episodes import CellKey

Place = tuple[CellKey, int, int]
"""What may be there once only: cell, seed, repeat."""

MOST_REPEATS = 1 << 16
"""More runs of one task no grid declares, and none are remembered."""


class Places:
    """A set of places."""

    def __init__(self, places: Iterable[Place] = ()) -> None:
        self._cells: dict[CellKey, dict[int, int]] = {}
        for place in places:
            self.add(place)

    def add(self, place: Place) -> None:
        """Put one in. One beyond `MOST_REPEATS` counts for its cell alone."""
        cell, seed, repeat = place
        seeds = self._cells.setdefault(cell, {})
        seeds[seed] = seeds.get(seed, 0) | (1 << repeat if 0 <= repeat < MOST_REPEATS else 0)

    def __contains__(self, place: object) -> bool:
        if not isinstance(place, tuple):
            return False
        cell, seed, repeat = place
        return bool(self._cells.get(cell, {}).get(seed, 0) >> repeat & 1)

    def has_cell(self, cell: CellKey) -> bool:
        """Whether any episode of a cell is there."""
        return cell in self._cells
