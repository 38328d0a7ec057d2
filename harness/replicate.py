"""The CPU-feasible part of the serving-stack paper's grid as grids of ours, and its table beside the published one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.grid import Grid, LimitsRow, SamplingRow, Target, TaskRow
from harness.grid_run import GridRun, run_grid
from harness.kits import OWN, PAPER
from harness.telling import Told, told
from results.statistics.grid import RandomNumbers
from results.statistics.turns import LabelSet
from results.tables.published import paper_grid
from results.tables.replication import Row, replication_table, rows, scope_lines

AGENTIC = ("native", "native+hint", "text-tools")
TASKS = {
    "submit": "humaneval6",
    "single_step": "single_step_constrained",
    f"aggregation-{PAPER.name}": "aggregation",
    f"chain-{PAPER.name}": "chain",
}
"""Our names of tasks, where the paper has others."""
TRIALS = {"submit": 6, "single_step": 8}
TOO_LARGE = ("qwen2.5-coder:7b", "qwen2.5-coder:14b", "deepseek-v4-flash")
"""Published models that take a GPU or an account."""
HOW_TO_MEASURE = """\
not measured: no server was named. To measure the CPU-feasible part, serve one of its models and name it:
  ollama pull qwen2.5-coder:0.5b
  stacktap replicate paper --url http://localhost:11434 --model qwen2.5-coder:0.5b
or have a server started with a GGUF file of it (stacktap up llamacpp tells how to install one):
  stacktap replicate paper --up llamacpp:MODEL.gguf --as qwen2.5-coder:0.5b
CPU-feasible: {models}"""


@dataclass(frozen=True, slots=True)
class Size:
    """How much of the published grid is run: the first so many seeds and trials, the caps, and which tools the agentic
    tasks have. The paper's: 8 and 4 seeds, 40 turns, 32,768 tokens, the sixteen tools of `paper-compat`."""

    seeds: int = 8
    turns: int = 40
    max_tokens: int = 1024
    attempt_seconds: float = 120.0
    problems: str = ""
    tools: str = OWN.name


def published_models() -> tuple[str, ...]:
    """The CPU-feasible models, in the paper's order."""
    return tuple(model for model in paper_grid().models if model not in TOO_LARGE)


def published_name(model: str) -> str | None:
    """The paper's model that a name of ours means (`Qwen2.5-Coder-0.5B-Instruct-Q4_K_M`); None where none is sure.

    A name that goes on with a digit is another model (Phi-3.5 is not Phi-3).
    """
    ours = _plain(model)
    found = [
        name
        for name in paper_grid().models
        if re.match(re.escape(_plain(name.removesuffix(":latest"))) + r"(?!\d)", ours)
    ]
    return max(found, key=len, default=None)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def grids_of(targets: Iterable[Target], size: Size) -> list[Grid]:
    """The agentic tasks, the single submits (text-tools) and the single steps (constrained), as the paper ran them."""
    paper = paper_grid()
    sampling = SamplingRow(temperature=1.0, top_p=1.0, max_tokens=size.max_tokens)
    limits = LimitsRow(turns=size.turns, attempt_seconds=size.attempt_seconds)
    agentic = (
        TaskRow("aggregation", seeds=paper.aggregation_seeds[: size.seeds], tools=size.tools),
        TaskRow("chain", seeds=paper.chain_seeds[: size.seeds], tools=size.tools),
    )
    base = Grid(targets=tuple(targets), tasks=agentic, conditions=AGENTIC, sampling=sampling, limits=limits)
    trials = {name: tuple(range(min(count, size.seeds))) for name, count in TRIALS.items()}
    submit = TaskRow("submit", seeds=trials["submit"], problems=size.problems)
    # The paper's budgets of the single turns: 400 tokens for a submit, 300 for the constrained probe.
    one = msgspec.structs.replace
    return [
        base,
        one(
            base,
            tasks=(submit,),
            conditions=("text-tools",),
            sampling=one(sampling, max_tokens=min(400, size.max_tokens)),
        ),
        one(
            base,
            tasks=(TaskRow("single_step", seeds=trials["single_step"]),),
            conditions=("constrained",),
            sampling=one(sampling, max_tokens=min(300, size.max_tokens)),
        ),
    ]


async def measure(grids: Iterable[Grid], folder: Path, tell: Callable[[str], None]) -> GridRun:
    """Run the grids into one folder. Raises as `run_grid`."""
    whole = GridRun(folder)
    for grid in grids:
        part = await run_grid(grid, folder, tell)
        whole.declared += part.declared
        whole.done += part.done
        whole.not_run |= part.not_run
        whole.short |= part.short
        whole.abandoned |= part.abandoned
    return whole


def beside(
    folder: Path | None, names: dict[str, str], *, words: LabelSet = "own", rng: RandomNumbers = "cell"
) -> tuple[list[Row], Told | None]:
    """Every published cell beside what was measured of it. `names`: our model names -> the paper's.

    Raises EpisodeJournalError.
    """
    paper = paper_grid()
    if folder is None:
        return rows(paper), None
    order = sorted(names, key=lambda name: paper.models.index(names[name]) if names[name] in paper.models else 99)
    found = told(folder, words=words, rng=rng, models=tuple(order))
    return rows(paper, found.cells, models=names, tasks=TASKS), found


def table(found: list[Row], measured: Told | None, how: str) -> str:
    """The table, the scope of the comparison, and how to measure where nothing was."""
    paper = paper_grid()
    scope = scope_lines(measured.plans.values()) if measured is not None else []
    if measured is not None:
        scope.append(
            "tools, texts and tasks are of the same definition and in our own words; answers are asked for, not code"
        )
    shown = replication_table(found, source=paper.source, scope=scope, how=how)
    if measured is None:
        shown += "\n\n" + HOW_TO_MEASURE.format(models=", ".join(published_models()))
    return shown
