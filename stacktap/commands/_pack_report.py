"""`stacktap pack report RUN`: the report on a run of packs, again, from what stands in its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stacktap.commands._pack_words import split_lists
from stacktap.failure import CouldNotRunError

if TYPE_CHECKING:
    from checklists.packs.document import Shown


@click.command("report", cls=split_lists("--tasks"))
@click.argument("run")
@click.option(
    "--tasks",
    multiple=True,
    type=click.Path(path_type=Path),
    help="The packs as they are now: say whether RUN is stale.",
)
@click.option("--labels", type=click.Choice(["own", "aqbe-compat"]), default="own", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(run: str, tasks: tuple[Path, ...], labels: str, as_json: bool) -> None:
    """Write the report on RUN (an id, @last, or a folder) again: scores.md, scores.html, scores.json, responses/.

    Nothing is asked and no check is run again. Exit code 1: the run is stale (its pack, the format or the software is
    another one now), or something is wrong with it.
    """
    from checklists.packs.writing import data, text
    from harness.packs.loading import load_packs
    from harness.packs.model import PackError
    from results.runs import RunNotFoundError, find

    try:
        folder = find(run, kind="grid")
        shown = shown_run(folder, aqbe=labels == "aqbe-compat", packs=tasks and tuple(load_packs(tasks)))
    except PackError as wrong:
        raise click.UsageError(str(wrong)) from None
    except RunNotFoundError as failure:
        raise CouldNotRunError(str(failure)) from None
    write_forms(folder, shown)
    click.echo(json.dumps(data(shown), ensure_ascii=False) if as_json else text(shown))
    if shown.stale or shown.findings:
        raise click.exceptions.Exit(1)


def shown_run(folder: Path, *, aqbe: bool, packs: tuple = ()) -> Shown:  # type: ignore[type-arg]
    """What a run's folder says. Raises CouldNotRunError."""
    from checklists.packs.document import Shown
    from checklists.packs.writing import order_of, stale, without_machine
    from harness.packs.record import RecordError, read_record
    from harness.packs.summary import summarise
    from results.episode_journal import EpisodeJournalError, EpisodeReader

    try:
        record = without_machine(read_record(folder))
        reader = EpisodeReader(folder)
        declared = {pack.name: pack.tasks for pack in record.packs}
        results = summarise(reader, record.categories, declared, order_of(record))
    except (RecordError, EpisodeJournalError) as failure:
        raise CouldNotRunError(str(failure)) from None
    return Shown(record, results, aqbe, stale(dict(reader.plans), packs), tuple(reader.problems.said()))


def write_forms(folder: Path, shown: Shown) -> None:
    """Write the report and the answers. Raises CouldNotRunError."""
    from checklists.packs import writing
    from results.episode_journal import EpisodeReader

    try:
        writing.write_forms(folder, shown)
        writing.write_responses(folder, EpisodeReader(folder), writing.order_of(shown.record))
    except OSError as failure:
        raise CouldNotRunError(f"cannot write the report into {folder}: {failure}") from None
