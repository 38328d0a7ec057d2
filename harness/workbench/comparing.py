"""`quant compare` as data: does a scaffold close a gap in parameters? A small model under it, a large one bare."""

from __future__ import annotations

from harness.structured.binding import incomparable
from harness.workbench.answering import binding_in
from harness.workbench.collecting import BASE, Comparable, coverage_of, coverage_text, pack_row
from harness.workbench.prescribing import DEV, half_of
from harness.workbench.record import DECISION_TIER, METRIC, ArmRow, CaseRow, Comparison
from harness.workbench.workflows import Ladder, Workbench, WorkbenchError, machine, software
from results.version import VERSION


def comparison(small: Workbench, small_on: Ladder, rung: str, large: Workbench, large_on: Ladder) -> Comparison:
    """Measure what is missing on the development half, and pair the arms. Each ladder has one tier.

    Raises WorkbenchError for arms of two ecosystems, or that ran on another runtime, kernel or sampling, and what
    `Workbench.measure` raises.
    """
    if small_on.chain.ecosystem != large_on.chain.ecosystem:
        raise WorkbenchError("the two arms are of two ecosystems: their difference would mix conversions with models")
    if small.pack.digest != large.pack.digest:
        raise WorkbenchError("the two arms answered different packs")
    cases = half_of(small, DEV)
    small.measure(small_on, (BASE, rung) if rung != BASE else (BASE,), cases)
    large.measure(large_on, (BASE,), cases)
    for bench, ladder in ((small, small_on), (large, large_on)):
        if why := bench.excluded.get((ladder.chain.name, ladder.tiers[0])):
            raise WorkbenchError(f"{bench.member.name} {ladder.tiers[0]} is excluded by a guard: {why}")
    return compared(small, small_on, rung, large, large_on)


def compared(small: Workbench, small_on: Ladder, rung: str, large: Workbench, large_on: Ladder) -> Comparison:
    """The comparison from the answers on record."""
    bound = [
        binding_in(bench.found[ladder.chain.name, ladder.tiers[0]].bound_to)
        for bench, ladder in ((small, small_on), (large, large_on))
    ]
    if why := incomparable(*bound):
        raise WorkbenchError(f"the two arms did not run alike: {'; '.join(why)}")
    cases = half_of(small, DEV)
    rows = {
        "small": small.rows(small_on.chain, small_on.tiers[0], rung, cases),
        "bare": small.rows(small_on.chain, small_on.tiers[0], BASE, cases),
        "large": large.rows(large_on.chain, large_on.tiers[0], BASE, cases),
    }
    drawn = Comparable(small.pack, rows)
    return Comparison(
        ecosystem=small_on.chain.ecosystem,
        pack=pack_row(small.pack),
        software=software(small_on.chain.ecosystem),
        machine=machine(),
        half=DEV,
        small=_arm(small, small_on, rung, drawn, "small", rows["small"]),
        small_bare=None if rung == BASE else _arm(small, small_on, BASE, drawn, "bare", rows["bare"]),
        large=_arm(large, large_on, BASE, drawn, "large", rows["large"]),
        difference=drawn.difference("large", "small", DECISION_TIER),
        stacktap=VERSION,
    )


def _arm(  # noqa: PLR0917 - an arm is what it is made of
    bench: Workbench, ladder: Ladder, rung: str, drawn: Comparable, name: str, rows: list[CaseRow]
) -> ArmRow:
    weights = bench.found[ladder.chain.name, ladder.tiers[0]].weights
    return ArmRow(
        model=bench.member.name,
        parameters=bench.member.parameters,
        tier=ladder.tiers[0],
        tensor_bits=weights.tensor_bits,
        file_bytes=weights.file_bytes,
        rung=rung,
        lenient=drawn.share(name, "lenient", METRIC),
        strict=drawn.share(name, "strict", METRIC),
        seconds=round(sum(row.seconds for row in rows) / len(rows), 3),
        coverage=coverage_text(coverage_of(rows)),
        note=bench.member.note,
    )
