"""The first screen in words: what went wrong, for whom has never seen the project, and what to change. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from checklists.facts.changes import SHOWN_CHANGES, again_with_room, changes
from checklists.facts.clauses import MAX_NAMED, clause, which
from checklists.facts.paired import pair_headline, pair_sentences
from checklists.facts.records import AskedServer, Beside, Change, FaultGroup, GridFacts, RateFacts, Ratio, Verdict
from stacks.serving.registry import title_of

MAIN_OTHERS = 2
PRINTS = "Your harness would print"
"""How the sentence on the rates begins."""
SHOWN_SERVERS = 6

_FAULTS = {
    "config": "The server's configuration is at fault, not the model.",
    "stack": "The serving software is at fault, not the model.",
    "client": "The program that sent the requests is at fault, not the model.",
    "network": "The network, or something between program and server, is at fault, not the model.",
    "model": "This one is the model's own doing.",
    "undetermined": "Who is at fault is open: the record alone does not tell.",
}
_BLAMED = {
    "config": "configuration",
    "stack": "the serving software",
    "client": "the program that asks",
    "network": "the network",
    "model": "the model",
    "undetermined": "undecided",
}
_OWN_LIMIT = (
    "The limit that your program sent (max_tokens) cut the answers: neither the server nor the model is at fault."
)
_DEMO = "Demonstration (`stacktap demo`): one server set up wrongly on purpose, one rightly."
_EXPERIMENTS = {
    "diagnose": "Found by experiment (`stacktap diagnose`): the requests of this run are its own, and rates over them "
    "describe the experiment, not your program.",
    "pair": "Tested with a scripted stand-in model (`stacktap pair`), so this says nothing about your model.",
}
_SOURCE = re.compile(r"([a-z_]+)-(\d[\w.]*)")


def verdict(
    *,
    asked: int,
    service: int,
    unfinished: int,
    offered: int,
    groups: Sequence[FaultGroup],
    rates: RateFacts,
    ran: dict[str, int],
    beside: Sequence[Beside],
    by_server: Sequence[AskedServer] = (),
    grid: GridFacts | None = None,
    diagnose: Mapping[str, str] | None = None,
    offered_ran: Mapping[str, int] | None = None,
    replayed: Mapping[str, int] | None = None,
    demo: bool = False,
    command: str = "",
) -> Verdict:
    """The verdict on a run. `groups` in the order of their frequency; `diagnose` is the command that examines a server,
    by its name; `offered_ran` counts in which requests with tools the model ran, `replayed` answers out of a recording
    by its name; `demo` is true for the run of `stacktap demo`, `command` the run's own."""
    if not asked and grid is not None and grid.episodes:
        return _episodes_alone(grid)
    if not asked:
        return _nothing(service, unfinished, beside)
    notes = [*([_DEMO] if demo else []), *_of_replay(replayed or {}, asked)]
    paired = any(one.by == "pair" for one in beside)
    with_tools = offered_ran or {}
    counted = [
        *_of_grid(grid),
        *(_of_tools(offered, with_tools, rates) if rates.without_tools else _of_model(asked, ran)),
        *_of_rates(offered, rates, "test model" if paired or demo else "model"),
    ]
    refused = with_tools.get("no", 0)
    if not groups:
        headline = f"All is well: {_answered(asked)} and no call was lost on the way."
        return _with_beside(Verdict("clean", headline, (*notes, *counted)), beside)
    headline, others = _told(groups, asked, by_server)
    found = Verdict(
        kind="open" if all(group.at_fault == "undetermined" for group in groups) else "faults",
        headline=headline,
        sentences=(*notes, _blame(groups, by_server), *counted, *others),
        changes=tuple(changes(groups, diagnose or {}, several=len(by_server) > 1)),
    )
    return _with_beside(found, beside, groups, (offered, refused), command)


# ---------------------------------------------------------------------- what went wrong, and whose doing it is
def _told(groups: Sequence[FaultGroup], asked: int, by_server: Sequence[AskedServer]) -> tuple[str, list[str]]:
    """The headline, and what else is to be said of what went wrong."""
    wrong = _set_up_wrongly(groups)
    if len(wrong) > 1:
        return _several_wrong(groups, wrong, asked, by_server)
    kinds = _kinds(groups)
    said = [clause(name, whose, *which(counts, asked, by_server)) for (name, whose), counts in kinds[: 1 + MAIN_OTHERS]]
    return f"{said[0]}.", [*_also(said[1:]), *_more(len(kinds) - 1 - MAIN_OTHERS)]


def _set_up_wrongly(groups: Sequence[FaultGroup]) -> dict[str, int]:
    """Servers whose configuration failed requests, with counts; a limit that the program sent is no fault of theirs."""
    found: Counter[str] = Counter()
    for group in groups:
        if group.at_fault == "config" and not group.limits:
            found.update(group.upstreams)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _several_wrong(
    groups: Sequence[FaultGroup], wrong: Mapping[str, int], asked: int, by_server: Sequence[AskedServer]
) -> tuple[str, list[str]]:
    """A line for each server that is set up wrongly, then what else there is."""
    total = {one.name: one.asked for one in by_server}
    headline = (
        f"{len(wrong)} of {len(by_server)} servers are set up wrongly; {sum(wrong.values())} of {asked} requests "
        "failed because of it."
    )
    lines = []
    for name in list(wrong)[:SHOWN_SERVERS]:
        own = [group for group in groups if group.at_fault == "config" and not group.limits and name in group.upstreams]
        said = [
            _lower(clause(outcome, whose, counts[name], max(total.get(name, 0), counts[name])))
            for (outcome, whose), counts in _kinds(own)[:3]
        ]
        lines.append(f"Server `{name}`: {'; '.join(said)}.")
    if len(wrong) > SHOWN_SERVERS:
        lines.append(f"{len(wrong) - SHOWN_SERVERS} more such servers are listed below.")
    rest = _kinds([group for group in groups if group.at_fault != "config" or group.limits])
    also = [clause(name, whose, *which(counts, asked, by_server)) for (name, whose), counts in rest[:MAIN_OTHERS]]
    return headline, [*lines, *_also(also), *_more(len(rest) - MAIN_OTHERS)]


def _also(said: Sequence[str]) -> list[str]:
    return [f"Also: {_lower(one)}." for one in said]


def _more(kinds: int) -> list[str]:
    if kinds < 1:
        return []
    return [
        "1 more kind of fault is listed below." if kinds == 1 else f"{kinds} more kinds of faults are listed below."
    ]


def _kinds(groups: Sequence[FaultGroup]) -> list[tuple[tuple[str, str], Counter[str]]]:
    """Outcome and whose fault, with counts by server; frequent ones first."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for group in groups:
        counts.setdefault((group.outcome, group.at_fault), Counter()).update(group.upstreams)
    return sorted(counts.items(), key=lambda item: -item[1].total())


def _blame(groups: Sequence[FaultGroup], by_server: Sequence[AskedServer]) -> str:
    """Whose doing the faults are, and which servers did all as they should."""
    counts: Counter[str] = Counter()
    for group in groups:
        counts[group.at_fault] += group.count
    limited = sum(group.count for group in groups if group.limits and group.at_fault == "config")
    (fault, most), *rest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if not rest:
        said = _OWN_LIMIT if limited == most else _FAULTS.get(fault, "")
    else:
        own = f", {limited} of them by the limit that your program sent" if fault == "config" and limited else ""
        named = "".join(f"; {_BLAMED.get(name, name)} {count}" for name, count in rest)
        said = f"Mostly {_BLAMED.get(fault, fault)} ({most} of {counts.total()} failures{own}){named}."
    well = [one for one in by_server if one.good == one.asked]
    if len(by_server) < 2 or not well:
        return said
    named = ", ".join(f"`{one.name}` ({one.good} of {one.asked})" for one in well[:MAX_NAMED])
    more = f" and {len(well) - MAX_NAMED} more" if len(well) > MAX_NAMED else ""
    return f"{said} All went well on server{'s' if len(well) > 1 else ''} {named}{more}."


# ---------------------------------------------------------------------- runs without a request, and experiments
def _episodes_alone(grid: GridFacts) -> Verdict:
    """A run of a grid whose traffic was not kept with it."""
    said = f"{grid.succeeded} of {grid.episodes} episodes reached their goal."
    sentences = ("The traffic of these episodes is not here: whose fault a failed turn was stands in the cells alone.",)
    return Verdict("clean" if grid.succeeded == grid.episodes else "open", said, sentences)


def _nothing(service: int, unfinished: int, beside: Sequence[Beside]) -> Verdict:
    if unfinished:
        said = f"No request was answered yet: {unfinished} were still open when the record was read."
    elif service:
        said = f"No request asked a model for anything: all {service} were model lists, health checks and the like."
    else:
        said = "Nothing was recorded: no request came through stacktap."
    sentences = ("Nothing can be said about the model or the server from this run: no rate exists.",)
    change = Change(
        change="point the program's base URL at the address that stacktap prints (`stacktap wrap -- PROGRAM` does so "
        "by itself), and have it ask the model something",
        count=0,
        outcome="",
        why="there is nothing to judge",
    )
    return _with_beside(Verdict("nothing", said, sentences, () if unfinished else (change,)), beside)


def _with_beside(
    found: Verdict,
    beside: Sequence[Beside],
    groups: Sequence[FaultGroup] = (),
    refused: tuple[int, int] = (0, 0),
    command: str = "",
) -> Verdict:
    """An experiment's verdict comes before what the record shows by itself."""
    better = next((one for one in beside if one.headline), None)
    if better is None:
        return found
    own = better.by == "diagnose"
    advised = [] if own or better.kind == "clean" else list(found.changes)
    if better.remedy or better.decide_by:
        words = better.remedy or better.decide_by
        again = again_with_room(words, command) if better.by == "pair" else ""
        if again:
            words += f". Here stacktap started it, and was told so: repeat with `{again}`"
        same = sum(group.count for group in groups if group.outcome == better.outcome)
        first = Change(words, same, better.outcome, better.meaning, decides=not better.remedy)
        advised = [first, *(each for each in advised if each.outcome not in (better.outcome, ""))]
    explained = better.explained if own else pair_sentences(better)
    return Verdict(
        kind=better.kind,
        headline=pair_headline(better, *refused),
        sentences=(
            *(_sentence(said, better.agent) for said in explained),
            _EXPERIMENTS.get(better.by, ""),
            *(() if own else found.sentences),
        ),
        changes=tuple(advised[:SHOWN_CHANGES]),
    )


# ---------------------------------------------------------------------- numbers
def _of_grid(grid: GridFacts | None) -> list[str]:
    if grid is None or not grid.episodes:
        return []
    return [f"{grid.succeeded} of {grid.episodes} episodes reached their goal."]


def _of_replay(replayed: Mapping[str, int], asked: int) -> list[str]:
    """That no server was there: its answers came out of a recording."""
    if not replayed:
        return []
    count, known = sum(replayed.values()), {}
    for name in replayed:
        match = _SOURCE.match(name)
        known[f"{title_of(match[1])} {match[2]}" if match else "another server"] = title_of(match[1]) if match else ""
    named = " and ".join(sorted(known))
    alive = f"no live {next(iter(known.values()))}" if len(known) == 1 and any(known.values()) else "no live server"
    if count < asked:
        return [f"{count} answers were replayed from a recording of {named}: {alive} was asked for these."]
    return [f"Answers replayed from a recording of {named}; {alive} was asked."]


def _of_model(asked: int, ran: Mapping[str, int]) -> list[str]:
    never, unknown = ran.get("no", 0), ran.get("unknown", 0)
    if never == asked:
        whole = "for the only request" if asked == 1 else f"in any of the {asked} requests"
        return [f"The model did not run {whole}: its success rate is undefined, not 0 %."]
    if unknown == asked:
        return [f"It is not known whether the model ran in any of the {asked} requests."]
    few = "1 request" if unknown == 1 else f"{unknown} requests"
    return [f"For {few} it is not known whether the model ran."] if unknown else []


def _of_tools(offered: int, ran: Mapping[str, int], rates: RateFacts) -> list[str]:
    """Of a run in which some requests offered tools and others did not."""
    never, left = ran.get("no", 0), rates.without_tools
    said = []
    if never == offered:
        whole = "the only request" if offered == 1 else f"any of the {offered} requests"
        said.append(f"The model did not run for {whole} with tools: its success rate is undefined, not 0 %.")
    elif never:
        said.append(f"Of {offered} requests with tools, {never} ended before the model ran.")
    others = "1 other request is" if left == 1 else f"{left} other requests are"
    return [*said, f"{others} left out of the rates: no tools were offered (as for a title of the session)."]


def _of_rates(offered: int, rates: RateFacts, model: str) -> list[str]:
    if not offered:
        return ["No request offered the model a tool, so that a tool-call rate says nothing here."]
    naive, real, own = rates.naive, rates.fidelity, rates.cleared_open
    printed = f"{PRINTS} {percent(naive)} ({of(naive)})"
    if real.value is None:
        return [f"{printed}; the true rate is undefined, because no answer of the model reached the program."]
    if own.value is not None and own.value > real.value:
        out = rates.cleared.trials - own.trials
        aside = f", leaving out {_answers(out)} fine as text or cut by a limit" if out else ""
        return [f"{printed}; the {model} wrote valid calls in {percent(own)} ({of(own)}){aside}."]
    if real.value != naive.value:
        return [f"{printed}; of the answers that arrived, {percent(real)} ({of(real)}) are valid calls."]
    return [f"{printed}, and so it is."]


def _answered(asked: int) -> str:
    return "the only request was answered" if asked == 1 else f"{asked} of {asked} requests were answered"


def _sentence(said: str, name: str = "") -> str:
    """With a capital, unless it begins with that name, and a full stop."""
    text = said.strip()
    if not text:
        return text
    begun = text if name and text.startswith(name) else text[0].upper() + text[1:]
    return begun + ("" if text[-1] in ".!?" else ".")


def _answers(count: int) -> str:
    return "1 answer that was" if count == 1 else f"{count} answers that were"


def _lower(said: str) -> str:
    return said[0].lower() + said[1:]


def percent(ratio: Ratio) -> str:
    """`62.5 %`, or the word for an undefined rate."""
    return ratio.undefined or "n/r" if ratio.value is None else f"{100 * ratio.value:.1f} %"


def of(ratio: Ratio) -> str:
    """`5 of 8`."""
    return f"{ratio.hits} of {ratio.trials}"
