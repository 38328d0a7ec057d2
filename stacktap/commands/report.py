"""`stacktap report RUN...`: what went wrong and what to change, as report.md, report.html and report.json."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stacktap.failure import CouldNotRunError

if TYPE_CHECKING:
    from checklists.facts.records import Report


_MOST_CHANGES = 3


@click.command("report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write here; by default into the run's own folder, for several runs into the current one.",
)
@click.option("--set", "stated", multiple=True, metavar='C18="..."', help="State a checklist item that only you know.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON; write files only with --out.")
def command(runs: tuple[str, ...], out: Path | None, stated: tuple[str, ...], as_json: bool) -> None:
    """Write the report on RUN (an id, @last, a folder): report.md, report.html and report.json. Several: side by side.

    RUN may be a report.json of an earlier report: the other two are made from it again.
    """
    from checklists.items.stated import StatedError, parse_stated
    from checklists.report.writing import ReportError, rendered, write

    try:
        known = parse_stated(stated)
    except StatedError as wrong:
        raise click.UsageError(str(wrong)) from None
    report, folder = _report(runs, known)
    forms = rendered(report)
    if as_json:
        click.echo(forms.json.decode(), nl=False)
        if out is None:
            return
    place = out or folder
    try:
        write(forms, place)
    except ReportError as failure:
        raise CouldNotRunError(f"{failure}; choose another folder by --out") from None
    if not as_json:
        for line in _in_short(report):
            click.echo(line)
    for name in forms.files():
        click.echo(place / name, err=as_json)


def _in_short(report: Report) -> Iterator[str]:
    """Of each run its verdict, and what to change."""
    from proxy.present import printable

    for run in report.runs:
        yield printable(f"{run.run}: {run.verdict.headline}" if len(report.runs) > 1 else run.verdict.headline)
        for change in run.verdict.changes[:_MOST_CHANGES]:
            yield printable(f"  -> {change.change}")
        if len(run.verdict.changes) > _MOST_CHANGES:
            yield f"  and {len(run.verdict.changes) - _MOST_CHANGES} more, in the report"
    yield ""


def _report(runs: tuple[str, ...], stated: dict[str, str]) -> tuple[Report, Path]:
    """The report, and the folder that it belongs into."""
    from checklists.facts import gather
    from checklists.report.writing import ReportError, read
    from results.reader import JournalMissingError
    from results.record import NewerSchemaError
    from results.runs import RunNotFoundError, find

    files = [Path(run) for run in runs if run.endswith(".json") and Path(run).is_file()]
    if files and (len(runs) > 1 or stated):
        raise click.UsageError("a report.json is rendered again as it is: give it alone, without --set")
    try:
        if files:
            return read(files[0]), files[0].parent
        folders = [find(run, kind=None) for run in runs]
        return gather(folders, stated), folders[0] if len(folders) == 1 else Path()
    except (RunNotFoundError, JournalMissingError, NewerSchemaError, ReportError, OSError) as failure:
        if isinstance(failure, BrokenPipeError):
            raise
        raise CouldNotRunError(str(failure)) from None
