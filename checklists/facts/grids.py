"""The episodes of a grid as the facts of a report: cells with their intervals, rankings or why there are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from checklists.facts.rating import kept, ratio
from checklists.facts.records import GridCellFacts, GridFacts, SeedMeanFacts
from results.episode_journal import EpisodeJournalError, EpisodeReader
from results.episodes import EpisodeRecord
from results.statistics.cells import CellStatistics, SeedMean
from results.statistics.grid import GridCounter
from results.statistics.owed import owed
from results.statistics.ranking import contender, rank
from results.validation import violations

SHOWN_CELLS = 200
SHOWN_FINDINGS = 40


def grid_facts(folder: Path) -> GridFacts:
    """What the episodes of a run say. A journal of episodes that cannot be read is a finding."""
    reader = EpisodeReader(folder)
    counter, ended = GridCounter(), Counter[str]()
    totals = [0, 0]

    def counted() -> Iterator[EpisodeRecord]:
        for episode in reader:
            counter.add(episode)
            ended[episode.ended_by] += 1
            totals[0] += 1
            totals[1] += episode.succeeded
            yield episode

    try:
        shares = owed(counted(), key="report").text()
        findings = violations(EpisodeReader(folder), reader.plans, reader.earlier_plans) + reader.problems.said()
    except EpisodeJournalError as failure:
        shares, findings = "", [str(failure).replace(str(folder), "the run's folder")]
    cells = counter.statistics(reader.plans)
    return GridFacts(
        episodes=totals[0],
        succeeded=totals[1],
        cells=tuple(_cell(one) for one in cells[:SHOWN_CELLS]),
        cells_left_out=max(0, len(cells) - SHOWN_CELLS),
        rankings=tuple(_rankings(cells)),
        owed=shares,
        findings=tuple(findings[:SHOWN_FINDINGS]),
        ended_by=dict(sorted(ended.items())),
    )


def _rankings(cells: list[CellStatistics]) -> Iterator[str]:
    """For each stack, condition and task with several models, the order of the models or why there is none."""
    groups: dict[tuple[str, str, str], list[CellStatistics]] = {}
    for one in cells:
        groups.setdefault((one.cell.stack, one.cell.condition, one.cell.task), []).append(one)
    for (stack, condition, task), group in sorted(groups.items())[:SHOWN_FINDINGS]:
        if len(group) > 1:
            yield f"{stack}, {condition}, {task}: {rank([contender(one) for one in group]).sentence}"


def _cell(one: CellStatistics) -> GridCellFacts:
    return GridCellFacts(
        model=one.cell.model,
        stack=one.cell.stack,
        condition=one.cell.condition,
        task=one.cell.task,
        per_seed=_seed_mean(one.per_seed),
        per_seed_open=_seed_mean(one.per_seed_open),
        pooled=ratio(one.pooled, independent=False),
        naive=ratio(one.naive, independent=False),
        cleared=ratio(one.cleared, independent=False),
        first_turn=ratio(one.first_turn),
        completed=ratio(one.completion.rate),
        produced=one.produced,
        nonresponses=dict(one.nonresponses),
        ended_by=dict(one.ended_by),
        not_run=dict(one.completion.excluded),
        missing=one.completion.missing,
        channels=dict(one.channels),
        labels=dict(one.labels),
        retries=one.retries,
        warnings=one.warnings,
    )


def _seed_mean(found: SeedMean) -> SeedMeanFacts:
    interval = found.comparable
    return SeedMeanFacts(
        value=kept(found.value),
        low=kept(interval.low) if interval is not None else None,
        high=kept(interval.high) if interval is not None else None,
        interval="" if interval is None else "Wilson" if found.degenerate else "bootstrap",
        seeds_used=len(found.values),
        seeds=found.seeds,
        undefined=(found.undefined or "n/r") if found.value is None else "",
    )
