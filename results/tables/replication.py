"""A replication laid beside the published grid: one row a published cell and stack, and the scope of the comparison.

The table says whether two intervals overlap. It draws no ranking, and names what it cannot show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from results.episodes import CellKey, CellPlan
from results.manifest import Fact
from results.statistics.cells import CellStatistics
from results.statistics.ranking import contender, rank
from results.statistics.resampling import Interval
from results.tables.cells import cell_json, interval_json, rate_json
from results.tables.layout import aligned, counts
from results.tables.published import PaperGrid, PublishedCell

HEADER = (
    "model",
    "stack",
    "condition",
    "task",
    "published",
    "measured",
    "difference",
    "intervals overlap?",
    "produced turns",
    "non-responses by layer",
    "ended by",
    "naive rate",
)

PAPER_SETUP: dict[str, Any] = {
    "stack": "ollama",
    "version": "0.30.8",
    "quantization": "Q4_K_M",
    "temperature": 1.0,
    "top_p": 1.0,
    "max_tokens": 32768,
    "retries": 50,
    "attempt_timeout_s": 60,
    "tools": 16,
    "system_prompt": False,
}
"""What the published cells are bound to, by the names of facts that a `CellPlan` may state. The stack is named in the
paper; sampling, retries and timeout are what the code of its harness sends and does."""

NOT_CLAIMED = (
    "Not shown by this table at this precision: a law of model size, an effect of model family or of tool training, "
    "a dissociation from reasoning. The gate of a stack is a policy of its release: what holds for one version may not "
    "for the next."
)


@dataclass(frozen=True, slots=True)
class Row:
    """One published cell with what was measured of it on one stack; either may be missing, never both."""

    published: PublishedCell | None
    measured: CellStatistics | None

    @property
    def value(self) -> float | None:
        """The measured rate that the published one is compared with: per seed, or of single turns."""
        if self.measured is None:
            return None
        return self.measured.first_turn.value if self._single else self.measured.per_seed.value

    @property
    def interval(self) -> Interval | None:
        """Its interval."""
        if self.measured is None or not self._single:
            return self.measured.per_seed.comparable if self.measured is not None else None
        ends = self.measured.first_turn.interval
        return Interval(*ends) if ends is not None else None

    @property
    def _single(self) -> bool:
        return self.published is not None and self.published.single is not None

    @property
    def difference(self) -> float | None:
        """Measured minus published, None where either is undefined or missing."""
        if self.published is None or self.value is None:
            return None
        single = self.published.single
        theirs = single.value if single is not None else self.published.value
        return None if theirs is None else self.value - theirs

    @property
    def overlap(self) -> bool | None:
        """Whether the two intervals overlap, None where there are not two."""
        theirs = self.published.comparable if self.published is not None else None
        ours = self.interval
        return None if theirs is None or ours is None else ours.overlaps(theirs)


def rows(
    grid: PaperGrid,
    measured: Iterable[CellStatistics] = (),
    *,
    models: Mapping[str, str] | None = None,
    tasks: Mapping[str, str] | None = None,
) -> list[Row]:
    """Every published cell with each stack's measurement of it, in the paper's order; then what the paper has not.

    `models` and `tasks` translate our names into the paper's, where they differ.
    """
    models, tasks = models or {}, tasks or {}
    found: dict[tuple[str, str, str], list[CellStatistics]] = {}
    for one in measured:
        cell = one.cell
        place = (tasks.get(cell.task, cell.task), models.get(cell.model, cell.model), cell.condition)
        found.setdefault(place, []).append(one)
    table = []
    for published in grid.cells:
        matching = found.pop((published.task, published.model, published.condition), [])
        table += [Row(published, one) for one in matching] or [Row(published, None)]
    return table + [Row(None, one) for others in found.values() for one in others]


def replication_table(table: Sequence[Row], *, source: str, scope: Sequence[str] = (), how: str = "") -> str:
    """The table as text, its source, the lines of `scope`, and what it does not show. `how` says which labels and
    which random numbers were used."""
    lines = aligned(HEADER, [_cells(row) for row in table])
    notes = dict.fromkeys(
        f"{row.published.model}, {row.published.condition}, {row.published.task}: {row.published.note}"
        for row in table
        if row.published is not None and row.published.note
    )
    lines += ["", f"published: {source}"]
    lines += [f"measured: {how}"] if how else []
    lines += [f"scope: {line}" for line in scope]
    lines += [f"published, {note}" for note in notes]
    lines += rankings([row.measured for row in table if row.measured is not None])
    return "\n".join([*lines, NOT_CLAIMED])


def _cells(row: Row) -> tuple[str, ...]:
    theirs, ours = row.published, row.measured
    key = ours.cell if ours is not None else None
    place = (key.model, key.stack, key.condition, key.task) if key else ("", "", "", "")
    if key is None and theirs is not None:
        place = (theirs.model, "", theirs.condition, theirs.task)
    return (
        *place,
        theirs.text() if theirs is not None else "not in the paper",
        _measured(row),
        "" if row.difference is None else f"{100 * row.difference:+.1f} points",
        _overlap(row),
        _beside(None if ours is None else str(ours.produced), None if theirs is None else _text(theirs.produced)),
        _beside(
            None if ours is None else counts(ours.nonresponses),
            None if theirs is None else _text(theirs.nonresponses),
        ),
        "" if ours is None else counts(ours.ended_by),
        _beside(
            None if ours is None else ours.naive.bare(),
            None if theirs is None or theirs.naive is None else theirs.naive.bare(),
        ),
    )


def _measured(row: Row) -> str:
    if row.measured is None:
        return "not measured"
    single = row.published is not None and row.published.single is not None
    return row.measured.first_turn.text() if single else row.measured.per_seed.text()


def _overlap(row: Row) -> str:
    if row.overlap is not None:
        return "yes" if row.overlap else "no"
    if row.published is None or row.measured is None:
        return ""
    if row.value is None:
        return "both undefined" if row.published.undefined else "measured is undefined"
    return "published is undefined" if row.published.undefined else "no interval published"


def _beside(ours: str | None, theirs: str | None) -> str:
    """Measured first, the published value in brackets; the published alone where nothing was measured."""
    if ours is None:
        return f"(published {theirs})" if theirs else ""
    return f"{ours} (published {theirs})" if theirs else ours


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def rankings(measured: Sequence[CellStatistics]) -> list[str]:
    """For each stack, condition and task with several models: the ranking, or the sentence why there is none."""
    groups: dict[CellKey, list[CellStatistics]] = {}
    for one in measured:
        groups.setdefault(msgspec.structs.replace(one.cell, model=""), []).append(one)
    return [
        f"{key.stack}, {key.condition}, {key.task}: {rank([contender(one) for one in group]).sentence}"
        for key, group in sorted(groups.items())
        if len(group) > 1
    ]


def scope_lines(plans: Iterable[CellPlan]) -> list[str]:
    """One line for each way in which measured cells differ from the published set-up, or may differ: what is not known
    of a cell is said, not passed over."""
    said: dict[str, list[str]] = {}
    for plan in sorted(plans, key=lambda plan: plan.cell):
        for name, theirs in PAPER_SETUP.items():
            fact = plan.facts.get(name, Fact(value=plan.cell.stack) if name == "stack" else None)
            line = _difference(name, theirs, fact)
            if line:
                said.setdefault(line, []).append(f"{plan.cell.model} @ {plan.cell.stack}")
        digest = plan.facts.get("model_digest")
        if digest is not None and digest.unknown is None:
            said.setdefault(f"model digest: not published, {digest.value} here", []).append(plan.cell.model)
        else:
            said.setdefault("model digest: neither published nor known here", []).append(plan.cell.model)
    return [f"{line} ({', '.join(dict.fromkeys(cells))})" for line, cells in said.items()]


def _difference(name: str, theirs: object, fact: Fact | None) -> str:
    title = name.replace("_", " ")
    if fact is None:
        return f"{title}: {theirs} in the paper, not stated here"
    if fact.unknown is not None:
        return f"{title}: {theirs} in the paper, unknown here: {fact.unknown}"
    return "" if fact.value == theirs else f"{title}: {theirs} in the paper, {fact.value} here"


def row_json(row: Row) -> dict[str, Any]:
    """A row as data."""
    theirs = row.published
    published = None
    if theirs is not None:
        published = {
            "task": theirs.task,
            "model": theirs.model,
            "condition": theirs.condition,
            "per_seed": theirs.value,
            "interval": interval_json(theirs.interval),
            "pooled": theirs.pooled,
            "produced_turns": theirs.produced,
            "nonresponses": theirs.nonresponses,
            "naive": None if theirs.naive is None else rate_json(theirs.naive, independent=False),
            "undefined": theirs.undefined,
            "single_turns": None if theirs.single is None else rate_json(theirs.single),
            "note": theirs.note,
        }
    return {
        "published": published,
        "measured": None if row.measured is None else cell_json(row.measured),
        "difference": row.difference,
        "intervals_overlap": row.overlap,
    }
