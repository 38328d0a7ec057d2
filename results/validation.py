"""Whether the episodes of a run are what their plans declare. Pure: findings as sentences, none where all is well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from results.episodes import CellKey, CellPlan, EpisodeRecord, changed_facts
from results.statistics.completion import excluded_as

_NAMED = 6
"""So many seeds are named, then counted."""


@dataclass(slots=True)
class _Found:
    places: set[tuple[int, int]] = field(default_factory=set)
    digests: set[str] = field(default_factory=set)
    without_plan: int = 0
    excluded: dict[str, set[tuple[int, int]]] = field(default_factory=dict)


def violations(
    episodes: Iterable[EpisodeRecord], plans: Mapping[CellKey, CellPlan], by_digest: Mapping[str, CellPlan]
) -> list[str]:
    """What is wrong: cells under their declared n, runs that infrastructure ended (a gate's refusal is a result),
    episodes without a plan, episodes of another set-up than the cell's plan, and episodes that nobody declared.

    `plans` are the last of each cell, `by_digest` all of them (`EpisodeReader.plans`, `.earlier_plans`).
    """
    found: dict[CellKey, _Found] = {cell: _Found() for cell in plans}
    for episode in episodes:
        one = found.setdefault(episode.cell, _Found())
        place = (episode.seed, episode.repeat)
        one.places.add(place)
        one.digests.add(episode.plan)
        one.without_plan += episode.plan not in by_digest
        excluded = excluded_as(episode)
        if excluded is not None and excluded != "gate":
            one.excluded.setdefault(excluded, set()).add(place)
    return [line for cell in sorted(found) for line in _of_cell(cell, found[cell], plans.get(cell), by_digest)]


def _of_cell(cell: CellKey, found: _Found, plan: CellPlan | None, by_digest: Mapping[str, CellPlan]) -> list[str]:
    said = []
    if found.without_plan:
        said.append(f"{found.without_plan} of {len(found.places)} episodes name no plan that the run states")
    if plan is not None:
        declared = {(seed, repeat) for seed in plan.seeds for repeat in range(plan.repeats)}
        there = found.places & declared
        if there != declared:
            said.append(f"{len(there)} of {len(declared)} episodes are there; missing: {_listed(declared - there)}")
        if found.places - declared:
            said.append(
                f"{len(found.places - declared)} episodes were not declared: {_listed(found.places - declared)}"
            )
        said += _other_set_ups(found.digests, plan, by_digest)
    for layer, places in sorted(found.excluded.items()):
        said.append(f"{len(places)} of {len(found.places)} episodes were not run ({layer}): {_listed(places)}")
    return [f"{cell.title}: {line}" for line in said]


def _other_set_ups(digests: set[str], plan: CellPlan, by_digest: Mapping[str, CellPlan]) -> list[str]:
    said = []
    for digest in sorted(digests - {plan.digest}):
        if digest in by_digest:
            changed = "; ".join(changed_facts(by_digest[digest], plan)) or "another cell"
            said.append(f"episodes of another set-up are mixed in: {changed}")
    return said


def _listed(places: set[tuple[int, int]]) -> str:
    named = [f"seed {seed}" + (f" run {repeat}" if repeat else "") for seed, repeat in sorted(places)]
    more = len(named) - _NAMED
    return ", ".join(named[:_NAMED]) + (f" and {more} more" if more > 0 else "")
