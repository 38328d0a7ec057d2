"""`stacktap show RUN [ATTEMPT]`: what was recorded, raw and assembled."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from stacktap.failure import CouldNotRunError

if TYPE_CHECKING:
    from results.exchange import Exchange
    from results.outcomes import Judged
    from results.reader import RunReader


@click.command("show")
@click.argument("run")
@click.argument("attempt", type=click.IntRange(1), required=False)
@click.option("--raw", is_flag=True, help="The wire bytes as they were, framing included, with the time of each piece.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: one object, or one a line for a whole run.")
def command(run: str, attempt: int | None, raw: bool, as_json: bool) -> None:
    """Print a run (an id, the beginning of one, @last, or a folder) or one of its attempts."""
    from proxy import present
    from results.reader import JournalMissingError, RunReader
    from results.record import NewerSchemaError
    from results.runs import RunNotFoundError, find

    try:
        reader = RunReader(find(run))
        if attempt is None:
            _show_run(reader, as_json, present)
            return
        exchange, judged = _of_run(reader, attempt)
    except (RunNotFoundError, JournalMissingError, NewerSchemaError, OSError) as failure:
        if isinstance(failure, BrokenPipeError):
            raise
        raise CouldNotRunError(str(failure)) from None
    if exchange is None:
        raise CouldNotRunError(f"there is no attempt {attempt} in {reader.folder}; `stacktap show {run}` lists them")
    if as_json:
        click.echo(json.dumps(present.exchange_facts(exchange, judged, raw=raw), ensure_ascii=False))
        return
    for line in present.raw_lines(exchange) if raw else present.exchange_lines(exchange, judged):
        click.echo(line)


def _of_run(reader: RunReader, attempt: int) -> tuple[Exchange | None, Judged | None]:
    """The attempt and its verdict. Verdicts look back, so everything up to it is judged, in order."""
    from proxy.exchange_view import judged_run
    from proxy.served import servers_of

    found = (one for one in judged_run(reader, servers_of(reader.folder)) if one[0].attempt == attempt)
    return next(found, (None, None))


def _show_run(reader: RunReader, as_json: bool, present: Any) -> None:
    from proxy.exchange_view import judged_run
    from proxy.served import servers_of

    shown = 0
    for shown, (exchange, judged) in enumerate(judged_run(reader, servers_of(reader.folder)), 1):  # noqa: B007 - counted for the line after the loop
        if as_json:
            click.echo(json.dumps({"version": 1, **present.row_facts(exchange, judged)}, ensure_ascii=False))
        else:
            click.echo(present.row(exchange, judged))
    if not shown:
        click.echo("nothing was recorded: no request reached the relay", err=True)
    for problem in reader.problems.describe():
        click.echo(f"note: {problem}", err=True)
