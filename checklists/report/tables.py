"""Tables of cells: those of a grid with their intervals, or those of a recording by server, model and task."""

from __future__ import annotations

from collections.abc import Sequence

from checklists.facts.records import CellFacts, GridCellFacts, GridFacts, Ratio, RunFacts, SeedMeanFacts
from checklists.pictures.interval import interval
from checklists.report import words
from checklists.report.blocks import Block, Bullets, Code, Fold, Glyph, Inline, Line, Paragraph, Section, Table, Term
from checklists.report.parts import nothing
from stacks.serving.registry import title_of

TITLE = "Rates cell by cell"


def cells(run: RunFacts, prefix: str) -> Section:
    """The per-cell tables of a run."""
    blocks = _grid(run.grid) if run.grid is not None else _recording(run)
    return Section(f"{prefix}cells", [TITLE], blocks)


def _recording(run: RunFacts) -> list[Block | Section]:
    if not run.cells:
        return [Paragraph([nothing(run)])]
    tagged = any(one.tags for one in run.cells)
    header: list[Line] = [["server"], ["model"], *([["tags"]] if tagged else []), ["requests"], [Term("model ran")]]
    header += [
        [Term("fidelity", words.rate_name("fidelity"))],
        ["0 to 100 %"],
        [Term("95 % interval")],
        [Term("naive rate", words.rate_name("naive rate"))],
        [Term("cleared rate", words.rate_name("cleared rate"))],
    ]
    first = 4 if tagged else 3
    rows = [_cell(one, tagged=tagged) for one in run.cells]
    blocks: list[Block | Section] = [
        Table("Cells of this run", header, rows, frozenset({first - 1, first, first + 1, first + 3}))
    ]
    if run.cells_left_out:
        blocks.append(Paragraph([f"{words.plural(run.cells_left_out, 'more cell')} are not shown."]))
    blocks.append(
        Paragraph(
            [
                "Intervals take requests for independent draws, which requests of one conversation are not: they are "
                "rather too narrow."
            ]
        )
    )
    return blocks


def _cell(one: CellFacts, *, tagged: bool) -> Sequence[Line]:
    rates = one.rates
    tags = [f"{name}={value}" for name, value in one.tags.items()]
    server: list[Inline] = [Code(one.upstream)]
    if one.stack:
        server.append(f" {title_of(one.stack)}")
    real = rates.fidelity
    ends = words.ends(real)
    return (
        server,
        [Code(one.model)] if one.model else ["not named"],
        *([[Code(", ".join(tags)) if tags else "none"]] if tagged else []),
        [str(one.exchanges)],
        [f"{one.model_ran.get('yes', 0)} of {one.exchanges}"],
        _value(real),
        [
            Glyph(
                interval(
                    real.value, real.low if ends else None, real.high if ends else None, f"fidelity {words.rate(real)}"
                )
            )
        ],
        [ends],
        _value(rates.naive),
        _value(rates.cleared),
    )


def _value(ratio: Ratio) -> Line:
    if ratio.value is None:
        return [Term(ratio.undefined)] if ratio.undefined in ("rej", "n/r") else [ratio.undefined]
    return [f"{words.percent(ratio.value)} ({ratio.hits}/{ratio.trials})"]


def _grid(grid: GridFacts) -> list[Block | Section]:
    lead = f"{grid.succeeded} of {words.plural(grid.episodes, 'episode')} reached their goal."
    blocks: list[Block | Section] = [Paragraph([lead], lead=True)]
    if grid.owed:
        blocks.append(Paragraph([f"Of what was lost: {grid.owed}."]))
    if grid.cells:
        blocks += [_rates(grid), _ends(grid)]
    if grid.cells_left_out:
        blocks.append(Paragraph([f"{words.plural(grid.cells_left_out, 'more cell')} are not shown."]))
    if grid.rankings:
        blocks.append(Bullets([[one] for one in grid.rankings]))
    warned = [(one, warning) for one in grid.cells for warning in one.warnings]
    if warned:
        blocks.append(Bullets([[f"Beware, {_title(one)}: {warning}."] for one, warning in warned]))
    if grid.findings:
        blocks.append(Fold(["What is wrong with the run itself"], [Bullets([[one] for one in grid.findings])]))
    return blocks


def _title(one: GridCellFacts) -> str:
    return f"{one.model} @ {one.stack}, {one.condition}, {one.task}"


def _keys(one: GridCellFacts) -> list[Line]:
    return [[Code(one.model)], [Code(one.stack)], [one.condition], [one.task]]


def _rates(grid: GridFacts) -> Table:
    header: list[Line] = [["model"], ["server"], [Term("serving condition", "condition")], ["task"]]
    header += [
        [Term("per seed")],
        ["0 to 100 %"],
        [Term("95 % interval")],
        ["seeds"],
        [Term("pooled")],
        [Term("naive rate", words.rate_name("naive rate"))],
        [Term("cleared rate", words.rate_name("cleared rate"))],
        ["first turn"],
    ]
    rows = [
        (
            *_keys(one),
            _mean(one.per_seed),
            [
                Glyph(
                    interval(
                        one.per_seed.value, one.per_seed.low, one.per_seed.high, f"per seed {_mean_text(one.per_seed)}"
                    )
                )
            ],
            [_ends_of(one.per_seed)],
            [f"{one.per_seed.seeds_used} of {one.per_seed.seeds}"],
            _value(one.pooled),
            _value(one.naive),
            _value(one.cleared),
            _value(one.first_turn),
        )
        for one in grid.cells
    ]
    return Table("Valid tool calls by cell", header, rows, frozenset(range(4, 12)) - {5})


def _mean(found: SeedMeanFacts) -> Line:
    if found.value is None:
        return [Term(found.undefined)] if found.undefined in ("rej", "n/r") else [found.undefined]
    return [words.percent(found.value)]


def _mean_text(found: SeedMeanFacts) -> str:
    return found.undefined if found.value is None else words.percent(found.value)


def _ends_of(found: SeedMeanFacts) -> str:
    said = words.interval(found.low, found.high)
    return f"{said} ({found.interval})" if said else ""


def _ends(grid: GridFacts) -> Table:
    header: list[Line] = [["model"], ["server"], [Term("serving condition", "condition")], ["task"]]
    header += [
        ["reached the goal"],
        ["not run"],
        [Term("turn", "turns")],
        [Term("non-response", "non-responses")],
        ["by channel"],
        ["ended by"],
        [Term("retry", "retries")],
    ]
    rows = [
        (
            *_keys(one),
            _value(one.completed),
            [words.counts(one.not_run) + (f"; missing {one.missing}" if one.missing else "")],
            [str(one.produced)],
            [words.counts(one.nonresponses)],
            [words.counts(one.channels)],
            [words.counts(one.ended_by)],
            [str(one.retries)],
        )
        for one in grid.cells
    ]
    return Table("How episodes went and ended", header, rows, frozenset({4, 6, 10}))
