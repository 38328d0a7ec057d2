"""`stacktap compare TARGET...`: identical requests to several servers, and one verdict across them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stacktap.failure import CouldNotRunError, cannot_write

if TYPE_CHECKING:
    from probe.compare import Question


@click.command("compare")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("--model", help="Model name to ask every target for; by default the one it holds.")
@click.option(
    "--preset", type=click.Choice(["agent", "paper"]), default="agent", show_default=True, help="What to ask."
)
@click.option("--from", "run_name", metavar="RUN", help="Send a recorded request instead (an id, @last, a folder).")
@click.option("--attempt", type=click.IntRange(1), default=1, show_default=True, help="With --from: which one.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Run folder; by default a new one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    targets: tuple[str, ...],
    model: str | None,
    preset: str,
    run_name: str | None,
    attempt: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Send identical requests to several servers; print the matrix of outcomes, the differences, and whose fault it is.

    A TARGET is a URL, `up:STACK:MODEL [FLAGS]` (started and stopped here, one at a time) or `mlx:DIR`, each with a name
    of its own if you like: `a=http://localhost:8080`. Exit code 0: all answer well and alike, 1: they do not.
    """
    from probe.compare import PRESETS, TargetError, compare, parse_target
    from probe.compare.comparison import text
    from proxy.event_loop import run
    from proxy.session import SessionError
    from stacks.launching.launch import termination_as_interrupt

    try:
        parsed = [parse_target(target, model) for target in targets]
        questions = [_recorded(run_name, attempt)] if run_name else PRESETS[preset]
        words = preset == "paper" and run_name is None
        tell = _told if sys.stderr.isatty() and not as_json else _silent
        with termination_as_interrupt():
            found = run(compare(parsed, questions, out=out, words=words, tell=tell))
    except TargetError as failure:
        raise click.UsageError(str(failure)) from None
    except SessionError as failure:
        raise CouldNotRunError(str(failure)) from None
    except PermissionError as failure:
        raise CouldNotRunError(cannot_write(failure)) from None
    click.echo(json.dumps(found.facts(), ensure_ascii=False) if as_json else text(found))
    if all(cell.outcome is None for cell in found.cells):
        raise click.exceptions.Exit(3)
    if found.differ():
        raise click.exceptions.Exit(1)


def _recorded(run_name: str, attempt: int) -> Question:
    from probe.compare import from_recorded
    from probe.compare.questions import QuestionError
    from results.reader import JournalMissingError, RunReader
    from results.runs import RunNotFoundError, find

    try:
        exchange = RunReader(find(run_name)).read(attempt)
        if exchange is None:
            raise CouldNotRunError(f"run {run_name} has no attempt {attempt}; see: stacktap show {run_name}")
        return from_recorded(exchange)
    except (RunNotFoundError, JournalMissingError, QuestionError, OSError) as failure:
        raise CouldNotRunError(str(failure)) from None


def _told(line: str) -> None:
    click.echo(f"... {line}", err=True)


def _silent(line: str) -> None:
    return None
