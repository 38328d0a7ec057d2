"""The table of cells: three rates that are never mixed, each with its denominator, and what stands outside of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import msgspec

from results.rates import Rate
from results.statistics.cells import CellStatistics, SeedMean
from results.statistics.completion import Completion
from results.statistics.owed import Owed
from results.statistics.resampling import Interval
from results.tables.layout import aligned, counts

HEADER = (
    "model",
    "stack",
    "condition",
    "task",
    "per seed",
    "pooled",
    "naive",
    "produced",
    "non-responses",
    "ended by",
    "completed",
)


def cell_table(cells: Sequence[CellStatistics]) -> str:
    """The main table, and below it what else is known of each cell and what to beware of."""
    if not cells:
        return "no cells"
    rows = [
        (
            *msgspec.structs.astuple(one.cell),
            one.per_seed.text(),
            one.pooled.bare(),
            one.naive.bare(),
            f"{one.produced} turns",
            counts(one.nonresponses),
            counts(one.ended_by),
            one.completion.text(),
        )
        for one in cells
    ]
    lines = aligned(HEADER, rows)
    for one in cells:
        lines += ["", one.cell.title, *(f"  {line}" for line in _details(one))]
    return "\n".join(lines)


def _details(one: CellStatistics) -> list[str]:
    gap = "undefined" if one.gap is None else f"{100 * one.gap:+.1f} points"
    lines = [
        f"first turn valid     {one.first_turn.text()}",
        f"without closing text {one.per_seed_open.text()}, pooled {one.pooled_open.bare()}",
        f"cleared              {one.cleared.bare()}",
        f"pooled - per seed    {gap}",
        f"turns by label       {counts(one.labels)}",
        f"valid by channel     {counts(one.channels)}",
        f"longest seed         {one.largest.bare()} of the turns",
        f"ended by the harness {one.endless} of {sum(one.ended_by.values())} episodes",
        f"lost success         {one.owed.text()}",
    ]
    if one.post_cap_turns:
        lines.append(f"past the cap         {one.post_cap_turns} turns, outside every count")
    if one.undetermined:
        lines.append(f"fault open           {one.undetermined} of {sum(one.labels.values())} turns")
    return lines + [f"beware: {warning}" for warning in one.warnings]


def cell_json(one: CellStatistics) -> dict[str, Any]:
    """The same as data: JSON values only."""
    return {
        "cell": msgspec.structs.asdict(one.cell),
        "labels": one.words,
        "seeds": one.seeds,
        "per_seed": _seed_mean(one.per_seed),
        "per_seed_open": _seed_mean(one.per_seed_open),
        "pooled": rate_json(one.pooled, independent=False),
        "pooled_open": rate_json(one.pooled_open, independent=False),
        "naive": rate_json(one.naive, independent=False),
        "cleared": rate_json(one.cleared, independent=False),
        "first_turn": rate_json(one.first_turn),
        "completion": _completion(one.completion),
        "gap": one.gap,
        "produced_turns": one.produced,
        "nonresponses": one.nonresponses,
        "ended_by": one.ended_by,
        "turn_labels": one.labels,
        "channels": one.channels,
        "longest_seed": rate_json(one.largest, independent=False),
        "post_cap_turns": one.post_cap_turns,
        "retries": one.retries,
        "undetermined": one.undetermined,
        "lost_success": owed_json(one.owed),
        "warnings": list(one.warnings),
    }


def interval_json(interval: Interval | None) -> list[float] | None:
    """[low, high], or None."""
    return None if interval is None else [interval.low, interval.high]


def rate_json(rate: Rate, *, independent: bool = True) -> dict[str, Any]:
    """A rate with its denominator; the Wilson interval only where its trials are `independent`."""
    found: dict[str, Any] = {"hits": rate.hits, "trials": rate.trials, "value": rate.value}
    if rate.value is None:
        found["undefined"] = rate.undefined or "n/r"
    if independent and rate.interval is not None:
        found["wilson"] = list(rate.interval)
    return found


def _seed_mean(found: SeedMean) -> dict[str, Any]:
    return {
        "value": found.value,
        "bootstrap": interval_json(found.interval),
        "wilson": interval_json(found.wilson),
        "bootstrap_degenerate": found.degenerate,
        "seeds_used": len(found.values),
        "seeds": found.seeds,
        "rates": list(found.values),
        "undefined": (found.undefined or "n/r") if found.value is None else None,
    }


def owed_json(found: Owed) -> dict[str, Any]:
    """The shares of the lost success, with what they are shares of; None where they are not known."""
    said = dataclasses.asdict(found)
    return {
        **said,
        "interval": interval_json(found.interval),
        "model": found.model,
        "model_interval": interval_json(found.model_interval),
    }


def _completion(found: Completion) -> dict[str, Any]:
    return {**rate_json(found.rate), "not_run": dict(found.excluded), "missing": found.missing}
