"""Runs cases on a model that is in this process and puts each answer on record: the one journal of episodes.

A cell is model x chain/tier x rung x pack; its episodes are cases (`seed` is the case's place in the pack, from 0).
Each answer is durable before the next one begins, so that a kill loses one answer at most, and the same call carries
on. A cell whose facts (pack, software, weights, template, sampling) changed is refused: its answers measure something
else. Nothing is judged here: the record holds what was written, and a verdict is computed from it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness.packs.model import Pack, PackTask
from harness.running import agreed, so_far
from harness.workbench.registry import Chain, Member
from results.episode_journal import EpisodeWriter
from results.episodes import CellKey, CellPlan, EpisodeRecord
from results.manifest import Fact, known
from results.outcomes import Outcome

WORKBENCH_VERSION = "1"
"""Version of what is asked and how: cells of another version are not mixed."""
_ANSWERED = Outcome(layer="ok", code="final_answer", at_fault="none", model_ran="yes")
_CUT = Outcome(layer="truncation", code="output_budget", at_fault="config", model_ran="yes")


@dataclass(frozen=True, slots=True)
class Written:
    """One answer. `finish` is the engine's word (`stop`, `length`, ...); `attempts` are the texts before the last;
    `grammar` the state of the grammar (`off` without one); tokens and seconds are of all attempts together."""

    text: str
    finish: str
    prompt_tokens: int
    tokens: int
    seconds: float
    prompt_sha256: str
    attempts: tuple[str, ...] = ()
    grammar: str = "off"

    def as_answer(self) -> dict[str, Any]:
        """As the record's `answer`."""
        found: dict[str, Any] = {
            "text": self.text,
            "finish": self.finish,
            "prompt_tokens": self.prompt_tokens,
            "tokens": self.tokens,
            "seconds": round(self.seconds, 3),
            "prompt_sha256": self.prompt_sha256[:16],
            "grammar": self.grammar,
        }
        return found | ({"attempts": list(self.attempts)} if self.attempts else {})


Answerer = Callable[[PackTask], Written]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell to measure: `cases` are places in the pack. `facts` are what it is bound to besides pack and rung."""

    member: Member
    chain: Chain
    tier: str
    rung: str
    pack: Pack
    cases: tuple[int, ...]
    facts: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def key(self) -> CellKey:
        """The cell's key in the journal."""
        return CellKey(self.member.name, f"{self.chain.name}/{self.tier}", self.rung, self.pack.name)

    @property
    def plan(self) -> CellPlan:
        """What the cell is bound to."""
        facts = {
            "harness": known(f"workbench {WORKBENCH_VERSION}", "stacktap"),
            "pack": known(f"{self.pack.name} {self.pack.version}", "the pack"),
            "pack_hash": known(self.pack.digest, "SHA-256 of the pack"),
            **self.facts,
        }
        return CellPlan(cell=self.key, seeds=self.cases, facts=facts)


class Measuring:
    """A run folder that is written to, one process at a time. Use as a context manager."""

    def __init__(self, folder: Path, tell: Callable[[str], None] = lambda line: None) -> None:
        """Raises EpisodeJournalError: another process writes, or the file is none of ours."""
        run, self._plans, self._held = so_far(folder)
        self._writer = EpisodeWriter(folder, run)
        self._tell = tell

    def __enter__(self) -> Measuring:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def missing(self, cell: Cell) -> list[int]:
        """Cases of a cell that have no answer yet, in their order."""
        return [case for case in cell.cases if (cell.key, case, 0) not in self._held]

    def measure(self, cell: Cell, answer: Answerer) -> int:
        """Answer what is missing; how many cases that were. Raises GridChangedError where the cell's answers belong to
        other facts, EpisodeJournalError where one cannot be kept, and what `answer` raises."""
        before = self._plans.get(cell.key)
        # What another command measured of the cell stays declared: nothing is written where nothing is new.
        declared = tuple(sorted({*(before.seeds if before is not None else ()), *cell.cases}))
        plan = msgspec.structs.replace(cell.plan, seeds=declared)
        plan = agreed(plan, self._plans, self._held, self._writer.append)
        missing = self.missing(cell)
        if reused := len(cell.cases) - len(missing):
            self._tell(f"{cell.key.title}: {reused} of {len(cell.cases)} answers are there and are used again")
        begun = time.monotonic()
        for number, case in enumerate(missing, 1):
            started = time.time_ns() // 1000
            written = answer(cell.pack.tasks[case])
            record = _record(cell, case, written, plan.digest, started)
            self._writer.append(record)
            self._held.add(record.place)
            if number % 25 == 0 or number == len(missing):
                each = (time.monotonic() - begun) / number
                self._tell(f"{cell.key.title}: {number}/{len(missing)}, {each * (len(missing) - number):.0f} s left")
        return len(missing)


def _record(cell: Cell, case: int, written: Written, plan: str, started_us: int) -> EpisodeRecord:
    return EpisodeRecord(
        episode=f"{cell.rung}-{case:04}",
        cell=cell.key,
        seed=case,
        outcome=_ANSWERED if written.finish == "stop" else _CUT,
        ended_by="single_turn",
        answer=written.as_answer(),
        temperature=0.0,
        plan=plan,
        started_us=started_us,
        ended_us=time.time_ns() // 1000,
    )


def places(pack: Pack, *, half: str = "", count: int = 0) -> tuple[int, ...]:
    """Places of a pack's cases: those of one half (`dev`, `test`), or `count` of them spread over all kinds alike.

    The choice depends on the pack alone.
    """
    chosen = [at for at, task in enumerate(pack.tasks) if not half or task.labels.get("half") == half]
    return tuple(chosen) if not count or count >= len(chosen) else tuple(sorted(_spread(pack, chosen, count)))


def _spread(pack: Pack, chosen: Sequence[int], count: int) -> list[int]:
    """`count` of the cases, of each kind in proportion, evenly from its first case to its last."""
    by_kind: dict[str, list[int]] = {}
    for at in chosen:
        by_kind.setdefault(pack.tasks[at].category, []).append(at)
    shares = {kind: count * len(rows) / len(chosen) for kind, rows in by_kind.items()}
    taken = {kind: int(share) for kind, share in shares.items()}
    for kind in sorted(shares, key=lambda one: (taken[one] - shares[one], one))[: count - sum(taken.values())]:
        taken[kind] += 1
    return [
        rows[int((at + 0.5) * len(rows) / taken[kind])] for kind, rows in by_kind.items() for at in range(taken[kind])
    ]
