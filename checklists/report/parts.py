"""The parts of a report after its first screen: rates, fault, way, kinds of faults, figures, open questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checklists.facts.records import Counted, FaultGroup, Ratio, RunFacts, TimingFacts
from checklists.pictures.fault_bar import ORDER, fault_bar
from checklists.pictures.interval import interval
from checklists.pictures.request_path import request_path
from checklists.report import words
from checklists.report.blocks import (
    Block,
    Bytes,
    Code,
    Fault,
    Figure,
    Fold,
    Glyph,
    Inline,
    Line,
    Pairs,
    Paragraph,
    Section,
    Strong,
    Table,
    Term,
    spoken,
)
from checklists.report.glossary import FAULT_WORDS
from stacks.serving.registry import title_of

FAULT_TERMS = {
    "config": "configuration",
    "stack": "serving software",
    "client": "client program",
    "undetermined": "undecided",
}


def nothing(run: RunFacts) -> str:
    """Why there is nothing to show of exchanges."""
    if run.grid is not None and run.grid.episodes and not run.exchanges:
        return "The traffic of these episodes is not kept with them."
    return "No request asked a model for anything."


def rates(run: RunFacts, prefix: str) -> Section:
    """Real against naive."""
    title = "What your harness would have printed, and what is true"
    if not run.asked or not run.offered:
        said = "No request offered the model a tool: there is no tool-call rate, real or naive."
        said = said if run.asked else f"{nothing(run)} There is no rate over requests."
        return Section(f"{prefix}rates", [title], [Paragraph([said])])
    found = run.rates
    lead: list[Inline] = ["Your harness would print ", Strong(words.rate(found.naive)), "; "]
    own = found.cleared_open
    if found.fidelity.value is None:
        lead += ["the true rate is ", Term("undefined"), ", because no answer of the model reached the program."]
    elif own.value is not None and own.value > found.fidelity.value:
        lead += [
            f"{words.writer(run)} wrote valid calls in ",
            Strong(words.rate(own)),
            f" ({own.hits} of {own.trials}).",
        ]
    else:
        lead += ["of the answers that arrived, ", Strong(words.rate(found.fidelity)), " are valid calls."]
    asked = "all requests with tools" if found.without_tools else "all requests"
    rows = [
        _rate_row("naive rate", found.naive, f"{asked}, whatever became of them", run),
        _rate_row("fidelity", found.fidelity, "answers in which output of the model arrived", run),
        _rate_row("fidelity, open", found.fidelity_open, "the same without answers that were fine as text", run),
        _rate_row("cleared rate", found.cleared, "answers whose text is known, also where the server lost them", run),
        _rate_row("cleared, open", own, "the same without answers that were fine as text or cut by a limit", run),
    ]
    blocks: list[Block] = [
        *_whose_rates(run),
        Paragraph(lead, lead=True),
        Table(
            "Valid tool calls, by what they are divided by",
            (["rate"], ["0 to 100 %"], ["value"], [Term("95 % interval")], ["valid / all"], ["divided by"]),
            rows,
            frozenset({2, 3, 4}),
        ),
    ]
    if found.outside:
        blocks.append(Paragraph([f"No answer of the model arrived, by layer: {words.counts(found.outside)}."]))
    if found.without_tools:
        said = f"{words.plural(found.without_tools, 'request')} offered no tools and count in no rate."
        blocks.append(Paragraph([said]))
    return Section(f"{prefix}rates", [title], blocks)


def _whose_rates(run: RunFacts) -> list[Block]:
    if not any(one.by == "diagnose" for one in run.beside):
        return []
    return [Paragraph(["The requests of this run are experiments of stacktap's own: these rates describe them alone."])]


def _rate_row(name: str, ratio: Ratio, over: str, run: RunFacts) -> Sequence[Line]:
    # A rate that the model has no part in says nothing that an interval could bound.
    ends = words.ends(ratio) if run.rates.fidelity.value is not None else ""
    text = f"{name}: {words.rate(ratio)}" + (f", interval {ends} %" if ends else "")
    value: Line = (
        [Term(ratio.undefined or "n/r")] if ratio.value is None and ratio.undefined != "none" else [words.rate(ratio)]
    )
    return (
        [Term(name, words.rate_name(name, run))],
        [Glyph(interval(ratio.value, ratio.low if ends else None, ratio.high if ends else None, text))],
        value,
        [ends],
        [f"{ratio.hits} / {ratio.trials}"],
        [over],
    )


def fault(run: RunFacts, prefix: str) -> Section:
    """Who is at fault, as a picture."""
    if not run.asked:
        return Section(f"{prefix}fault", ["Who is at fault"], [Paragraph([nothing(run)])])
    all_counts = {"ok": run.good, **run.at_fault}
    names = {"ok": "worked", **{key: FAULT_WORDS[key] for key in run.at_fault}}
    picture, text = fault_bar(all_counts, names, f"{prefix}bar")
    rows: list[Sequence[Line]] = []
    for key in ORDER:
        if all_counts.get(key):
            share = words.percent(all_counts[key] / run.asked)
            rows.append(([Fault(key)], [f"{all_counts[key]}"], [share], [_examples(run, key)]))
    table = Table(
        "Requests by whose fault it was", (["at fault"], ["requests"], ["share"], ["mostly"]), rows, frozenset({1, 2})
    )
    return Section(f"{prefix}fault", ["Who is at fault"], [Figure(picture, text), table])


def _examples(run: RunFacts, fault_word: str) -> str:
    if fault_word == "ok":
        return "the answer came as it should"
    meanings = [group.meaning for group in run.groups if group.at_fault == fault_word]
    return "; ".join(list(dict.fromkeys(meanings))[:2])


def way(run: RunFacts, prefix: str) -> Section:
    """The path of a request, with where exchanges stopped."""
    title = "Where requests stopped on their way"
    if not run.asked:
        return Section(f"{prefix}way", [title], [Paragraph([nothing(run)])])
    picture, text = request_path(run.path, run.good, f"{prefix}path")
    rows: list[Sequence[Line]] = []
    for station in run.path:
        stops: list[Inline] = []
        for name, count in station.stops.items():
            stops += [", " if stops else "", Term(name), f" {count}"]
        rows.append(([Term(station.title)], [str(station.entered)], [str(station.stopped)], stops or ["—"]))
    table = Table(
        "The way of a request, station by station",
        (["station"], ["came in"], ["stopped"], ["why"]),
        rows,
        frozenset({1, 2}),
    )
    return Section(f"{prefix}way", [title], [Figure(picture, text, [table])])


def faults(run: RunFacts, prefix: str) -> Section:
    """Each kind of fault with one exchange, its bytes, and what to change."""
    title = "What went wrong, kind by kind"
    if not run.groups:
        blocks: list[Block | Section] = [
            Paragraph(["Nothing went wrong that the record shows." if run.asked else nothing(run)])
        ]
    else:
        blocks = [_group(group, run, f"{prefix}fault-{number}") for number, group in enumerate(run.groups, 1)]
    if run.groups_left_out:
        blocks.append(Paragraph([f"{words.plural(run.groups_left_out, 'rarer kind')} of faults are not shown."]))
    if run.flags:
        blocks.append(
            Fold(
                [Term("anomaly", "Oddities"), " that stopped nothing"],
                [
                    Table(
                        "Oddities",
                        (["what"], ["requests"], ["first in"], ["meaning"]),
                        [_counted(one) for one in run.flags],
                        frozenset({1}),
                    )
                ],
            )
        )
    return Section(f"{prefix}faults", [title], blocks)


def _counted(one: Counted) -> Sequence[Line]:
    where = f"{one.recording}/{one.first_attempt}" if one.recording else str(one.first_attempt)
    return ([Term(one.name)], [str(one.count)], [f"exchange {where}"], [one.meaning])


def _group(group: FaultGroup, run: RunFacts, anchor: str) -> Section:
    blocks: list[Block] = []
    change: list[Inline] = []
    if group.remedy and group.at_fault != "undetermined":
        change = [Strong("Change: "), *spoken(group.remedy)]
    elif group.decide_by:
        change = [Strong("This would decide it: "), *spoken(group.decide_by.partition(": ")[2] or group.decide_by)]
    elif group.remedy:
        change = [Strong("Change: "), *spoken(group.remedy)]
    if change:
        blocks.append(Paragraph(change))
    blocks.append(Pairs(_group_facts(group, run)))
    example = group.exemplar
    asked: list[Inline] = [
        "Exchange ",
        Strong(_exchange(example.recording, example.attempt)),
        ": ",
        Code(example.asked),
    ]
    asked.append(f", status {example.status}" if example.status is not None else ", no status came")
    if example.detail:
        asked += [". ", *spoken(example.detail)]
    blocks.append(Paragraph(asked))
    blocks += [Bytes(shown) for shown in example.evidence]
    title: Line = [f"{group.count} × {group.meaning}" if group.meaning else f"{group.count} × {group.outcome}"]
    return Section(anchor, title, blocks)


def _exchange(recording: str, attempt: int) -> str:
    return f"{recording}/{attempt}" if recording else str(attempt)


def _group_facts(group: FaultGroup, run: RunFacts) -> list[tuple[Line, Line]]:
    ran = {"yes": "yes", "no": "no, never", "unknown": "not known"}[group.model_ran]
    pairs: list[tuple[Line, Line]] = [
        ([Term("outcome")], [Term(group.outcome)]),
        ([Term("at fault")], [Fault(group.at_fault)]),
        ([Term("model ran")], [ran]),
        ([Term("evidence")], [Term(group.grade), f", confidence {group.confidence}"]),
    ]
    if group.stack:
        pairs.append((["server"], [title_of(group.stack)]))
    if len(run.servers) > 1:
        pairs.append(([Term("upstream")], [Code(", ".join(group.upstreams))]))
    if group.signature:
        pairs.append(([Term("signature")], [Code(group.signature)]))
    more = f" and {group.count - len(group.attempts)} more" if group.count > len(group.attempts) else ""
    pairs.append((["exchanges"], [", ".join(group.attempts) + more]))
    return pairs


def figures(run: RunFacts, prefix: str) -> Section:
    """Latency and tokens."""
    rows = [row for one in run.timings for row in _timing_rows(one)]
    title = "Times and tokens"
    if not rows:
        return Section(
            f"{prefix}figures", [title], [Paragraph(["No answer came whose time or tokens could be counted."])]
        )
    header: list[Line] = [["server"], ["what"], ["n"], ["lowest"], [Term("p50")], ["p90"], ["p99"], ["highest"]]
    note = (
        "Times count from the first byte of the request, through the recording relay; tokens are those that the "
        "server reported. Values are rounded to three digits."
    )
    return Section(
        f"{prefix}figures",
        [title],
        [Table("Times and tokens by server", header, rows, frozenset(range(2, 8))), Paragraph([note])],
    )


def _timing_rows(one: TimingFacts) -> Iterator[Sequence[Line]]:
    for term, spread, is_time in (
        ("first byte", one.first_byte, True),
        ("first token", one.first_token, True),
        ("whole answer", one.duration, True),
        ("tokens read", one.prompt_tokens, False),
        ("tokens written", one.completion_tokens, False),
    ):
        if spread is not None:
            name: Line = (
                [Term(term)] if is_time and term != "whole answer" else [Term("token", term)] if not is_time else [term]
            )
            yield ([Code(one.upstream)], name, *([value] for value in words.spread(spread, time_us=is_time)))


def questions(run: RunFacts, prefix: str) -> Section:
    """What could not be known, and what would tell."""
    title = "What could not be known, and what would tell"
    if not run.unknown:
        return Section(f"{prefix}unknown", [title], [Paragraph(["Nothing was left open."])])
    rows = [(spoken(one.what), spoken(one.why), spoken(one.tell)) for one in run.unknown]
    table = Table("Open questions", (["not known"], ["why"], ["what would tell"]), rows)
    return Section(f"{prefix}unknown", [title], [table])


def damage(run: RunFacts) -> list[Line]:
    """What is missing from the record, one line each."""
    said: list[Line] = []
    for one in run.recordings:
        which = f"recording {one.name}: " if one.name else ""
        said += [[f"{which}{problem}"] for problem in one.problems]
        if one.open_attempts:
            said.append([f"{which}{words.plural(one.open_attempts, 'request')} had not ended when the record was read"])
        if one.manifest_problem:
            said.append([f"{which}{one.manifest_problem}"])
    return said
