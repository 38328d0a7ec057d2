"""`stacktap runs`: list recorded runs; `runs rm` removes them."""

from __future__ import annotations

import json
import time

import click

from stacktap.failure import CouldNotRunError

_LINE = 160


@click.group("runs", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List recorded runs, oldest first; remove old ones with `rm` and `prune`."""
    if ctx.invoked_subcommand is not None:
        return
    from proxy.present import printable
    from results.run_summary import command_of, headline_of
    from results.runs import RunFolderError, list_runs, runs_folder

    try:
        found = list_runs()
    except RunFolderError as failure:
        raise CouldNotRunError(str(failure)) from None
    if as_json:
        rows = [
            {
                "run": run.run,
                "kind": run.kind,
                "folder": str(run.path),
                "created": run.created,
                "bytes": run.size,
                "recording": run.live,
                "lost_lines": run.lost,
                "command": command_of(run.path),
                "headline": headline_of(run.path),
            }
            for run in found
        ]
        click.echo(json.dumps({"version": 1, "runs": rows}))
        return
    for run in found:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.created))
        said = (
            ["grid"] * (run.kind == "grid")
            + ["recording"] * run.live
            + [f"{run.lost} lines could not be written"] * (run.lost > 0)
        )
        click.echo(f"{printable(run.run)}  {when}  {_size(run.size):>9}  {', '.join(said)}".rstrip())
        for told in (command_of(run.path), headline_of(run.path)):
            if told:
                click.echo(f"    {printable(told)[:_LINE]}")
    total = sum(run.size for run in found)
    click.echo(f"{len(found)} runs, {_size(total)} in {runs_folder()}", err=True)


@command.command("rm")
@click.argument("runs", nargs=-1, required=True)
def remove_runs(runs: tuple[str, ...]) -> None:
    """Remove RUNS (ids, beginnings of ids, @last, paths); only real run folders are touched."""
    from results.runs import RunFolderError, RunNotFoundError, find, remove

    failed = False
    for reference in runs:
        try:
            path = find(reference, kind=None)
            remove(path)
            click.echo(f"removed {path}")
        except (RunNotFoundError, RunFolderError) as failure:
            click.echo(f"stacktap runs rm: {failure}", err=True)
            failed = True
    if failed:
        raise click.exceptions.Exit(3)


@command.command("prune")
@click.option("--max-mb", type=click.IntRange(0), required=True, help="All runs together may take this much.")
def prune_runs(max_mb: int) -> None:
    """Remove the oldest runs until all together take at most --max-mb; the latest one stays."""
    from results.runs import RunFolderError, prune

    try:
        for run in prune(max_mb << 20):
            click.echo(f"removed {run.path} ({_size(run.size)})")
    except RunFolderError as failure:
        raise CouldNotRunError(str(failure)) from None


def _size(count: int) -> str:
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"
