"""From facts to one document, in the order that a reader needs. Pure: the document is a function of the facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from checklists.facts.records import Report, RunFacts
from checklists.report import parts, words
from checklists.report.blocks import Block, Bullets, Code, Document, Line, Paragraph, Section, Table, Term, spoken
from checklists.report.checklist_part import checklist
from checklists.report.glossary import FAULT_WORDS
from checklists.report.opening import SHOWN_FACTS, TONES, opening
from checklists.report.tables import cells
from stacks.serving.registry import title_of

MAX_EVEN = 5
UNKNOWN = "not known"
PARTS: tuple[Callable[[RunFacts, str], Section], ...] = (
    parts.rates,
    parts.fault,
    parts.way,
    checklist,
    cells,
    parts.faults,
    parts.figures,
    parts.questions,
)
"""After the verdict, in this order."""
_LONGEST_BRIEF = 80


def document(report: Report) -> Document:
    """The document of a report on one run, or on several side by side."""
    return _one(report) if len(report.runs) == 1 else _several(report)


def _one(report: Report) -> Document:
    run = report.runs[0]
    sections = [part(run, "") for part in PARTS]
    return Document(
        kicker=_kicker(run),
        title=run.verdict.headline,
        tone=TONES.get(run.verdict.kind, ""),
        opening=[*_damage(run), *opening(run)],
        sections=sections,
        footer=_footer(report),
    )


def _kicker(run: RunFacts) -> str:
    when = words.moment(run.created_us)
    servers = ", ".join(_server(run)) or "server not identified"
    return " · ".join(each for each in (f"Run {_brief(run.run)}", when, _brief(servers)) if each)


def _brief(text: str) -> str:
    """As much as leaves the verdict on the first screen, whatever a manifest says; the whole stands further below."""
    return text if len(text) <= _LONGEST_BRIEF else text[:_LONGEST_BRIEF] + "…"


def _server(run: RunFacts) -> list[str]:
    """Stack and version of each server, each once."""
    found = []
    for server in run.servers:
        if _known(server.facts, "stack"):
            stack = words.fact(server.facts["stack"])
            told = _known(server.facts, "version")
            version = f" {words.version(stack, words.fact(server.facts['version']))}" if told else ""
            found.append(title_of(stack) + version)
    return list(dict.fromkeys(found))[:4]


def _known(facts: object, name: str) -> bool:
    return isinstance(facts, dict) and name in facts and facts[name].unknown is None


def _damage(run: RunFacts) -> list[Block]:
    said = parts.damage(run)
    return [Bullets([["Mind: ", *line] for line in said])] if said else []


def _footer(report: Report) -> list[Line]:
    return [
        [
            f"Made by stacktap {report.stacktap} from the recording alone; the same recording and version give the "
            "same bytes. Every number here is in report.json."
        ]
    ]


def _several(report: Report) -> Document:
    names = [f"run {number}" for number in range(1, len(report.runs) + 1)]
    sections = [_side_by_side(report, names)]
    for number, (name, run) in enumerate(zip(names, report.runs, strict=True), 1):
        prefix = f"r{number}-"
        inside: list[Block | Section] = [
            Paragraph(spoken(run.verdict.headline), lead=True),
            *_damage(run),
            *opening(run),
        ]
        inside += [part(run, prefix) for part in PARTS]
        sections.append(Section(f"run-{number}", [f"{name[0].upper()}{name[1:]}: {run.run}"], inside))
    faulty = sum(run.verdict.kind in ("faults", "open") for run in report.runs)
    return Document(
        kicker=f"{len(report.runs)} runs side by side",
        title=f"{faulty} of {len(report.runs)} runs show faults."
        if faulty
        else f"All {len(report.runs)} runs went well.",
        tone="bad" if faulty else "good",
        opening=[
            Bullets(
                [
                    [f"Run {number}, ", Code(run.run), ": ", *spoken(run.verdict.headline)]
                    for number, run in enumerate(report.runs, 1)
                ]
            )
        ],
        sections=sections,
        footer=_footer(report),
    )


def _side_by_side(report: Report, names: Sequence[str]) -> Section:
    rows: list[tuple[Line, list[Line]]] = [
        (["requests"], [[str(run.asked)] for run in report.runs]),
        ([Term("model ran", "the model ran in")], [[str(run.model_ran.get("yes", 0))] for run in report.runs]),
        (["worked"], [[str(run.good)] for run in report.runs]),
        ([Term("fidelity", words.rate_name("fidelity"))], [_rate(run, "fidelity") for run in report.runs]),
        ([Term("naive rate", words.rate_name("naive rate"))], [_rate(run, "naive") for run in report.runs]),
        ([Term("cleared rate", words.rate_name("cleared rate"))], [_rate(run, "cleared") for run in report.runs]),
        ([Term("at fault")], [[_faults(run)] for run in report.runs]),
        (["commonest fault"], [_commonest(run) for run in report.runs]),
        (
            ["what to change"],
            [spoken(run.verdict.changes[0].change) if run.verdict.changes else ["nothing"] for run in report.runs],
        ),
    ]
    for name, shown in SHOWN_FACTS.items():
        said: list[Line] = [[_fact(run, name)] for run in report.runs]
        if any(line != [UNKNOWN] for line in said):
            differs = len({str(line) for line in said}) > 1
            rows.append(([shown + (" (differs)" if differs else "")], said))
    header: list[Line] = [["what"], *([name] for name in names)]
    table = Table(
        "Runs side by side", header, [(label, *values) for label, values in rows], even=len(names) <= MAX_EVEN
    )
    note = (
        "Runs that differ in more than one row of their set-up cannot say which of these made the difference in what "
        "came of them."
    )
    return Section("side-by-side", ["Side by side"], [table, Paragraph([note])])


def _rate(run: RunFacts, name: str) -> Line:
    if not run.offered:
        return ["no tools offered"]
    ratio = getattr(run.rates, name)
    ends = words.ends(ratio)
    if ratio.value is None:
        return [Term(ratio.undefined)] if ratio.undefined in ("rej", "n/r") else [ratio.undefined]
    return [f"{words.percent(ratio.value)}{f' [{ends}]' if ends else ''} ({ratio.hits}/{ratio.trials})"]


def _faults(run: RunFacts) -> str:
    return ", ".join(f"{FAULT_WORDS[name]} {count}" for name, count in run.at_fault.items()) or "nobody"


def _commonest(run: RunFacts) -> Line:
    return [Term(run.groups[0].outcome), f": {run.groups[0].meaning}"] if run.groups else ["none"]


def _fact(run: RunFacts, name: str) -> str:
    found = [words.fact(server.facts[name]) for server in run.servers if _known(server.facts, name)]
    if name == "stack":
        found = [title_of(each) for each in found]
    return "; ".join(dict.fromkeys(found)) or UNKNOWN
