"""C10, C13 to C16, C21 and C22: seeds, rates, caps, first turns, rankings, checks, and what was declared."""

from __future__ import annotations

from collections.abc import Callable

from checklists.items.answers import counts, joined, no, not_applicable, part, unknown, yes
from checklists.items.material import Grid, Material, said
from checklists.items.of_calls import no_grid
from checklists.items.records import Filled, Part
from checklists.items.scope import claims_not_made
from harness.packs.family import PACKS
from harness.packs.record import PackEntry
from results.episodes import CellPlan
from results.statistics.cells import CellStatistics
from results.statistics.ranking import Ranking, contender, rank


def _cells(item: str, material: Material, words: Callable[[Grid, CellStatistics], str]) -> Filled:
    """One answer a cell."""
    answered = no_grid(item, material)
    if answered is not None:
        return answered
    grid = material.grid
    assert grid is not None
    return joined(item, [part(cell.cell.title, "yes", words(grid, cell)) for cell in grid.cells])


def c10_seeds(material: Material) -> Filled:
    """A seed is an instance of a task; what the decoder gets is another number, or none."""
    if material.grid is None and any(server.traffic.tagged_seeds for server in material.used):
        tags = sorted({seed for server in material.used for seed in server.traffic.tagged_seeds})
        why = "the requests carry seeds in their tags, what they stand for is not said"
        command = material.stated_command("C10", "what a seed stands for, instances, repeats, version")
        return unknown("C10", why, command, f"{len(tags)} seeds in tags")
    return _cells("C10", material, _seeds)


def _seeds(grid: Grid, cell: CellStatistics) -> str:
    plan = grid.plans.get(cell.cell)
    if plan is None:
        return f"a seed is one instance of the task; {cell.seeds} instances, no plan states the repeats"
    decoder = plan.facts.get("decoder_seed")
    sent = "the decoder gets no seed"
    if decoder is not None and decoder.value is not None:
        sent = (
            "the decoder gets the same seed" if decoder.value == "task" else f"the decoder gets {said(decoder.value)}"
        )
    made = grid.plan_fact(cell.cell, "task_version")
    version = said(made.value) if made.unknown is None else "version not stated"
    many = f"{len(plan.seeds)} instances, {plan.repeats} runs of each"
    return f"a seed is one instance of the task ({version}), {sent}; {many}"


def c13_rates(material: Material) -> Filled:
    """Mean over seeds with its interval, pooled rate, their gap, the longest seed."""
    return _cells("C13", material, _rates)


def _rates(grid: Grid, cell: CellStatistics) -> str:
    words = [f"per seed {cell.per_seed.text()}", f"pooled {cell.pooled.bare()}"]
    if cell.gap is not None:
        words.append(f"gap {100 * cell.gap:+.1f} points")
    if cell.produced:
        words.append(f"the longest seed holds {cell.largest.bare()} of the turns")
    return ", ".join([*words, *cell.warnings])


def c14_ends(material: Material) -> Filled:
    """Caps of the plan, ends of the episodes."""
    answered = no_grid("C14", material)
    if answered is not None and answered.state == "not_applicable" and material.grid is None:
        why = "a program's own caps on turns and time do not show on the wire"
        return unknown("C14", why, material.stated_command("C14", "caps on turns, tools and time; how it ended"))
    return _cells("C14", material, _ends)


def _ends(grid: Grid, cell: CellStatistics) -> str:
    caps = [
        f"{label} {said(fact.value)}{unit}"
        for name, label, unit in (
            ("turns", "at most turns", ""),
            ("attempt_timeout_s", "an attempt", " s"),
            ("episode_timeout_s", "an episode", " s"),
        )
        if (fact := grid.plan_fact(cell.cell, name)).unknown is None
    ]
    total = sum(cell.ended_by.values())
    return (
        f"caps: {', '.join(caps) or 'not stated'}; ended by: {counts(cell.ended_by)}; "
        f"{cell.endless} of {total} had to be ended by the harness"
    )


def c15_first_turn(material: Material) -> Filled:
    """First turns, and both treatments of a closing answer in words."""
    return _cells("C15", material, _first)


def _first(grid: Grid, cell: CellStatistics) -> str:
    return (
        f"first turn a valid call: {cell.first_turn.text()}; a closing answer in words counts as no call in the rate "
        f"({cell.pooled.bare()}), and is left out in the open rate ({cell.pooled_open.bare()})"
    )


def c16_ranking(material: Material) -> Filled:
    """Rankings of models that were put the same, or the sentence why there is none; and the claims not made."""
    claims = "; ".join(claims_not_made(material))
    grid = material.grid
    if grid is not None and grid.unreadable:
        return unknown("C16", grid.unreadable, material.stated_command("C16", "..."))
    found = rankings(grid) if grid is not None else []
    if not found:
        return no(
            "C16",
            f"nothing is ranked: no two models were given the same tasks on one server. Claims not made: {claims}",
        )
    refused = [ranking for _, ranking in found if ranking.refused]
    said_all = "; ".join(f"{where}: {ranking.sentence}" for where, ranking in found)
    words = f"{len(found) - len(refused)} of {len(found)} rankings are made. {said_all} Claims not made: {claims}"
    return (no if len(refused) == len(found) else yes)(
        "C16", words, rankings={where: ranking.order for where, ranking in found}
    )


def rankings(grid: Grid) -> list[tuple[str, Ranking]]:
    """One ranking for each group of cells that differ in the model alone, by what they share."""
    groups: dict[tuple[str, str, str], list[CellStatistics]] = {}
    for cell in grid.cells:
        key = (cell.cell.stack, cell.cell.condition, cell.cell.task)
        groups.setdefault(key, []).append(cell)
    return [
        (f"{stack}, {condition}, {task}", rank([contender(cell) for cell in cells]))
        for (stack, condition, task), cells in sorted(groups.items())
        if len(cells) > 1
    ]


def c21_checks(material: Material) -> Filled:
    """The version of each task's check, and whether this run shows that it can be met."""
    answered = no_grid("C21", material, "no task was checked: verdicts here are on single exchanges")
    if answered is not None:
        return answered
    grid = material.grid
    assert grid is not None
    if grid.checker:
        return no("C21", f"broken checks were met: {counts(grid.checker)}", checker=dict(sorted(grid.checker.items())))
    tasks: dict[str, set[str]] = {}
    for cell, plan in grid.plans.items():
        if _pack_of(cell.task) in grid.packs:
            continue
        fact = plan.facts.get("task_version")
        tasks.setdefault(cell.task, set()).add(said(fact.value) if fact and fact.unknown is None else "not stated")
    parts = [_check(grid, material, task, versions) for task, versions in sorted(tasks.items())]
    parts += [_pack(pack) for _, pack in sorted(grid.packs.items())]
    return joined("C21", parts) if parts else not_applicable("C21", "no plan names a task")


def _pack_of(task: str) -> str:
    return task.removeprefix(PACKS).partition("/")[0] if task.startswith(PACKS) else ""


def _pack(pack: PackEntry) -> Part:
    """A pack's hash, and what its linter found."""
    known = f"pack {pack.name} {pack.version}, SHA-256 {pack.sha256}; linter: {pack.lint or 'not run'}"
    if not pack.lint:
        return part(pack.name, "unknown", known, "its checks were not tried", "stacktap pack lint PACK")
    if pack.findings:
        return part(pack.name, "no", f"{known}: {'; '.join(pack.findings[:8])}")
    return part(pack.name, "yes", known)


def _check(grid: Grid, material: Material, task: str, versions: set[str]) -> Part:
    version = " / ".join(sorted(versions))
    if task in grid.met:
        return part(task, "yes", f"check of version {version}; it can be met: an episode of this run met it")
    why = "no episode of this run met its check, so that nothing here shows that it can be met"
    command = (
        f"stacktap run GRID.yaml --out {material.quoted}   "
        "(with one more target in GRID.yaml: {name: known, up: llamacpp, canary: does})"
    )
    return part(task, "unknown", f"check of version {version}", why, command)


def c22_deviations(material: Material) -> Filled:
    """What `stacktap validate` finds: the plans were written before the episodes."""
    answered = no_grid("C22", material, "nothing was declared beforehand")
    if answered is not None:
        return answered
    grid = material.grid
    assert grid is not None
    found = [*grid.deviations, *grid.problems]
    declared = sum(_declared(plan) for plan in grid.plans.values())
    if not found:
        words = f"nothing differs: {declared} of {declared} declared episodes are there, each under its cell's plan"
        return no("C22", words, deviations=[])
    return yes(
        "C22", "; ".join(found[:8]) + (f"; and {len(found) - 8} more" if len(found) > 8 else ""), deviations=found
    )


def _declared(plan: CellPlan) -> int:
    return len(plan.seeds) * plan.repeats
