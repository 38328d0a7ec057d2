"""`quant profile` as data: every tier of every chain over the same cases, each against its own chain's baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.workbench.collecting import chain_cells, pack_row
from harness.workbench.guarding import guard_rows
from harness.workbench.record import ChainRun, Profile, RungRun, TierRun
from harness.workbench.workflows import Ladder, Workbench, WorkbenchError, machine, software
from results.statistics.cases import detectable
from results.version import VERSION


def profile(
    bench: Workbench,
    ladders: Sequence[tuple[Ladder, tuple[int, ...]]],
    rungs: Sequence[str],
    before: Profile | None = None,
) -> Profile:
    """Measure what is missing, and build the run. `ladders` come with the cases that each chain is measured on; the
    other chains of an earlier run (`before`) are kept, since no engine of theirs may be installed here.

    Raises WorkbenchError where the earlier run is of another pack or model, and what `Workbench.measure` raises.
    """
    chains = {chain.name: chain for chain in before.chains} if before is not None else {}
    if before is not None:
        check_same(before, bench)
    for ladder, cases in ladders:
        bench.measure(ladder, rungs, cases)
        chains[ladder.chain.name] = chain_run(bench, ladder, rungs, cases)
    return Profile(
        model=bench.model_row,
        pack=pack_row(bench.pack),
        machine=machine(),
        chains=tuple(chains[name] for name in sorted(chains)),
        stacktap=VERSION,
    )


def check_same(before: Profile, bench: Workbench) -> None:
    """Raise WorkbenchError where an earlier run measured something else."""
    if before.model.name != bench.member.name:
        raise WorkbenchError(f"the folder holds a run of {before.model.name}; choose another --out")
    if before.pack.sha256 != bench.pack.digest:
        raise WorkbenchError(
            f"the pack {bench.pack.name} changed since the run in this folder: its SHA-256 was {before.pack.sha256}, "
            f"now it is {bench.pack.digest}; its answers are no answers to this pack\n  -> choose another --out"
        )


def chain_run(bench: Workbench, ladder: Ladder, rungs: Sequence[str], cases: Sequence[int]) -> ChainRun:
    """One chain's run from the answers on record. Raises WorkbenchError where one is missing."""
    chain = ladder.chain
    tiers = [tier for tier in chain.tiers if (chain.name, tier) in bench.found and tier in ladder.tiers]
    by_rung: dict[str, Mapping[str, RungRun]] = {}
    for rung in rungs:
        rows = {tier: bench.rows(chain, tier, rung, cases) for tier in tiers}
        by_rung[rung] = chain_cells(bench.pack, chain.baseline, rows, rung)
    facts = {tier: bench.found[chain.name, tier] for tier in tiers}
    return ChainRun(
        name=chain.name,
        ecosystem=chain.ecosystem,
        made_by=chain.made_by,
        baseline=chain.baseline,
        baseline_note=chain.baseline_note,
        tier_note=chain.tier_note,
        cases=len(cases),
        detectable=round(detectable(len(cases)), 3),
        software=software(chain.ecosystem),
        guards=guard_rows({tier: one.guards for tier, one in facts.items()}),
        tiers=tuple(
            TierRun(
                tier=tier,
                weights=one.weights,
                bound_to=one.bound_to,
                rungs=tuple(by_rung[rung][tier] for rung in rungs),
            )
            for tier, one in facts.items()
        ),
        excluded={tier: why for (name, tier), why in bench.excluded.items() if name == chain.name},
    )
