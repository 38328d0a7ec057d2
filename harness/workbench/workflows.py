"""What the workbench's commands do: load each tier, guard it, measure what is missing, and build the run.

All answers of a folder stand in one journal (`episodes.jsonl`), whichever command asked for them, so that `prescribe`
uses the bare answers that `profile` measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from harness.packs.model import Pack
from harness.running import so_far
from harness.structured.binding import incomparable
from harness.structured.guards import PROBE_TEXTS, Guard, excluded
from harness.structured.questions import Calling
from harness.workbench.answering import CONTEXT, MAX_TOKENS, Asking, binding_in, calling_of, pool_of, template_in
from harness.workbench.collecting import judged
from harness.workbench.guarding import guards_of
from harness.workbench.measuring import Cell, Measuring
from harness.workbench.record import CaseRow, ModelRow, WeightsRow
from harness.workbench.registry import ENGINES, Chain, Member
from harness.workbench.weights_row import weights_row
from results.episode_journal import EpisodeReader
from results.episodes import CellPlan, EpisodeRecord
from results.manifest import host_facts
from stacks.engine import Engine
from stacks.language_weights import logical_weights
from stacks.load_engine import load_engine
from stacks.source_template import SourceTemplate, template_of

Tell = Callable[[str], None]
_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "gguf": ("llama-cpp-python", "numpy", "jinja2"),
    "mlx": ("mlx", "mlx-lm", "outlines-core", "transformers", "numpy", "jinja2"),
}


class WorkbenchError(Exception):
    """A workflow cannot go on; the message says what, where, and what to do."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """Which tiers of one chain are measured: the weights lie in `folder`."""

    chain: Chain
    tiers: tuple[str, ...]
    folder: Path


@dataclass(slots=True)
class TierFacts:
    """What is known of a tier besides its answers."""

    weights: WeightsRow
    bound_to: dict[str, str]
    guards: list[Guard]


@dataclass(slots=True)
class Workbench:
    """One member, one pack, one folder of answers."""

    member: Member
    pack: Pack
    out: Path
    tell: Tell = lambda line: None
    max_tokens: int = MAX_TOKENS
    found: dict[tuple[str, str], TierFacts] = field(default_factory=dict)
    excluded: dict[tuple[str, str], str] = field(default_factory=dict)
    load: Callable[[str, Path, int | None], Engine] = load_engine
    calling: Calling = field(default_factory=lambda: Calling(None, "no template was read"))

    def template(self, ladder: Ladder) -> SourceTemplate:
        """The source model's template: the registry's, or that of the chain's baseline. Raises WorkbenchError."""
        carried = template_in(self.member)
        if carried is not None:
            return carried
        place = ladder.chain.place(ladder.folder, ladder.chain.baseline)
        try:
            return template_of(place)
        except Exception as error:  # RenderError, OSError, ValueError: each says what is wrong with the file
            raise WorkbenchError(f"the chat template of {place} cannot be read: {error}") from error

    def measure(self, ladder: Ladder, rungs: Sequence[str], cases: tuple[int, ...]) -> None:
        """Measure what is missing of a chain's tiers, the baseline first. A tier that a guard refuses is left out.

        Raises GridChangedError, EpisodeJournalError, `stacks.engine.EngineError`, RegistryError, WorkbenchError.
        """
        template = self.template(ladder)
        self.calling = calling_of(template)
        base = ladder.chain.baseline
        order = [*([base] if base in ladder.tiers else []), *(tier for tier in ladder.tiers if tier != base)]
        tensors = logical_weights(ladder.chain.place(ladder.folder, base))
        tokens: dict[str, tuple[int, ...]] = {}
        with Measuring(self.out, self.tell) as measuring:
            for tier in order:
                place = ladder.chain.place(ladder.folder, tier)
                engine = self.load(ENGINES[ladder.chain.ecosystem], place, CONTEXT)
                try:
                    tokens = tokens or {text: engine.encode(text) for text in PROBE_TEXTS}
                    guards = guards_of(engine, place, template, tokens, tensors)
                    if why := excluded(guards):
                        self.excluded[ladder.chain.name, tier] = "; ".join(why)
                        self.tell(f"{ladder.chain.name}/{tier} is left out: {'; '.join(why)}")
                        continue
                    asking = Asking(engine, template, self.calling, pool_of(self.pack), self.max_tokens)
                    facts = asking.facts(rungs[0])
                    bound = {name: str(fact.value) for name, fact in facts.items() if name != "scaffold"}
                    self.found[ladder.chain.name, tier] = TierFacts(weights_row(place), bound, guards)
                    self._agree(ladder.chain)
                    for rung in rungs:
                        cell = Cell(self.member, ladder.chain, tier, rung, self.pack, cases, asking.facts(rung))
                        measuring.measure(cell, asking.under(rung))
                finally:
                    engine.close()

    def lacking(self, ladder: Ladder, rungs: Sequence[str], cases: Sequence[int]) -> int:
        """How many answers of these cells are not on record yet. Raises EpisodeJournalError."""
        keys = [
            Cell(self.member, ladder.chain, tier, rung, self.pack, ()).key for tier in ladder.tiers for rung in rungs
        ]
        held = so_far(self.out)[2]
        return sum((key, case, 0) not in held for key in keys for case in cases)

    def _agree(self, chain: Chain) -> None:
        """Tiers that run differently are not put side by side."""
        bound = [(tier, facts.bound_to) for (name, tier), facts in self.found.items() if name == chain.name]
        for tier, facts in bound[1:]:
            if why := incomparable(binding_in(bound[0][1]), binding_in(facts)):
                raise WorkbenchError(f"{chain.name}/{tier} cannot be compared with {bound[0][0]}: {'; '.join(why)}")

    def rows(self, chain: Chain, tier: str, rung: str, cases: Sequence[int]) -> list[CaseRow]:
        """A cell's answers, judged, in the order of the pack; those of `cases` alone. Raises WorkbenchError where one
        is missing."""
        wanted = set(cases)
        found = [
            episode
            for episode in answers(self.out)
            if episode.cell.model == self.member.name
            and episode.cell.stack == f"{chain.name}/{tier}"
            and episode.cell.condition == rung
            and episode.cell.task == self.pack.name
            and episode.seed in wanted
        ]
        if len(found) < len(wanted):
            raise WorkbenchError(
                f"{self.member.name} {chain.name}/{tier} {rung} has {len(found)} of {len(wanted)} answers: run it again"
            )
        return judged(self.pack, found, self.calling)

    @property
    def model_row(self) -> ModelRow:
        """What a report says of the member."""
        one = self.member
        return ModelRow(
            name=one.name,
            family=one.family,
            source=one.source,
            parameters=one.parameters,
            envelope=_envelope(self.calling),
            note=one.note,
            towers=one.towers,
        )


def _envelope(calling: Calling) -> str:
    if calling.envelope is None:
        return f"none ({calling.reason})"
    return f"{calling.envelope.format}, read off its template: {calling.envelope.write('NAME', {'...': '...'})}"


def answers(folder: Path) -> list[EpisodeRecord]:
    """Every answer of a folder. Raises EpisodeJournalError."""
    return list(EpisodeReader(folder))


def plans(folder: Path) -> Mapping[str, CellPlan]:
    """The plans of a folder's cells, by the cell's title. Raises EpisodeJournalError."""
    reader = EpisodeReader(folder)
    for _ in reader:
        pass
    return {key.title: plan for key, plan in reader.plans.items()}


def software(ecosystem: str) -> dict[str, str]:
    """Versions of what computes and renders for an ecosystem, where it is installed."""
    found = {}
    for name in _PACKAGES[ecosystem]:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, str]:
    """What machine this is, as far as it says."""
    facts = host_facts()
    names = ("cpu_model", "cpus", "memory_bytes", "distribution", "system", "accelerator", "python")
    return {name: str(facts[name].value) for name in names if facts[name].unknown is None}
