"""The reports of `quant prescribe`, `quant confirm` and `quant compare`. No line names two ecosystems."""

from __future__ import annotations

from collections.abc import Iterator

from checklists.workbench.blocks import Heading, Part, paragraph, picture, points, table
from checklists.workbench.pictures import radar
from checklists.workbench.profile_report import FLOOR, header
from harness.structured.scaffolds import LADDER
from harness.workbench.record import (
    DECISION_TIER,
    METRIC,
    ArmRow,
    Comparison,
    Confirmation,
    Prescribed,
    Prescription,
    RungRow,
)

_POST_HOC = (
    "Post-hoc: the bar was {registered:.2f} before any number was seen and was moved to {threshold:.2f} afterwards. "
    "Read this as a choice made after the fact, not as clearing the bar that was set."
)


def _bar(threshold: float, registered: float) -> list[Part]:
    said: list[Part] = [paragraph(f"Threshold: {threshold:.2f} ({METRIC}, {DECISION_TIER} parser).")]
    if threshold != registered:
        said.append(paragraph(_POST_HOC.format(registered=registered, threshold=threshold)))
    return said


def prescription_parts(run: Prescription) -> list[Part]:
    """The report of `quant prescribe`."""
    blocks: list[Part] = [
        Heading(1, f"Which scaffold {run.model.name} needs"),
        paragraph(
            "The lowest rung of the ladder whose share of right answers reaches the bar, for each tier, on the "
            "development half. Tentative: the share reaches it and its interval does not. None: no rung does."
        ),
        *_bar(run.threshold, run.registered),
        *header(run.model, run.pack, run.software, run.machine, run.stacktap),
        points(tuple(f"{name}: {scaffold.text()}" for name, scaffold in LADDER.items())),
    ]
    for chain in dict.fromkeys(cell.chain for cell in run.cells):
        cells = [cell for cell in run.cells if cell.chain == chain]
        blocks.append(Heading(2, f"Chain {chain}"))
        blocks += _prescribed(chain, cells)
    blocks.append(
        paragraph(
            "The bare rung and the grammar's are compared on the cases alone that the grammar held to the end. A "
            "grammar repairs form; it cannot repair a wrong value."
        )
    )
    return blocks


def _prescribed(chain: str, cells: list[Prescribed]) -> Iterator[Part]:
    rungs = list(dict.fromkeys(rung.rung for cell in cells for rung in cell.rungs))
    rows = []
    for cell in cells:
        by_rung = {rung.rung: rung.lenient.text() for rung in cell.rungs}
        said = f"{cell.rung} ({cell.strength})" if cell.rung else "none (ceiling below the bar)"
        rows.append((cell.tier, f"{cell.tensor_bits:.2f}", *(by_rung.get(rung, "") for rung in rungs), said))
    yield table(("tier", "bits per weight", *(f"{rung}, lenient" for rung in rungs), "prescription"), tuple(rows))
    for cell in cells:
        yield Heading(3, f"{cell.tier}, rung by rung")
        yield table(_RUNG_HEAD, tuple(_rung(rung) for rung in cell.rungs))
        top = next((rung for rung in cell.rungs if rung.rung == cell.rung), cell.rungs[-1])
        bare = cell.rungs[0]
        if bare.kinds and top is not bare:
            shares = [{kind: right / cases for kind, (cases, right) in rung.kinds.items()} for rung in (bare, top)]
            title = f"Bare and scaffolded ({chain}, {cell.tier})"
            drawn = radar(title, shares[0], shares[1], (bare.rung, top.rung))
            yield picture(f"radar-{chain}-{cell.tier}.svg", drawn, title)


_RUNG_HEAD = ("rung", "lenient", "strict", "cases", "against the bare rung", "grammar coverage")


def _rung(rung: RungRow) -> tuple[str, ...]:
    against = rung.against_bare
    said = f"{against.text()} on {against.cases}: {against.verdict}" if against else ""
    return (rung.rung, rung.lenient.text(), rung.strict.text(), str(rung.cases), said, rung.coverage or "no grammar")


def confirmation_parts(run: Confirmation) -> list[Part]:
    """The report of `quant confirm`."""
    blocks: list[Part] = [
        Heading(1, f"Whether the prescriptions for {run.model.name} hold"),
        paragraph(
            "Each prescribed rung, and no other, on the half of the cases that was held out. Held: the lower end of "
            "the interval reaches the bar."
        ),
        *_bar(run.threshold, run.registered),
        *header(run.model, run.pack, run.software, run.machine, run.stacktap),
    ]
    for chain in dict.fromkeys(cell.chain for cell in run.cells):
        rows = tuple(
            (
                *(cell.tier, f"{cell.rung} ({cell.strength})", cell.lenient.text(), cell.strict.text()),
                *(str(cell.cases), "held" if cell.held else "not held", cell.coverage or "no grammar"),
            )
            for cell in run.cells
            if cell.chain == chain
        )
        head = ("tier", "prescribed", "lenient", "strict", "cases", "verdict", "grammar coverage")
        blocks += [Heading(2, f"Chain {chain}"), table(head, rows)]
    looks = tuple(f"{look.at}, {look.command}: {look.what}" for look in run.ledger)
    return [*blocks, Heading(2, f"Looks at the held-out half: {len(looks)}"), points(looks)]


def comparison_parts(run: Comparison) -> list[Part]:
    """The report of `quant compare`."""
    small, large, found = run.small, run.large, run.difference
    arms = [small, *([run.small_bare] if run.small_bare else []), large]
    said = {
        "credible": "The difference is established on this pack.",
        "inconclusive": "Too few cases, or no difference: nothing is established.",
        "exact agreement": "Exact agreement on this pack.",
    }[found.verdict]
    notes = tuple(f"about {arm.model}: {arm.note}" for arm in (small, large) if arm.note)
    floored = (
        [paragraph(f"Floored: {large.model} is right in {large.lenient.value:.2f} of the cases.")]
        if large.lenient.value < FLOOR
        else []
    )
    return [
        Heading(1, f"{small.model} under {small.rung} against {large.model} bare"),
        paragraph(
            f"Right answers ({DECISION_TIER} parser), small minus large, paired on {found.cases} cases of the "
            f"development half: {found.text()}, {found.gained} gained, {found.lost} lost. {said}"
        ),
        table(
            ("arm", "tier", "bits per weight", "file", "rung", "lenient", "strict", "seconds a case", "coverage"),
            tuple(_arm(arm) for arm in arms),
        ),
        *floored,
        *([points(notes)] if notes else []),
        *header(None, run.pack, run.software, run.machine, run.stacktap),
        paragraph(f"Both arms ran on one runtime, kernel and sampling, within one ecosystem ({run.ecosystem})."),
    ]


def _arm(arm: ArmRow) -> tuple[str, ...]:
    return (
        f"{arm.model} ({arm.parameters})",
        *(arm.tier, f"{arm.tensor_bits:.2f}", f"{arm.file_bytes / 1e6:.1f} MB", arm.rung),
        *(arm.lenient.text(), arm.strict.text(), f"{arm.seconds:.2f}", arm.coverage or "no grammar"),
    )
