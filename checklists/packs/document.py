"""A run of packs as a document. Pure: the same run and version give the same report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from checklists.pictures.interval import interval
from checklists.report.blocks import (
    Advice,
    Block,
    Bullets,
    Code,
    Document,
    Glyph,
    Line,
    Paragraph,
    Section,
    Strong,
    Table,
)
from harness.packs.record import PackEntry, RunRecord
from harness.packs.summary import PackResult, PackResults, TaskResult, Who
from results.statistics.cells import SeedMean

BLOCKS = 10
"""Blocks of a bar in text."""
_THOUGHT = {
    "exhausted": "thought until the token budget was used up: no answer came",
    "only": "ended with reasoning and no answer",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown: the run's record and results, whether AQBE's own numbers stand beside, and what is stale."""

    record: RunRecord
    results: PackResults
    aqbe: bool = False
    stale: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


def document_of(shown: Shown) -> Document:
    """The report."""
    record = shown.record
    packs = ", ".join(f"{pack.name} {pack.version}" for pack in record.packs)
    return Document(
        kicker="answers to packs, judged by checks",
        title=f"{packs}: {len(record.models)} model{'s' if len(record.models) != 1 else ''}",
        tone="",
        opening=tuple(_opening(shown)),
        sections=tuple(_sections(shown)),
        footer=(
            [f"stacktap {record.stacktap}, pack format {record.format}; ", f"{record.repeats} answers to each task."],
            [
                "A score is the mean over tasks of the share of points. Brackets are 95 % intervals by a bootstrap "
                "over tasks (Wilson's where all are alike). What a server refused, broke off, cut or lost is no score."
            ],
            ["No model is ranked; where intervals share a point these tasks do not tell the models apart."],
        ),
    )


def _opening(shown: Shown) -> Iterator[Block]:
    if shown.stale:
        yield Advice("This report is stale", [[said] for said in shown.stale])
    if shown.record.not_run:
        yield Advice("Not run", [[Strong(what), f": {why}"] for what, why in sorted(shown.record.not_run.items())])
    if shown.findings:
        yield Advice("Beware", [[said] for said in shown.findings])
    if not shown.results.results:
        yield Paragraph(["Nothing was run."], lead=True)


def _sections(shown: Shown) -> Iterator[Section]:
    for entry in shown.record.packs:
        by_model = shown.results.results.get(entry.name)
        if by_model is None:
            continue
        parts: list[Block | Section] = [
            Paragraph(
                [f"{entry.tasks} tasks, content hash ", Code(entry.sha256), f". Linter: {entry.lint or 'not run'}."]
            ),
            *_lint(entry),
            _models_table(by_model, aqbe=shown.aqbe),
            *_not_told_apart(shown.results, entry.name),
            *_outside(by_model),
            *_thinking(by_model),
            *_hard(by_model),
            *_at_fault(by_model),
            Section(f"{entry.name}-categories", ["By category"], [_categories(shown.results, entry.name)]),
            Section(f"{entry.name}-tasks", ["By task"], [_tasks(by_model, aqbe=shown.aqbe)]),
        ]
        yield Section(f"pack-{entry.name}", [f"Pack {entry.name} {entry.version}"], parts)


def _lint(entry: PackEntry) -> Iterator[Block]:
    if entry.findings:
        yield Advice("Checks that the linter finds fault with", [[Code(one)] for one in entry.findings])


def bar(value: float | None) -> str:
    """Ten blocks."""
    full = 0 if value is None else int(value * BLOCKS + 1e-9)
    return "█" * full + "░" * (BLOCKS - full)


def _glyph(found: SeedMean) -> Glyph:
    known = found.comparable
    low, high = (None, None) if known is None else (known.low, known.high)
    return Glyph(interval(found.value, low, high, said(found)), bar(found.value))


def said(found: SeedMean) -> str:
    """`93.8 % [81.2, 100.0] (8 of 8 tasks)`, or the word for what is undefined."""
    known, value = found.comparable, found.value
    if value is None or known is None:
        return f"{found.undefined or 'n/r'} (0 of {found.seeds} tasks)"
    return f"{100 * value:.1f} % {known.text()} ({len(found.values)} of {found.seeds} tasks)"


def name_of(who: Who) -> str:
    """A model as tables call it."""
    model, stack, condition = who
    shown = model if model == stack else f"{model} ({stack})"
    return shown if condition == "native" else f"{shown}, {condition.removeprefix('native+')}"


def _models_table(by_model: dict[Who, PackResult], *, aqbe: bool) -> Table:
    header: list[Line] = [["model"], [""], ["score"], ["hard fails"], ["no score"], ["s/answer"]]
    header += [["as AQBE prints it"]] if aqbe else []
    rows = []
    for who, one in by_model.items():
        score = one.score()
        row: list[Line] = [
            [name_of(who)],
            [_glyph(score)],
            [said(score)],
            [str(len(one.hard_fails))],
            [str(sum(one.outside.values()))],
            ["-" if one.seconds is None else f"{one.seconds:.1f}"],
        ]
        row += [["-" if one.aqbe is None else f"{one.aqbe:.1f} %"]] if aqbe else []
        rows.append(row)
    return Table("score by model", header, rows, frozenset({3, 4, 5, 6} if aqbe else {3, 4, 5}))


def _not_told_apart(results: PackResults, pack: str) -> Iterator[Block]:
    pairs = results.overlapping(pack)
    if pairs:
        told = "; ".join(f"{name_of(one)} | {name_of(other)}" for one, other in pairs)
        yield Paragraph([f"Not told apart by these tasks (their intervals share a point): {told}."])


def _outside(by_model: dict[Who, PackResult]) -> Iterator[Block]:
    items: list[Line] = []
    for who, one in by_model.items():
        for outcome, count in sorted(one.outside.items()):
            tasks = ", ".join(task.name for task in one.tasks.values() if task.outside[outcome])
            remedies = {task.remedies[outcome] for task in one.tasks.values() if outcome in task.remedies}
            line: list[str | Code | Strong] = [
                Strong(name_of(who)),
                ": ",
                Code(outcome.removeprefix("not_run.")),
                f" x{count} ({tasks})",
            ]
            items.append([*line, *(f". {remedy}" for remedy in sorted(remedies)[:1])])
    if items:
        yield Paragraph(["Outside every score, by what ended them:"])
        yield Bullets(items)


def _thinking(by_model: dict[Who, PackResult]) -> Iterator[Block]:
    items: list[Line] = [
        [Strong(name_of(who)), f": {one.thinking[word]} of {sum(one.thinking.values())} answers {sentence}"]
        for who, one in by_model.items()
        for word, sentence in _THOUGHT.items()
        if one.thinking[word]
    ]
    if items:
        yield Paragraph(["Thinking:"])
        yield Bullets(items)
        yield Paragraph(
            [
                "Such an answer says nothing about what the model can do. Ask it with ",
                Code("thinking: off"),
                " or ",
                Code("thinking: no_think"),
                " in the registry, or raise ",
                Code("max_tokens"),
                ".",
            ]
        )


def _hard(by_model: dict[Who, PackResult]) -> Iterator[Block]:
    items: list[Line] = [
        [Strong(name_of(who)), f": {', '.join(one.hard_fails)}"] for who, one in by_model.items() if one.hard_fails
    ]
    if items:
        yield Paragraph(["Hard fails (0 % in every answer: what blocks a deployment):"])
        yield Bullets(items)


def _at_fault(by_model: dict[Who, PackResult]) -> Iterator[Block]:
    found = {
        (task.name, check): why
        for one in by_model.values()
        for task in one.tasks.values()
        for check, why in task.broken.items()
    }
    if found:
        yield Advice(
            "Checks that are at fault themselves, outside every score",
            [[Code(f"{task}: {check}"), f" {why}"] for (task, check), why in sorted(found.items())],
        )


def _categories(results: PackResults, pack: str) -> Table:
    by_model = results.results[pack]
    header: list[Line] = [["category"], *([name_of(who)] for who in by_model)]
    rows: list[Sequence[Line]] = []
    for category in results.categories(pack):
        row: list[Line] = [[category or "(none)"]]
        row += [[_glyph(score), " ", said(score)] for score in (one.score(category) for one in by_model.values())]
        rows.append(row)
    return Table("score by category", header, rows, even=True)


def _tasks(by_model: dict[Who, PackResult], *, aqbe: bool) -> Table:
    names = list(dict.fromkeys(name for one in by_model.values() for name in one.tasks))
    header: list[Line] = [["task"], *([name_of(who)] for who in by_model)]
    rows = [[[name], *(_task(one.tasks.get(name), aqbe=aqbe) for one in by_model.values())] for name in names]
    return Table("share of points by task", header, rows, even=True)


def _task(task: TaskResult | None, *, aqbe: bool) -> Line:
    if task is None:
        return ["not run"]
    parts: list[str] = []
    if task.value is not None:
        parts.append(f"{bar(task.value)} {100 * task.value:.0f} %")
        if task.runs > 1:
            parts.append(f"all points {task.complete.text()}")
    parts += [f"{outcome.removeprefix('not_run.')} x{count}" for outcome, count in sorted(task.outside.items())]
    if task.failed:
        parts.append("failed: " + ", ".join(sorted(task.failed)))
    if aqbe and task.aqbe:
        parts.append("AQBE: " + ", ".join(f"{number} %" for number in task.aqbe))
    return ["; ".join(parts)]
