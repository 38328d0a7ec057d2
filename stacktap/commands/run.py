"""`stacktap run GRID.yaml`: the same tasks under controlled serving conditions, on every server of a grid."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

from stacktap.commands._reporting import report_line
from stacktap.failure import CouldNotRunError, cannot_write
from stacktap.program import program


@click.command("run")
@click.argument("grid", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Run folder; one that is there is carried on."
)
@click.option(
    "--executor",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="ray: on the machines of a Ray cluster (RAY_ADDRESS).",
)
@click.option("--quiet", is_flag=True, help="No line for each episode.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(grid: Path, out: Path | None, executor: str, quiet: bool, as_json: bool) -> None:
    """Run the grid in GRID (YAML): targets x conditions x tasks x seeds, each episode kept as soon as it ends.

    With --out RUN of an earlier run only what is missing is run; a cell whose server, model, template or condition is
    another one now is refused. Exit code 0: every declared episode is there, 1: some are not, or something is wrong.
    """
    from harness.grid import GridError, read_grid
    from harness.grid_run import GridChangedError, local, run_grid
    from harness.ray_executor import RayMissingError, on_ray, require_ray
    from harness.telling import facts, text, told
    from proxy.event_loop import run
    from results.episode_journal import EpisodeJournalError
    from results.runs import RunFolderError
    from stacks.launching.launch import termination_as_interrupt

    try:
        parsed = read_grid(grid)
        if executor == "ray":
            require_ray()
        folder = run_folder(out)
        with termination_as_interrupt():
            found = run(run_grid(parsed, folder, _silent if quiet else _told, on_ray if executor == "ray" else local))
        said = told(folder)
    except GridError as wrong:
        raise click.UsageError(str(wrong)) from None
    except (GridChangedError, EpisodeJournalError, RayMissingError, RunFolderError) as failure:
        raise CouldNotRunError(str(failure)) from None
    except PermissionError as failure:
        raise CouldNotRunError(cannot_write(failure)) from None
    except KeyboardInterrupt:
        how = " --executor ray" if executor == "ray" else ""
        click.echo(f"stopped; to carry it on: {program()} run {shlex.quote(str(grid))} --out {folder}{how}", err=True)
        raise
    click.echo(json.dumps(facts(said, found), ensure_ascii=False) if as_json else text(said, found))
    click.echo(report_line(folder, f"{program()} report {shlex.quote(str(folder))}")[1], err=True)
    click.echo(f"run folder: {folder}", err=True)
    if not found.done:
        raise click.exceptions.Exit(3)
    if not found.complete or said.findings:
        raise click.exceptions.Exit(1)


def run_folder(out: Path | None) -> Path:
    """The run's folder. Raises RunFolderError where `out` holds something else."""
    from results.runs import RunFolderError, create, inspect_path

    if out is None:
        return create()[1]
    try:
        if inspect_path(out) != "grid":
            create(out)
    except OSError as failure:
        raise RunFolderError(f"cannot use {out}: {failure.strerror or failure}") from None
    return out


def _told(line: str) -> None:
    click.echo(f"... {line}", err=True)


def _silent(line: str) -> None:
    return None
