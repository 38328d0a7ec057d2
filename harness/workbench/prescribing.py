"""`quant prescribe` and `quant confirm` as data: the lowest rung that clears the bar, and whether it holds.

`prescribe` looks at the development half alone; `confirm` at the held-out half, at the prescribed rung alone, and puts
that look into the ledger before the first answer (MicroAnt's workflow; the decision is on the lenient parser).
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.workbench.collecting import BASE, Comparable, coverage_of, coverage_text, pack_row
from harness.workbench.ledger import note, read_ledger
from harness.workbench.measuring import places
from harness.workbench.record import (
    DECISION_TIER,
    METRIC,
    CaseRow,
    Confirmation,
    Confirmed,
    Difference,
    Prescribed,
    Prescription,
    RungRow,
    Share,
)
from harness.workbench.workflows import Ladder, Workbench, WorkbenchError, machine, software
from results.statistics.ladder import Rung, held, prescribe
from results.statistics.resampling import Interval
from results.version import VERSION

DEFAULT_THRESHOLD = 0.9
DEV, TEST = "dev", "test"


def prescription(
    bench: Workbench,
    ladders: Sequence[Ladder],
    rungs: Sequence[str],
    threshold: float,
    before: Prescription | None = None,
) -> Prescription:
    """Measure what is missing on the development half and choose. The first threshold of a folder is the registered
    one; another one later is post-hoc. Cells of other chains of an earlier run at the same threshold are kept.

    Raises WorkbenchError (a pack without halves, an earlier run of another pack) and what `Workbench.measure` raises.
    """
    cases = half_of(bench, DEV)
    if before is not None and before.pack.sha256 != bench.pack.digest:
        raise WorkbenchError(
            f"the pack changed since the prescription in this folder (SHA-256 {before.pack.sha256}, now "
            f"{bench.pack.digest})\n  -> choose another --out"
        )
    mine = {ladder.chain.name for ladder in ladders}
    kept = before.cells if before is not None and before.threshold == threshold else ()
    cells = [cell for cell in kept if cell.chain not in mine]
    versions = dict(before.software) if cells and before is not None else {}
    for ladder in ladders:
        bench.measure(ladder, rungs, cases)
        versions |= software(ladder.chain.ecosystem)
        cells += [
            prescribed(bench, ladder, tier, rungs, threshold)
            for tier in ladder.tiers
            if (ladder.chain.name, tier) in bench.found
        ]
    return Prescription(
        model=bench.model_row,
        pack=pack_row(bench.pack),
        software=versions,
        machine=machine(),
        threshold=threshold,
        registered=threshold if before is None else before.registered,
        half=DEV,
        cells=tuple(cells),
        stacktap=VERSION,
    )


def half_of(bench: Workbench, half: str) -> tuple[int, ...]:
    """The cases of a half. Raises WorkbenchError where the pack has none."""
    cases = places(bench.pack, half=half)
    if not cases:
        raise WorkbenchError(
            f"the pack {bench.pack.name} has no {half} half: give its tasks `labels: {{half: dev}}` or `{{half: test}}`"
        )
    return cases


def prescribed(bench: Workbench, ladder: Ladder, tier: str, rungs: Sequence[str], threshold: float) -> Prescribed:
    """The choice for one tier, from the answers on record."""
    cases = half_of(bench, DEV)
    rows = {rung: bench.rows(ladder.chain, tier, rung, cases) for rung in rungs}
    drawn = Comparable(bench.pack, rows)
    listed = [rung_row(bench, drawn, rung, rows) for rung in rungs]
    chosen = prescribe(
        [Rung(one.rung, one.lenient.value, _interval(one.lenient), one.cases) for one in listed], threshold
    )
    return Prescribed(
        chain=ladder.chain.name,
        ecosystem=ladder.chain.ecosystem,
        tier=tier,
        tensor_bits=bench.found[ladder.chain.name, tier].weights.tensor_bits,
        rungs=tuple(listed),
        rung="" if chosen.rung is None else chosen.rung.name,
        strength=chosen.strength,
    )


def _interval(share: Share) -> Interval:
    return Interval(share.low, share.high)


def rung_row(bench: Workbench, drawn: Comparable, rung: str, rows: dict[str, list[CaseRow]]) -> RungRow:
    """One rung's row. What a grammar changes is read on the cases alone that it held to the end."""
    own = rows[rung]
    coverage = coverage_of(own)
    against: Difference | None = None
    held_to_end = [row.at for row in own if row.grammar == "ok"] if coverage else [row.at for row in own]
    if rung != BASE and BASE in rows and held_to_end:
        pair = Comparable(bench.pack, {BASE: rows[BASE], rung: own}, held_to_end)
        against = pair.difference(BASE, rung, DECISION_TIER)
    kinds: dict[str, tuple[int, int]] = {}
    for row in own:
        kind = bench.pack.tasks[row.at].category
        cases, right = kinds.get(kind, (0, 0))
        kinds[kind] = (cases + 1, right + (row.lenient == ""))
    return RungRow(
        rung=rung,
        lenient=drawn.share(rung, "lenient", METRIC),
        strict=drawn.share(rung, "strict", METRIC),
        cases=len(own),
        coverage=coverage_text(coverage),
        against_bare=against,
        kinds=kinds,
    )


def confirmation(bench: Workbench, ladders: Sequence[Ladder], chosen: Prescription) -> Confirmation:
    """Measure each prescribed rung on the held-out half. A tier that was prescribed nothing is not looked at.

    Raises WorkbenchError where nothing was prescribed or the pack changed, LedgerError before any answer where the
    look cannot be put on record, and what `Workbench.measure` raises.
    """
    if chosen.pack.sha256 != bench.pack.digest:
        raise WorkbenchError(
            f"the prescription is for another pack (SHA-256 {chosen.pack.sha256}, now {bench.pack.digest}): "
            "prescribe again"
        )
    cases, found = half_of(bench, TEST), []
    versions: dict[str, str] = {}
    for ladder in ladders:
        for cell in chosen.cells:
            if cell.chain != ladder.chain.name or not cell.rung or cell.tier not in ladder.tiers:
                continue
            what = f"{bench.member.name} {cell.chain}/{cell.tier} {cell.rung}, {bench.pack.name}, {len(cases)} cases"
            one = Ladder(ladder.chain, (cell.tier,), ladder.folder)
            if bench.lacking(one, (cell.rung,), cases):
                note(bench.out, "quant confirm", what)
            bench.measure(one, (cell.rung,), cases)
            versions |= software(ladder.chain.ecosystem)
            found.append(confirmed(bench, one, cell.rung, cell.strength, chosen.threshold))
    if not found:
        raise WorkbenchError(
            "there is nothing to confirm: no tier of these chains was prescribed a rung\n"
            "  -> `stacktap quant prescribe` with more --rungs, or a lower --threshold (reports call that post-hoc)"
        )
    return Confirmation(
        model=bench.model_row,
        pack=pack_row(bench.pack),
        software=versions,
        machine=machine(),
        threshold=chosen.threshold,
        registered=chosen.registered,
        cells=tuple(found),
        ledger=read_ledger(bench.out),
        stacktap=VERSION,
    )


def confirmed(bench: Workbench, ladder: Ladder, rung: str, strength: str, threshold: float) -> Confirmed:
    """Whether one tier's rung holds, from the answers on record."""
    cases = half_of(bench, TEST)
    rows = bench.rows(ladder.chain, ladder.tiers[0], rung, cases)
    drawn = Comparable(bench.pack, {rung: rows})
    lenient = drawn.share(rung, "lenient", METRIC)
    return Confirmed(
        chain=ladder.chain.name,
        ecosystem=ladder.chain.ecosystem,
        tier=ladder.tiers[0],
        rung=rung,
        strength=strength,
        lenient=lenient,
        strict=drawn.share(rung, "strict", METRIC),
        cases=len(rows),
        held=held(Rung(rung, lenient.value, _interval(lenient), len(rows)), threshold),
        coverage=coverage_text(coverage_of(rows)),
    )
