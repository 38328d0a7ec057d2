"""`stacktap dense smoke|sweep|validate|report`: agent tasks judged by their end state, on models in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stacks.engine import how_to_get
from stacktap.commands import _dense_report, validate
from stacktap.commands import run as grids
from stacktap.failure import CouldNotRunError

if TYPE_CHECKING:
    from results.episodes import EpisodeRecord

TASK = "files.archive_report"
AGENTS = ("solves", "misses", "strays")


@click.group("dense")
def command() -> None:
    """Whether an agent finishes its task, many times over, on models that run in this process.

    `sweep` is `stacktap run`, `validate` is `stacktap validate`: one form of grid, one way of carrying on.
    """


command.add_command(grids.command, "sweep")
command.add_command(validate.command, "validate")
command.add_command(_dense_report.command, "report")


@command.command("smoke")
@click.option("--model", type=click.Path(path_type=Path), help="A GGUF file, or a folder that MLX loads.")
@click.option("--format", "formats", multiple=True, default=("hermes",), help="How the model writes calls.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Run folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def smoke(model: Path | None, formats: tuple[str, ...], out: Path | None, as_json: bool) -> None:
    """Check the wiring end to end: one task, two runs each, in this process, with tables.

    Without --model known-answer agents stand in the model's place: what each must be called is known, and exit code 1
    says that one was called otherwise. With --model the tools go into the prompt as text.
    """
    from harness.dense.summary import summarise, text
    from harness.grid import GridError, parse_grid
    from harness.grid_run import GridChangedError, run_grid
    from proxy.event_loop import run
    from results.episode_journal import EpisodeJournalError, EpisodeReader
    from results.runs import RunFolderError

    try:
        grid = parse_grid(json.dumps(_grid(model, formats)))
        folder = grids.run_folder(out)
        found = run(run_grid(grid, folder, lambda line: click.echo(f"... {line}", err=True)))
        episodes = list(EpisodeReader(folder)) if found.done else []
    except GridError as wrong:
        raise click.UsageError(str(wrong)) from None
    except (GridChangedError, EpisodeJournalError, RunFolderError) as failure:
        raise CouldNotRunError(str(failure)) from None
    if not found.complete:
        raise CouldNotRunError("\n".join(f"{what}: {why}" for what, why in found.not_run.items()) or "nothing was run")
    unlike = list(_otherwise(episodes)) if model is None else []
    if as_json:
        rows = [{"cell": one.cell.title, "run": one.repeat, **one.labels} for one in episodes]
        click.echo(json.dumps({"version": 1, "folder": str(folder), "episodes": rows, "wrong": unlike}))
    else:
        click.echo("A check of the wiring: two runs of one small task say nothing about a model.\n")
        if model is not None:
            click.echo("The tools stood in the prompt as text, and not in the model's own template.\n")
        click.echo(text(summarise(episodes)))
        click.echo("\n".join(["", *unlike]) if unlike else "")
    click.echo(f"run folder: {folder}", err=True)
    if unlike:
        raise click.exceptions.Exit(1)


def _grid(model: Path | None, formats: tuple[str, ...]) -> dict[str, Any]:
    raw: dict[str, Any] = {"name": "raw", "formats": list(formats)}
    targets: list[dict[str, Any]]
    if model is None:
        up = _engine()
        targets = [{"name": "known", "up": up, "canary": agent} for agent in AGENTS]
        for target in targets:
            target["name"] = f"known-{target['canary']}"
    else:
        if not model.exists():
            raise CouldNotRunError(f"there is no model at {model}")
        up = "mlx_inprocess" if model.is_dir() else "llamacpp_inprocess"
        targets = [{"name": "in-process", "up": up, "path": str(model)}]
        raw["tools"] = "prompt"
    return {
        "targets": targets,
        "conditions": [raw],
        "tasks": [TASK],
        "repeats": 2,
        "sampling": {"temperature": 0.7, "max_tokens": 128, "decoder_seed": "repeat"},
        "limits": {"turns": 4, "attempt_seconds": 600, "episode_seconds": 1800},
    }


def _engine() -> str:
    """The engine that is installed beside stacktap."""
    if find_spec("mlx_lm") is not None:
        return "mlx_inprocess"
    if find_spec("llama_cpp") is not None:
        return "llamacpp_inprocess"
    raise CouldNotRunError(
        "no engine to run a model in this process is installed\n"
        f"  -> {how_to_get('mlx')}; MLX needs Apple silicon or Linux, llama-cpp-python (llamacpp) runs anywhere"
    )


def _otherwise(episodes: list[EpisodeRecord]) -> Iterator[str]:
    """One sentence for each known-answer agent that was called something else than it is."""
    from harness.dense.known_agents import BEHAVIOURS

    for episode in episodes:
        agent = episode.cell.stack.removeprefix("known-")
        known, called = BEHAVIOURS[agent].mode, episode.labels.get("dense", episode.outcome.name)
        if called != known:
            yield f"{episode.cell.title}, run {episode.repeat}: must be {known}, is {called}"
