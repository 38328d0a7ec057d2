"""The report of `quant profile`, chain by chain: no line names two ecosystems, no number of one meets another's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from checklists.workbench.blocks import Heading, Part, paragraph, picture, points, table
from checklists.workbench.pictures import damage, decay
from harness.workbench.collecting import coverage_text
from harness.workbench.record import (
    DECISION_TIER,
    METRIC,
    ChainRun,
    Difference,
    ModelRow,
    PackRow,
    Profile,
    RungRun,
    TierRun,
)

UNDERPOWERED = 0.1
"""A chain that detects no smaller difference than this is marked underpowered."""
FLOOR = 0.1
"""A baseline that is right less often than this has nothing to lose, and the report says so."""
_WORDS = {
    "credible": "yes",
    "inconclusive": "inconclusive",
    "exact agreement": "exact agreement on this pack",
}


def profile_parts(run: Profile) -> list[Part]:
    """The whole report."""
    blocks: list[Part] = [
        Heading(1, f"What quantization does to {run.model.name}"),
        paragraph(
            "Structured answers of one model at several widths, each chain of conversions by itself and against its "
            "own 16-bit baseline. Chains are not compared with each other: they do not quantise the same tensors."
        ),
        *header(run.model, run.pack, {}, run.machine, run.stacktap),
    ]
    for chain in run.chains:
        blocks += _chain(chain)
    return [*blocks, *_bounds(run)]


def header(
    model: ModelRow | None, pack: PackRow, software: Mapping[str, str], machine: Mapping[str, str], stacktap: str
) -> Iterator[Part]:
    """What a report's numbers belong to; one software package a line, since no line names two ecosystems."""
    items = []
    if model is not None:
        items += [
            f"model: {model.name} ({model.parameters}), converted from {model.source}",
            f"envelope of calls: {model.envelope}",
        ]
        items += [f"about the model: {text}" for text in (model.note, model.towers) if text]
    kinds = ", ".join(f"{count} {kind}" for kind, count in pack.kinds.items())
    items += [
        f"pack: {pack.name} {pack.version}, SHA-256 {pack.sha256}, {pack.cases} cases ({kinds})",
        f"metric: {METRIC}; decided under the {DECISION_TIER} parser; both parsers are printed",
        "sampling: greedy (temperature 0); intervals: 95 %, bootstrap over cases",
    ]
    if pack.tools_per_call:
        items.append(f"tools declared by each function call: {', '.join(map(str, pack.tools_per_call))}")
    items += [f"{name}: {value}" for name, value in sorted(machine.items())]
    items += [f"{name} {value}" for name, value in sorted(software.items())]
    yield points((*items, f"stacktap {stacktap}"))


def _chain(chain: ChainRun) -> Iterator[Part]:
    mark = " (underpowered)" if chain.detectable > UNDERPOWERED else ""
    yield Heading(2, f"Chain {chain.name}{mark}")
    yield paragraph(f"Baseline: {chain.baseline}. Tiers made by {chain.made_by}.")
    if chain.baseline_note:  # a line of its own: it may name what the source was stored as
        yield paragraph(f"The baseline's weights: {chain.baseline_note}.")
    if chain.tier_note:
        yield paragraph(f"Tiers here are {chain.tier_note}.")
    yield paragraph(
        f"{chain.cases} cases. Where a fifth of them come out differently, a difference of {chain.detectable:.2f} is "
        "found four times out of five; a smaller one stays inconclusive, which is never the same as harmless."
    )
    for tier, why in sorted(chain.excluded.items()):
        yield paragraph(f"Excluded: {tier}, by a guard: {why}.")
    yield Heading(3, f"Guards, {chain.name}")
    yield points(tuple(f"{guard.name}: {guard.state} ({guard.reason})" for guard in chain.guards))
    for rung in _rungs(chain):
        yield from _rung(chain, rung)
    yield Heading(3, f"Weights, {chain.name}")
    yield table(("tier", "bits per weight", "of the whole file", "weights", "tensors by type"), tuple(_weights(chain)))
    notes = dict.fromkeys(f"{tier.tier}: {tier.weights.note}" for tier in chain.tiers if tier.weights.note)
    if notes:
        yield points(tuple(notes))
    yield Heading(3, f"What binds these numbers, {chain.name}")
    yield points(tuple(_bound(chain)))


def _rungs(chain: ChainRun) -> list[str]:
    return list(dict.fromkeys(rung.rung for tier in chain.tiers for rung in tier.rungs))


def _cells(chain: ChainRun, rung: str) -> list[tuple[TierRun, RungRun]]:
    return [(tier, found) for tier in chain.tiers if (found := tier.rung(rung)) is not None]


def _rung(chain: ChainRun, rung: str) -> Iterator[Part]:
    cells = _cells(chain, rung)
    where = f"{chain.name}, {rung}"
    shown = [(t.tier, t.weights.tensor_bits, r.shares["lenient"][METRIC], t.tier == chain.baseline) for t, r in cells]
    drawn = damage(f"Right answers by tier ({where})", shown, "lenient")
    base = next((cell for tier, cell in cells if tier.tier == chain.baseline), None)
    if base is not None and base.shares["lenient"][METRIC].value < FLOOR:
        yield paragraph(
            f"Floored: under {rung} the baseline itself is right in {base.shares['lenient'][METRIC].value:.2f} of the "
            "cases, so that little damage can show in content_correct; read the layers below it."
        )
    for parser in ("lenient", "strict"):
        yield Heading(3, f"{parser.capitalize()} parser, {where}")
        yield table(_HEAD, tuple(_row(chain, tier, cell, parser) for tier, cell in cells))
        yield from _strict_note(cells) if parser == "strict" else ()
        if parser == "lenient":
            yield picture(f"damage-{chain.name}-{rung}.svg", drawn, f"Right answers by tier, {where}")
    coverage = [f"{tier.tier}: {coverage_text(cell.coverage)}" for tier, cell in cells if cell.coverage]
    if coverage:
        yield Heading(3, f"Grammar coverage, {where}")
        yield points(tuple(coverage))
    yield Heading(3, f"Where cases die, {where}")
    yield table(_DIED_HEAD, tuple(_died(tier, cell) for tier, cell in cells))
    moved = [f"{tier.tier}: {text}" for tier, cell in cells if (text := _moved(cell))]
    if moved:
        yield paragraph(f"Against {chain.baseline}, cases that died elsewhere (lenient):")
        yield points(tuple(moved))
    yield from _depth(cells, where, chain.baseline, f"{chain.name}-{rung}")
    yield Heading(3, f"Cost, {where}")
    yield table(("tier", "seconds a case", "tokens a case", "tokens a second"), tuple(_cost(t, r) for t, r in cells))
    tools = [f"{t.tier}: {r.tools_right[0]} of {r.tools_right[1]}" for t, r in cells if r.tools_right[1]]
    if tools:
        yield paragraph("Valid calls that named the right tool: " + "; ".join(tools) + ".")


_HEAD = (
    *("tier", "bits per weight", "file", "parse_ok", "schema_valid", "content_correct", "width"),
    *("difference", "width of it", "credible"),
)
_DIED_HEAD = ("tier", "right", "content", "schema", "parse", "truncated", "kinds: right of cases (lenient)")


def _row(chain: ChainRun, tier: TierRun, cell: RungRun, parser: str) -> tuple[str, ...]:
    shares = cell.shares[parser]
    right = shares[METRIC]
    against = cell.against_baseline.get(parser)
    base = tier.tier == chain.baseline
    return (
        tier.tier,
        f"{tier.weights.tensor_bits:.2f}",
        f"{tier.weights.file_bytes / 1e6:.1f} MB",
        *(shares[layer].text() for layer in ("parse_ok", "schema_valid", METRIC)),
        f"{right.high - right.low:.2f}",
        "baseline" if base else against.text() if against else "not read",
        f"{against.high - against.low:.2f}" if against else "",
        "" if base else _credible(against),
    )


def _credible(against: Difference | None) -> str:
    return "strict reads no answer of these kinds" if against is None else _WORDS[against.verdict]


def _strict_note(cells: list[tuple[TierRun, RungRun]]) -> Iterator[Part]:
    without = next((d.without for _, c in cells if (d := c.against_baseline.get("strict")) and d.without), ())
    if without:
        cases = next(c.against_baseline["strict"].cases for _, c in cells if "strict" in c.against_baseline)
        yield paragraph(
            f"Differences under this parser are over {cases} cases, without {', '.join(without)}: strict reads not one "
            "answer of the baseline there, so that a difference would mask losses and book gains that are none."
        )


def _died(tier: TierRun, cell: RungRun) -> tuple[str, ...]:
    died = cell.died["lenient"]
    kinds = ", ".join(f"{kind} {right}/{cases}" for kind, (cases, right, _) in cell.kinds.items())
    names = ("right", "content", "schema", "parse", "truncated")
    return (tier.tier, *(str(died.get(name, 0)) for name in names), kinds)


def _moved(cell: RungRun) -> str:
    return ", ".join(f"{count} {name}" for name, count in list(cell.moved.items())[:6])


def _depth(cells: list[tuple[TierRun, RungRun]], where: str, baseline: str, name: str) -> Iterator[Part]:
    rows = [(tier, cell) for tier, cell in cells if cell.depth]
    if not rows:
        return
    yield Heading(3, f"Depth, {where}")
    yield paragraph(
        "Right answers by how many turns lie between what was said and what is asked, and with as many words in one "
        "turn (the length control)."
    )
    head = ("tier", *(f"{point.form} {point.depth}" for point in rows[0][1].depth))
    yield table(head, tuple((t.tier, *(f"{point.right}/{point.cases}" for point in c.depth)) for t, c in rows))
    base = next((cell for tier, cell in rows if tier.tier == baseline), rows[0][1])
    shown = baseline if any(tier.tier == baseline for tier, _ in rows) else rows[0][0].tier
    drawn = decay(f"Depth at {shown} ({where})", base.depth)
    yield picture(f"decay-{name}.svg", drawn, f"Right answers by depth at {shown}, {where}")


def _cost(tier: TierRun, cell: RungRun) -> tuple[str, ...]:
    cost = cell.cost
    return (tier.tier, f"{cost.seconds:.2f}", f"{cost.tokens:.1f}", f"{cost.tokens_per_second:.1f}")


def _weights(chain: ChainRun) -> Iterator[tuple[str, ...]]:
    for tier in chain.tiers:
        row = tier.weights
        types = ", ".join(f"{count} {kind}" for kind, count in row.types.items())
        yield (tier.tier, f"{row.tensor_bits:.3f}", f"{row.file_bits:.3f}", str(row.weights), types)


def _bound(chain: ChainRun) -> Iterator[str]:
    yield from (f"{name} {version}" for name, version in sorted(chain.software.items()))
    names = dict.fromkeys(name for tier in chain.tiers for name in tier.bound_to)
    for name in names:
        values = dict.fromkeys(tier.bound_to.get(name, "unknown") for tier in chain.tiers)
        if len(values) == 1:
            yield f"{name}: {next(iter(values))}"
        else:
            yield from (f"{name} of {tier.tier}: {tier.bound_to.get(name, 'unknown')}" for tier in chain.tiers)


def _bounds(run: Profile) -> Iterator[Part]:
    yield Heading(2, "What these numbers do not say")
    yield points(
        (
            "Prompts are rendered from the source model's chat template; a server that renders another one answers "
            "otherwise.",
            "Greedy answers of other kernels or another runtime differ: numbers do not carry over to them.",
            "Cost was measured on a shared machine: it is no benchmark of speed.",
            f"One pack ({run.pack.name}), one prompt for each case; nothing is said about other tasks.",
            "An answer that the token budget ended counts as truncated: it is not right, and not known to be wrong.",
        )
    )
