"""Aggregation: read what every region says, count and add it up, write the answers.

Parameters and draw order are those of the serving-confound paper's task (eight regions, four questions; its published
answers are tests); texts and tools are ours.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any, ClassVar

from harness.tasks.file_task import ANSWERS, FileFamily, FileTask

TIERS = ("gold", "silver", "bronze")


@dataclass(frozen=True, slots=True)
class Region:
    """One module of the task."""

    tax_rate: float
    active: bool
    tier: str


def draw_regions(seed: int, count: int) -> tuple[Region, ...]:
    """The regions of a seed, in the paper's draw order (tax rate, active, tier)."""
    stream = random.Random(seed)
    return tuple(
        Region(round(stream.uniform(0.02, 0.25), 2), stream.random() < 0.6, stream.choice(TIERS)) for _ in range(count)
    )


def answers_of(regions: tuple[Region, ...]) -> dict[str, float]:
    """q1 how many are active, q2 the sum of their tax rates, q3 how many are gold, q4 the highest tax rate of the
    inactive ones (0 where all are active)."""
    return {
        "q1": sum(region.active for region in regions),
        "q2": round(sum(region.tax_rate for region in regions if region.active), 2),
        "q3": sum(region.tier == "gold" for region in regions),
        "q4": round(max((region.tax_rate for region in regions if not region.active), default=0), 2),
    }


@dataclass(frozen=True)
class AggregationTask(FileTask):
    """One instance."""

    family: ClassVar[str] = "aggregation"

    regions: tuple[Region, ...]

    @property
    def prompt(self) -> str:
        """What the user asks."""
        return (
            f"The directory regions holds {len(self.regions)} files, one for each region. Each says TAX_RATE, ACTIVE "
            "and TIER. Read all of them and work out:\n"
            "q1: how many regions are ACTIVE\n"
            "q2: the sum of TAX_RATE over the ACTIVE regions, to 2 decimals\n"
            "q3: how many regions have the TIER gold\n"
            "q4: the highest TAX_RATE among the regions that are not ACTIVE, to 2 decimals, or 0 where there is none\n"
            f'Write them to {ANSWERS} as one JSON object, {{"q1": ..., "q2": ..., "q3": ..., "q4": ...}}. '
            "Then say that you are done."
        )

    @property
    def answers(self) -> dict[str, float]:
        """Each counts a quarter."""
        return answers_of(self.regions)

    @property
    def files(self) -> dict[str, str]:
        """One a region."""
        return {f"regions/region_{number}.txt": _text(region) for number, region in enumerate(self.regions)}

    @property
    def needed(self) -> tuple[str, ...]:
        """All."""
        return tuple(self.files)


def _text(region: Region) -> str:
    values: dict[str, Any] = {"TAX_RATE": region.tax_rate, "ACTIVE": region.active, "TIER": region.tier}
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())


class Aggregation(FileFamily):
    """The family."""

    name = "aggregation"
    version = "1"
    turn_cap = 24

    def task(self, seed: int, size: int | None = None) -> AggregationTask:
        """`size` is the number of regions (8). Raises ValueError below 1."""
        count = 8 if size is None else size
        if count < 1:
            raise ValueError(f"a task over {count} regions cannot be made; give 1 or more")
        return AggregationTask(seed, draw_regions(seed, count), kit=self.kit)


FAMILY = Aggregation()
