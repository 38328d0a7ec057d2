"""The published grid of the serving-stack paper (arXiv 2609.26693) as records. Source and licence: README.md here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec

from results.rates import Rate, wilson
from results.statistics.resampling import Interval

CONDITIONS = {"native_hint": "native+hint", "text_tools": "text-tools"}
"""The paper's names of conditions, where ours differ."""

AGGREGATION, CHAIN, HUMAN_EVAL, SINGLE_STEP = "aggregation", "chain", "humaneval6", "single_step_constrained"


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    task: str
    model: str
    condition: str
    per_seed: float | None = None
    ci95: tuple[float, float] | None = None
    pooled: float | None = None
    turns_produced: int | None = None
    nonresponse: int | None = None
    seeds_with_turns: int | None = None
    seeds_planned: int | None = None
    undefined: bool = False
    valid: int | None = None
    n: int | None = None
    rate: float | None = None
    native_gating: str | None = None
    note: str = ""


class _File(msgspec.Struct, frozen=True):
    source: str
    ollama: str
    seeds_aggregation: tuple[int, ...]
    seeds_chain: tuple[int, ...]
    cells: tuple[_Row, ...]
    crossstack: dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class PublishedCell:
    """One published cell. Agentic tasks have `value` (per-seed mean), `pooled`, `produced` turns and `nonresponses`;
    single-turn tasks have `single` (valid of n) instead. `seeds` is the number of seeds planned, where known."""

    task: str
    model: str
    condition: str
    value: float | None
    interval: Interval | None
    pooled: float | None
    produced: int | None
    nonresponses: int | None
    seeds_used: int | None
    seeds: int | None
    undefined: bool
    single: Rate | None
    note: str = ""

    @property
    def comparable(self) -> Interval | None:
        """The interval that comparisons use: the published one; Wilson's where that has no width, or for n trials."""
        if self.single is not None:
            ends = self.single.interval
            return Interval(*ends) if ends is not None else None
        if self.interval is None or self.interval.low < self.interval.high:
            return self.interval
        if self.value is None or not self.seeds_used:
            return self.interval
        return Interval(*wilson(self.value * self.seeds_used, self.seeds_used))

    @property
    def naive(self) -> Rate | None:
        """What a harness would have printed that takes every turn for the model's: worked out from the published
        pooled rate and counts; None where these are not published."""
        if self.produced is None or self.nonresponses is None:
            return None
        valid = round((self.pooled or 0.0) * self.produced)
        return Rate(valid, self.produced + self.nonresponses)

    def text(self) -> str:
        """`34.4 % [9.4, 59.4] (8 of 8 seeds)`, `rej (0 of 8 seeds)`, or `4/6` with its interval."""
        if self.single is not None:
            return self.single.text()
        seeds = "seeds not published" if self.seeds is None else f"{self.seeds} seeds"
        if self.undefined or self.value is None:
            return f"rej (0 of {seeds})"
        used = f"{self.seeds_used} of {seeds}" if self.seeds_used is not None else seeds
        ends = f" {self.interval.text()}" if self.interval else ""
        return f"{100 * self.value:.1f} %{ends} ({used})"


@dataclass(frozen=True, slots=True)
class PaperGrid:
    """The whole grid. `models` is the order in which the paper's script takes them; `cross_stack` is the outcome word
    of one request, by model and stack."""

    source: str
    ollama: str
    aggregation_seeds: tuple[int, ...]
    chain_seeds: tuple[int, ...]
    cells: tuple[PublishedCell, ...]
    cross_stack: dict[str, dict[str, str]]

    @property
    def models(self) -> tuple[str, ...]:
        """Models of the agentic tasks in their order."""
        return tuple(dict.fromkeys(cell.model for cell in self.cells if cell.task == AGGREGATION))

    def cell(self, task: str, model: str, condition: str) -> PublishedCell | None:
        """One cell, None where the paper has none."""
        found = (cell for cell in self.cells if (cell.task, cell.model, cell.condition) == (task, model, condition))
        return next(found, None)


@cache
def paper_grid() -> PaperGrid:
    """Read the shipped file (once)."""
    raw = files("results.tables").joinpath("paper_grid.json").read_bytes()
    read = msgspec.json.decode(raw, type=_File)
    seeds = {AGGREGATION: len(read.seeds_aggregation), CHAIN: len(read.seeds_chain)}
    return PaperGrid(
        source=read.source,
        ollama=read.ollama,
        aggregation_seeds=read.seeds_aggregation,
        chain_seeds=read.seeds_chain,
        cells=tuple(_cell(row, seeds) for row in read.cells),
        cross_stack=read.crossstack,
    )


def _cell(row: _Row, seeds: dict[str, int]) -> PublishedCell:
    old_file = row.condition == "constrained" and row.task == AGGREGATION
    return PublishedCell(
        task=row.task,
        model=row.model,
        condition=CONDITIONS.get(row.condition, row.condition),
        value=row.per_seed,
        interval=Interval(*row.ci95) if row.ci95 is not None else None,
        pooled=row.pooled,
        produced=row.turns_produced,
        nonresponses=row.nonresponse,
        seeds_used=row.seeds_with_turns,
        seeds=None if old_file else seeds.get(row.task),
        undefined=row.undefined,
        single=Rate(row.valid, row.n) if row.valid is not None and row.n is not None else None,
        note=row.note or (f"native: {row.native_gating}" if row.native_gating else ""),
    )
