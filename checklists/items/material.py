"""What the fillers look at: the servers of a run with their facts and traffic, its cells and their plans."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import msgspec

from checklists.items.traffic import ServerTraffic
from checklists.reading import Recording, RunSource
from harness.packs.record import PackEntry, RecordError, read_record
from results.episode_journal import EpisodeJournalError, EpisodeReader
from results.episodes import CellKey, CellPlan, EpisodeRecord
from results.manifest import Fact, Manifest, unknown
from results.statistics.cells import CellStatistics
from results.statistics.grid import GridCounter
from results.validation import violations
from stacks.serving.registry import title_of

OF_MODEL = frozenset(
    {
        "model_digest",
        "quantization",
        "bits_per_weight",
        "parser",
        "reasoning_parser",
        "chat_template_hash",
        "sampling",
        "context_length",
        "tools_in_prompt",
    }
)
"""Facts that are one model's: on a server that holds several, they say nothing of the others."""
_HOLDS_MANY = ("ollama", "lmstudio")
_ALIASES = ("default", "default_model")
"""Names by which SGLang and mlx_lm.server call the model that they were started with."""
_LOCAL = ("127.0.0.1", "localhost", "::1", "0.0.0.0", "::")


@dataclass(slots=True)
class Server:
    """One upstream over all recordings: its facts as the manifests state them, and what went to it."""

    name: str
    url: str = ""
    stated: list[dict[str, Fact]] = field(default_factory=list)
    hosts: list[dict[str, Fact]] = field(default_factory=list)
    problem: str = ""
    traffic: ServerTraffic = field(default_factory=ServerTraffic)

    def fact(self, name: str) -> Fact:
        """The value that all recordings agree on; where they differ, all of them; else why it is unknown."""
        if name in OF_MODEL and self.not_identified:
            return unknown(self.not_identified)
        return _agreed([facts[name] for facts in self.stated if name in facts], self.problem)

    @property
    def not_identified(self) -> str:
        """Why facts of a model are none of a model that was asked for, on a server that holds several; else ""."""
        listed = next((facts["listed_models"].value for facts in self.stated if "listed_models" in facts), None)
        stack, model = (self._stated_text(name) for name in ("stack", "model"))
        several = len(listed) > 1 if isinstance(listed, list) else stack in _HOLDS_MANY
        asked = {_plain(name) for name in self.traffic.models if not name.startswith("(")}
        others = sorted(asked - {_plain(model), *_ALIASES})
        if not several or not others or not model:
            return ""
        return f"asked for was {', '.join(others[:3])}; the server holds several models, and {model} was looked at"

    def _stated_text(self, name: str) -> str:
        fact = _agreed([facts[name] for facts in self.stated if name in facts], "")
        return fact.value if isinstance(fact.value, str) else ""

    def host(self, name: str) -> Fact:
        """A fact of the machine that stacktap ran on."""
        return _agreed([facts[name] for facts in self.hosts if name in facts], self.problem)

    def text(self, name: str) -> str:
        """A fact's value as text; "" where it is unknown."""
        fact = self.fact(name)
        return "" if fact.unknown is not None or fact.value is None else said(fact.value)

    @property
    def stack(self) -> str:
        """What people call the stack; "" where it is not known."""
        if self.in_process:
            return f"{self.text('stack').replace('_', ' ').partition(' ')[0]} (inside of stacktap)"
        return title_of(self.text("stack")) if self.text("stack") else ""

    @property
    def in_process(self) -> bool:
        """Whether the model ran inside of stacktap."""
        return self.text("stack").endswith(("in-process", "_inprocess"))

    @property
    def local(self) -> bool:
        """Whether it runs on the machine that made the record."""
        return self.in_process or self.hostname in _LOCAL

    @property
    def hostname(self) -> str:
        """The host of its URL; "" where that is none."""
        try:
            return urlsplit(self.url).hostname or ""
        except ValueError:
            return ""

    @property
    def model(self) -> str:
        """The model: as the server holds it, else as it was asked for."""
        asked = [name for name in self.traffic.models if not name.startswith("(")]
        alone = asked[0] if len(asked) == 1 else ""
        return alone if self.not_identified else self.text("model") or alone

    @property
    def address(self) -> str:
        """For a command line: its URL, else a word to be filled in."""
        return shlex.quote(self.url) if self.url.startswith("http") else "http://localhost:PORT"


def own_servers(command: Sequence[str]) -> bool:
    """Whether a command of stacktap starts the servers that it asks (`pair`, `demo`)."""
    return any(word in ("pair", "demo") for word in command[1:2])


def _agreed(found: list[Fact], problem: str) -> Fact:
    values = [fact for fact in found if fact.unknown is None and fact.value is not None]
    if not values:
        stated = next((fact.unknown for fact in found if fact.unknown), "")
        return unknown(stated or problem or "not recorded")
    different: list[Any] = []
    for fact in values:
        if fact.value not in different:
            different.append(fact.value)
    if len(different) == 1:
        return values[0]
    return Fact(value=" / ".join(said(value) for value in different), source="the recordings differ")


def _plain(model: str) -> str:
    return model.removesuffix(":latest")


def said(value: Any) -> str:
    """A fact's value in words: text as it is, a command line joined, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {said(each)}" for name, each in sorted(value.items()))
    return msgspec.json.encode(value, enc_hook=str).decode("utf-8", "replace")


@dataclass(slots=True)
class Grid:
    """The episodes of a run, counted: cells, their plans, what differs from the plans, and what each task showed."""

    cells: list[CellStatistics] = field(default_factory=list)
    plans: dict[CellKey, CellPlan] = field(default_factory=dict)
    deviations: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    met: set[str] = field(default_factory=set)
    """Tasks whose check was met by an episode of this run."""
    checker: dict[str, int] = field(default_factory=dict)
    recovered: dict[str, int] = field(default_factory=dict)
    """Turns whose call the harness's own parser found where the server had left it, by the parser's name."""
    read_as_text: int = 0
    """Turns whose call was asked for as text and read from it."""
    episodes: int = 0
    run: str = ""
    unreadable: str = ""
    packs: dict[str, PackEntry] = field(default_factory=dict)
    """The packs of a run of packs, by name."""

    def plan_fact(self, cell: CellKey, name: str) -> Fact:
        """A fact that a cell is bound to."""
        plan = self.plans.get(cell)
        return plan.facts.get(name, unknown("the plan does not state it")) if plan else unknown("the cell has no plan")


@dataclass(slots=True)
class Material:
    """Everything at once. `reference` is what commands call the run by."""

    source: RunSource
    run: str
    reference: str
    servers: list[Server]
    grid: Grid | None
    manifest: Manifest | None

    @property
    def used(self) -> list[Server]:
        """The servers that were asked for an answer of a model; all of them where none was."""
        return [server for server in self.servers if server.traffic.generating] or self.servers

    @property
    def own_servers(self) -> bool:
        """Whether stacktap itself started the servers for this run, and stopped them: nobody can ask them any more."""
        words = self.manifest.command if self.manifest is not None else []
        return own_servers(words)

    def stated_command(self, item: str, words: str) -> str:
        """The command by which the user answers an item."""
        return f'stacktap report {self.quoted} --set {item}="{words}"'

    @property
    def quoted(self) -> str:
        """The reference as a word of a command line."""
        return shlex.quote(self.reference)


def servers_of(recordings: Sequence[Recording], traffic: Mapping[str, ServerTraffic]) -> list[Server]:
    """The upstreams of a run by name, in the order in which manifests and traffic name them; `traffic` by name, too."""
    found: dict[str, Server] = {}
    problem = next((one.manifest_problem for one in recordings if one.manifest is None), "")
    for recording in recordings:
        if recording.manifest is None:
            continue
        for upstream in recording.manifest.upstreams:
            server = found.setdefault(upstream.name, Server(upstream.name))
            server.url = upstream.url
            server.stated.append(dict(upstream.facts))
            server.hosts.append(dict(recording.manifest.host))
    for name, counted in traffic.items():
        server = found.setdefault(name, Server(name, problem=problem or "the manifest does not name this server"))
        server.traffic = counted
    return list(found.values())


def grid_of(source: RunSource) -> Grid | None:
    """The episodes of a run, read and counted; None where it has none."""
    if not source.has_episodes:
        return None
    found, counter = Grid(), GridCounter()
    reader = EpisodeReader(source.folder)
    try:
        for episode in reader:
            counter.add(episode)
            _note(found, episode)
        found.run = reader.run
        found.plans = dict(reader.plans)
        found.cells = counter.statistics(found.plans)
        found.problems = reader.problems.said()
        found.deviations = violations(EpisodeReader(source.folder), found.plans, reader.earlier_plans)
    except EpisodeJournalError as failure:
        found.unreadable = str(failure)
    with contextlib.suppress(RecordError):
        found.packs = {pack.name: pack for pack in read_record(source.folder).packs}
    return found


def _note(found: Grid, episode: EpisodeRecord) -> None:
    found.episodes += 1
    if episode.succeeded:
        found.met.add(episode.cell.task)
    for outcome in (episode.outcome, *(turn.outcome for turn in episode.turns)):
        if outcome.layer == "checker":
            found.checker[outcome.name] = found.checker.get(outcome.name, 0) + 1
    for turn in episode.turns:
        if turn.recovered:
            found.recovered[turn.recovered] = found.recovered.get(turn.recovered, 0) + 1
        elif turn.outcome.name == "ok.text_call":
            found.read_as_text += 1
