"""`stacktap pack run`: ask models the tasks of packs, everything through the relay, and judge their answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stacktap.commands._pack_report import shown_run, write_forms
from stacktap.commands._pack_words import split_lists
from stacktap.commands.run import run_folder
from stacktap.failure import CouldNotRunError, cannot_write
from stacktap.program import program

if TYPE_CHECKING:
    from harness.packs.plan import Selection
    from harness.packs.registry import RegistryModel

DEFAULT_REGISTRY = Path("models.yaml")


@click.command("run", cls=split_lists("--tasks", "--model-filter"))
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option(
    "--models",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Registry of models (YAML); ./models.yaml where no TARGET is named.",
)
@click.option(
    "--tasks", multiple=True, type=click.Path(path_type=Path), help="Packs (files or folders); all that are shipped."
)
@click.option("--category", default="", help="Only tasks of this category.")
@click.option("--model-filter", multiple=True, help="Only these models of the registry (keys).")
@click.option("-n", "repeats", type=click.IntRange(1), default=1, show_default=True, help="Answers to each task.")
@click.option(
    "--output", "--out", "out", type=click.Path(path_type=Path, file_okay=False), help="Run folder; carried on."
)
@click.option(
    "--labels",
    type=click.Choice(["own", "aqbe-compat"]),
    default="own",
    show_default=True,
    help="aqbe-compat: AQBE's own number beside each.",
)
@click.option("--quiet", is_flag=True, help="No line for each answer.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    targets: tuple[str, ...],
    models: Path | None,
    tasks: tuple[Path, ...],
    category: str,
    model_filter: tuple[str, ...],
    repeats: int,
    out: Path | None,
    labels: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Ask every model every task once (or -n times) and judge the answers by the pack's checks.

    A TARGET is a URL, up:STACK:MODEL or mlx:DIR, with a name of its own if you like (a=URL). What a server refuses,
    breaks off, cuts or loses is no score of 0: it is named and stands outside. With --output RUN of an earlier run only
    what is missing is asked. Exit code 0: every answer is there, 1: some are not, or a check is at fault.
    """
    from harness.grid import GridError
    from harness.grid_run import GridChangedError
    from harness.packs.model import PackError
    from harness.packs.plan import select
    from harness.packs.running import run_packs
    from proxy.event_loop import run
    from results.episode_journal import EpisodeJournalError
    from results.runs import RunFolderError
    from stacks.launching.launch import termination_as_interrupt

    try:
        chosen = _models(targets, models, model_filter)
        selection = select(tasks, category, repeats)
        _tell_warnings(selection)
        folder = run_folder(out)
        tell = _silent if quiet else _told
        with termination_as_interrupt():
            found = run(run_packs(chosen, selection, folder, tell))
        shown = shown_run(folder, aqbe=labels == "aqbe-compat")
    except (PackError, GridError) as wrong:
        raise click.UsageError(str(wrong)) from None
    except (GridChangedError, EpisodeJournalError, RunFolderError) as failure:
        raise CouldNotRunError(str(failure)) from None
    except PermissionError as failure:
        raise CouldNotRunError(cannot_write(failure)) from None
    except KeyboardInterrupt:
        click.echo(f"stopped; the same command with --output {folder} carries it on", err=True)
        raise
    write_forms(folder, shown)
    from checklists.packs.writing import data, text

    complete = {"folder": str(folder), "declared": found.declared, "done": found.done}
    click.echo(json.dumps({**data(shown), **complete}, ensure_ascii=False) if as_json else text(shown))
    click.echo(f"report: {folder / 'scores.md'} (.html, .json); `{program()} pack report` writes it again", err=True)
    if not found.done:
        raise click.exceptions.Exit(3)
    at_fault = any(
        task.broken for by in shown.results.results.values() for one in by.values() for task in one.tasks.values()
    )
    if not found.complete or at_fault:
        raise click.exceptions.Exit(1)


def _models(targets: tuple[str, ...], models: Path | None, keys: tuple[str, ...]) -> list[RegistryModel]:
    """The models of targets and registry. Raises PackError."""
    from harness.packs.model import PackError
    from harness.packs.registry import filtered, models_of_targets, read_registry

    path = models or (DEFAULT_REGISTRY if not targets and DEFAULT_REGISTRY.is_file() else None)
    if path is None and not targets:
        raise PackError(
            "no model to run: name a TARGET (http://localhost:8080, up:llamacpp:model.gguf) or --models REGISTRY.yaml; "
            f"`{program()} pack init` writes a registry to begin with"
        )
    rows = filtered(read_registry(path), keys) if path is not None else []
    return [*rows, *models_of_targets(targets)]


def _tell_warnings(selection: Selection) -> None:
    for pack in selection.packs:
        for warning in pack.warnings:
            click.echo(f"beware: {warning}", err=True)


def _told(line: str) -> None:
    click.echo(f"... {line}", err=True)


def _silent(line: str) -> None:
    return None
