"""One pass over a run: every exchange is judged once and counted; nothing is kept but counts and a few exemplars."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

import msgspec

from checklists.facts.beside import beside
from checklists.facts.better import BetterVerdicts
from checklists.facts.cells import CellTable
from checklists.facts.grids import grid_facts
from checklists.facts.groups import GroupCounter
from checklists.facts.rating import rate_facts
from checklists.facts.records import (
    REPORT_SCHEMA,
    AskedServer,
    Beside,
    Counted,
    FaultGroup,
    RecordingFacts,
    Report,
    RunFacts,
    ServerFacts,
)
from checklists.facts.stations import PathCounter, in_order, meaning_of
from checklists.facts.timing import TimingTable
from checklists.facts.unknown import open_questions
from checklists.facts.verdicts import verdict
from checklists.items.collect import ChecklistCollector
from checklists.items.material import OF_MODEL, Server, own_servers
from checklists.reading import RunSource, Seen
from proxy.replay.ollama import REPLAYED
from results.manifest import Fact, Manifest, UpstreamFacts, known, unknown
from results.outcomes import Judged, Outcome
from results.rates import RateCounter
from results.taxonomy import FAULTS, RAN
from results.version import VERSION

MAX_SERVERS = 100
MAX_SOURCES, LONGEST_SOURCE = 8, 100
_PLAIN = re.compile(r"[A-Za-z0-9 :/._\[\]%-]{1,300}")


def gather(folders: Sequence[Path], stated: Mapping[str, str] | None = None) -> Report:
    """The report on runs. `stated` is what the user said of checklist items.

    Raises JournalMissingError or NewerSchemaError where a journal cannot be read at all.
    """
    return Report(REPORT_SCHEMA, VERSION, tuple(run_facts(folder, stated or {}) for folder in folders))


class _Tally:
    """What is counted of every exchange."""

    def __init__(self, source: RunSource) -> None:
        self.exchanges = self.service = self.offered = self.good = 0
        self.offered_good = 0
        self.ran: Counter[str] = Counter()
        self.offered_ran: Counter[str] = Counter()
        self.replayed: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.flags: Counter[str] = Counter()
        self.first: dict[tuple[str, str], tuple[int, str]] = {}
        self.per_recording: Counter[str] = Counter()
        self.asked_of: Counter[str] = Counter()
        self.good_of: Counter[str] = Counter()
        self.rates, self.path, self.groups = RateCounter(), PathCounter(), GroupCounter()
        self.cells, self.timings = CellTable(), TimingTable()
        self._better = {one.name: BetterVerdicts(one.folder) for one in source.recordings}

    def add(self, seen: Seen) -> Judged:
        """Count one exchange, with the best founded verdict there is, which is given back."""
        judged = self._better[seen.recording].of(seen.judged)
        outcome = judged.outcome
        self.exchanges += 1
        self.per_recording[seen.recording] += 1
        self._name(self.outcomes, "outcome", outcome.name, seen, judged)
        for flag in outcome.flags:
            self._name(self.flags, "flag", flag, seen, judged)
        if judged.aside or seen.judged.lookup or _looks_around(seen):
            self.service += 1
            return judged
        self.offered += seen.classified.facts.offers
        if judged.tools is None and seen.judged.tools is not None:
            judged = msgspec.structs.replace(judged, tools=seen.judged.tools)
        self.good += outcome.layer == "ok"
        self._of_answer(seen, outcome)
        self._of_server(seen.exchange.upstream, outcome.layer == "ok")
        self.ran[outcome.model_ran] += 1
        if outcome.layer != "ok":
            self.faults[outcome.at_fault] += 1
        self.rates.add(outcome, tools=judged.tools)
        self.path.add(outcome.layer, outcome.name, outcome.at_fault)
        self.groups.add(seen, judged)
        self.cells.add(seen, judged)
        self.timings.add(seen, judged)
        return judged

    def _name(self, counts: Counter[str], kind: str, name: str, seen: Seen, judged: Judged) -> None:
        counts[name] += 1
        self.first.setdefault((kind, name), (judged.attempt, seen.recording))

    def _of_answer(self, seen: Seen, outcome: Outcome) -> None:
        if seen.classified.facts.offers:
            self.offered_good += outcome.layer == "ok"
            self.offered_ran[outcome.model_ran] += 1
        response = seen.exchange.response
        source = response.header(REPLAYED).partition("/")[0][:LONGEST_SOURCE] if response is not None else ""
        if source and (source in self.replayed or len(self.replayed) < MAX_SOURCES):
            self.replayed[source] += 1

    def _of_server(self, name: str, good: bool) -> None:
        if name in self.asked_of or len(self.asked_of) < MAX_SERVERS:
            self.asked_of[name] += 1
            self.good_of[name] += good

    def by_server(self) -> tuple[AskedServer, ...]:
        """The servers that were asked, by name."""
        return tuple(AskedServer(name, count, self.good_of[name]) for name, count in sorted(self.asked_of.items()))

    def counted(self, counts: Counter[str], kind: str) -> tuple[Counted, ...]:
        """Outcomes or flags in the order of a request's way."""
        return tuple(
            Counted(name, counts[name], meaning_of(name), *self.first[kind, name]) for name in in_order(counts)
        )


def _looks_around(seen: Seen) -> bool:
    """Whether a command of stacktap (`diagnose`, `compare`) asked what the server can do, and no model for anything:
    that a server does not have some route is no fault then."""
    return bool(seen.exchange.tag("ask")) and not seen.classified.facts.generates


def run_facts(folder: Path, stated: Mapping[str, str]) -> RunFacts:
    """Everything said of one run."""
    source = RunSource(folder)
    tally, collector = _Tally(source), ChecklistCollector(source)
    for seen in source:
        judged = tally.add(seen)
        collector.add(seen if judged is seen.judged else replace(seen, judged=judged))
    checklist = collector.finish(stated)
    recordings = tuple(
        RecordingFacts(
            name=one.name,
            exchanges=tally.per_recording[one.name],
            open_attempts=one.open_attempts,
            problems=tuple(one.problems.describe()),
            manifest_problem=one.manifest_problem,
        )
        for one in source.recordings
    )
    manifest = next((one.manifest for one in source.recordings if one.manifest is not None), None)
    manifests = [one.manifest for one in source.recordings if one.manifest is not None]
    groups, groups_left_out = tally.groups.groups()
    cells, cells_left_out = tally.cells.cells(offering=tally.rates.offered > 0)
    rates, timings, left = rate_facts(tally.rates.rates()), tally.timings.timings(), beside(folder)
    groups = tuple(_as_found(group, left) for group in groups)
    asked, servers = tally.exchanges - tally.service, _servers(manifests, tally.cells.models())
    grid = grid_facts(folder) if source.has_episodes else None
    own = manifest is not None and own_servers(manifest.command)
    ran = {word: tally.ran[word] for word in RAN if tally.ran[word]}
    return RunFacts(
        run=checklist.run or folder.name,
        kind="grid" if source.has_episodes else "recording",
        created_us=manifest.created_us if manifest is not None else None,
        command=_command(manifest),
        stacktap=manifest.stacktap if manifest is not None else "",
        facts=dict(sorted(manifest.facts.items())) if manifest is not None else {},
        host=dict(sorted(manifest.host.items())) if manifest is not None else {},
        servers=servers,
        recordings=recordings,
        exchanges=tally.exchanges,
        asked=asked,
        service=tally.service,
        offered=tally.offered,
        good=tally.good,
        by_server=tally.by_server(),
        verdict=verdict(
            asked=asked,
            service=tally.service,
            unfinished=sum(one.open_attempts for one in recordings),
            offered=tally.offered,
            groups=groups,
            rates=rates,
            ran=ran,
            beside=left,
            by_server=tally.by_server(),
            grid=grid,
            offered_ran=tally.offered_ran,
            replayed=tally.replayed,
            demo=manifest is not None and _is(manifest, "stacktap demo"),
            command=_offered(_command(manifest)),
            diagnose={} if own else _diagnose_commands(servers, checklist.run or folder.name),
        ),
        beside=left,
        rates=rates,
        model_ran=ran,
        at_fault={fault: tally.faults[fault] for fault in FAULTS if tally.faults[fault]},
        path=tally.path.stations(),
        outcomes=tally.counted(tally.outcomes, "outcome"),
        flags=tally.counted(tally.flags, "flag"),
        groups=groups,
        groups_left_out=groups_left_out,
        cells=cells,
        cells_left_out=cells_left_out,
        grid=grid,
        timings=timings,
        checklist=checklist,
        offered_good=tally.offered_good,
        offered_ran={word: tally.offered_ran[word] for word in RAN if tally.offered_ran[word]},
        replayed=dict(sorted(tally.replayed.items())),
        unknown=open_questions(groups, recordings, timings, checklist),
    )


def _command(manifest: Manifest | None) -> str:
    """The command line of the run, the program by its name alone: where it is installed says nothing about the run."""
    if manifest is None or not manifest.command:
        return ""
    program, *rest = manifest.command
    name = PurePath(program).name
    return " ".join(["stacktap" if name in ("__main__.py", "stacktap") else name, *rest])


def _offered(command: str) -> str:
    """A command that may be offered to a shell; "" for what is no plain one (a manifest is untrusted)."""
    return command if _PLAIN.fullmatch(command) else ""


def _is(manifest: Manifest, agent: str) -> bool:
    found = manifest.fact("agent")
    return found.unknown is None and found.value == agent


def _as_found(group: FaultGroup, left: Sequence[Beside]) -> FaultGroup:
    """With the remedy of the experiment that found the same: it saw more than one exchange, and two pieces of advice
    for one fault are one too many."""
    found = next((one for one in left if one.remedy and one.outcome == group.outcome), None)
    return group if found is None else msgspec.structs.replace(group, remedy=found.remedy)


def _servers(manifests: Sequence[Manifest], asked: Mapping[str, Counter[str]]) -> tuple[ServerFacts, ...]:
    """Every upstream of a run once; where several recordings know one, the last says what it is."""
    found = {one.name: one for manifest in manifests for one in manifest.upstreams}
    return tuple(
        ServerFacts(name, one.url, dict(sorted(_of_asked(one, asked.get(name, Counter())).items())))
        for name, one in sorted(found.items())
    )


def _of_asked(upstream: UpstreamFacts, asked: Counter[str]) -> dict[str, Fact]:
    """The facts of a server; none of another model than the one that was asked for, where it holds several."""
    server = Server(upstream.name, upstream.url, [upstream.facts])
    server.traffic.models.update(asked)
    if not server.not_identified:
        return dict(upstream.facts)
    names = ", ".join(sorted(asked)[:3])
    facts = {
        name: unknown(f"not read for {names}") if name in OF_MODEL else fact for name, fact in upstream.facts.items()
    }
    return {**facts, "model": known(f"asked for: {names}", "the requests")}


def _diagnose_commands(servers: Sequence[ServerFacts], run: str) -> dict[str, str]:
    """The command that examines a server with the run at hand, by the server's name."""
    found = {}
    for server in servers:
        command = shlex.join(["stacktap", "diagnose", server.url, "--run", run])
        if server.url.startswith(("http://", "https://")) and _offered(command):
            found[server.name] = command
    return found
