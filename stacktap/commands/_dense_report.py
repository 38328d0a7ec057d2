"""`stacktap dense report RUN`: what an experiment on items shows, for people and as data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from stacktap.failure import CouldNotRunError

if TYPE_CHECKING:
    from harness.dense.experiment.records import Experiment

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {f"{name}i": 1024**power for power, name in enumerate("KMGT", 1)}


def memory(text: str) -> int:
    """Bytes of `16GB`, `12.5 GiB` or `800MB` (a bare number is bytes). Raises ValueError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?i?)B?\s*", text, re.IGNORECASE)
    unit = "" if found is None else found[2][:1].upper() + found[2][1:].lower()
    if found is None or unit not in _UNITS or not 0 < float(found[1]) < 10**15:
        raise ValueError(f"{text!r} is no amount of memory: write it like 16GB, 800MB or 12.5GiB")
    return int(float(found[1]) * _UNITS[unit])


def _budget(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    try:
        return None if value is None else memory(value)
    except ValueError as wrong:
        raise click.BadParameter(str(wrong)) from None


@click.command("report")
@click.argument("run", metavar="RUN")
@click.option("--memory-budget", "budget", callback=_budget, metavar="16GB", help="Mark what fits into so much memory.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Write here instead of the run's folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON; write files only with --out.")
@click.option("--png", is_flag=True, help="Write the plots as PNG, too (needs matplotlib).")
def command(run: str, budget: int | None, out: Path | None, as_json: bool, png: bool) -> None:
    """Write the report on RUN (an id, @last, a folder of `stacktap run` with items): dense.md, dense.html, dense.json
    and the plots as dense-*.svg.

    RUN may be a dense.json of an earlier report: the others are made from it again.
    """
    from checklists.dense.writing import encoded, forms, write
    from checklists.report.writing import ReportError

    found, folder = _experiment(run, budget)
    if as_json:
        click.echo(encoded(found).decode(), nl=False)
        if out is None and not png:
            return
    files = forms(found)
    place = out or folder
    try:
        write(files, place)
        names = [*files, *(_pngs(found, place) if png else [])]
    except ReportError as failure:
        raise CouldNotRunError(f"{failure}; choose another folder by --out") from None
    for name in names:
        click.echo(place / name, err=as_json)


def _experiment(run: str, budget: int | None) -> tuple[Experiment, Path]:
    """The numbers, and the folder that the report belongs into."""
    from checklists.dense.writing import decoded
    from checklists.report.writing import MAX_BYTES, ReportError
    from harness.dense.experiment.gathering import NoItemsError, experiment
    from results.episode_journal import EpisodeJournalError
    from results.plain_files import read_plain
    from results.runs import RunNotFoundError, find

    try:
        if run.endswith(".json") and Path(run).is_file():
            found = decoded(read_plain(Path(run), MAX_BYTES))
            return (found if budget is None else msgspec.structs.replace(found, budget=budget)), Path(run).parent
        folder = find(run, kind="grid")
        return experiment(folder, budget), folder
    except (RunNotFoundError, EpisodeJournalError, NoItemsError, ReportError, OSError) as failure:
        if isinstance(failure, BrokenPipeError):
            raise
        raise CouldNotRunError(str(failure)) from None


def _pngs(found: Experiment, place: Path) -> list[str]:
    from checklists.dense.png import PlotsMissingError, write_pngs

    try:
        return write_pngs(found, place)
    except PlotsMissingError as missing:
        raise CouldNotRunError(str(missing)) from None
